"""Raw bytes at the public port: whatever comes is answered in shape or ended, and nothing is left of it."""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from gateway.routes import OF_ENGINES
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.fuzz import grammar, verdicts
from tests.fuzz.connections import Script, play
from tests.fuzz.corpus import CORPUS
from tests.fuzz.gateways import GROWN_BYTES, REST_SECONDS, Fuzzed
from tests.running import wait_for

SCRIPTS, MANY_SCRIPTS = 400, 4000
AGAIN = 4  # times that the same is played to see whether memory grows
SMALL_VLLM = ("/v1/chat/completions", "/v1/completions")
ANSWER = b'{"object":"list","data":[],"usage":{"prompt_tokens":3,"total_tokens":3}}'


def drawn(count: int) -> list[Script]:
    """So many scripts, the same in each run. They are played together: most of their time is waiting."""
    found: list[Script] = []

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(grammar.script())
    def draw(script: Script) -> None:
        found.append(script)

    draw()
    return found


async def serve(engine: FakeEngine) -> None:
    """Let the engine answer on all routes; it does by itself where it is a small vLLM."""
    for route in OF_ENGINES:
        if route not in SMALL_VLLM:
            await engine.script(scripts.answer(ANSWER), path=route)


async def played(fuzzed: Fuzzed, scripts: Sequence[Script]) -> None:
    """Play them all; fails with the scripts that broke a promise."""
    await serve(fuzzed.engine)
    received = await play(fuzzed.gateway, scripts, fuzzed.key)
    broken = [
        f"{why}: {script}\n-> {heard.data[:1000]!r}" for script,
        heard in zip(scripts, received, strict=True) if (why := verdicts.broken(script, heard))
    ]  # fmt: skip
    assert not broken, "\n\n".join([f"{len(broken)} in all", *broken[:9]])
    assert not (complaints := fuzzed.complaints()), (complaints[:3], await culprits(fuzzed, scripts))
    await fuzzed.check()


async def culprits(fuzzed: Fuzzed, scripts: Sequence[Script]) -> list[Script]:
    """The first scripts that make the log complain when they are played alone."""
    found: list[Script] = []
    for script in scripts:
        await play(fuzzed.gateway, [script], fuzzed.key)
        if fuzzed.complaints():
            found.append(script)
        if len(found) == 3:
            break
    return found


async def test_nasty_and_random_bytes_are_answered_in_shape_or_ended(fuzzed: Fuzzed) -> None:
    """No 5xx, no trace in the log, no hang; no word of theirs at the engine; at rest as before them.

    Known attacks and accidents whole, byte by byte and left; and what a grammar draws.
    """
    await played(fuzzed, [*CORPUS, *drawn(SCRIPTS)])


@pytest.mark.long
async def test_many_more_random_bytes_are_answered_in_shape_or_ended(fuzzed: Fuzzed) -> None:
    """The same, for longer."""
    await played(fuzzed, drawn(MANY_SCRIPTS))


@pytest.mark.long
async def test_nothing_of_what_was_sent_stays_in_memory_or_open(fuzzed: Fuzzed) -> None:
    """Played again and again, the same takes no more memory and no more files than the first times."""
    scripts = [*CORPUS, *drawn(SCRIPTS)]
    await play(fuzzed.gateway, scripts, fuzzed.key)
    await play(fuzzed.gateway, scripts, fuzzed.key)
    before, files = await fuzzed.memory_bytes(), await fuzzed.open_files()
    for _ in range(AGAIN):
        await play(fuzzed.gateway, scripts, fuzzed.key)
    assert await fuzzed.memory_bytes() < before + GROWN_BYTES
    await wait_for(lambda: fuzzed.has_closed(files), REST_SECONDS)
    await fuzzed.check()
