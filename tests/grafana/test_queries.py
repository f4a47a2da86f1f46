"""Every query of every panel is asked of a real Prometheus that scrapes a real gateway."""

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.callers import CHAT, Caller, ask, chat
from tests.fake_engine import answers, scripts
from tests.fake_engine.handle import FakeEngine
from tests.grafana import panels
from tests.grafana.exporters import Exporters
from tests.grafana.panels import Query
from tests.grafana.prometheus import Prometheus, watching
from tests.prometheus.programs import Programs
from tests.running import Gateway, wait_for

SECONDS = 240.0
QUERIES = {name: panels.queries(panels.load(name)) for name in panels.NAMES}
CONFIG = """
[[models]]
id = "fake-model"
engines = ["{url}"]
"""


@dataclass(frozen=True, slots=True)
class Watched:
    """A gateway before an engine, and the Prometheus that watches both."""

    gateway: Gateway
    engine: FakeEngine
    prometheus: Prometheus


Act = Callable[[Watched], Awaitable[None]]


@pytest.fixture(scope="module")
async def watched(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Watched]:
    """All of it, with the exporters that this machine lacks."""
    folder = tmp_path_factory.mktemp("watched")
    async with (
        FakeEngine() as engine,
        Exporters() as exporters,
        Gateway(folder / "gateway", config=CONFIG.format(url=engine.url)) as gateway,
        watching(programs, folder / "prometheus", targets(gateway, exporters)) as prometheus,
    ):
        yield Watched(gateway, engine, prometheus)


def targets(gateway: Gateway, exporters: Exporters) -> dict[str, str]:
    """What is scraped, by the names that the stack's jobs have."""
    jobs = {"vllm": "vllm", "node": "node", "gpu": "dcgm", "site": "blackbox"}
    others = {job: f"{exporters.address}/{name}" for job, name in jobs.items()}
    return {"gateway": gateway.ops.removeprefix("http://") + "/metrics", **others}


async def all_have(watched: Watched, queries: list[Query], act: Act) -> None:
    """Wait until each query has at least one series with a number, `act` being done again and again."""
    silent = list(queries)

    async def none_is_silent() -> bool:
        await act(watched)
        numbers = [await watched.prometheus.values(query.expr) for query in silent]
        silent[:] = [
            query
            for query, values in zip(silent, numbers, strict=True)
            if not any(map(math.isfinite, values))
        ]
        return not silent

    await wait_for(none_is_silent, SECONDS, lambda: "\n".join(f"{q.panel}: {q.expr}" for q in silent))


async def use(watched: Watched) -> None:
    """One call and one stream that go well."""
    await watched.engine.script(scripts.chat(), path=CHAT, times=1)
    assert (await ask(watched.gateway, chat(watched.gateway.key))).status == 200
    await watched.engine.script(scripts.stream(3), path=CHAT, times=1)
    assert (await ask(watched.gateway, chat(watched.gateway.key, stream=True))).status == 200


async def try_everything(watched: Watched) -> None:
    """One of each: a failed call, refusals, a departure, a field dropped, an answer with reasoning."""
    gateway, engine = watched.gateway, watched.engine
    await use(watched)
    await engine.script(scripts.html_502(), path=CHAT, times=1)
    assert (await ask(gateway, chat(gateway.key))).status == 502
    assert (await ask(gateway, chat("no-key"))).status == 401
    await engine.script(scripts.answer(json.dumps(thoughtful())), path=CHAT, times=1)
    assert (await ask(gateway, chat(gateway.key, priority=1))).status == 200
    await leave_and_be_limited(watched)


def thoughtful() -> dict[str, Any]:
    """An answer that was thought about, to a prompt that was partly known."""
    answer = answers.completion("fake-model", "Hello.", 2)
    answer["usage"]["prompt_tokens_details"] = {"cached_tokens": 1}
    answer["usage"]["completion_tokens_details"] = {"reasoning_tokens": 1}
    return answer


async def leave_and_be_limited(watched: Watched) -> None:
    """A second call beside the only one that a key with a budget may have; then the first caller leaves."""
    gateway, engine = watched.gateway, watched.engine
    limited = (await gateway.create_key(name="limited", max_parallel=1, tokens_per_day=1_000_000))["key"]
    await engine.script([{"hang": True}], path=CHAT, times=1)
    async with Caller(gateway) as caller:
        await caller.send(chat(limited))
        await engine.wait(running=1)
        assert (await ask(gateway, chat(limited))).status == 429
    await engine.wait(running=0)


@pytest.mark.parametrize("name", panels.NAMES)
async def test_on_a_stack_in_use_all_panels_have_numbers_but_those_that_wait(
    watched: Watched, name: str
) -> None:
    """After calls that went well, only what is known to wait for an event or for hardware is empty."""
    queries = [query for query in QUERIES[name] if not panels.waits_for(query.expr)]
    assert len(queries) > len(QUERIES[name]) / 3
    await all_have(watched, queries, use)


@pytest.mark.parametrize("name", panels.NAMES)
async def test_once_everything_has_happened_every_panel_has_numbers(watched: Watched, name: str) -> None:
    """With a GPU, speculation and a site too: so each query is right, and each reason for silence is."""
    await all_have(watched, QUERIES[name], try_everything)


@pytest.mark.parametrize("name", panels.NAMES)
async def test_shares_lie_between_nothing_and_all(watched: Watched, name: str) -> None:
    """A ratio upside down, or of things that do not belong together, would not."""
    await all_have(watched, QUERIES[name], try_everything)
    shares = [query for query in QUERIES[name] if query.panel in of_unit("percentunit", name)]
    assert shares
    for query in shares:
        values = await watched.prometheus.values(query.expr)
        assert [value for value in values if value < 0 or value > 1] == [], query.panel


def of_unit(unit: str, name: str) -> set[str]:
    """The titles of a dashboard's panels that show this unit."""
    found = panels.panels(panels.load(name))
    return {panel["title"] for panel in found if panel["fieldConfig"]["defaults"]["unit"] == unit}


async def test_a_query_that_prometheus_does_not_take_is_found(watched: Watched) -> None:
    """With what it says of it."""
    with pytest.raises(AssertionError, match="unclosed left parenthesis"):
        await watched.prometheus.values("sum(rate(up[1m])")
