"""JupyterLab and Notebook 7 in headless Chromium: one scenario of lab.mjs each. Pictures go to build/screens."""
import pytest
from servers import scenarios


@pytest.mark.parametrize("scenario", scenarios("lab.mjs"))
def test_browser(server, scenario):
    server.node("lab.mjs", scenario)
