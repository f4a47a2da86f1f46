"""Which engine answers and how bytes get there and back: the client, the registry and its health probes."""

from gateway.engines.client import Client
from gateway.engines.engine import Engine
from gateway.engines.exchange import Exchange
from gateway.engines.failures import BadResponse, ConnectFailed, ConnectionLost, EngineFailure
from gateway.engines.registry import Registry
from gateway.engines.upload import Body, Source

__all__ = [
    "BadResponse",
    "Body",
    "Client",
    "ConnectFailed",
    "ConnectionLost",
    "Engine",
    "EngineFailure",
    "Exchange",
    "Registry",
    "Source",
]
