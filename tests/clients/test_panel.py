"""The panel in JupyterLab and Notebook 7: one scenario of panel.mjs each. Pictures go to build/screens."""
import pytest
from servers import scenarios

# JupyterLab itself evaluates code and has styles inline; of the panel nothing may be found by the second policy.
PLACES = ("img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws:; worker-src 'self' blob:; "
          "object-src 'none'; frame-ancestors 'self'; ")
POLICIES = {"Content-Security-Policy": PLACES + "script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'",
            "Content-Security-Policy-Report-Only": "default-src 'self'; script-src 'self'; style-src 'self'; " + PLACES}


@pytest.mark.parametrize("scenario", scenarios("panel.mjs"))
def test_panel(server, scenario):
    server.node("panel.mjs", scenario)


def test_strict_policy(make_server):
    server = make_server("--LabApp.expose_app_in_browser=True",
                         "--ServerApp.tornado_settings=%r" % {"headers": POLICIES},
                         application="jupyterlab")
    server.node("policy.mjs", "a strict content security policy")


def test_base_url(make_server):
    """Under a hub, everything has a prefix."""
    server = make_server("--LabApp.expose_app_in_browser=True", "--ServerApp.base_url=/user/zo%C3%AB/",
                         application="jupyterlab")
    server.node("panel.mjs", "JupyterLab shows a timeline that can be read")
