"""`make up` brings up a stack that answers the SDKs of callers."""

import json
import shlex

from tests.prompts import CAPITAL
from tests.running import wait_for
from tests.stack import commands
from tests.stack.stack import Stack


async def test_every_service_is_up_and_well(stack: Stack) -> None:
    """Those of the compose file with the profile, none missing, none restarted on the way."""
    wanted = set((await stack.compose("config", "--services")).split())
    await wait_for(stack.healthy)
    found = await stack.containers()
    assert {one.service: one.restarts for one in found.values()} == dict.fromkeys(wanted, 0)


async def test_the_printed_line_answers(stack: Stack) -> None:
    """What `make up` prints last can be pasted in its folder."""
    line = stack.invitation.rstrip().splitlines()[-1]
    assert line.startswith("curl "), stack.invitation
    answer = await commands.run(["sh", "-c", line], environ=stack.environ, folder=stack.folder)
    assert "Paris" in json.loads(answer)["choices"][0]["message"]["content"]
    assert stack.key not in stack.invitation
    assert shlex.split(line)[0] == "curl"


async def test_the_sdk_gets_an_answer_over_verified_tls(stack: Stack) -> None:
    """With the exported authority alone to trust, and the engine's own counts."""
    async with stack.sdk() as sdk:
        answer = await sdk.chat.completions.create(
            model="default", messages=CAPITAL, temperature=0, max_tokens=24
        )
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    assert answer.usage.completion_tokens <= 24


async def test_the_sdk_gets_a_stream_in_pieces(stack: Stack) -> None:
    """Through Caddy, piece by piece."""
    async with stack.sdk() as sdk:
        stream = await sdk.chat.completions.create(
            model="default", messages=CAPITAL, temperature=0, max_tokens=24, stream=True
        )
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert len(pieces) > 4
    assert "Paris" in "".join(pieces)


async def test_a_second_up_changes_nothing(stack: Stack) -> None:
    """The same containers, the same key, the same printed line."""
    before = {one.service: one.started for one in (await stack.containers()).values()}
    key = stack.key
    assert (await stack.make("up")).splitlines()[-1] == stack.invitation.rstrip().splitlines()[-1]
    assert {one.service: one.started for one in (await stack.containers()).values()} == before
    assert stack.key == key
