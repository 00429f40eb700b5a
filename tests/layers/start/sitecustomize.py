"""In PYTHONPATH: `drupe._engine` is the extension module with the layer that fails calls, $DRUPE_TEST_ENGINE."""
import importlib.util
import os
import sys


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, os.environ["DRUPE_TEST_ENGINE"]) \
            if name == "drupe._engine" else None


sys.meta_path.insert(0, Finder)
