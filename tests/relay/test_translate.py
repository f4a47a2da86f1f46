"""A caller can tell "your prompt is too long" from "the gateway is full" from "the engine is down"."""

import orjson
import pytest

from gateway.errors import (
    ContextLengthExceeded,
    EngineError,
    GatewayError,
    InvalidRequest,
    QueueFull,
)
from gateway.relay.translate import refusal

TOO_LONG = "This model's maximum context length is 2048 tokens. However, you requested 2723 tokens."


def said(message: str, param: str | None = None) -> bytes:
    return orjson.dumps(
        {"error": {"message": message, "type": "BadRequestError", "param": param, "code": 400}}
    )


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, said(TOO_LONG), ContextLengthExceeded),
        (400, said("too many characters", "input_text"), ContextLengthExceeded),
        (400, said("temperature must be non-negative", "temperature"), InvalidRequest),
        (422, said("bad image"), InvalidRequest),
        (401, b'{"error":"Unauthorized"}', EngineError),
        (404, said("The model `x` does not exist."), EngineError),
        (429, b"", QueueFull),
        (503, b"", QueueFull),
        (500, b"Internal Server Error", EngineError),
        (502, b"<html>Bad Gateway</html>", EngineError),
        (400, b"<html>no json</html>", EngineError),
        (302, b"", EngineError),
    ],
)
def test_each_failure_is_whose_it_is(status: int, body: bytes, kind: type[GatewayError]) -> None:
    """The engine's status and words decide between caller, queue and operator."""
    assert type(refusal(status, [], body)) is kind


def test_what_the_caller_can_mend_keeps_the_engines_words() -> None:
    """Clients look for them in order to shorten the prompt."""
    error = refusal(400, [], said(TOO_LONG, "input_tokens"))
    assert error.message == TOO_LONG
    assert error.param == "input_tokens"


@pytest.mark.parametrize("body", [b"<html>secret.internal:8000</html>", said("/opt/engine/model.py failed")])
def test_what_only_the_operator_can_mend_goes_to_the_log(body: bytes) -> None:
    """No page, path or address of the engine's reaches a caller; the log has the status."""
    error = refusal(500, [], body)
    assert "secret" not in error.message
    assert "/opt" not in error.message
    assert error.cause is not None
    assert "500" in error.cause


@pytest.mark.parametrize(("value", "seconds"), [(b"7", 7), (b"0", 1), (b"9999", 120), (b"soon", 5)])
def test_the_engines_wait_is_passed_on_within_what_clients_honour(value: bytes, seconds: int) -> None:
    """Never above 120 s: the SDKs give up beyond."""
    assert refusal(503, [(b"retry-after", value)], b"").retry_after == seconds


@pytest.mark.parametrize("status", [400, 422, 500])
def test_no_word_of_an_engine_that_may_quote_the_prompt_reaches_the_log(status: int) -> None:
    """A validation error repeats its input; type and parameter are enough to find it again."""
    error = refusal(status, [], said("1 validation error: input 'my secret prompt'", "messages"))
    assert error.cause is not None
    assert "secret" not in error.cause
    assert "BadRequestError" in error.cause
    assert "messages" in error.cause


def test_what_an_engine_says_of_its_own_key_is_for_the_operator() -> None:
    """A wrong key or model name has to be read somewhere."""
    error = refusal(404, [], said("The model `m` does not exist."))
    assert error.cause is not None
    assert "`m`" in error.cause
