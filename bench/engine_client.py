"""CPU of the engine client per request and per paced chunk, beside aiohttp's, in one process.

    python -m bench.engine_client [REQUESTS [STREAMS]]

The engine is the tests' fake one, in a process of its own. Figures are CPU, user and system, of the
client's process in microseconds; compare the two within one run and no figure across runs.
"""

import asyncio
import gc
import resource
import sys
from collections.abc import Awaitable, Callable

import aiohttp
import uvloop

from gateway.engines import Client
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine

ROUNDS = 5
EVENTS = 50
PACE_SECONDS = 0.02
AT_ONCE = 16
PATH = "/v1/chat/completions"
PLAIN = b'{"model":"fake-model","messages":[{"role":"user","content":"How are you?"}]}'
STREAM = b'{"stream":true}'

Send = Callable[[bytes], Awaitable[int]]


def ours(client: Client) -> Send:
    """One exchange of our client; the number of times that bytes came."""

    async def send(body: bytes) -> int:
        exchange = await client.send(b"POST", PATH.encode(), [(b"content-type", b"application/json")], body)
        try:
            await exchange.head()
            chunks = 0
            while not exchange.complete:
                await exchange.chunk()
                chunks += 1
            return chunks
        finally:
            exchange.close()

    return send


def aiohttps(session: aiohttp.ClientSession, url: str) -> Send:
    """The same with aiohttp."""

    async def send(body: bytes) -> int:
        headers = {"content-type": "application/json"}
        async with session.post(url + PATH, data=body, headers=headers) as answer:
            chunks = 0
            while await answer.content.readany():
                chunks += 1
            return chunks

    return send


async def cpu_microseconds(send: Send, body: bytes, times: int) -> float:
    """CPU for each request, or for each chunk if there are several."""
    before = _cpu_seconds()
    chunks = 0
    for _ in range(times // AT_ONCE):
        chunks += sum(await asyncio.gather(*[send(body) for _ in range(AT_ONCE)]))
    return (_cpu_seconds() - before) * 1e6 / max(chunks, times)


async def main(requests: int, streams: int) -> None:
    """Print the medians, and the ratio of ours to aiohttp's."""
    async with FakeEngine() as engine, aiohttp.ClientSession() as session:
        client = Client(engine.url, connect_timeout_seconds=5, keep_alive_seconds=4)
        contenders = {"ours": ours(client), "aiohttp": aiohttps(session, engine.url)}
        gc.freeze()
        for what, body, times in (("request", PLAIN, requests), ("chunk", STREAM, streams)):
            if body is STREAM:
                await engine.script(scripts.stream(EVENTS, pace=PACE_SECONDS))
            found: dict[str, list[float]] = {name: [] for name in contenders}
            for _ in range(ROUNDS):
                for name, send in contenders.items():
                    found[name].append(await cpu_microseconds(send, body, times))
            median = {name: sorted(figures)[ROUNDS // 2] for name, figures in found.items()}
            ratio = median["ours"] / median["aiohttp"]
            figures = ", ".join(f"{name} {figure:.1f} µs" for name, figure in median.items())
            sys.stdout.write(f"per {what}: {figures}; ours is {ratio:.2f} times aiohttp\n")
        client.close()


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    uvloop.run(main(*[*numbers, *[1600, 64][len(numbers) :]]))
