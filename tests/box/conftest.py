"""A fresh box for each test."""

from pathlib import Path

import pytest

from tests.box.boxes import RTX_5090, SERVICES, Box
from tests.running import Gateway


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """An RTX 5090 under a Docker that is as it should be; nothing was set up yet."""
    made = Box(tmp_path)
    made.has_gpus(RTX_5090)
    return made


@pytest.fixture
async def running(box: Box, shared_gateway: Gateway) -> Box:
    """A box that runs, with a real gateway (before a scripted engine) where its door is."""
    port = shared_gateway.url.rpartition(":")[2]
    box.set_up(SITE="off", GATEWAY_PORT=port, GRAFANA_PORT="39300")
    box.runs(*SERVICES, port=int(port))
    box.places.first_key.write_text(f"{shared_gateway.key}\n")
    return box
