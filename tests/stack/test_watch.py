"""What watches the stack sees it: each query of rules and dashboards has an answer."""

import math
from typing import Any

import httpx
import pytest

from tests.grafana import panels
from tests.prompts import HELLO, user
from tests.running import wait_for
from tests.stack.stack import Stack

SECONDS = 240.0
# Long enough for what the tests before these did.
WINDOW = "15m"
# Longer than a block of the prefix cache, which is 128 tokens on a CPU.
LONG = user("Which of these words is the longest? " + " ".join(f"word{number}" for number in range(150)))
# What no machine of the tests has: as `panels.waits_for` says it, and as the metrics are called.
NOT_HERE = {
    "a GPU exporter", "a GPU exporter, or a driver on the gateway's own host", "speculative decoding",
    "an answer with reasoning",
}  # fmt: skip

LIMITS = ("--max-parallel", "1", "--tokens-per-day", "1000000")


@pytest.fixture(scope="module")
async def used(stack: Stack) -> Stack:
    """The stack after calls of all kinds, spread over several scrapes: good, refused, limited, left."""
    headers = {"authorization": f"Bearer {stack.key}"}
    async with stack.sdk() as sdk, stack.http() as http:
        call = sdk.chat.completions.create
        for _ in range(3):
            await call(model="default", messages=LONG, max_tokens=4, extra_body={"priority": 1})
            await http.get("/v1/models?api_key=sk-in-the-query", headers={"authorization": "Bearer sk-wrong"})
            await http.post("/v1/chat/completions", json={}, headers=headers)
            await _leave_and_be_limited(stack, http)
            await _scraped(stack)
    return stack


async def _leave_and_be_limited(stack: Stack, http: httpx.AsyncClient) -> None:
    """A second call beside the only one that a key may have; then the first caller leaves."""
    headers = {"authorization": f"Bearer {await stack.create_key('limited', *LIMITS)}"}
    body: dict[str, Any] = {"model": "default", "messages": HELLO, "max_tokens": 2000, "stream": True}
    body["ignore_eos"] = True
    async with http.stream("POST", "/v1/chat/completions", json=body, headers=headers) as first:
        lines = first.aiter_lines()  # kept: once it is forgotten, the answer is closed
        await anext(lines)
        assert (await http.post("/v1/chat/completions", json=body, headers=headers)).status_code == 429


async def _scraped(stack: Stack) -> None:
    """Wait until gateway and engine have been read once more."""
    before = await _read(stack)

    async def anew() -> bool:
        now = await _read(stack)
        return all(now[job] > before[job] for job in before)

    await wait_for(anew, SECONDS)


async def _read(stack: Stack) -> dict[str, float]:
    series = await stack.query('timestamp(up{job=~"gateway|vllm"})')
    return {one["metric"]["job"]: float(one["value"][1]) for one in series}


async def _silent(stack: Stack, queries: dict[str, str]) -> set[str]:
    """The names of those queries that have no series with a number, once that stays so."""
    silent = set(queries)
    with_numbers = {name for name in silent if await _has_numbers(stack, queries[name])}
    return silent - with_numbers


async def _has_numbers(stack: Stack, expression: str) -> bool:
    return any(math.isfinite(float(one["value"][1])) for one in await stack.query(expression))


@pytest.mark.parametrize("name", panels.NAMES)
async def test_every_panel_has_numbers(used: Stack, name: str) -> None:
    """But those of a GPU, of speculative decoding and of reasoning, which this box does not have."""
    asked = panels.queries(panels.load(name), WINDOW)
    queries = {f"{query.panel}: {query.expr}": query.expr for query in asked}
    missing = {text for text, expr in queries.items() if panels.waits_for(expr) in NOT_HERE}
    assert await _silent(used, queries) == missing


async def test_every_rule_has_what_it_asks_for(used: Stack) -> None:
    """Each recording rule records, and each metric of each alert is there; but for those of a GPU."""
    groups = (await used.prometheus("rules"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["health"] for rule in rules} == {"ok"}
    recorded = {rule["name"]: rule["name"] for rule in rules if rule["type"] == "recording"}
    asked = {metric: metric for rule in rules for metric in panels.metrics(rule["query"])}
    silent = await _silent(used, recorded | asked)
    assert {name for name in silent if panels.waits_for(name) not in NOT_HERE} == set()
