"""Faults of device work cost the work, however many there are."""
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "soak"))
import faults  # noqa: E402


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler")
@pytest.mark.parametrize("threads", [1, 2, 16, 100])
def test_as_often_as_you_like(threads):
    """As a soak it is 10,000 launches: ./dev soak faults."""
    assert faults.problems_of(300, threads) == []
