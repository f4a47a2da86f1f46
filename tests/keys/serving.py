"""What tests of a running server's keys share: a clock that they turn, and the server's answers."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from gateway.errors import InvalidApiKey, KeyStoreUnavailable
from gateway.keys import Directory, Issued, Key, Keyring
from gateway.metrics import Metrics
from tests.keys.waiting import until

EFFECTIVE_SECONDS = 1.0
NOTICED_SECONDS = 2.0


@dataclass
class Clock:
    """The present moment, plus what a test adds."""

    ahead_seconds: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_seconds

    def now(self) -> datetime:
        """The same as a moment in UTC."""
        return datetime.fromtimestamp(self(), UTC)


@dataclass
class Server:
    """A running directory with its metrics, and what it told its subscriber."""

    directory: Directory
    metrics: Metrics
    told: list[tuple[str, Key | None]] = field(default_factory=list)

    def find(self, token: str) -> Key:
        """The key of a token."""
        return self.directory.find(token.encode())

    @property
    def store_up(self) -> float | None:
        """The metric as Prometheus would read it."""
        return self.metrics.registry.get_sample_value("gateway_key_store_up")

    def refusal(self, token: str) -> str | None:
        """Why a token opens nothing, for the log; None if it opens a key."""
        try:
            self.find(token)
        except InvalidApiKey as refused:
            return refused.cause
        return None

    def says_come_back(self, token: str) -> bool:
        """Whether the caller gets 503."""
        try:
            self.find(token)
        except KeyStoreUnavailable:
            return True
        except InvalidApiKey:
            return False
        return False


async def known(server: Server, keyring: Keyring, **fields: object) -> Issued:
    """A new key that the server knows already."""
    issued = await keyring.create({"name": "known", **fields})
    await until(lambda: server.refusal(issued.token) is None, EFFECTIVE_SECONDS)
    return issued
