"""Keys with limits before the fake engine: calls of theirs, and how much is left to them."""

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gateway.errors import RateLimitExceeded
from tests.callers import Answer, ask, chat, request
from tests.fake_engine import answers, scripts
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway, wait_for
from tests.usage_rows import Row, rows

# What it tells of tokens may be anything: nobody's prompts are estimated by it but its own.
ODD = "odd-model"
TPM = 100_000
CONFIG = """
[server]
heartbeat_seconds = 0

[budgets]
timezone = "{zone}"

{more}

[[models]]
id = "fake-model"
engines = ["{url}"]

[[models]]
id = "odd-model"
engines = ["{url}"]
engine_model = "fake-model"
"""
GO_DURATION = re.compile(r"(?=\d)(\d+h)?(\d+m)?(\d+(\.\d+)?s)?|\d+(\.\d+)?ms")
SPENT = {"prompt_tokens": 7, "completion_tokens": 10_000, "total_tokens": 10_007}


def noon() -> str:
    """A time zone in which no day or month ends while the tests run."""
    offset = 12 - datetime.now(UTC).hour
    return f"Etc/GMT{-offset:+}" if offset else "UTC"


def config(engine_url: str, more: str = "") -> str:
    """A gateway.toml, `more` being its `[limits.default]`."""
    return CONFIG.format(url=engine_url, zone=noon(), more=more)


@dataclass(frozen=True, slots=True)
class Limited:
    """A key of one gateway, with these limits."""

    gateway: Gateway
    id: str
    key: str

    async def ask(self, **fields: Any) -> Answer:
        """The answer to a chat call with these fields."""
        return await ask(self.gateway, chat(self.key, **fields))

    async def status(self, **fields: Any) -> int:
        """Its status alone."""
        return (await self.ask(**fields)).status

    async def left(self) -> Mapping[str, int]:
        """How many requests and tokens are left, as a call that costs nothing is told."""
        answer = await ask(self.gateway, request("GET", "/v1/models", [("x-api-key", self.key)]))
        return remaining(answer)

    async def spend_all(self, engine: FakeEngine) -> None:
        """Use up the tokens of hours, by a call that the engine says was large."""
        await engine.script(told(SPENT), times=1)
        assert await self.status(model=ODD, max_tokens=1) == 200


async def limited(gateway: Gateway, **limits: Any) -> Limited:
    """A new key with these limits."""
    made = await gateway.create_key(name="limited", **limits)
    return Limited(gateway, made["id"], made["key"])


def told(usage: Any, *, text: str = "Hello.") -> scripts.Steps:
    """A plain answer with this `usage`; `...` for an answer without one."""
    document = answers.completion("fake-model", text, 1)
    document = {name: value for name, value in document.items() if name != "usage"}
    return scripts.answer(json.dumps(document if usage is ... else {**document, "usage": usage}))


def remaining(answer: Answer) -> Mapping[str, int]:
    """What the headers of an answer say is left, of requests and tokens; their form is checked too."""
    found = {}
    for what in ("requests", "tokens"):
        names = [f"x-ratelimit-{part}-{what}" for part in ("limit", "remaining", "reset")]
        present = [name in answer.headers for name in names]
        assert all(present) or not any(present), answer.headers
        if all(present):
            limit, left, reset = (answer.headers[name] for name in names)
            assert 0 <= int(left) <= int(limit)
            assert GO_DURATION.fullmatch(reset), reset
            found[what] = int(left)
    return found


def refused_by(answer: Answer, limit: str) -> bool:
    """Whether an answer is the refusal of this limit that passes in time, in all its parts."""
    if answer.status != 429:
        return False
    assert (answer.error["code"], answer.error["type"]) == (RateLimitExceeded.code, RateLimitExceeded.type)
    assert answer.error["param"] is None
    assert limit in answer.error["message"]
    assert 1 <= int(answer.headers["retry-after"]) <= 120
    assert answer.headers.get("x-should-retry") != "false"
    return True


class Stopwatch:
    """Started when made: how much a bucket has refilled since is no more than its `refill`."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def refill(self, limit: int) -> float:
        """Of a limit of so many a minute."""
        return limit * (time.monotonic() - self._began) / 60


async def booked(key: Limited, count: int = 1) -> list[Row]:
    """The rows of a key, once there are so many; there are never more."""

    async def written() -> bool:
        return len(rows(key.gateway, key.id)) >= count

    await wait_for(written, evidence=key.gateway.log)
    found = rows(key.gateway, key.id)
    assert len(found) == count
    return found


def total(row: Row) -> int:
    """What a row takes of limits and budgets."""
    tokens: int = row["prompt_tokens"] + row["completion_tokens"]
    return tokens


def having(row: Row, **fields: Any) -> bool:
    """Whether a row says just this."""
    return {name: row[name] for name in fields} == fields
