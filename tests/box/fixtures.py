"""A fixture that hands a box to a test. A conftest imports it by name."""

from pathlib import Path

import pytest

from tests.box.boxes import RTX_5090, Box


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """An RTX 5090 under a Docker that is as it should be; nothing was set up yet."""
    made = Box(tmp_path)
    made.has_gpus(RTX_5090)
    return made
