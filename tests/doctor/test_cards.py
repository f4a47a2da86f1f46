"""Which cards the engine gets, as Compose tells them: by number, by name, in its short form, by CDI."""

import json
from typing import Any

import pytest

from gateway.doctor.finding import Unseen
from gateway.doctor.look import stack
from tests.doctor.answers import docker


def reserved(*devices: dict[str, Any]) -> dict[str, Any]:
    """A service that reserves these."""
    asked = [{"capabilities": ["gpu"], **device} for device in devices]
    return {"deploy": {"resources": {"reservations": {"devices": asked}}}}


def given(service: dict[str, Any]) -> tuple[int, ...] | Unseen | None:
    """The cards of an engine's service."""
    found = stack.compose(docker({"compose config": json.dumps({"services": {"vllm": service}})}))
    assert not isinstance(found, Unseen)
    return found.services["vllm"].cards


@pytest.mark.parametrize(
    ("device", "cards"),
    [
        ({"count": 1}, (0,)),
        ({"count": 2}, (0, 1)),
        ({"count": -1}, None),
        ({"device_ids": ["1"]}, (1,)),
        ({"device_ids": ["0", "0", "2"]}, (0, 2)),
        ({"device_ids": ["nvidia.com/gpu=1"]}, (1,)),
        ({"device_ids": ["nvidia.com/gpu=all"]}, None),
        ({"device_ids": ["GPU-6d1b"]}, "GPU-6d1b"),
        ({"device_ids": ["0", "nvidia.com/gpu=GPU-6d1b"]}, "GPU-6d1b"),
        ({}, None),
    ],
)
def test_which_cards_the_engine_gets(device: dict[str, Any], cards: tuple[int, ...] | str | None) -> None:
    """As `docker compose config` tells them: `all` is -1; of names it is said that they are not resolved."""
    found = given(reserved({"driver": "nvidia", **device}))
    assert cards in found.why if isinstance(cards, str) and isinstance(found, Unseen) else found == cards


@pytest.mark.parametrize(
    ("service", "cards"),
    [
        ({"gpus": [{"count": 1}]}, (0,)),
        ({"gpus": [{"count": -1}]}, None),
        ({"gpus": "all"}, None),
        ({"devices": [{"source": "nvidia.com/gpu=1", "target": "nvidia.com/gpu=1"}]}, (1,)),
        (reserved({"device_ids": ["0"]}, {"device_ids": ["1"]}), (0, 1)),
        (reserved({"count": 1}, {"count": 1}), (0, 1)),
        (reserved({"device_ids": ["1"]}, {"count": 1}), (0, 1)),
        (reserved({"count": 1}, {"count": -1}), None),
        (reserved({"capabilities": ["tpu"], "count": 1}) | {"gpus": [{"count": 2}]}, (0, 1)),
    ],
)
def test_cards_by_other_ways(service: dict[str, Any], cards: tuple[int, ...] | None) -> None:
    """Compose's short form, CDI, and several requests together."""
    assert given(service) == cards


def test_no_cards_are_not_all_cards() -> None:
    """A runtime may give some all the same: it is not told which."""
    assert isinstance(given({}), Unseen)
    assert isinstance(given(reserved({"capabilities": ["tpu"], "count": 1})), Unseen)
