"""Keys of one group share vLLM's prefix cache, and nobody else does; the engine itself counts the hits."""

from typing import Any

import httpx
import pytest

from tests.real.conftest import Real
from tests.running import Gateway, http_client

BLOCKS = "one two three four five six seven eight nine ten " * 40  # several of the CPU engine's 128 tokens


@pytest.fixture(scope="module")
async def callers(gateway: Gateway) -> tuple[str, str, str]:
    """The keys of two colleagues and of a stranger."""
    made = [await gateway.create_key(name="a", cache_group=group) for group in ("team", "team", None)]
    one, other, stranger = (key["key"] for key in made)
    return one, other, stranger


@pytest.mark.parametrize(
    ("route", "body", "cached"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "{}"}]}, "prompt_tokens_details"),
        ("/v1/completions", {"prompt": "{}"}, "prompt_tokens_details"),
        ("/v1/responses", {"input": "{}"}, "input_tokens_details"),
        ("/v1/messages", {"messages": [{"role": "user", "content": "{}"}]}, "cache_read_input_tokens"),
    ],
)
async def test_a_prompt_is_cached_for_its_own_group_alone(
    gateway: Gateway, real: Real, callers: tuple[str, str, str], route: str, body: dict[str, Any], cached: str
) -> None:
    """On each route that generates; nobody can find out by timing what a stranger has sent."""
    one, other, stranger = callers
    prompt = f"{route} {BLOCKS}"
    filled = {name: _with(value, prompt) for name, value in body.items()}

    async with http_client() as http:

        async def hits(key: str) -> int:
            capped = {
                "model": real.tiny.model,
                "max_output_tokens" if "responses" in route else "max_tokens": 1,
            }
            answer = await http.post(
                gateway.url + route, headers={"x-api-key": key}, json={**filled, **capped}
            )
            return _cached(answer, cached)

        assert await hits(one) == 0
        assert await hits(other) >= 128
        assert await hits(stranger) == 0
        assert await hits(stranger) >= 128


def _with(value: Any, prompt: str) -> Any:
    if isinstance(value, list):
        return [{**message, "content": prompt} for message in value]
    return prompt


def _cached(answer: httpx.Response, field: str) -> int:
    """How many tokens of the prompt the engine says it had already."""
    assert answer.status_code == 200, answer.text
    value = answer.json()["usage"].get(field)
    return (value or {}).get("cached_tokens") or 0 if isinstance(value, dict) else value or 0
