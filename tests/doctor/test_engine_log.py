"""The engine's log: each known message is found by its own words, with the mend that fits its figures."""

import re
from pathlib import Path
from typing import Any

import pytest

from deploy.local import engine
from deploy.local.problem import Problem
from gateway.doctor.evidence import EngineLog
from gateway.doctor.finding import NOT_ASKED, Finding
from gateway.doctor.running import engine_log, messages
from tests.doctor import logs, refusals
from tests.doctor.evidence import RECORDED, only, profile, severities

SOURCES = {**logs.SOURCES, **refusals.SOURCES}
EXAMPLES = {**logs.MESSAGES, **refusals.MESSAGES}


def read(text: str, **flags: Any) -> list[Finding]:
    """What the log's judge finds."""
    return list(engine_log.findings(EngineLog("engine.log", text), profile(**flags)))


@pytest.mark.parametrize("name", EXAMPLES)
def test_message(name: str) -> None:
    """Found among the lines around it, once, and without what stands beside it in the log."""
    message, severity, mend = EXAMPLES[name]
    text = logs.START + logs.TRACE + message if severity != "error" else logs.start_failed(message)
    finding = only(read(text))
    assert finding.severity == severity
    assert mend in finding.mend
    assert "Traceback" not in finding.evidence


def test_mla_has_no_other_half() -> None:
    """What is advised starts."""
    assert "int8_per_token_head" not in only(read(logs.start_failed(EXAMPLES["fp8 cache of MLA"][0]))).mend


ECHOES = ("no such model", "a flag of one's own")


@pytest.mark.parametrize("name", ECHOES)
def test_what_follows_from_another_error_is_not_told(name: str) -> None:
    """Beside a better reason, or of a start that got well."""
    echo, better = EXAMPLES[name][0], EXAMPLES["gated"][0]
    assert "gated" in only(read(logs.start_failed(f"{better}\n{echo}"))).title
    well = logs.START + "".join(f"{logs.TRACE}{line}\n" for line in echo.splitlines()) + logs.READY
    assert severities(read(well)) == ["ok"]


def test_what_was_given_is_not_shown() -> None:
    """A refused config is written with all its values."""
    secret = "  Value error, no [type=value_error, input_value=ArgsKwargs((), {'hf_token': 'hf_hidden'})]"
    finding = only(read(logs.start_failed(f"1 validation error for ModelConfig\n{secret}")))
    assert "Value error, no" in finding.evidence
    assert "hidden" not in finding.evidence


def test_a_longer_context_that_was_allowed() -> None:
    """vLLM warns in the same words where the operator insisted."""
    warned = EXAMPLES["longer than the model"][0].splitlines()[1].replace("To allow overriding", "It must be")
    assert severities(read(f"{logs.START}{logs.TRACE}{warned}\n{logs.READY}")) == ["ok"]


def test_every_message_has_its_example() -> None:
    """No pattern is there that was never seen to match."""
    examples = [message for message, _, _ in EXAMPLES.values()]
    for known in messages.MESSAGES:
        assert any(re.search(known.pattern, example) for example in examples), known.title


def test_a_log_without_trouble() -> None:
    """A recorded start of a real engine."""
    text = (RECORDED / "engine-well.log").read_text()
    assert severities(read(text)) == ["ok"]


def test_out_of_memory_on_a_request() -> None:
    """Activations: a smaller step first, then three hundredths of utilisation."""
    finding = only(read(logs.died(logs.ALONE), max_num_batched_tokens=8192, gpu_memory_utilization=0.92))
    assert "on a request" in finding.title
    assert finding.mend == "max-num-batched-tokens: 4096; if it comes again, gpu-memory-utilization: 0.89"


def test_out_of_memory_at_start() -> None:
    """Before it has served anything: utilisation first."""
    finding = only(read(logs.start_failed(logs.ALONE), gpu_memory_utilization=0.92))
    assert "at start" in finding.title
    assert finding.mend.startswith("gpu-memory-utilization: 0.89; then max-num-batched-tokens: 1024")


def test_out_of_memory_on_a_shared_card() -> None:
    """Another process is named, and the cache is to be fixed; the engine's own is no other."""
    finding = only(read(logs.died(logs.SHARED)))
    assert "process 4410 has 6.0 GiB" in finding.title
    assert "kv-cache-memory-bytes" in finding.mend
    assert "on a request" in only(read(logs.died(logs.IN_A_CONTAINER))).title


def test_death_of_something_else() -> None:
    """It is said that it died, and where to look."""
    finding = only(read(logs.died("AssertionError: something new")))
    assert (finding.severity, "unknown" in finding.title) == ("error", True)


def test_what_was_mended_is_not_told_again() -> None:
    """A start that failed and was mended says nothing; an engine that died while it served does."""
    well = logs.START + logs.READY
    assert severities(read(logs.start_failed(logs.MESSAGES["not free"][0]) + well)) == ["ok"]
    assert severities(read(logs.died(logs.ALONE) + well)) == ["error"]


def test_colours_and_broken_lines() -> None:
    """A terminal's colours do not hide a message."""
    message = logs.MESSAGES["no memory for the cache"][0].replace(
        "No available", "\x1b[31mNo\x1b[0m available"
    )
    assert severities(read(logs.start_failed(message))) == ["error"]


def test_without_a_profile() -> None:
    """vLLM's own defaults stand in."""
    log = EngineLog("engine.log", logs.died(logs.ALONE))
    assert "lower by 0.03" in only(engine_log.findings(log, NOT_ASKED)).mend


@pytest.fixture(scope="module")
def vllm() -> Path:
    """The source of the engine that the local mode installs."""
    try:
        engine.install()
    except Problem as problem:
        pytest.skip(f"no real engine here: {problem}")
    [found] = engine.python().parents[1].glob("lib/python3.*/site-packages/vllm")
    return found


def text_of(source: Path) -> str:
    """A file of Python with its strings in one piece."""
    return re.sub(r'"\s*\n\s*[fr]?"', "", source.read_text(encoding="utf-8"))


def test_messages_are_those_of_the_engine(vllm: Path) -> None:
    """vLLM's own source has each, in the file that we say."""
    lacking = [words for words, file in SOURCES.items() if words not in text_of(vllm / file)]
    assert lacking == []


def test_counters_are_those_of_the_engine(vllm: Path) -> None:
    """A name that vLLM gave up would make a judge blind."""
    loggers = "".join(text_of(file) for file in (vllm / "v1").glob("*/metrics.py"))
    loggers += text_of(vllm / "v1" / "metrics" / "loggers.py")
    lacking = [name for name in logs.COUNTERS if f'"vllm:{name}"' not in loggers]
    assert lacking == []
