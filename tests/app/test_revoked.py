"""What a caller hears whose key ends while a call of it is running."""

import asyncio

from tests.callers import ask, chat
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway

ENDED = "Your key was revoked or has expired while this call was running."


async def test_a_call_that_is_cut_is_told_that_its_key_has_ended(
    gateway: Gateway, fake_engine: FakeEngine
) -> None:
    """In a stream's last event or as the answer: the code of any bad key, but not that it was mistyped."""
    made = await gateway.create_key(name="ends")
    await fake_engine.script(scripts.stream(2, end="hang"), times=1)
    await fake_engine.script([{"hang": True}])
    streamed = asyncio.create_task(ask(gateway, chat(made["key"], stream=True)))
    await fake_engine.wait(running=1)
    plain = asyncio.create_task(ask(gateway, chat(made["key"])))
    await fake_engine.wait(running=2)
    await gateway.admin("DELETE", f"/admin/keys/{made['id']}")
    *_, last = (await streamed).body.removesuffix(b"\n\n").split(b"\n\n")
    assert last.startswith(b'data: {"error":{')
    assert ENDED.encode() in last
    assert b'"invalid_api_key"' in last
    answer = await plain
    assert (answer.status, answer.error["code"], answer.error["message"]) == (401, "invalid_api_key", ENDED)
