"""A notebook that uses devices, in JupyterLab and Notebook 7: one scenario of live.mjs each; pictures too."""
import pytest
from servers import scenarios


@pytest.mark.parametrize("scenario", scenarios("live.mjs"))
def test_live(server, scenario):
    server.node("live.mjs", scenario)
