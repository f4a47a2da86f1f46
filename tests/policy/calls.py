"""Keys, models and calls as the tests of policy need them."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.errors import InvalidRequest
from gateway.keys import Key
from gateway.policy import Catalogue, Prepared, apply
from gateway.settings import Model, Policy

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"

AUDIO = "/v1/audio/transcriptions"
WRITTEN_BY_US = {RESPONSES: {"store": False}}
"""What every body of a route has, whatever was sent."""

HELLO = [{"role": "user", "content": "hello"}]


def key(
    *,
    models: tuple[str, ...] | None = None,
    defaults: dict[str, Any] | None = None,
    force: dict[str, Any] | None = None,
) -> Key:
    """A key without limits."""
    return Key(
        id="abcdefghijkl",
        name="test",
        rpm=None,
        tpm=None,
        max_parallel=None,
        tokens_per_day=None,
        tokens_per_month=None,
        models=models,
        priority="interactive",
        weight=1.0,
        cache_group="abcdefghijkl",
        expires_at=None,
        defaults=defaults or {},
        force=force or {},
        metadata={},
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        last_used_at=None,
        revoked_at=None,
    )


def model(name: str = "m", **fields: Any) -> Model:
    """A model on an engine that nobody asks."""
    return Model(id=name, engines=("http://127.0.0.1:8000",), **fields)


def prepare(
    body: dict[str, Any],
    of: Model | None = None,
    *,
    route: str = CHAT,
    by: Key | None = None,
    policy: Policy | None = None,
    salt: str | None = None,
) -> Prepared:
    """What becomes of a body; its model is the only one unless the body names a variant."""
    caller = by or key()
    target = Catalogue([of or model()]).find(body.get("model"), caller)
    body = copy.deepcopy(body)  # apply changes it, and the tests share theirs
    return apply(body, route=route, target=target, key=caller, policy=policy or Policy(), salt=salt)


def sent(
    body: dict[str, Any],
    of: Model | None = None,
    *,
    route: str = CHAT,
    by: Key | None = None,
    policy: Policy | None = None,
) -> dict[str, Any]:
    """The body that the engine gets, without its model and what every body of the route has."""
    prepared = prepare(body, of, route=route, by=by, policy=policy).body
    ours = {"model": prepared["model"], **WRITTEN_BY_US.get(route, {})}
    assert ours.items() <= prepared.items()
    return {name: value for name, value in prepared.items() if name not in ours}


def refused(body: dict[str, Any], *, route: str = CHAT, policy: Policy | None = None) -> str | None:
    """The `param` of the 400 that a body meets."""
    with pytest.raises(InvalidRequest) as error:
        prepare(body, route=route, policy=policy)
    assert error.value.status == 400
    return error.value.param
