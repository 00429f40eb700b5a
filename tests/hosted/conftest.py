"""tests/hosted: the broker and what stands on it, as programs."""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
