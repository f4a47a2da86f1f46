"""Who may call, as the running server knows it: asked in memory, kept up to date behind its back.

The request path never waits for the database. Three tasks do the waiting: one polls for changes, one
announces keys whose time is over, one writes down when keys were last used. While the store cannot be
read, known keys go on (a full disk must not stop a household) and unknown ones are told to come back;
that is counted by `gateway_key_store_up`.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import structlog

from gateway.errors import GatewayError, InvalidApiKey, KeyStoreUnavailable
from gateway.keys import token as tokens
from gateway.keys.key import Key
from gateway.keys.table import Change, Table
from gateway.metrics import Metrics
from gateway.repeating import Repeating
from gateway.store import Reader, Store

POLL_SECONDS = 0.3
RELOAD_SECONDS = 600.0
STALL_SECONDS = 1.5
USES_SECONDS = 5.0
STOP_SECONDS = 2.0
RETRY_SECONDS = 5

Callback = Callable[[str, Key | None], None]

_log = structlog.get_logger("gateway.keys")


class Directory:
    """The keys of a store, kept within a second of it. `async with` loads them and starts the tasks.

    `available` says whether the store can be read. Entering raises what the store raises.
    """

    def __init__(self, store: Store, metrics: Metrics, clock: Callable[[], float] = time.time) -> None:
        self.available = False
        self._store = store
        self._up = metrics.key_store_up
        self._clock = clock
        self._table = Table()
        self._seen = _Seen()
        self._used: dict[str, float] = {}
        self._uses_written = True
        self._callbacks: list[Callback] = []
        self._refreshing = asyncio.Lock()
        self._work = Repeating(_log, "key_task_failed")
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._load()
        self.available = True
        self._mark_up()
        self._tasks = [
            self._work.start(self.refresh, POLL_SECONDS),
            self._work.start(self._expire, POLL_SECONDS),
            self._work.start(self.write_uses, USES_SECONDS),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._work.stopping.set()
        _, stuck = await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
        for task in stuck:
            task.cancel()
        if not stuck:
            await self.write_uses()

    def find(self, token: bytes) -> Key:
        """The key that this token opens now; notes that it was used.

        Raises InvalidApiKey with the cause for the log, or KeyStoreUnavailable if the token may be one of
        a key that is not known because the store cannot be read.
        """
        found = self._table.find(tokens.sha256(token))
        if found is None:
            raise self._refusal(token)
        now = self._clock()
        if now >= found.valid_until:
            raise InvalidApiKey(found.refusal)
        self._used[found.key.id] = now
        return found.key

    def current(self, key: Key) -> Key:
        """What this key is by now, for a call that began when it was another; the same if it is gone."""
        return self._table.current(key)

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Calls back with a key's id and what it is now, None when it is revoked, expired or gone.

        Returns what ends the subscription. Callbacks run in the event loop and must neither wait nor raise.
        """
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    async def refresh(self) -> None:
        """Takes over what has changed in the store by now; if it cannot be read, says so by `available`."""
        async with self._refreshing:
            watchdog = asyncio.get_running_loop().call_later(
                STALL_SECONDS, self._mark_down, f"no answer within {STALL_SECONDS} s"
            )
            try:
                await self._load()
            except GatewayError as error:
                self._mark_down(error.cause or error.message)
            except Exception:
                self._mark_down("a fault of the gateway's own")
                raise
            else:
                self._mark_up()
            finally:
                watchdog.cancel()

    async def write_uses(self) -> None:
        """Writes down when keys were last used; what cannot be written now is kept for the next time."""
        used, self._used = self._used, {}
        if not used:
            return
        try:
            async with self._store.write() as writer:
                await writer.touch({key_id: datetime.fromtimestamp(at, UTC) for key_id, at in used.items()})
        except GatewayError as error:
            self._used = used | self._used
            if self._uses_written:
                _log.warning("key_uses_not_written", cause=error.cause or error.message)
            self._uses_written = False
        else:
            self._uses_written = True

    async def _load(self) -> None:
        async with self._store.read() as reader:
            version = await reader.version()
            now = self._clock()
            if self._seen.is_stale(reader.generation, version, now):
                await self._load_all(reader)
                self._seen = _Seen(reader.generation, version, now)
            elif version > self._seen.version:
                await self._load_changes(reader)

    async def _load_all(self, reader: Reader) -> None:
        ids: set[str] = set()
        last = ""
        while page := await reader.page(last):
            last = page[-1].row["id"]
            ids.update(stored.row["id"] for stored in page)
            self._announce(self._table.put(page, self._clock()))
        self._announce(self._table.keep(ids))

    async def _load_changes(self, reader: Reader) -> None:
        reached, changed = await reader.changed(self._seen.version)
        while changed:
            self._announce(self._table.put(changed, self._clock()))
            self._seen.version = reached
            reached, changed = await reader.changed(reached)

    async def _expire(self) -> None:
        self._announce(self._table.expire(self._clock()))

    def _announce(self, changes: Iterable[Change]) -> None:
        for key_id, key in changes:
            for callback in tuple(self._callbacks):
                callback(key_id, key)

    def _refusal(self, token: bytes) -> GatewayError:
        if not tokens.is_possible(token):
            return InvalidApiKey("not of the form of a key" if token else "no key")
        if self.available:
            return InvalidApiKey("unknown key")
        return KeyStoreUnavailable(
            "The gateway cannot read its keys at the moment and does not know this one from before. "
            "Try again shortly.",
            retry_after=RETRY_SECONDS,
            cause="unknown key while the key store cannot be read",
        )

    def _mark_up(self) -> None:
        self._up.set(1)
        if not self.available:
            _log.info("key_store_available")
        self.available = True

    def _mark_down(self, cause: str) -> None:
        self._up.set(0)
        if self.available:
            _log.error("key_store_unavailable", cause=cause)
        self.available = False


@dataclass(slots=True)
class _Seen:
    """How far the table follows the store."""

    generation: int = -1
    version: int = -1
    loaded_at: float = 0.0

    def is_stale(self, generation: int, version: int, now: float) -> bool:
        """Whether all must be loaded again: another file, one that was put back, or a long time since."""
        return (
            generation != self.generation
            or version < self.version
            or not 0 <= now - self.loaded_at <= RELOAD_SECONDS  # a clock may be set back
        )
