"""Keys share a prefix cache with their own group alone."""

import copy
import re
from typing import Any

import pytest

from gateway.policy import Catalogue, Salts, explain
from gateway.routes import ROUTES
from gateway.settings import Policy
from tests.policy.calls import CHAT, key, model, prepare

SALT = Salts("secret").of("team")
SALTED = {
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/embeddings",
    "/v1/rerank",
    "/v1/score",
    "/classify",
    "/pooling",
}


def test_a_salt_is_one_of_its_group_and_secret() -> None:
    """The same for as long as both are, another for any other; printable, and short enough for vLLM."""
    assert Salts("secret").of("team") == SALT
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", SALT)
    others = {Salts("secret").of("tean"), Salts("secreu").of("team"), Salts("secret").of("")}
    assert len(others | {SALT}) == 4


def test_a_secret_of_any_bytes_will_do() -> None:
    """An environment may hold what is no UTF-8."""
    assert Salts("caf\udce9").of("team") != SALT


@pytest.mark.parametrize("route", [row.template for row in ROUTES if row.served == "engine"])
def test_each_route_that_reads_the_prefix_cache_is_salted(route: str) -> None:
    """Others, and forms, have no such field."""
    assert prepare({}, route=route, salt=SALT).body.get("cache_salt") == (SALT if route in SALTED else None)


@pytest.mark.parametrize("of_model", [model(cache_isolation="none"), model(kind="openai")])
def test_where_nothing_is_isolated_nothing_is_written(of_model: Any) -> None:
    """Nor is the caller's own salt sent."""
    prepared = prepare({"cache_salt": "mine"}, of_model, salt=SALT)

    assert "cache_salt" not in prepared.body
    assert "cache_salt" in prepared.dropped


def test_nobody_chooses_the_salt() -> None:
    """Neither the caller, nor a default, nor a force that an operator wrote for something else."""
    of_model, of_key = model(defaults={"cache_salt": "x"}), key(force={"cache_salt": "y"})
    target = Catalogue([of_model]).find("m", of_key)
    body = {"cache_salt": "z"}

    explained = explain(
        copy.deepcopy(body), route=CHAT, target=target, key=of_key, policy=Policy(), salt=SALT
    )

    assert explained.body["cache_salt"] == SALT
    assert explained.sources["cache_salt"] == "gateway"
    assert explained.dropped == ("cache_salt",)
