"""How talking to an engine can fail. The texts are for the operator's log; no caller ever sees them.

EngineFailure
├── ConnectFailed    nothing was sent
├── ConnectionLost   the engine may have worked on the request
└── BadResponse      the engine answered with something that is not HTTP/1.1
"""


class EngineFailure(Exception):  # the family is named for what failed, as in gateway.errors
    """An exchange with an engine did not come to its end."""


class ConnectFailed(EngineFailure):
    """No address of the engine took a connection in time, or its certificate is not trusted."""


class ConnectionLost(EngineFailure):
    """The engine closed or reset the connection before its answer was whole."""


class BadResponse(EngineFailure):
    """The engine's bytes break HTTP/1.1, or a head is larger than 64 KiB."""
