"""Whoever ends a call, the engine stops working on it."""

import asyncio

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from tests.prompts import COUNT
from tests.real.conftest import Real
from tests.real.engines import LONG_TOKENS
from tests.running import Gateway, wait_for

BUSY_SECONDS = 180.0


def long_call(real: Real, *, stream: bool) -> dict[str, object]:
    return {
        "model": real.chat.model,
        "messages": COUNT,
        "max_tokens": LONG_TOKENS,
        "ignore_eos": True,
        "stream": stream,
    }


async def nothing_left(gateway: Gateway) -> bool:
    return await gateway.metric("gateway_inflight") == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_a_caller_who_leaves_frees_the_engine(gateway: Gateway, real: Real, *, stream: bool) -> None:
    """A stream in its middle, a plain call in its wait: both end in the engine long before they are done."""
    async with real.chat.stops_early(), httpx.AsyncClient(timeout=300, trust_env=False) as http:
        headers = {"authorization": f"Bearer {gateway.key}"}
        url = f"{gateway.url}/v1/chat/completions"
        call = asyncio.create_task(http.post(url, headers=headers, json=long_call(real, stream=stream)))
        await wait_for(real.chat.busy, BUSY_SECONDS, gateway.log)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    await wait_for(lambda: nothing_left(gateway))


async def test_a_revoked_key_is_refused_and_its_running_stream_cut(
    client: AsyncOpenAI, gateway: Gateway, real: Real
) -> None:
    """The stream ends with an error in its midst, the next call is a 401, the engine is free."""
    made = await gateway.create_key(name="short-lived")
    mine = client.with_options(api_key=made["key"])
    async with real.chat.stops_early():
        stream = await mine.chat.completions.create(
            model=real.chat.model, messages=COUNT, max_tokens=LONG_TOKENS, stream=True,
            extra_body={"ignore_eos": True},
        )  # fmt: skip
        chunks = aiter(stream)
        await anext(chunks)
        assert (await gateway.admin("DELETE", f"/admin/keys/{made['id']}")).status_code == 200
        with pytest.raises(openai.APIError) as cut:
            async for _ in chunks:
                pass
        assert cut.value.code == "invalid_api_key"
        with pytest.raises(openai.AuthenticationError):
            await mine.models.list()


async def test_a_stop_lets_a_stream_end_and_refuses_what_is_new(
    real: Real, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """SIGTERM: the running stream gets its whole answer, a new call a 503, the exit code is 0."""
    async with (
        Gateway(
            tmp_path_factory.mktemp("drain"), config=real.config, GATEWAY_SERVER__DRAIN_SECONDS="300"
        ) as gateway,
        AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0) as sdk,
    ):
        stream = await sdk.chat.completions.create(
            model=real.chat.model, messages=COUNT, max_tokens=120, stream=True,
            extra_body={"ignore_eos": True},
        )  # fmt: skip
        chunks = aiter(stream)
        await anext(chunks)
        stopped = asyncio.create_task(gateway.stop())
        await wait_for(lambda: _refuses(sdk), evidence=gateway.log)
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
