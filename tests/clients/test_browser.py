"""JupyterLab and Notebook 7 in headless Chromium: one scenario of a script each. Pictures go to build/screens."""
import pytest
from servers import scenarios

SCRIPTS = ("lab.mjs", "magics.mjs", "reports.mjs")


@pytest.mark.parametrize("script, scenario", [(script, one) for script in SCRIPTS for one in scenarios(script)])
def test_browser(server, script, scenario):
    server.node(script, scenario)
