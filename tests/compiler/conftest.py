"""Tests of the compiler of kernels. Those of its back end build trees by hand (trees.py)."""
import os
import sys

os.environ.setdefault("DRUPE_CACHE", "0")  # what is tested is built
sys.path.insert(0, os.path.dirname(__file__))
