"""Calls that are estimated and then end: what tests of estimates share."""

from gateway.routes import BY_TEMPLATE
from gateway.usage import Ask, Estimates, Usage
from tests.usage.corpus import Body

CHAT = "/v1/chat/completions"
HELLO = {"messages": [{"role": "user", "content": "Hello there, how are you today?"}]}


def ask(known: Estimates, body: Body, route: str = CHAT, *, key: str = "k", choices: int = 1) -> Ask:
    """What a call asks for."""
    return known.ask(body, route=BY_TEMPLATE[route], model="m", key_id=key, choices=choices)


def finish(
    known: Estimates, call: Ask, prompt: int, completion: int = 0, *,
    data_events: int = 0, first_token_seconds: float = 0.0, seconds: float = 1.0,
) -> None:  # fmt: skip
    """The call ends as it should."""
    known.learn(
        call, Usage(prompt, 0, completion),
        data_events=data_events, first_token_seconds=first_token_seconds, seconds=seconds,
    )  # fmt: skip
