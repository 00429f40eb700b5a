"""@jupyterlab/services in node against a real server: one scenario of services.mjs each."""
import pytest
from servers import scenarios


@pytest.mark.parametrize("scenario", scenarios("services.mjs"))
def test_services(server, scenario):
    server.node("services.mjs", scenario)
