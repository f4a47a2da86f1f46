"""The gateway adds nothing and loses nothing: to one body, it and its engine answer the same bytes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.real import differential_bodies as bodies
from tests.real.conftest import Real
from tests.real.folding import events, folded, masked, place
from tests.running import Gateway

CALLS, MANY_CALLS = 200, 2000


@dataclass(frozen=True, slots=True)
class Call:
    """One body for one route."""

    route: str
    body: bodies.Body


@dataclass(frozen=True, slots=True)
class Both:
    """The gateway, and the engine that is behind it, asked one after the other."""

    http: httpx.AsyncClient
    gateway: Gateway
    engine: str

    async def ask_gateway(self, call: Call) -> httpx.Response:
        """The gateway's answer."""
        headers = {"authorization": f"Bearer {self.gateway.key}"}
        return await self.http.post(self.gateway.url + call.route, json=call.body, headers=headers)

    async def ask_engine(self, call: Call) -> httpx.Response:
        """The engine's own; on a connection of its own, since it closes idle ones when it likes."""
        return await self.http.post(self.engine + call.route, json=call.body, headers={"connection": "close"})


@pytest.fixture
def both(http: httpx.AsyncClient, gateway: Gateway, real: Real) -> Both:
    """With the tiny model, which is quick and says anything."""
    return Both(http, gateway, real.tiny.url)


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """So many examples, the same in each run."""
    found: list[Any] = []

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strategy)
    def draw(example: Any) -> None:
        found.append(example)

    draw()
    return found


def valid(model: str, count: int) -> Iterator[Call]:
    """Bodies that an engine takes, most for the routes that generate."""
    for route, strategy in bodies.VALID.items():
        share = count // 4 if route in ("/v1/chat/completions", "/v1/completions") else count // 10
        for body in drawn(strategy, share):
            yield Call(route, {"model": model, **body})


async def compared(both: Both, calls: Sequence[Call]) -> None:
    """Ask both, one call at a time: an engine's numbers may depend on what else it works on."""
    differing, unsteady = [], 0
    for call in calls:
        engine, gateway = await both.ask_engine(call), await both.ask_gateway(call)
        why = difference(engine, gateway)
        if why and difference(engine, await both.ask_engine(call)):
            unsteady += 1  # the engine does not agree with itself
        elif why:
            differing.append(
                f"{call}\n{why}\nengine:  {masked(engine.content)!r}\ngateway: {masked(gateway.content)!r}"
            )
    assert not differing, "\n\n".join([f"{len(differing)} of {len(calls)}", *differing[:5]])
    assert unsteady <= len(calls) // 4


def difference(one: httpx.Response, other: httpx.Response) -> str:
    """How two answers differ; empty if they do in ids, times and the cutting of streams alone."""
    if one.status_code != other.status_code:
        return f"status {one.status_code}, {other.status_code}"
    if one.status_code >= 400:
        said, told = words(one), words(other)
        return "" if said == told or (said[0] == told[0] and told[1] is None) else f"{said}, {told}"
    if kind(one) != kind(other):
        return f"{kind(one)}, {kind(other)}"
    if masked(one.content) == masked(other.content):
        return ""
    if kind(one) != "text/event-stream":
        return "other bytes"
    if pieces(one) == pieces(other):
        return "other bytes of a stream cut alike"
    first, second = folded(one.content), folded(other.content)
    if list(first) != list(second) and sorted(first) != sorted(second):
        return f"other events: {list(first)}, {list(second)}"
    return next(
        (f"at {place}: {first[place]}, {second[place]}" for place in first if first[place] != second[place]),
        "",
    )


def words(answer: httpx.Response) -> tuple[str, str | None]:
    """What an error says, and of which field, for which Anthropic's shape has no place."""
    error = answer.json()["error"]
    return error["message"], (error.get("param") or "").removeprefix("body.") or None


def kind(answer: httpx.Response) -> str:
    """The media type."""
    return answer.headers["content-type"].partition(";")[0]


def pieces(answer: httpx.Response) -> list[tuple[str, int]]:
    """Where the events of a stream belong and how long they are: equal where it was cut alike."""
    return [(place(*event), len(str(event))) for event in events(answer.content)]


async def test_the_same_body_gets_the_same_answer(both: Both, real: Real) -> None:
    """On every route that the model serves, streamed or not, byte for byte but for ids and times."""
    await compared(both, list(valid(real.tiny.model, CALLS)))


async def test_what_the_engine_refuses_is_refused_in_its_words(both: Both, real: Real) -> None:
    """All that a caller can mend: the status, the message and the field are the engine's."""
    spoilt = [
        Call(route, {"model": real.tiny.model, **bodies.PLAIN[route], **spoiling})
        for route, spoilings in bodies.SPOILT.items() for spoiling in spoilings
    ]  # fmt: skip
    await compared(both, spoilt)
    assert all([(await both.ask_engine(call)).status_code == 400 for call in spoilt])


@pytest.mark.long
async def test_many_more_bodies_get_the_same_answer(both: Both, real: Real) -> None:
    """The same, for longer."""
    await compared(both, list(valid(real.tiny.model, MANY_CALLS)))
