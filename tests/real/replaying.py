"""Sends a replayed request, and judges the shape of what comes back."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import zstandard

from tests.real.replays import Replay
from tests.running import Gateway, http_client


async def send(replay: Replay, gateway: Gateway, model: str) -> httpx.Response:
    """The whole answer."""
    key = f"Bearer {gateway.key}" if replay.key == "authorization" else gateway.key
    headers = {name: value.replace("KEY", gateway.key) for name, value in replay.headers.items()}
    headers[replay.key] = key
    async with http_client() as http:
        if replay.body is None:
            return await http.get(gateway.url + replay.path, headers=headers)
        content = json.dumps({**replay.body, "model": model}).encode()
        headers["content-type"] = "application/json"
        if replay.zstd:
            content, headers["content-encoding"] = zstandard.compress(content), "zstd"
        return await http.post(gateway.url + replay.path, headers=headers, content=content)


def judge(replay: Replay, answer: httpx.Response) -> None:
    """Fails unless the answer is what such a client can read."""
    assert answer.status_code == 200, answer.text
    if replay.streams:
        assert answer.headers["content-type"].startswith("text/event-stream")
        STREAMS[replay.shape](replay, answer.text)
    else:
        WHOLE[replay.shape](answer.json())


def _events(text: str) -> list[Any]:
    """The parsed data of all events; comments are none."""
    lines = [line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def _chunks(replay: Replay, text: str) -> None:
    chunks = _events(text)
    assert text.rstrip().endswith("data: [DONE]")
    asked = bool(replay.body and replay.body.get("stream_options", {}).get("include_usage"))
    without_choices = [chunk for chunk in chunks if not chunk["choices"]]
    assert [chunk["usage"]["total_tokens"] > 0 for chunk in without_choices] == [True] * asked
    assert [c["finish_reason"] for chunk in chunks for c in chunk["choices"]][-1] in ("stop", "length")


def _message_events(_: Replay, text: str) -> None:
    kinds = [event["type"] for event in _events(text)]
    assert (kinds[0], *kinds[-2:]) == ("message_start", "message_delta", "message_stop")


def _response_events(_: Replay, text: str) -> None:
    events = _events(text)
    assert (events[0]["type"], events[-1]["type"]) == ("response.created", "response.completed")
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def _models(body: Any) -> None:
    lengths = {model["id"]: model.get("max_model_len") for model in body["data"]}
    assert lengths["default"] == lengths["smollm2-135m"] == 8192


STREAMS: dict[str, Callable[[Replay, str], None]] = {
    "chat": _chunks,
    "completion": _chunks,
    "message": _message_events,
    "response": _response_events,
}
WHOLE: dict[str, Callable[[Any], None]] = {
    "models": _models,
    "chat": lambda body: _truthy(body["choices"][0]["message"]["content"]),
    "completion": lambda body: _truthy(body["choices"][0]["text"]),
    "count": lambda body: _truthy(body["input_tokens"]),
    "embedding": lambda body: _truthy(body["data"][0]["embedding"]),
    "rerank": lambda body: _truthy(len(body["results"]) == 2),
}


def _truthy(value: Any) -> None:
    assert value
