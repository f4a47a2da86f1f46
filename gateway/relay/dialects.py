"""Which reader a route's streams need."""

from gateway.relay.completions import Completions, Reasoned, Transcript
from gateway.relay.events import EventStream
from gateway.relay.messages import Messages
from gateway.relay.responses import Responses
from gateway.routes import Route


def reader(route: Route, *, include_usage: bool, choices: int, both_names: bool) -> EventStream:
    """A reader for one stream of this route.

    The usage event is taken out only where the gateway asks for it by itself.
    """
    if route.dialect == "responses":
        return Responses()
    if route.dialect == "messages":
        return Messages()
    include_usage = include_usage or not route.asks_usage
    if route.body == "form":
        return Transcript(include_usage=include_usage, choices=None)
    kind = Reasoned if both_names else Completions
    return kind(include_usage=include_usage, choices=choices)
