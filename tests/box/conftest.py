"""A fresh box for each test, or one that runs."""

import pytest

from tests.box.boxes import SERVICES, Box
from tests.box.fixtures import box
from tests.running import Gateway

__all__ = ["box"]


@pytest.fixture
async def running(box: Box, shared_gateway: Gateway) -> Box:
    """A box that runs, with a real gateway (before a scripted engine) where its door is."""
    port = shared_gateway.url.rpartition(":")[2]
    box.set_up(SITE="off", GATEWAY_PORT=port, GRAFANA_PORT="39300")
    box.runs(*SERVICES, port=int(port))
    box.places.first_key.write_text(f"{shared_gateway.key}\n")
    return box


@pytest.fixture
def still(box: Box) -> Box:
    """One where nothing runs: what is planned is only written."""
    box.set_up()
    return box
