"""Which engine answers and how bytes get there and back: the client, the registry and its health probes."""

from gateway.engines.client import Client
from gateway.engines.engine import Engine
from gateway.engines.exchange import Exchange
from gateway.engines.failures import BadResponse, ConnectFailed, ConnectionLost, EngineFailure
from gateway.engines.registry import Registry

__all__ = [
    "BadResponse",
    "Client",
    "ConnectFailed",
    "ConnectionLost",
    "Engine",
    "EngineFailure",
    "Exchange",
    "Registry",
]
