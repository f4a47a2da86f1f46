"""Calls of many kinds and ends against a real engine, and what their callers saw of usage."""

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.prompts import user
from tests.real.engines import IDLE_SECONDS

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
ROUTES = (*itertools.repeat(CHAT, 5), *itertools.repeat(TEXT, 3), RESPONSES, MESSAGES)
CAPS = {CHAT: "max_tokens", TEXT: "max_tokens", RESPONSES: "max_output_tokens", MESSAGES: "max_tokens"}
TEXT_OF_ALL_KINDS = (
    "the capital of France is a town with many rivers, and its people like bread; "
    "def add(a, b): return a + b  # sums `numbers` {0: [1, 2]} über Straßen 東京は大きな都市です 42 3.14159"
)
LONGEST_PROMPT_WORDS = 20
MOST_TOKENS = 40
LAST = (None, "message_delta", "response.completed", "response.incomplete")
"""Events that tell the usage of a whole answer; OpenAI's first two APIs do not name theirs."""
FAULTS: tuple[tuple[int, dict[str, Any]], ...] = (
    (400, {"temperature": "warm"}),
    (400, {"temperature": 99}),
    (404, {"model": "nobody"}),
    (429, {}),
)


@dataclass(slots=True)
class Call:
    """One call and what became of it. `leaves` says where its caller goes away: None where he stays.

    "event": after so many events of the stream; "share": after that share of the time that it would take.
    """

    id: str
    key: int
    route: str
    tokens: int
    stream: bool
    body: dict[str, Any]
    status: int = 200
    leaves: tuple[str, float] | None = None
    left: bool = False
    events: int = 0
    usage: tuple[int, int] | None = None  # prompt and completion tokens, as the caller was told
    seconds: float = 0.0


def calls(seed: int, model: str, count: int, keys: int) -> list[Call]:
    """So many calls of all routes, streamed and not, of as many keys: one in three is left, one in ten fails.

    Those that are over a limit are calls of one key more.
    """
    chance = random.Random(seed)  # noqa: S311  the same calls each time
    return [_call(chance, model, number, keys) for number in range(count)]


def _call(chance: random.Random, model: str, number: int, keys: int) -> Call:
    route, tokens, stream = chance.choice(ROUTES), chance.randint(4, MOST_TOKENS), chance.random() < 0.6
    text = " ".join(chance.choices(TEXT_OF_ALL_KINDS.split(), k=chance.randint(1, LONGEST_PROMPT_WORDS)))
    body: dict[str, Any] = {"model": model, CAPS[route]: tokens, **_said(route, text)}
    if route in (CHAT, TEXT):
        body["ignore_eos"] = True
    if stream:
        body["stream"] = True
        if route in (CHAT, TEXT):
            body["stream_options"] = {"include_usage": True}
    call = Call(f"call-{number}", number % keys, route, tokens, stream, body)
    kind = chance.random()
    if kind < 1 / 3:
        by_event = stream and chance.random() < 0.75
        call.leaves = ("event", chance.randint(1, tokens)) if by_event else ("share", chance.random())
    elif kind < 0.43:
        _spoil(chance, call, keys)
    return call


def _said(route: str, text: str) -> dict[str, Any]:
    if route in (CHAT, MESSAGES):
        return {"messages": user(text)}
    return {"prompt" if route == TEXT else "input": text}


def _spoil(chance: random.Random, call: Call, keys: int) -> None:
    if chance.random() < 0.2 and call.route == TEXT:
        call.status, call.body["prompt"] = 400, "long " * 9000
        return
    call.status, fields = chance.choice(FAULTS)
    call.body |= fields
    if call.status == 429:
        call.key = keys


@dataclass(slots=True)
class Callers:
    """Makes calls of several keys, so many at a time."""

    url: str
    keys: list[str]
    http: httpx.AsyncClient
    at_once: int
    _pace_seconds: float = 0.05  # of one token, as seen so far
    _open: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._open = asyncio.Semaphore(self.at_once)

    async def make(self, wanted: list[Call]) -> None:
        """All of them; returns when each has ended."""
        await asyncio.gather(*(self._make(call) for call in wanted))

    async def _make(self, call: Call) -> None:
        async with self._open:
            loop = asyncio.get_running_loop()
            began = loop.time()
            match call.leaves:
                case ("share", share):
                    await self._leave_after(share * (call.tokens + 2) * self._pace_seconds, call)
                case _:
                    await self._read(call)
            call.seconds = loop.time() - began
            if call.usage and not call.stream:
                self._pace_seconds += (call.seconds / call.usage[1] - self._pace_seconds) / 10

    async def _leave_after(self, seconds: float, call: Call) -> None:
        reading = asyncio.create_task(self._read(call))
        await asyncio.wait({reading}, timeout=seconds)
        call.left = reading.cancel()
        await asyncio.wait({reading})
        if not call.left:
            reading.result()

    async def _read(self, call: Call) -> None:
        url = self.url + call.route
        headers = {"x-api-key": self.keys[call.key], "x-request-id": call.id}
        async with self.http.stream(
            "POST", url, json=call.body, headers=headers, timeout=IDLE_SECONDS
        ) as answer:
            if answer.status_code != call.status:
                raise AssertionError(f"{call} answered {answer.status_code}: {await answer.aread()!r}")
            if call.status != 200:
                await answer.aread()
            elif call.stream:
                await self._read_events(call, answer)
            else:
                call.usage = counts(json.loads(await answer.aread())["usage"])

    async def _read_events(self, call: Call, answer: httpx.Response) -> None:
        async for document in events(answer):
            assert "error" not in document, document
            found = document.get("usage") or document.get("response", {}).get("usage")
            if found and document.get("type") in LAST:
                call.usage = counts(found)
            call.events += 1
            if call.leaves == ("event", call.events):
                call.left = True
                return


async def events(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """The documents of an event stream, but for `[DONE]`."""
    async for line in answer.aiter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def counts(usage: dict[str, Any]) -> tuple[int, int]:
    """Prompt and completion tokens of a usage object, in OpenAI's names or in those of both other APIs."""
    if "prompt_tokens" in usage:
        return usage["prompt_tokens"], usage["completion_tokens"]
    cached = usage.get("cache_read_input_tokens") or 0
    return usage["input_tokens"] + cached, usage["output_tokens"]
