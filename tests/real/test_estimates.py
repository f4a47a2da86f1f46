"""Estimates of tokens against what a real vLLM counts: prompts before they are sent, streams when cut."""

import random
from dataclasses import dataclass

import pytest

from gateway.relay import dialects
from gateway.routes import BY_TEMPLATE
from gateway.usage import Ask, Estimates, Usage
from gateway.usage.pace import frame
from tests.prompts import HELLO
from tests.real.conftest import Real
from tests.usage.corpus import Body, Corpus

CHAT = BY_TEMPLATE["/v1/chat/completions"]
CALIBRATING = 50
HELD_OUT = 10
MOST_ERROR = 0.15


async def counted(real: Real, body: Body) -> int:
    """The tokens of a chat's prompt, by the engine's own template and tokenizer."""
    answer = await real.chat.http.post(f"{real.chat.url}/tokenize", json={"model": real.chat.model, **body})
    count: int = answer.raise_for_status().json()["count"]
    return count


def ask(estimates: Estimates, body: Body) -> Ask:
    """The estimate for a chat of one key."""
    return estimates.ask(body, route=CHAT, model="m", key_id="k", choices=1)


async def test_after_fifty_calls_prompts_are_estimated_within_15_percent(real: Real) -> None:
    """Of each class: English, code, East Asian languages, chats with tools; on prompts not seen before."""
    corpus, draw, estimates = Corpus(), random.Random(11), Estimates()  # noqa: S311  the same each time
    for number in range(CALIBRATING):
        body = list(corpus.classes.values())[number % len(corpus.classes)](draw)
        tokens = await counted(real, body)
        estimates.learn(
            ask(estimates, body), Usage(prompt=tokens, completion=1),
            data_events=0, first_token_seconds=0.0, seconds=0.1,
        )  # fmt: skip
    errors: dict[str, float] = {}
    for name, write in corpus.classes.items():
        total = 0.0
        for _ in range(HELD_OUT):
            body = write(draw)
            tokens = await counted(real, body)
            total += abs(ask(estimates, body).prompt - tokens) / tokens
        errors[name] = total / HELD_OUT
    assert max(errors.values()) <= MOST_ERROR, errors


async def test_what_is_counted_here_is_what_a_call_is_billed(real: Real) -> None:
    """The counts that the estimate is held against are those of the engine's usage."""
    body = {"messages": HELLO, "max_tokens": 1}
    answer = await real.chat.http.post(
        f"{real.chat.url}/v1/chat/completions", json={"model": real.chat.model, **body}
    )
    assert answer.json()["usage"]["prompt_tokens"] == await counted(real, {"messages": HELLO})


@dataclass(frozen=True, slots=True)
class Streamed:
    """A stream to ask for, of two choices where the route has them; `token` marks an event with tokens."""

    path: str
    body: Body
    choices: int
    token: bytes


USAGE = {"stream_options": {"include_usage": True}}
STREAMS = [
    Streamed(
        "/v1/chat/completions", {"messages": HELLO, "n": 2, "temperature": 0.5, **USAGE}, 2, b'"delta":'
    ),
    Streamed("/v1/completions", {"prompt": ["Once", "upon"], **USAGE}, 2, b'"text":'),
    Streamed("/v1/responses", {"input": "hello"}, 1, b'"type":"response.output_text.delta"'),
    Streamed("/v1/messages", {"messages": HELLO}, 1, b'"type":"content_block_delta"'),
]


@pytest.mark.parametrize("asked", STREAMS, ids=[asked.path for asked in STREAMS])
@pytest.mark.parametrize("cap", [7, 200], ids=["capped", "ended by itself"])
async def test_a_stream_is_its_tokens_and_what_frames_them(real: Real, asked: Streamed, cap: int) -> None:
    """So a stream that is cut tells by its events what the engine had generated.

    A busy engine sends two tokens in one event now and then, which is what each model teaches.
    """
    route = BY_TEMPLATE[asked.path]
    events = dialects.reader(route, include_usage=True, choices=asked.choices, both_names=False)
    request = {
        "temperature": 0, **asked.body, "model": real.chat.model, route.output_caps[-1]: cap, "stream": True,
    }  # fmt: skip
    said = b""
    async with real.chat.http.stream("POST", real.chat.url + asked.path, json=request) as answer:
        async for data in answer.aiter_raw():
            said += data
            events.feed(data)
    frames = frame(route)
    carrying = events.data_events - asked.choices * frames.lead - frames.trail
    told = [event for event in said.split(b"\n\n") if asked.token in event and b'"role":' not in event]
    assert len(told) == carrying
    assert events.usage is not None
    silent = frames.silent if events.usage.completion < asked.choices * cap else 0
    assert carrying <= events.usage.completion - silent
