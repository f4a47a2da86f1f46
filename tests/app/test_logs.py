"""What the log holds: one JSON object a line, what an operator looks for, and nobody's words or keys."""

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from gateway.app import logs
from tests.callers import ask, chat
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway

PROMPT = "the-words-of-a-prompt"
ANSWER = "the-words-of-an-answer"


async def test_no_prompt_answer_or_key_is_in_the_log(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """Not of good calls, nor of failed ones, nor of what the engine or a stranger made of them."""
    key = (await gateway.create_key(name="for the log"))["key"]
    said = [{"role": "user", "content": PROMPT}]
    await fake_engine.script(scripts.chat(ANSWER), times=1)
    await fake_engine.script(scripts.events([f"data: {ANSWER}\n\n".encode()]), times=1)
    await fake_engine.script(scripts.html_502(), times=1)
    await fake_engine.script([{"reset": True}])
    statuses = [
        (await ask(gateway, chat(key, messages=said, stream=stream))).status
        for stream in (False, True, False, False)
    ]
    assert statuses == [200, 200, 502, 502]
    await ask(gateway, chat(key, messages=said, n=PROMPT))
    await ask(gateway, chat(key, f'{{"messages": "{PROMPT}'.encode()))
    await ask(gateway, chat(key + PROMPT, messages=said))
    answer = await ask(gateway, chat(key, messages=said, model=["x"]))
    await gateway.request_line(answer.headers["x-request-id"])
    log = gateway.log()
    for secret in (PROMPT, ANSWER, key, gateway.key, key.rpartition("-")[2], "the-engines-own-key"):
        assert secret not in log


async def test_each_line_is_a_json_object_with_an_event_and_a_time(gateway: Gateway) -> None:
    """Of our code and of the libraries alike."""
    await ask(gateway, b"garbage\r\n\r\n")
    for text in gateway.log().splitlines():
        line = json.loads(text)
        assert {"event", "level", "timestamp"} <= set(line), line


async def test_a_request_line_tells_the_whole_story(gateway: Gateway) -> None:
    """Who, what, how long and how it ended."""
    made = await gateway.create_key(name="told")
    answer = await ask(gateway, chat(made["key"], model="default"))
    line = await gateway.request_line(answer.headers["x-request-id"])
    assert line["key"] == made["id"]
    assert (line["method"], line["route"], line["model"]) == ("POST", "/v1/chat/completions", "fake-model")
    assert (line["status"], line["reason"], line["cause"]) == (200, "ok", None)
    assert 0 < line["seconds"] < 60


@pytest.fixture
def own_logging() -> Iterator[None]:
    """The process's logging, put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


@pytest.mark.parametrize("log_format", ["json", "text"])
@pytest.mark.usefixtures("own_logging")
def test_a_traceback_shows_where_and_not_with_which_values(
    log_format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A local variable may be a prompt or a key."""
    logs.configure(log_format)  # type: ignore[arg-type]  # mypy sees any string

    def fail(words: str) -> int:
        return len(words) // 0

    try:
        fail(PROMPT)
    except ZeroDivisionError:
        structlog.get_logger("t").exception("failed")
        logging.getLogger("a.library").exception("failed, too")
    written = capsys.readouterr().err
    assert written.count("ZeroDivisionError") >= 2
    assert "test_logs.py" in written
    assert PROMPT not in written
