"""The parts of the panel that need no browser: one scenario of parts.mjs each."""
import pytest
from servers import run_scenario, scenarios


@pytest.mark.parametrize("scenario", scenarios("parts.mjs"))
def test_parts(scenario):
    run_scenario("parts.mjs", scenario)
