"""A caller can tell "your prompt is too long" from "the gateway is full" from "the engine is down"."""

import time
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from gateway.errors import (
    ContextLengthExceeded,
    EngineError,
    GatewayError,
    InvalidRequest,
    QueueFull,
    RequestTooLarge,
)
from gateway.relay.scrub import LONGEST_MESSAGE, scrub
from gateway.relay.translate import refusal as translated
from tests.running import least

TOO_LONG = "This model's maximum context length is 2048 tokens. However, you requested 2723 tokens."


def refusal(
    status: int, headers: list[tuple[bytes, bytes]], body: bytes, route: str = "/v1/chat/completions"
) -> GatewayError:
    """The error for an answer to a call of this route."""
    return translated(status, headers, body, route, "a-model")


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
        (400, said("Input length (9) exceeds model's maximum context length (8)."), ContextLengthExceeded),
        (
            400,
            said("The decoder prompt (length 9) is longer than the maximum model length of 8."),
            ContextLengthExceeded,
        ),
        (400, said("max_tokens must be at least 1, got 0.", "max_tokens"), ContextLengthExceeded),
        (
            400,
            said("the request exceeds the available context size, try increasing it"),
            ContextLengthExceeded,
        ),
        (413, said("`inputs` must have less than 512 tokens. Given: 600"), ContextLengthExceeded),
        (
            400,
            b'{"type":"error","error":{"type":"BadRequestError","message":"%b"}}' % TOO_LONG.encode(),
            ContextLengthExceeded,
        ),
        (
            500,
            said("image input is not supported - hint: provide the mmproj"),
            InvalidRequest,
        ),
        (400, said("max_completion_tokens (99) cannot be greater than max_model_len (8)"), InvalidRequest),
        (413, said("the file is too large"), RequestTooLarge),
        (501, said("Embedding prompt not supported for beam search"), InvalidRequest),
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


def test_a_field_is_named_as_the_caller_wrote_it() -> None:
    """vLLM's validation puts the body's name before it."""
    assert refusal(400, [], said("Field required", "body.messages")).param == "messages"


@pytest.mark.parametrize("body", [b"<html>secret.internal:8000</html>", said("/opt/engine/model.py failed")])
def test_what_only_the_operator_can_mend_goes_to_the_log(body: bytes) -> None:
    """No page, path or address of the engine's reaches a caller; the log has the status."""
    error = refusal(500, [], body)
    assert "secret" not in error.message
    assert "/opt" not in error.message
    assert error.cause is not None
    assert "500" in error.cause


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"7", 7),
        (b"0", 1),
        (b"1.5", 2),
        (b"9999", 120),
        (b"9" * 400, 120),
        (b"-3", 5),
        (b"soon", 5),
        (b"Wed, 21 Oct 2237 07:28:00 GMT", 120),
        (b"Wed, 21 Oct 2015 07:28:00 GMT", 1),
        (b"Wed, 99 Oct 2015 07:28:00 GMT", 5),
        (b"Mon, 01 Jan 2027 00:00:00 +99999999999999", 5),
        (b"Mon, 01 Jan 20270000000000 00:00:00 GMT", 5),
        (b"Fri, 31 Dec 9999 23:59:59 -0000", 120),
    ],
)
def test_the_engines_wait_is_passed_on_within_what_clients_honour(value: bytes, seconds: int) -> None:
    """As a number or as a date, and never above 120 s: the SDKs give up beyond."""
    assert refusal(503, [(b"retry-after", value)], b"").retry_after == seconds


