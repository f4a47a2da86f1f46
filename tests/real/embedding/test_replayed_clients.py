"""Programs that cannot be run here: how they ask for embeddings and ranks."""

import pytest

from tests.real import page, replaying
from tests.real.engines import RealEngine
from tests.real.replays import OF_EMBEDDINGS, Replay
from tests.running import Gateway


@pytest.mark.parametrize("replay", OF_EMBEDDINGS, ids=lambda replay: replay.client)
async def test_it_is_answered(gateway: Gateway, embedder: RealEngine, replay: Replay) -> None:
    """200, and the shape that the client reads."""
    replaying.judge(replay, await replaying.send(replay, gateway, embedder.model))


async def test_the_block_of_docs_clients_for_langchain(gateway: Gateway) -> None:
    """As it stands there."""
    assert await page.python(page.blocks("LangChain", "python")[1], gateway) == "384\n"
