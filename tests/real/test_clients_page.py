"""docs/clients.md: what it says was run is run here, word for word; what is configuration can be read."""

import asyncio
import json
import re
import shutil
import tomllib

import pytest
import yaml

from tests.real import node, page
from tests.real.conftest import Real
from tests.running import Gateway

CURL = page.blocks("curl", "sh")
BASE_URLS = {"https://llm.example.org/v1", "https://llm.example.org"}


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
@pytest.mark.parametrize("number", range(len(CURL)))
async def test_curl(gateway: Gateway, real: Real, number: int) -> None:
    """Each line is answered by the model."""
    printed = await page.shell(CURL[number], gateway)
    if "data: " in printed:
        assert printed.rstrip().endswith("data: [DONE]")
        printed = printed[len("data: ") : printed.index("\n")]
    answer = json.loads(printed)
    assert "error" not in answer, answer
    assert answer.get("model") == real.chat.model or "data" in answer


@pytest.fixture(scope="module")
async def printed(gateway: Gateway) -> dict[str, str]:
    """What the first block of Python under each heading prints; all run at once, to save time."""
    sections = ("OpenAI Python", "Anthropic Python", "LangChain")
    runs = (page.python(page.blocks(section, "python")[0], gateway) for section in sections)
    return dict(zip(sections, await asyncio.gather(*runs), strict=True))


def test_openai_python(printed: dict[str, str]) -> None:
    """A stream, an object of a class, a response."""
    assert "Paris" in printed["OpenAI Python"]
    assert re.search(r"kind='(city|country)'\n.+", printed["OpenAI Python"])


def test_anthropic_python(printed: dict[str, str]) -> None:
    """A count and a stream."""
    assert re.match(r"\d+\n.+", printed["Anthropic Python"])


def test_langchain(printed: dict[str, str]) -> None:
    """A stream, an object of a class, a tool's call."""
    assert "Paris" in printed["LangChain"]
    assert re.search(r"kind='(city|country)'\n.*'name': 'Kind'", printed["LangChain"])


async def test_node(gateway: Gateway) -> None:
    """The block is a module, as it stands."""
    [code] = page.blocks("OpenAI Node", "js")
    assert "Paris" in await node.run_code(code, gateway)


def test_configuration_can_be_read() -> None:
    """YAML, JSON and TOML are what they say, and lead to the base URL in the client's own way."""
    openai_like = [
        *(model["apiBase"] for model in yaml.safe_load(page.blocks("Continue", "yaml")[0])["models"]),
        yaml.safe_load(page.blocks("Open WebUI", "yaml")[0])["services"]["open-webui"]["environment"][
            "OPENAI_API_BASE_URL"
        ],
        tomllib.loads(page.blocks("Codex", "toml")[0])["model_providers"]["gateway"]["base_url"],
    ]
    assert set(openai_like) == {"https://llm.example.org/v1"}
    claude = json.loads(page.blocks("Claude Code", "json")[0])["env"]
    assert claude["ANTHROPIC_BASE_URL"] == "https://llm.example.org"


def test_every_client_says_how_it_was_tried() -> None:
    """Nobody has to guess what was run and what was written down from elsewhere."""
    for name, text in page.sections().items():
        assert re.match(r"\n(Run|Replayed)\b", text), name
    assert set(re.findall(r"https://llm\.example\.org(?:/v1)?(?![/\w])", page.PAGE.read_text())) == BASE_URLS
