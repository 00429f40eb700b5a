"""The types of numbers, of arrays of them, and of what gives nothing."""
from drupe.compat import _numbas

globals().update(_numbas.types())
