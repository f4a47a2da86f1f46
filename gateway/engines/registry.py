"""Which engines there are, which of them are up, and which models they serve. Requests do not pass here.

Each engine has one task that probes it: every second while it is down, every ten while it is up, at once
after a live failure. With no [[models]] the same task lists the engine's models, so that one that was
swapped is noticed; the last list stays in force while the engine is away. With [[models]] it is compared
with what a vLLM lists once that is up, and again until nothing is missing.
"""

import asyncio
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import httpx
import structlog

from gateway.engines import address, health, listing
from gateway.engines.client import Client
from gateway.engines.engine import Engine
from gateway.engines.unwell import Unwell
from gateway.errors import EngineLoading, EngineUnavailable, GatewayError
from gateway.metrics import Metrics
from gateway.settings import Model, Settings, SettingsError

_log = structlog.get_logger("gateway.engines")

UP_SECONDS = 10.0
DOWN_SECONDS = 1.0
FIRST_ROUND_SECONDS = 1.0
LOADING_RETRY_SECONDS = 15
UNAVAILABLE_RETRY_SECONDS = 5


class Registry:
    """The engines of one configuration. `async with` starts the probes and ends them."""

    def __init__(
        self, settings: Settings, metrics: Metrics, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._clock = clock
        self._engines: dict[str, Engine] = {}
        self._models = settings.models
        self._missing: dict[str, tuple[str, ...]] = {}  # by engine: what it was found not to serve
        self._broken: set[str] = set()  # engines that are down and that waiting will not mend
        self._subscribers: list[Callable[[], None]] = []
        self._probes: list[asyncio.Task[None]] = []
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        """Start. An engine that is up is known to be so on return, one that hangs does not hold the start."""
        self._install(self._settings, _trusted(self._settings))
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_ROUND_SECONDS):
                    for engine in list(self._engines.values()):
                        await engine.probed.wait()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    @property
    def models(self) -> tuple[Model, ...]:
        """The configured models, or else those that the engine listed last."""
        return self._models

    @property
    def discovered(self) -> bool:
        """Whether the models are known: False until the engine has listed them for the first time."""
        return bool(self._models)

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call back, in the event loop, whenever `models` has changed by discovery."""
        self._subscribers.append(callback)

    def engines_of(self, model: Model) -> Sequence[Engine]:
        """The engines that serve the model, best first: those that are up, then by requests in flight.

        Engines that are down are among them: a live request knows better than a probe of a second ago.
        """
        engines = [self._engines[url] for url in model.engines if url in self._engines]
        if len(engines) > 1:
            engines.sort(key=lambda engine: (not engine.up, engine.client.in_flight))
        return engines

    def max_model_len(self, model: Model) -> int | None:
        """The most tokens of a prompt and its answer that each of its engines takes; None: none has told."""
        name = model.engine_model or model.id
        told = [engine.lengths.get(name) for engine in self.engines_of(model)]
        return min((length for length in told if length is not None), default=None)

    def ready(self) -> tuple[bool, list[str]]:
        """Whether any engine can answer, and if none can, why: one line for each.

        If one can, the lines tell which configured models their engines do not serve.
        """
        engines = self._engines.values()
        if any(engine.up for engine in engines):
            return True, [line for lines in self._missing.values() for line in lines]
        return False, [f"{engine.url}: {engine.reason}" for engine in engines] or ["no engine is configured"]

    def unreachable(self, engine: Engine, cause: str) -> GatewayError:
        """The error for a caller: the engine is loading, or else unavailable.

        It is unavailable if it has been away for longer than a start takes, or fails as no start does.
        """
        away_seconds = 0.0 if engine.up else self._clock() - engine.since
        cause = f"{engine.url}: {cause}"
        if engine.url not in self._broken and away_seconds < self._settings.engine.start_seconds:
            return EngineLoading(
                "The engine is starting and its model is not loaded yet. "
                f"Try again in {LOADING_RETRY_SECONDS} seconds.",
                retry_after=LOADING_RETRY_SECONDS,
                cause=cause,
            )
        return EngineUnavailable(
            "The engine of this model cannot be reached. Tell the operator if this lasts.",
            retry_after=UNAVAILABLE_RETRY_SECONDS,
            cause=cause,
        )

    def undiscovered(self) -> GatewayError:
        """The error for any model's name as long as `discovered` is False."""
        engine = next(iter(self._engines.values()))
        return self.unreachable(engine, engine.reason)

    async def replace(self, settings: Settings) -> None:
        """Go over to other settings; running exchanges end undisturbed, known engines keep their state.

        Raises SettingsError before anything has changed. Subscribers are not called: the caller knows.
        """
        trusted = _trusted(settings)
        await self._stop_probing()
        self._install(settings, trusted)

    def _install(self, settings: Settings, trusted: ssl.SSLContext) -> None:
        before, self._settings = self._settings, settings
        self._missing = {}
        urls = _urls(settings)
        for url in [url for url in self._engines if url not in urls]:
            self._remove(self._engines.pop(url))
        for url in urls:
            self._add(url, trusted, renew=before.engine != settings.engine)
        if settings.models or before.models or before.upstream_url != settings.upstream_url:
            self._models = settings.models
        api_key = settings.upstream_api_key.get_secret_value() if settings.upstream_api_key else ""
        self._http = http = health.prober(trusted, api_key)
        self._probes = [asyncio.create_task(self._watch(http, engine)) for engine in self._engines.values()]
        for probe in self._probes:
            probe.add_done_callback(_report)

    def _add(self, url: str, trusted: ssl.SSLContext, *, renew: bool) -> None:
        known = self._engines.get(url)
        if known is None:
            self._engines[url] = Engine(url, self._client(url, trusted), self._clock)
            self._metrics.engine_up.labels(url).set(0)
        elif renew:
            known.client.close()
            known.client = self._client(url, trusted)

    def _remove(self, engine: Engine) -> None:
        engine.client.close()
        self._broken.discard(engine.url)
        self._metrics.engine_up.remove(engine.url)
        self._metrics.engine_reconnects.remove(engine.url)

    def _client(self, url: str, trusted: ssl.SSLContext) -> Client:
        return Client(
            url,
            connect_timeout_seconds=self._settings.engine.connect_timeout_seconds,
            keep_alive_seconds=self._settings.engine.keep_alive_seconds,
            ssl_context=trusted,
            on_reconnect=self._metrics.engine_reconnects.labels(url).inc,
        )

    async def _watch(self, http: httpx.AsyncClient, engine: Engine) -> None:
        while True:
            try:
                await health.check(http, engine.url)
                if not self._settings.models:
                    self._learn(engine.url, await _list(http, engine))
                await engine.pulse.check(http, engine.url, engine.client, self._models)
            except Unwell as reason:
                self._note_down(engine, reason)
            else:
                self._note_up(engine)
                await self._compare(http, engine)
            engine.probed.set()
            await engine.rest(UP_SECONDS if engine.up else DOWN_SECONDS)

    async def _compare(self, http: httpx.AsyncClient, engine: Engine) -> None:
        """Look for configured models that a vLLM does not list: each of their calls would fail."""
        url = engine.url
        wanted = [model for model in self._settings.models if model.kind == "vllm" and url in model.engines]
        before = self._missing.get(url)
        if not wanted or before == ():
            return
        try:
            lists = [entry.id for entry in await _list(http, engine)]
        except Unwell as reason:
            _log.warning("models_not_listed", engine=url, reason=str(reason))
            self._missing[url] = ()
            return
        absent = [model for model in wanted if (model.engine_model or model.id) not in lists]
        self._missing[url] = tuple(listing.not_served(model, url, lists) for model in absent)
        if self._missing[url] != before:
            for model in absent:
                _log.warning(
                    "model_not_served", model=model.id, engine=url, lists=lists, mend="set engine_model"
                )

    def _note_up(self, engine: Engine) -> None:
        self._broken.discard(engine.url)
        if not engine.up:
            engine.up = True
            engine.reason = ""
            self._metrics.engine_up.labels(engine.url).set(1)
            _log.info("engine_up", engine=engine.url)

    def _note_down(self, engine: Engine, unwell: Unwell) -> None:
        reason = str(unwell)
        self._missing.pop(engine.url, None)
        (self._broken.discard if unwell.starting else self._broken.add)(engine.url)
        if engine.up:
            engine.up = False
            engine.since = self._clock()
            self._metrics.engine_up.labels(engine.url).set(0)
        if engine.reason != reason:
            engine.reason = reason
            _log.warning("engine_down", engine=engine.url, reason=reason)

    def _learn(self, url: str, served: Sequence[health.Served]) -> None:
        models = tuple(listing.models(url, served))
        if not models:
            raise Unwell("GET /v1/models lists no model with a usable name")
        if models == self._models:
            return
        self._models = models
        _log.info("models_discovered", engine=url, models=[model.id for model in models])
        for callback in self._subscribers:
            callback()

    async def _stop_probing(self) -> None:
        probes, self._probes = self._probes, []
        for probe in probes:
            probe.cancel()
        if probes:
            await asyncio.wait(probes)
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def _close(self) -> None:
        for engine in self._engines.values():
            engine.client.close()
        await self._stop_probing()


def _report(probe: asyncio.Task[None]) -> None:
    """Only a fault of ours ends a probe by itself; without this line nobody would hear of it."""
    if not probe.cancelled():
        _log.error("probe_ended", exc_info=probe.exception())


async def _list(http: httpx.AsyncClient, engine: Engine) -> Sequence[health.Served]:
    served = await health.served(http, engine.url)
    engine.lengths = listing.lengths(served)
    return served


def _urls(settings: Settings) -> tuple[str, ...]:
    if settings.models:
        return tuple(dict.fromkeys(url for model in settings.models for url in model.engines))
    return (settings.upstream_url,) if settings.upstream_url else ()


def _trusted(settings: Settings) -> ssl.SSLContext:
    """Whom to trust. Raises SettingsError for all that could fail once engines are being made."""
    urls = _urls(settings)
    for url in urls:
        try:
            address.parse(url)
        except ValueError as error:
            raise SettingsError([f"{url} cannot be used: {error}"]) from error
    return health.trust(urls, settings.engine.ca_file)
