"""Processes whose engine fails calls of its backends as planned; fault_layer.h has the language of plans."""
import os
import pathlib

import pytest

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("DRUPE_TEST_BUILD", HERE.parents[1] / "build" / "tests"))


def environment(plan=""):
    """What such a process needs. It starts with this plan; start/fault_layer.py makes others."""
    built = list((BUILD / "tests" / "layers").glob("_engine.*.so"))
    if not built:
        pytest.skip(f"the target faulty_engine is not built in {BUILD}; ./dev test does that")
    path = os.pathsep.join([str(HERE / "start"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYTHONPATH": path, "DRUPE_TEST_ENGINE": str(built[0]), "DRUPE_FAULT": plan}
