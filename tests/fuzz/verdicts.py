"""What is promised of each answer, whatever the request was."""

import json
from typing import Any

from tests.callers import error_of
from tests.fuzz.connections import Heard, Script, Told, answers


def broken(script: Script, heard: Heard) -> str:
    """Which promise the answers to a script break; empty if none."""
    if script.end != "read":
        return "a 5xx" if b"HTTP/1.1 5" in heard.data else ""
    try:
        told = answers(heard.data)
    except ValueError as error:
        return f"no whole answers: {error}"
    final = [answer for answer in told if answer.status >= 200]
    if not heard.stood_still and not _all_answered(script, final):
        return f"{len(final)} answers"
    return next((why for answer in final if (why := _broken(answer))), "")


def _all_answered(script: Script, final: list[Told]) -> bool:
    """Whether there are as many answers as requests, or fewer and the last of them ends the connection."""
    if script.answers is None or len(final) == script.answers:
        return True
    closed = bool(final) and final[-1].headers.get("connection") == "close"
    return closed and len(final) < script.answers


def _broken(answer: Told) -> str:
    if not (200 <= answer.status < 300 or 400 <= answer.status < 500):
        return f"status {answer.status}"
    if not answer.headers.get("x-request-id", "").startswith("req_"):
        return "no request id"
    if answer.status >= 400 and answer.headers.get("content-type") != "application/json":
        return "an error that is no JSON"
    if answer.status >= 400 and answer.body:
        return malformed(json.loads(answer.body))
    return ""


def malformed(document: Any, *, anthropic: bool | None = None) -> str:
    """Why a document is no error in Anthropic's shape or OpenAI's; empty if it is. None: either will do."""
    if anthropic is None:
        anthropic = isinstance(document, dict) and "type" in document
    try:
        if anthropic:
            assert document["type"] == "error", document
            error = document["error"]
            assert type(error["type"]) is type(error["message"]) is str, document
        else:
            error = error_of(document)
    except (AssertionError, KeyError, TypeError) as problem:
        return f"not in shape: {problem}"
    return "a trace" if "Traceback" in error["message"] else ""
