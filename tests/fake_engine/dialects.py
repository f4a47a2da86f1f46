"""Streams and answers of the Responses and the Messages API, in the shapes of vLLM 0.32. No sockets here."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

CREATED = 1_700_000_000
RESPONSE_COUNTS = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0, "input_tokens_per_turn": [7]},
    "output_tokens": 2,
    "output_tokens_details": {"reasoning_tokens": 1, "output_tokens_per_turn": [2]},
    "total_tokens": 9,
}
"""7 prompt tokens, 4 of them cached, 2 completion tokens, 1 of them reasoning."""
START_COUNTS = {"input_tokens": 7, "output_tokens": 0}
MESSAGE_COUNTS = {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 2}
"""The same 7, 4 and 2, as they stand at the end: `input_tokens` without those that were cached."""


def typed(document: Mapping[str, Any]) -> bytes:
    """One event that is named for its `type`, compact as pydantic writes it."""
    data = json.dumps(document, separators=(",", ":"))
    return f"event: {document['type']}\ndata: {data}\n\n".encode()


def response(text: str, *, status: str = "completed", usage: Any = None) -> dict[str, Any]:
    """A response object; with text, one message in it."""
    content: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": None}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": [content]}
    return {
        "id": "resp_1", "created_at": CREATED, "incomplete_details": None, "instructions": None,
        "metadata": None, "model": "fake-model", "object": "response", "output": [message] if text else [],
        "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "background": False, "max_output_tokens": 10, "service_tier": "auto", "status": status,
        "truncation": "disabled", "usage": usage, "user": None,
    }  # fmt: skip


def responses(texts: Iterable[str] = ("Par", "is"), *, end: str = "response.completed") -> list[bytes]:
    """A stream of the Responses API; without an `end` it lacks its last event."""
    texts = list(texts)
    whole = "".join(texts)
    item: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress"}
    part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    at: dict[str, Any] = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    begun = response("", status="in_progress")
    documents: list[dict[str, Any]] = [
        {"response": begun, "type": "response.created"},
        {"response": begun, "type": "response.in_progress"},
        {"item": {**item, "content": []}, "output_index": 0, "type": "response.output_item.added"},
        {**at, "part": part, "type": "response.content_part.added"},
        *({**at, "delta": text, "logprobs": [], "type": "response.output_text.delta"} for text in texts),
        {**at, "text": whole, "logprobs": [], "type": "response.output_text.done"},
        {**at, "part": {**part, "text": whole}, "type": "response.content_part.done"},
    ]
    if end:
        status = end.removeprefix("response.")
        documents.append({"response": response(whole, status=status, usage=RESPONSE_COUNTS), "type": end})
    return [typed({**document, "sequence_number": n}) for n, document in enumerate(documents)]


def message(text: str = "Paris") -> dict[str, Any]:
    """A whole answer of the Messages API."""
    return {
        "id": "chatcmpl-1", "type": "message", "role": "assistant", "model": "fake-model",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": MESSAGE_COUNTS,
    }  # fmt: skip


def messages(texts: Iterable[str] = ("Par", "is"), *, whole: bool = True) -> list[bytes]:
    """A stream of the Messages API; not `whole`, it lacks what follows the last text."""
    start = {**message(), "content": [], "stop_reason": None, "stop_sequence": None, "usage": START_COUNTS}
    documents: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
            for text in texts
        ),
    ]
    if whole:
        stop = {"stop_reason": "end_turn", "stop_sequence": None}
        documents += [
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": MESSAGE_COUNTS},
            {"type": "message_stop"},
        ]
    return [typed(document) for document in documents]
