"""Whoever ends a call, the engine stops working on it within a second."""

import asyncio
import time

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from tests.prompts import COUNT
from tests.real.conftest import Real
from tests.running import Gateway, wait_for


def long_call(real: Real, *, stream: bool) -> dict[str, object]:
    return {
        "model": real.chat.model,
        "messages": COUNT,
        "max_tokens": 1500,
        "ignore_eos": True,
        "stream": stream,
    }


async def is_running(real: Real) -> bool:
    return await real.chat.running() > 0


async def is_idle(real: Real) -> bool:
    return await real.chat.running() == 0


async def nothing_left(gateway: Gateway) -> bool:
    return await gateway.metric("gateway_inflight") == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_a_caller_who_leaves_frees_the_engine(gateway: Gateway, real: Real, *, stream: bool) -> None:
    """A stream in its middle, a plain call in its wait: both end in the engine within a second."""
    await wait_for(lambda: is_idle(real), 30)
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        headers = {"authorization": f"Bearer {gateway.key}"}
        url = f"{gateway.url}/v1/chat/completions"
        call = asyncio.create_task(http.post(url, headers=headers, json=long_call(real, stream=stream)))
        await wait_for(lambda: is_running(real), 30, gateway.log)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    await wait_for(lambda: is_idle(real), 1.0, gateway.log)
    await wait_for(lambda: nothing_left(gateway), 1.0)


async def test_a_revoked_key_is_refused_and_its_running_stream_cut(
    client: AsyncOpenAI, gateway: Gateway, real: Real
) -> None:
    """Within a second: the stream ends with an error, the next call is a 401, the engine is free."""
    made = await gateway.create_key(name="short-lived")
    mine = client.with_options(api_key=made["key"])
    stream = await mine.chat.completions.create(
        model=real.chat.model, messages=COUNT, max_tokens=1500, stream=True,
        extra_body={"ignore_eos": True},
    )  # fmt: skip
    chunks = aiter(stream)
    await anext(chunks)
    assert (await gateway.admin("DELETE", f"/admin/keys/{made['id']}")).status_code == 200
    revoked_at = time.monotonic()  # from the operator's answer: before it the disk may take its time
    with pytest.raises(openai.APIError) as cut:
        async for _ in chunks:
            pass
    assert cut.value.code == "invalid_api_key"
    with pytest.raises(openai.AuthenticationError):
        await mine.models.list()
    assert time.monotonic() - revoked_at < 1.0
    await wait_for(lambda: is_idle(real), 1.0)


async def test_a_stop_lets_a_stream_end_and_refuses_what_is_new(
    real: Real, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """SIGTERM: the running stream gets its whole answer, a new call a 503, the exit code is 0."""
    async with (
        Gateway(tmp_path_factory.mktemp("drain"), config=real.config) as gateway,
        AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0) as sdk,
    ):
        stream = await sdk.chat.completions.create(
            model=real.chat.model, messages=COUNT, max_tokens=60, stream=True,
            extra_body={"ignore_eos": True},
        )  # fmt: skip
        chunks = aiter(stream)
        await anext(chunks)
        stopped = asyncio.create_task(gateway.stop())
        await wait_for(lambda: _refuses(sdk), 5, gateway.log)
        reasons = [chunk.choices[0].finish_reason async for chunk in chunks]
        assert reasons[-1] == "length"
        assert await stopped == 0


async def _refuses(sdk: AsyncOpenAI) -> bool:
    try:
        await sdk.models.list()
    except openai.InternalServerError as refused:
        assert refused.code == "shutting_down"
        assert refused.response.headers["retry-after"] == "5"
        return True
    return False
