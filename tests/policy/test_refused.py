"""Nothing that an engine would keep, and nobody whom it would call, on a caller's word."""

from typing import Any

import pytest

from gateway.errors import InvalidRequest
from gateway.policy import Catalogue, explain
from gateway.settings import Policy
from tests.policy.calls import CHAT, HELLO, MESSAGES, RESPONSES, key, model, prepare, sent


@pytest.mark.parametrize(
    ("route", "body", "param"),
    [
        (RESPONSES, {"previous_response_id": "resp_1"}, "previous_response_id"),
        (RESPONSES, {"previous_response_id": ""}, "previous_response_id"),
        (RESPONSES, {"conversation": {"id": "conv_1"}}, "conversation"),
        (RESPONSES, {"prompt": {"id": "pmpt_1"}}, "prompt"),
        (RESPONSES, {"background": True}, "background"),
        (RESPONSES, {"background": "yes"}, "background"),
        (RESPONSES, {"background": 1}, "background"),
        (
            RESPONSES,
            {"input": [{"type": "message"}, {"type": "item_reference", "id": "msg_1"}]},
            "input[1].type",
        ),
        (RESPONSES, {"tools": [{"type": "function"}, {"type": "mcp"}]}, "tools[1].type"),
        (RESPONSES, {"tools": [{"type": "MCP"}]}, "tools[0].type"),
        (RESPONSES, {"tools": [{"type": "namespace", "tools": [{"type": "mcp"}]}]}, "tools[0].tools[0].type"),
        (MESSAGES, {"mcp_servers": [{"type": "url", "url": "https://x"}]}, "mcp_servers"),
        (MESSAGES, {"tools": [{"type": "mcp_toolset", "mcp_server_name": "x"}]}, "tools[0].type"),
        ("/pooling", {"data": {"data": "/etc/passwd", "data_format": "path"}}, "data"),
    ],
)
def test_what_is_not_done_here_is_refused_by_name(route: str, body: dict[str, Any], param: str) -> None:
    """400 that names the field and says what to do instead."""
    with pytest.raises(InvalidRequest) as refused:
        prepare(body, route=route)
    assert (refused.value.status, refused.value.param) == (400, param)


@pytest.mark.parametrize(
    ("route", "body"),
    [
        (RESPONSES, {"previous_response_id": None, "conversation": None, "prompt": None, "background": None}),
        (RESPONSES, {"background": False, "tools": None}),
        (RESPONSES, {"tools": [{"type": "function", "name": "mcp"}, {"type": "web_search"}, 5, {"type": 5}]}),
        (RESPONSES, {"input": [5, "x", {"type": "message", "role": "user", "content": "x"}]}),
        (RESPONSES, {"tools": "none", "input": "x", "metadata": {"a": "b"}}),
        (MESSAGES, {"mcp_servers": [], "metadata": {"user_id": "u"}, "container": "c"}),
        (CHAT, {"tools": [{"type": "function", "function": {"name": "mcp"}}], "store": True}),
    ],
)
def test_silence_and_everything_else_pass(route: str, body: dict[str, Any]) -> None:
    """Null and an empty list ask for nothing; other routes may use the names for something else."""
    assert sent(body, route=route) == body


@pytest.mark.parametrize("said", [{}, {"store": True}, {"store": None}, {"store": "yes"}, {"store": False}])
def test_responses_are_never_stored(said: dict[str, Any]) -> None:
    """Whatever the caller says: vLLM's store has no keys, and forgets nothing."""
    target = Catalogue([model()]).find("m", key())

    explained = explain({**said, "input": "x"}, route=RESPONSES, target=target, key=key(), policy=Policy())

    assert explained.body == {"model": "m", "input": "x", "store": False}
    assert explained.sources["store"] == "gateway"
    assert explained.dropped == ()


def test_chat_knows_no_store() -> None:
    """Nothing is written there."""
    assert sent({"messages": HELLO}) == {"messages": HELLO}
