"""Servers for the tests of clients, which `./dev clients` runs."""
import signal

import pytest
from servers import Server


def pytest_configure(config):
    """A time limit from outside ends servers and browsers, too."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """JupyterLab and Notebook 7."""
    opened = Server(tmp_path_factory.mktemp("server"), "--LabApp.expose_app_in_browser=True",
                    "--JupyterNotebookApp.expose_app_in_browser=True",
                    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate")
    yield opened
    opened.close()


@pytest.fixture
def make_server(tmp_path):
    """Start servers with options of the test's own."""
    opened = []

    def make(*options, application="jupyter_server", **environment):
        opened.append(Server(tmp_path / ("server%d" % len(opened)), *options, application=application, **environment))
        return opened[-1]

    yield make
    for server in opened:
        server.close()
