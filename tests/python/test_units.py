"""Numbers for people: three digits that count."""
import pytest

from drupe._units import seconds, size


@pytest.mark.parametrize("count, text", [
    (0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (10 << 10, "10.0 KiB"), (100 << 10, "100 KiB"),
    (1023 << 10, "1023 KiB"),
    ((1 << 20) - 1, "1.00 MiB"), (8 << 20, "8.00 MiB"), (25276502016, "23.5 GiB"), (1 << 60, "1.00 EiB"),
    (1 << 70, "1024 EiB"),
])
def test_sizes(count, text):
    assert size(count) == text


@pytest.mark.parametrize("value, text", [
    (0, "0 ns"), (12.34e-9, "12.3 ns"), (999.6e-9, "1.00 \u00b5s"), (60.6e-6, "60.6 \u00b5s"), (999.7e-6, "1.00 ms"),
    (0.5, "500 ms"), (59.96, "60.0 s"), (599, "599 s"), (600, "10.0 min"), (7200, "2.00 h"),
])
def test_times(value, text):
    assert seconds(value) == text
