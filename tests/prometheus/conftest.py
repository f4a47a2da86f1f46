"""What the tests of this folder share: the programs of Prometheus, or the reason why there are none."""

import pytest

from tests.prometheus import programs as found
from tests.prometheus.programs import Programs, Unavailable


@pytest.fixture(scope="session")
def programs() -> Programs:
    """Prometheus, promtool, Alertmanager, amtool and two exporters; skips where they cannot be had."""
    try:
        return found.find()
    except Unavailable as why:
        pytest.skip(f"no programs of Prometheus here: {why}")
