"""The panel in JupyterLab and Notebook 7: one scenario of panel.mjs each. Pictures go to build/screens."""
import pytest
from servers import scenarios


@pytest.mark.parametrize("scenario", scenarios("panel.mjs"))
def test_panel(server, scenario):
    server.node("panel.mjs", scenario)
