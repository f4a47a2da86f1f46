"""What a call costs that its engine let wait for too long."""

import pytest

from tests.fake_engine.handle import FakeEngine
from tests.public.metered import TPM, booked, having, limited, remaining
from tests.running import Gateway, wait_for


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_is_given_up_is_paid_once_and_leaves_its_slot(
    impatient: Gateway, fake_engine: FakeEngine, *, stream: bool
) -> None:
    """The engine may have worked on it, so its prompt counts, and its request."""
    await fake_engine.script([{"hang": True}])
    key = await limited(impatient, rpm=1, tpm=TPM, max_parallel=1)
    answer = await key.ask(stream=stream, max_tokens=20)
    assert (answer.status, answer.error["code"]) == (504, "engine_timeout")
    assert remaining(answer)["requests"] == 0
    [row] = await booked(key)
    assert having(row, estimated=1, status=504, reason="engine_timeout")
    assert row["prompt_tokens"] > 0
    assert row["completion_tokens"] <= (0 if stream else 20)

    async def free() -> bool:
        return await impatient.metric("gateway_open_slots") == 0

    await wait_for(free)
