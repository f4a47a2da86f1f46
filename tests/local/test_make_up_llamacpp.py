"""`make up` with llama.cpp: the same line answers, and so do all other targets. For `make test-long`."""

import tomllib

import pytest

from tests.local.checkouts import UP_SECONDS, Checkout

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def printed(checkout: Checkout) -> str:
    """What `ENGINE=llamacpp make up` printed."""
    shown = checkout.make("up", UP_SECONDS, ENGINE="llamacpp")
    assert "The engine is llama.cpp, as ENGINE says." in checkout.progress
    return shown


def test_line_answers(checkout: Checkout, printed: str) -> None:
    """The printed line, pasted, answers in English, under the id and alias that it has with vLLM."""
    assert "Model: smollm2-135m (alias: default)" in printed
    answer = checkout.paste(printed)
    assert "Paris" in answer
    assert '"model":"smollm2-135m"' in answer


def test_settings(checkout: Checkout, printed: str) -> None:
    """The gateway knows that the engine is no vLLM."""
    assert printed
    written = tomllib.loads((checkout.folder / "data" / "gateway.toml").read_text())
    assert [model["kind"] for model in written["models"]] == ["openai"]


def test_again(checkout: Checkout, printed: str) -> None:
    """A second `make up` needs no ENGINE: it is about what runs. Another engine is refused in one line."""
    before = checkout.processes()
    assert checkout.make("up") == printed
    assert "Already running." in checkout.progress
    refused = checkout.tried("up", ENGINE="vllm")
    assert refused.returncode
    assert "make up: The stack runs with llama.cpp: make down first" in refused.stderr
    assert checkout.processes() == before


def test_bad_value(checkout: Checkout, printed: str) -> None:
    """An engine that is none ends `make up` with one line, also while a stack runs."""
    assert printed
    refused = checkout.tried("up", ENGINE="ollama")
    assert "make up: ENGINE=ollama is none: it is vllm or llamacpp, or unset" in refused.stderr


def test_status(checkout: Checkout, printed: str) -> None:
    """`make status` says which engine it is, and that all is well."""
    assert printed
    shown = checkout.make("status")
    assert "Engine: llama.cpp\n" in shown
    assert shown.count("ok") == 3


def test_down(checkout: Checkout, printed: str) -> None:
    """`make down` leaves no process."""
    assert printed
    assert len(checkout.processes()) >= 4
    checkout.make("down", UP_SECONDS)
    assert checkout.processes() == []
