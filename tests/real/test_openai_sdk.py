"""The OpenAI SDK is pointed at the base URL and just works, with a real vLLM behind it."""

import json

import openai
import pytest
from openai import AsyncOpenAI

from tests.prompts import CAPITAL, HELLO, user
from tests.real.conftest import Real
from tests.running import Gateway, wait_for


async def test_a_real_question_gets_its_answer(client: AsyncOpenAI) -> None:
    """Under the alias that callers write, in English, with the engine's counts."""
    answer = await client.chat.completions.create(
        model="default", messages=CAPITAL, temperature=0, max_tokens=24
    )
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


async def test_a_stream_is_the_same_answer_in_pieces(client: AsyncOpenAI) -> None:
    """The usual loop works: no chunk without choices reaches a caller who did not ask for usage."""
    stream = await client.chat.completions.create(
        model="default", messages=CAPITAL, temperature=0, max_tokens=24, stream=True
    )
    pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert len(pieces) > 4
    assert "Paris" in "".join(pieces)


async def test_usage_comes_last_and_once_to_a_caller_who_asked(client: AsyncOpenAI, real: Real) -> None:
    """`include_usage` adds one chunk without choices, just before the end."""
    stream = await client.chat.completions.create(
        model=real.tiny.model, messages=HELLO, max_tokens=5, stream=True,
        stream_options={"include_usage": True}, extra_body={"ignore_eos": True},
    )  # fmt: skip
    chunks = [chunk async for chunk in stream]
    assert [bool(chunk.choices) for chunk in chunks].index(False) == len(chunks) - 1
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 5


@pytest.mark.parametrize("stream", [False, True])
async def test_usage_is_counted_per_key(
    client: AsyncOpenAI, gateway: Gateway, real: Real, *, stream: bool
) -> None:
    """What the engine counted is what `gateway_tokens_total` says, asked for or not."""
    made = await gateway.create_key(name="counted")
    mine = client.with_options(api_key=made["key"])
    call = mine.chat.completions.create
    extra = {"ignore_eos": True}
    if stream:
        chunks = await call(
            model=real.tiny.model, messages=HELLO, max_tokens=7, stream=True, extra_body=extra
        )
        async for _ in chunks:
            pass
    else:
        await call(model=real.tiny.model, messages=HELLO, max_tokens=7, extra_body=extra)

    async def counted() -> bool:
        return await gateway.metric("gateway_tokens_total", key=made["id"], kind="completion") == 7

    await wait_for(counted)
    assert await gateway.metric("gateway_tokens_total", key=made["id"], kind="prompt") > 0


async def prompt_tokens(client: AsyncOpenAI, model: str, **extra: object) -> int:
    answer = await client.chat.completions.create(model=model, messages=HELLO, max_tokens=1, extra_body=extra)
    assert answer.usage is not None
    return answer.usage.prompt_tokens


async def test_thinking_is_off_unless_the_caller_or_the_variant_says_so(
    client: AsyncOpenAI, real: Real
) -> None:
    """Visible in the prompt, which the template writes differently."""
    off = await prompt_tokens(client, real.tiny.model)
    by_word = await prompt_tokens(client, real.tiny.model, chat_template_kwargs={"enable_thinking": True})
    by_variant = await prompt_tokens(client, f"{real.tiny.model}:thinking")
    by_effort = await prompt_tokens(client, real.tiny.model, reasoning_effort="high")
    assert by_word == by_variant == by_effort != off


async def test_a_caller_may_turn_a_thinking_variant_off(client: AsyncOpenAI, real: Real) -> None:
    """The caller's word beats the variant's default."""
    off = await prompt_tokens(client, real.tiny.model)
    variant = f"{real.tiny.model}:thinking"
    assert await prompt_tokens(client, variant, chat_template_kwargs={"enable_thinking": False}) == off


@pytest.mark.parametrize("which", ["chat", "tiny"])
async def test_an_answer_to_a_json_schema_validates(client: AsyncOpenAI, real: Real, which: str) -> None:
    """The grammar holds whatever the model would rather say."""
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "blue"]}, "count": {"enum": [1, 2, 3]}},
        "required": ["colour", "count"],
        "additionalProperties": False,
    }
    answer = await client.chat.completions.create(
        model=getattr(real, which).model,
        messages=user("A colour and a count, as JSON."),
        max_tokens=60,
        response_format={"type": "json_schema", "json_schema": {"name": "thing", "schema": schema}},
    )
    thing = json.loads(answer.choices[0].message.content or "")
    assert thing["colour"] in ("red", "blue")
    assert thing["count"] in (1, 2, 3)


async def test_plain_completions_work_too(client: AsyncOpenAI, real: Real) -> None:
    """No template, no chat: two prompts, two choices."""
    answer = await client.completions.create(model=real.tiny.model, prompt=["a", "b"], max_tokens=3)
    assert [choice.index for choice in answer.choices] == [0, 1]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_that_is_too_long_is_a_400_stream_or_not(
    client: AsyncOpenAI, real: Real, *, stream: bool
) -> None:
    """The SDK raises what the engine said, under a code that clients know; never a 200 first."""
    long = user("word " * 40_000)
    with pytest.raises(openai.BadRequestError, match="context length") as refused:
        await client.chat.completions.create(model=real.tiny.model, messages=long, stream=stream)
    assert refused.value.code == "context_length_exceeded"


async def test_models_are_listed_and_found(client: AsyncOpenAI, real: Real) -> None:
    """Ids, aliases and variants: all that a caller can write."""
    listed = [model.id async for model in client.models.list()]
    assert {real.chat.model, "default", real.tiny.model, f"{real.tiny.model}:thinking"} <= set(listed)
    assert (await client.models.retrieve("default")).id == "default"
    with pytest.raises(openai.NotFoundError) as refused:
        await client.models.retrieve("nope")
    assert refused.value.code == "model_not_found"


async def test_the_answer_carries_a_request_id_that_the_sdk_reads(client: AsyncOpenAI, real: Real) -> None:
    """It joins a caller's complaint to the operator's log."""
    raw = await client.chat.completions.with_raw_response.create(
        model=real.tiny.model, messages=HELLO, max_tokens=1
    )
    assert raw.headers["x-request-id"].startswith("req_")
    assert int(raw.headers["openai-processing-ms"]) >= 0
