"""The processes that tests start, kernels among them, find tests/layers/testwork.py."""
import os
import pathlib

os.environ["PYTHONPATH"] = os.pathsep.join([str(pathlib.Path(__file__).parent / "layers"),
                                            *filter(None, [os.environ.get("PYTHONPATH")])])
