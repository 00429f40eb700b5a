"""What people see after an hour, in JupyterLab: one scenario of screens.mjs each. Pictures go to build/screens."""
import pytest
from servers import scenarios


@pytest.mark.parametrize("scenario", scenarios("screens.mjs"))
def test_screens(server, scenario):
    server.node("screens.mjs", scenario)
