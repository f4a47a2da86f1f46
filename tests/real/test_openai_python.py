"""OpenAI's Python SDK without asyncio, and what it does on its own: headers, time-outs, retries, streams."""

import asyncio
from collections.abc import Iterator

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.prompts import CAPITAL, COUNT, HELLO
from tests.real.conftest import Real
from tests.running import Gateway


@pytest.fixture(scope="module")
def sdk(gateway: Gateway) -> Iterator[OpenAI]:
    """The SDK as most scripts use it."""
    with OpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0) as client:
        yield client


def test_without_asyncio_it_is_the_same(sdk: OpenAI) -> None:
    """A plain answer and the same as a stream, word for word."""
    whole = sdk.chat.completions.create(model="default", messages=CAPITAL, temperature=0, max_tokens=16)
    stream = sdk.chat.completions.create(
        model="default", messages=CAPITAL, temperature=0, max_tokens=16, stream=True
    )
    pieces = [chunk.choices[0].delta.content or "" for chunk in stream]
    assert "".join(pieces) == whole.choices[0].message.content


def test_a_stop_word_ends_the_answer(sdk: OpenAI) -> None:
    """Before it is written, and the answer says so."""
    answer = sdk.chat.completions.create(
        model="default", messages=CAPITAL, temperature=0, max_tokens=40, stop=["Paris"]
    )
    assert answer.choices[0].finish_reason == "stop"
    assert "Paris" not in (answer.choices[0].message.content or "")


def test_choices_and_log_probabilities_are_what_was_asked_for(sdk: OpenAI, real: Real) -> None:
    """Three choices; for each of their tokens the two likeliest."""
    answer = sdk.chat.completions.create(
        model=real.tiny.model, messages=HELLO, max_tokens=4, n=3, logprobs=True, top_logprobs=2,
        extra_body={"ignore_eos": True},
    )  # fmt: skip
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    for choice in answer.choices:
        assert choice.logprobs is not None
        assert [len(token.top_logprobs) for token in choice.logprobs.content or []] == [2] * 4
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 12


def test_several_choices_stream_side_by_side(sdk: OpenAI, real: Real) -> None:
    """Each has its own end."""
    stream = sdk.chat.completions.create(
        model=real.tiny.model, messages=HELLO, max_tokens=4, n=2, stream=True, extra_body={"ignore_eos": True}
    )
    ended = [c.index for chunk in stream for c in chunk.choices if c.finish_reason == "length"]
    assert sorted(ended) == [0, 1]


def test_completions_echo_and_stream(sdk: OpenAI, real: Real) -> None:
    """The older route, which tools for code still use."""
    answer = sdk.completions.create(
        model=real.chat.model, prompt="def add(a, b):", max_tokens=3, echo=True, logprobs=1
    )
    assert answer.choices[0].text.startswith("def add(a, b):")
    assert answer.choices[0].logprobs is not None
    stream = sdk.completions.create(model=real.chat.model, prompt="def add(a, b):", max_tokens=5, stream=True)
    chunks = list(stream)  # up to five: the engine joins what nobody has read yet
    assert "".join(chunk.choices[0].text for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "length"


def test_headers_tell_what_the_sdk_and_people_read(sdk: OpenAI, real: Real) -> None:
    """An id for complaints on answers and streams alike, and nothing that buffers a stream."""
    call = sdk.chat.completions.with_raw_response.create
    raw = call(model=real.tiny.model, messages=HELLO, max_tokens=1)
    assert raw.parse()._request_id == raw.headers["x-request-id"]
    streamed = call(model=real.tiny.model, messages=HELLO, max_tokens=1, stream=True)
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert streamed.headers["cache-control"] == "no-cache"
    assert streamed.headers["x-accel-buffering"] == "no"
    assert streamed.headers["x-request-id"] != raw.headers["x-request-id"]
    list(streamed.parse())


def test_a_time_out_of_the_callers_own_is_told_as_such(sdk: OpenAI, real: Real) -> None:
    """Not as a broken connection."""
    with pytest.raises(openai.APITimeoutError):
        sdk.with_options(timeout=0.2).chat.completions.create(
            model=real.chat.model, messages=COUNT, max_tokens=1500, extra_body={"ignore_eos": True}
        )


async def test_the_sdk_waits_and_tries_again_when_told_to(
    client: AsyncOpenAI, gateway: Gateway, real: Real
) -> None:
    """One call at a time is this key's limit: a second one is told how long to wait, and then succeeds."""
    made = await gateway.create_key(name="one at a time", max_parallel=1)
    mine = client.with_options(api_key=made["key"])
    stream = await mine.chat.completions.create(
        model=real.chat.model, messages=COUNT, max_tokens=1500, stream=True, extra_body={"ignore_eos": True}
    )
    await anext(aiter(stream))
    with pytest.raises(openai.RateLimitError) as refused:
        await mine.chat.completions.create(model=real.tiny.model, messages=HELLO, max_tokens=1)
    assert refused.value.code == "rate_limit_exceeded"
    assert float(refused.value.response.headers["retry-after"]) == 1

    patient = mine.with_options(max_retries=20)
    call = patient.chat.completions.create(model=real.tiny.model, messages=HELLO, max_tokens=1)
    waiting = asyncio.create_task(call)
    await stream.close()
    assert (await waiting).choices