@pytest.mark.parametrize("form", ["%a, %d %b %Y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"])
def test_a_date_is_in_utc_wherever_the_gateway_stands(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """The older form names no zone (RFC 9110, section 5.6.7)."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        soon = (datetime.now(UTC) + timedelta(seconds=60)).strftime(form).encode()
        wait = refusal(503, [(b"retry-after", soon)], b"").retry_after
    finally:
        monkeypatch.undo()
        time.tzset()
    assert wait in range(50, 61)


@pytest.mark.parametrize("status", [400, 422, 500])
def test_no_word_of_an_engine_that_may_quote_the_prompt_reaches_the_log(status: int) -> None:
    """A validation error repeats its input; type and parameter are enough to find it again."""
    error = refusal(status, [], said("1 validation error: input 'my secret prompt'", "messages"))
    assert error.cause is not None
    assert "secret" not in error.cause
    assert "BadRequestError" in error.cause
    assert "messages" in error.cause


def test_what_an_engine_says_of_its_own_key_is_for_the_operator() -> None:
    """A wrong key or model name has to be read somewhere; a second try meets the same engine."""
    error = refusal(404, [], said("The model `m` does not exist."))
    assert error.should_retry is False
    assert refusal(500, [], said("x")).should_retry is None
    assert error.cause is not None
    assert "`m`" in error.cause


NO_SUCH_ROUTE = [
    (404, b'{"error":{"message":"Not Found","type":"Not Found","param":null,"code":404}}'),
    (404, b'{"detail":"Not Found"}'),
    (404, b'{"error":{"message":"File Not Found","type":"not_found_error","code":404}}'),
    (404, b"404 page not found"),
    (404, b""),
    (405, b'{"detail":"Method Not Allowed"}'),
    (501, said("The model does not support Embeddings API")),
    (501, said("The model does not support Rerank (Score) API")),
    (501, b'{"type":"error","error":{"type":"x","message":"The model does not support Messages API"}}'),
    (501, said("This server does not support embeddings. Start it with `--embeddings`")),
    (501, b""),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), NO_SUCH_ROUTE)
def test_a_route_that_the_engine_lacks_is_one_that_the_model_does_not_serve(status: int, body: bytes) -> None:
    """The caller learns what is true, and that coming back will not help."""
    error = refusal(status, [], body, "/v1/embeddings")
    assert type(error) is InvalidRequest
    assert error.message == "The model 'a-model' does not serve /v1/embeddings."
    assert error.param == "model"
    assert str(status) in str(error.cause)


@pytest.mark.parametrize(
    "body",
    [
        said("The model `x` does not exist.", "model"), said("The model `x` does not exist."),
        b'{"type":"error","error":{"type":"NotFoundError","message":"The model `x` does not exist."}}',
        b'{"error":{"message":"model \\"x\\" not found, try pulling it first","type":"api_error"}}',
    ],
)  # fmt: skip
def test_a_name_that_the_engine_does_not_know_is_the_operators_fault(body: bytes) -> None:
    """The caller's name was found here; it is the engine's that is set wrongly."""
    assert type(refusal(404, [], body, "/v1/messages")) is EngineError


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"detail":"Expected a file-like object."}', "Expected a file-like object."),
        (b'{"detail":[{"loc":["body","text"],"msg":"Field required","input":"my secret"},{"msg":"bad"},7]}',
         "body.text: Field required; body: bad; a value is not valid"),
        (b'{"object":"error","message":"bad value","type":"BadRequestError","code":400}', "bad value"),
        (b'"just a text"', "just a text"),
        (b'{"error":"a text"}', "a text"),
    ],
)  # fmt: skip
def test_every_shape_of_an_engines_error_is_read(body: bytes, message: str) -> None:
    """FastAPI's own, an older vLLM's, a mere text: one message for the caller."""
    error = refusal(422, [], body)
    assert type(error) is InvalidRequest
    assert error.message == message


@pytest.mark.parametrize(
    ("said_by_engine", "told"),
    [
        ("ValueError: top_k must be positive", "top_k must be positive"),
        ("vllm.exceptions.VLLMValidationError: ValueError: bad", "bad"),
        ("cannot apply the template: jinja2.exceptions.UndefinedError: 'x' is undefined",
         "cannot apply the template: 'x' is undefined"),
        ("see /usr/lib/python3.11/site-packages/vllm/x.py:3", "see (a path):3"),
        ("vllm/engine/core.py:12 failed", "(a path) failed"),
        ("could not open C:\\models\\m.bin", "could not open (a path)"),
        ("cannot reach http://127.0.0.1:8000/v1/models.", "cannot reach (an internal address)"),
        ("http://vllm:8000 is gone", "(an internal address) is gone"),
        ("10.0.0.5:8000 is gone", "(an internal address) is gone"),
        ("got <class 'int'> and <PIL.Image.Image object at 0x7f1a>", "got an object and an object"),
        ("function f at 0x7fab12", "function f"),
        ('Traceback (most recent call last):\n  File "/x/y.py", line 3, in f\n    x()\nKeyError: 1', "1"),
        ("{'error': ValueError('must be positive')}", "{'error': 'must be positive'}"),
        ("[json.exception.type_error.302] type must be number", "type must be number"),
        ("ValueError: ", "The engine refused the request."),
    ],
)  # fmt: skip
def test_nothing_of_an_engines_inside_reaches_a_caller(said_by_engine: str, told: str) -> None:
    """Names of exceptions, files, addresses of the inner network, objects of its runtime."""
    assert refusal(400, [], said(said_by_engine)).message == told
    assert scrub(told) == told


@pytest.mark.parametrize(
    "message",
    [
        TOO_LONG, TOO_LONG + " (parameter=input_tokens, value=2723)",
        "Failed to fetch https://example.com/data/cat.png: 404",
        "use /v1/chat/completions and image/png or 3/4",
        "1 validation error:\n  {'type': 'missing', 'loc': 'body.messages', 'msg': 'Field required'}",
        "temperature 10.0.0 is not a number",
        "The schema https://json-schema.org/draft/2020-12/schema is not known",
        "An error occurred: max_tokens",
    ],
)  # fmt: skip
def test_words_that_tell_nothing_of_it_stay(message: str) -> None:
    """Clients look for them, and people read them."""
    assert scrub(message) == message


@pytest.mark.parametrize(
    "piece", ["-", "/", "a/", "a.", " ", "\n", "Error: ", "/usr/", 'File "', "10.", "::1]"]
)
def test_a_long_message_is_cut_and_looked_through_at_once(piece: str) -> None:
    """The event loop waits for it; an engine may repeat what a caller sent."""

    def cpu_seconds() -> float:
        started = time.process_time()
        assert len(scrub(piece * 100_000)) < 2 * LONGEST_MESSAGE
        return time.process_time() - started

    assert least(cpu_seconds, 1) < 1
