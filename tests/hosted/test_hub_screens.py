"""The hub in a browser; its pictures are build/screens/hub-*.png and hosted-*.png."""
import json
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


# One device, which goes to who waits once a kernel has been idle for a second.
SHARED = {"devices": [{"id": "cpu", "kind": "cpu", "name": "Processor of this machine",
                       "env": {"DRUPE_DEVICES": "host:*"}}],
          "profiles": {"whole": {"title": "The whole processor", "kind": "cpu", "devices": 1, "seconds": 3600,
                                 "idle": 1}}}
CELLS = ["import drupe.array as da\n\nheat = da.zeros((2000, 2000), device=\"cpu\")\nheat[900:1100, 900:1100] = 100",
         "def steps(count):\n    for _ in range(count):\n        heat[1:-1, 1:-1] = (heat[:-2, 1:-1] + heat[2:, 1:-1]\n"
         "                            + heat[1:-1, :-2] + heat[1:-1, 2:]) / 4\n    return float(heat.max())\n\n"
         "steps(20)\nmore = input(\"20 steps more? \")",
         "more.upper()",
         "steps(20)"]
QUIET = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}


@pytest.fixture
def people():
    made = []
    try:
        for name in NAMES:
            made.append(hubs.Account(name))
        yield made
    finally:
        for account in made:
            account.remove()


@pytest.fixture
def open_hub(people, tmp_path):
    made = []

    def opened(configuration=None):
        made.append(hubs.Hub(tmp_path, configuration))
        return made[-1]

    yield opened
    for hub in made:
        hub.stop()


def visit(hub, script, name):
    run_scenario(HERE / script, name, DRUPE_URL=hub.address, DRUPE_USERS=",".join(NAMES), DRUPE_ADMIN="root",
                 DRUPE_PASSWORD=hub.password, DRUPE_ADMIN_PASSWORD=hub.admin_password,
                 DRUPE_PICTURES=str(hubs.ROOT / "build" / "screens"))


@pytest.mark.parametrize("name", scenarios(HERE / "screens.mjs"))
def test_in_a_browser(open_hub, name):
    visit(open_hub(), "screens.mjs", name)


@pytest.mark.parametrize("name", scenarios(HERE / "shared_device.mjs"))
def test_a_device_of_many_people(open_hub, people, name):
    empty = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**empty, "id": f"c{i}", "source": source} for i, source in enumerate(CELLS)]
    kernel = {"name": "drupe", "display_name": "Python 3 (Drupe)", "language": "python"}
    people[0].write("heat.ipynb", json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel},
                                              "cells": cells}))
    people[0].write(".jupyter/labconfig/page_config.json", json.dumps(QUIET))
    visit(open_hub(SHARED), "shared_device.mjs", name)
