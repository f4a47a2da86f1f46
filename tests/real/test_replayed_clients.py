"""Programs that cannot be run here: their kinds of request get answers that they can read."""

import pytest

from tests.real import page, replaying
from tests.real.conftest import Real
from tests.real.replays import CLAUDE_CODE_BODY, REPLAYS, Replay
from tests.running import PATIENCE_SECONDS, Gateway, http_client, wait_for


@pytest.fixture(scope="module", autouse=True)
async def asked(gateway: Gateway) -> None:
    """The gateway has asked its engines what they serve: it may answer callers before."""

    async def told() -> bool:
        async with http_client() as http:
            models = await http.get(f"{gateway.url}/v1/models/default", headers={"x-api-key": gateway.key})
        return "max_model_len" in models.json()

    await wait_for(told, PATIENCE_SECONDS, gateway.log)


@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.client)
async def test_it_is_answered(gateway: Gateway, real: Real, replay: Replay) -> None:
    """200, and the shape that the client reads, stream or not."""
    replaying.judge(replay, await replaying.send(replay, gateway, real.chat.model))


async def test_what_claude_code_writes_anew_each_time_is_not_in_the_prompt(
    gateway: Gateway, real: Real
) -> None:
    """The text that its first system block holds would empty the prefix cache with each call."""
    replay = next(replay for replay in REPLAYS if replay.client == "Claude Code counts")
    without = Replay(
        "",
        replay.path,
        "count",
        {**CLAUDE_CODE_BODY, "system": CLAUDE_CODE_BODY["system"][1:]},
        key="x-api-key",
    )
    counts = [(await replaying.send(r, gateway, real.chat.model)).json() for r in (replay, without)]
    assert counts[0]["input_tokens"] == counts[1]["input_tokens"]


@pytest.mark.parametrize(
    "path", ["/", "/api/event_logging/batch", "/v1/fim/completions", "/v1/chat/completions/x"]
)
async def test_what_only_the_makers_own_service_has_is_a_clean_404(gateway: Gateway, path: str) -> None:
    """Clients that knock there go on."""
    async with http_client() as http:
        answer = await http.post(gateway.url + path, headers={"x-api-key": gateway.key}, json={"a": 1})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


def test_every_client_that_the_page_calls_replayed_is() -> None:
    """And none is replayed that the page does not name."""
    said = {name for name, text in page.sections().items() if text.startswith("\nReplayed")}
    replayed = {name for name in said if any(replay.client.startswith(name) for replay in REPLAYS)}
    assert replayed == said
    assert all(any(replay.client.startswith(name) for name in said) for replay in REPLAYS)
