"""Loading the configuration again while running: all of it or nothing, and why not."""

import asyncio
import os
from dataclasses import dataclass, field
from operator import attrgetter

import structlog

from gateway.app.budgets import Books
from gateway.engines import Registry
from gateway.errors import GatewayError
from gateway.observe import Observe
from gateway.policy import Catalogue
from gateway.public import Live, Rules
from gateway.settings import Settings, SettingsError, load

_log = structlog.get_logger("gateway.reload")
# What a running process cannot change, since it was opened or derived at start.
FIXED = (
    "host", "port", "ops_host", "ops_port", "data_dir", "upstream_api_key", "admin_token", "secret",
    "log_format", "server.keep_alive_seconds", "server.client_stall_seconds", "usage.gpu_energy",
)  # fmt: skip


@dataclass(slots=True)
class Reload:
    """Applies a configuration to the parts that can change while calls are running.

    `at_start` is what the process was started with, `settings` what holds now.
    """

    at_start: Settings
    settings: Settings
    live: Live
    registry: Registry
    observe: Observe
    books: Books
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self) -> list[str]:
        """Load the file again; answers what needs a restart. Raises SettingsError, changing nothing.

        Another time zone needs the usage database: what its store raises changes nothing either.
        """
        async with self._lock:
            loaded = await asyncio.to_thread(load, self.settings.file, os.environ)
            later = [name for name in FIXED if _changed(name, self.at_start, loaded.settings)]
            if loaded.settings.budgets != self.settings.budgets:
                await self.books.begin(loaded.settings)
            await self.registry.replace(loaded.settings)
            self.apply(loaded.settings)
            _log.info("configuration_reloaded", needs_restart=later)
            return later

    async def on_signal(self) -> None:
        """SIGHUP: as `__call__`, its outcome in the log."""
        try:
            await self()
        except SettingsError as error:
            _log.error("configuration_kept", problems=error.problems)
        except GatewayError as error:
            _log.error("configuration_kept", problems=[error.message])

    def apply(self, settings: Settings) -> None:
        """From the next call on these rules hold."""
        self.settings = settings
        self.live.bodies.max_buffered_bytes = settings.server.max_buffered_bytes
        self.live.relay.configure(settings)
        self.books.ledger.configure(settings.usage)
        self.observe.log_all = settings.log.requests == "all"
        self.observe.trusted_proxies = settings.server.trusted_proxies
        self.models_changed()

    def models_changed(self) -> None:
        """The engines' models are known anew."""
        self.live.rules = Rules(self.settings, Catalogue(self.registry.models))


def _changed(name: str, before: Settings, after: Settings) -> bool:
    value = attrgetter(name)
    return bool(value(before) != value(after))
