"""The hub in a browser; its pictures are build/screens/hub-*.png."""
import os
import pathlib
import shutil

import hub as hubs
import pytest
from servers import NODE, run_scenario, scenarios

HERE = pathlib.Path(__file__).resolve().parent
why_not = hubs.possible() or (None if shutil.which("chromium") and os.path.isdir(NODE) else
                              "there is no chromium or no node package: ./dev clients installs both")
pytestmark = pytest.mark.skipif(why_not is not None, reason=str(why_not))
NAMES = ("alice", "bob", "carol")


@pytest.fixture
def hub(tmp_path):
    accounts, made = [], None
    try:
        for name in NAMES:
            accounts.append(hubs.Account(name))
        made = hubs.Hub(tmp_path)
        yield made
    finally:
        if made:
            made.stop()
        for account in accounts:
            account.remove()


@pytest.mark.parametrize("name", scenarios(HERE / "screens.mjs"))
def test_in_a_browser(hub, name):
    run_scenario(HERE / "screens.mjs", name, DRUPE_URL=hub.address, DRUPE_USERS=",".join(NAMES), DRUPE_ADMIN="root",
                 DRUPE_PASSWORD=hub.password, DRUPE_ADMIN_PASSWORD=hub.admin_password,
                 DRUPE_PICTURES=str(hubs.ROOT / "build" / "screens"))
