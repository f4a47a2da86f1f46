"""A gateway that is fuzzed, and what must be true of it whatever was sent."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.routes import OF_ENGINES
from tests.callers import CALL, MODEL, Answer, ask, chat
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine, Seen
from tests.running import Gateway, wait_for

MAX_BODY_BYTES = 1 << 18
MAX_BODIES = 8
# As long as a head may take, so that a machine which stands still for less changes no answer.
STALL_SECONDS = 10.0
REST_SECONDS = 60.0
GROWN_BYTES = 16 << 20
SPARE_FILES = 16
ENGINES_KEY = "the-engines-own-key"
# Memory for so many bodies of the largest size by one key, which leaves a sixteenth to others:
# a byte that is not given back shows in `at_rest`.
CONFIG = f"""
[server]
max_body_bytes = {MAX_BODY_BYTES}
max_buffered_bytes = {MAX_BODIES * MAX_BODY_BYTES * 16 // 15}
client_stall_seconds = {STALL_SECONDS}
keep_alive_seconds = 2

[engine]
connect_timeout_seconds = 60

[[models]]
id = "{MODEL}"
aliases = ["default"]
engines = ["{{url}}"]
"""
HEADERS_TO_ENGINE = {
    "host", "content-type", "content-length", "transfer-encoding", "accept", "accept-encoding",
    "authorization", "x-request-id",
}  # fmt: skip


@dataclass
class Fuzzed:
    """A gateway and its engine. `read` is how much of the log has been looked at."""

    gateway: Gateway
    engine: FakeEngine
    key: str
    key_id: str
    read: int = 0

    def complaints(self) -> list[str]:
        """What the process wrote since the last look that it would not write of a caller's mistake."""
        text = self.gateway.log_file.read_bytes()[self.read :].decode(errors="replace")
        self.read += len(text.encode())
        return complaints(text)

    async def check(self) -> None:
        """Fails unless the log is calm, the engine got what is ours alone, and all is at rest."""
        assert not (complaints := self.complaints()), complaints[:3]
        at_engine = await self.engine.requests()
        strange = [(request, why) for request in at_engine if (why := foreign(request))]
        assert not strange, strange[:5]
        await self.at_rest()

    async def at_rest(self) -> None:
        """Fails unless the process lives and answers, and nothing is open or held of all that was sent."""
        assert self.gateway.process.returncode is None, self.gateway.log()[-3000:]
        await wait_for(self._idle, REST_SECONDS, self.gateway.log)
        await self._nothing_taken()

    async def memory_bytes(self) -> float:
        """The process's resident memory."""
        return await self.gateway.metric("process_resident_memory_bytes")

    async def _nothing_taken(self) -> None:
        """As many calls at once as there are slots and memory for: all pass if all of either is free."""
        slots = {"max_parallel": MAX_BODIES}
        changed = await self.gateway.admin("PATCH", f"/admin/keys/{self.key_id}", json=slots)
        assert changed.status_code == 200, changed.text
        await self.engine.reset()
        await self.engine.script(scripts.gated("all", scripts.chat()))
        data = chat(self.key, _largest())
        asked = [asyncio.create_task(ask(self.gateway, data)) for _ in range(MAX_BODIES)]
        await wait_for(lambda: self._gathered(asked), REST_SECONDS)
        await self.engine.open_gate("all", MAX_BODIES)
        answers = await asyncio.gather(*asked)
        assert [answer.status for answer in answers] == [200] * MAX_BODIES, answers

    async def _gathered(self, asked: list[asyncio.Task[Answer]]) -> bool:
        """Whether all of them are at the engine, or one has been answered, which is too soon."""
        return any(task.done() for task in asked) or (await self.engine.stats())["running"] == MAX_BODIES

    async def open_files(self) -> float:
        """How many files and sockets the process has open."""
        return await self.gateway.metric("process_open_fds")

    async def has_closed(self, files: float) -> bool:
        """Whether it has hardly more open than so many: connections to the engine come and go."""
        return await self.open_files() <= files + SPARE_FILES

    async def _idle(self) -> bool:
        inflight = await self.gateway.metric("gateway_inflight")
        return inflight == 0 and (await self.engine.stats())["running"] == 0


def _largest() -> bytes:
    """A call whose body is as large as a body may be."""
    padding = MAX_BODY_BYTES - len(json.dumps({**CALL, "padding": ""}))
    return json.dumps({**CALL, "padding": "x" * padding}).encode()


def complaints(log: str) -> list[str]:
    """The lines that a gateway would not write of a caller's mistake."""
    return [line for line in log.splitlines() if _complains(line)]


def _complains(line: str) -> bool:
    try:
        event: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return True
    # A machine that stands still delays the look at the key store; what else is wrong is the gateway's.
    late = event.get("event") == "key_store_unavailable"
    return "exception" in event or (event.get("level") in ("error", "critical") and not late)


def foreign(request: Seen) -> list[str]:
    """What is wrong with a request at the engine: nothing of a caller's but the body may be in it."""
    names = [name.lower() for name, _ in request.headers]
    wrong = [f"header {name}" for name in names if name not in HEADERS_TO_ENGINE or names.count(name) > 1]
    if request.method != "POST" or request.target not in OF_ENGINES:
        wrong.append(f"{request.method} {request.target}")
    if request.header("authorization") != f"Bearer {ENGINES_KEY}":
        wrong.append("not our key")
    if not (request.header("x-request-id") or "").startswith("req_"):
        wrong.append("not our request id")
    return wrong


def config(engine: FakeEngine) -> str:
    """The gateway.toml of a fuzzed gateway."""
    return CONFIG.format(url=engine.url)


def gateway(folder: Path, engine: FakeEngine) -> Gateway:
    """Not started yet."""
    return Gateway(folder, config=config(engine), GATEWAY_UPSTREAM_API_KEY=ENGINES_KEY)
