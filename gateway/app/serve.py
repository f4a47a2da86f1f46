"""The running gateway: what it opens, in which order it stops, and who is told."""

import asyncio
import gc
import signal
import socket
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import structlog
from starlette.types import ASGIApp

from gateway import __version__
from gateway.app.budgets import Books
from gateway.app.listeners import Listener, bind, listener
from gateway.app.reload import Reload
from gateway.engines import Registry
from gateway.errors import GatewayError, InvalidApiKey
from gateway.keys import Directory, Key, Keyring
from gateway.limits import Limits
from gateway.metrics import Metrics
from gateway.observe import Observe
from gateway.ops import Explainer, Parts
from gateway.ops import build as build_ops
from gateway.policy import Catalogue, Salts
from gateway.public import Live, Public, Rules, shutting_down
from gateway.public import api as public_api
from gateway.public.body import Bodies
from gateway.relay import Bookings, Calls, Relay
from gateway.settings import Loaded, Settings
from gateway.store import Store, UsageStore
from gateway.usage import Estimates, GpuEnergy, Ledger, Nvml, is_energy_wanted

_log = structlog.get_logger("gateway")
GC_THRESHOLD = 50_000  # allocations before the collector looks: most of ours die by reference count
FAREWELL_SECONDS = 2.0  # for the error events of calls that are cut
GRACE_SECONDS = 5  # for connections that are still open after the last call


@dataclass(slots=True)
class Running:
    """The parts that a signal or an operator reaches."""

    reload: Reload
    calls: Calls
    public: Listener
    ops: Listener


async def serve(loaded: Loaded) -> None:
    """Run until told to stop. Raises CannotListen or GatewayError before anything is served."""
    settings = loaded.settings
    public_socket = bind(settings.host, settings.port, "GATEWAY_PORT")
    ops_socket = bind(settings.ops_host, settings.ops_port, "GATEWAY_OPS_PORT")
    for warning in loaded.warnings:
        _log.warning("setting_ignored", warning=warning)
    async with AsyncExitStack() as stack:
        running = await _open(settings, stack, _url(public_socket))
        stop = _watch_signals(running.reload)
        async with asyncio.TaskGroup() as group:
            group.create_task(running.ops.serve([ops_socket]))
            public = group.create_task(running.public.serve([public_socket]))
            watch = group.create_task(running.calls.watch())
            _tune_collector()
            _log.info("started", version=__version__, public=_url(public_socket), ops=_url(ops_socket))
            await stop.wait()
            await _drain(running, public)
            watch.cancel()
    _log.info("stopped")


async def _open(settings: Settings, stack: AsyncExitStack, public_url: str) -> Running:
    metrics = Metrics(__version__)
    store = await stack.enter_async_context(Store(settings.data_dir))
    directory = await stack.enter_async_context(Directory(store, metrics))
    books = await _open_books(settings, stack, metrics)
    registry = await stack.enter_async_context(Registry(settings, metrics))
    calls, estimates = Calls(), Estimates()
    salts = Salts(settings.secret.get_secret_value() if settings.secret else await store.secret())
    live = Live(
        rules=Rules(settings, Catalogue(registry.models)),
        registry=registry,
        directory=directory,
        limits=books.limits,
        estimates=estimates,
        bookings=Bookings(books.limits, estimates),
        relay=Relay(registry, metrics, settings),
        calls=calls,
        bodies=Bodies(settings.server.max_buffered_bytes),
        metrics=metrics,
        salts=salts,
    )
    public = Observe(Public(live, public_api.build(live, int(time.time()))), metrics, books.ledger)
    reload = Reload(settings, settings, live, registry, public, books)
    reload.apply(settings)
    registry.subscribe(reload.models_changed)
    keyring = Keyring(store, directory.refresh)
    await _first_key(keyring, settings.data_dir, f"{public_url}/v1")
    directory.subscribe(lambda key_id, key: _key_changed(calls, books.limits, key_id, key))
    explainer = Explainer(
        keyring,
        registry,
        live.relay,
        salts,
        catalogue=lambda: live.rules.catalogue,
        policy=lambda: live.rules.settings.policy,
    )
    parts = Parts(metrics, registry, keyring, calls, reload, explainer, books.store, settings.admin_token)
    return Running(reload, calls, _listener(public, settings), _listener(build_ops(parts), settings))


async def _open_books(settings: Settings, stack: AsyncExitStack, metrics: Metrics) -> Books:
    """The usage database with its writers, and limits that go on where it says they are."""
    store = await stack.enter_async_context(UsageStore(settings.data_dir))
    ledger = await stack.enter_async_context(Ledger(store, metrics, settings.usage))
    books = Books(Limits(metrics), store, ledger)
    await books.begin(settings)
    if is_energy_wanted(settings):
        await stack.enter_async_context(GpuEnergy(store, metrics, Nvml()))
    return books


async def _first_key(keyring: Keyring, data_dir: Path, base_url: str) -> None:
    """Somebody who tries this on a terminal gets a key; a service's log never holds one."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if not await keyring.list_all():
            _tell_no_keys(data_dir)
        return
    issued = await keyring.create_first()
    if issued is not None:
        _show_first(issued.token, base_url)


def _tell_no_keys(data_dir: Path) -> None:
    _log.warning("no_keys", data_dir=str(data_dir.absolute()), mend="gateway keys create --name NAME")


def _show_first(token: str, base_url: str) -> None:
    # What listens on every address is reached from here by the loopback one.
    base_url = base_url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    print(  # noqa: T201
        f"\nYour first API key, shown only now:  {token}\n"
        f"The base URL for clients:  {base_url}\n"
        f"Try it:  curl {base_url}/models -H x-api-key:{token}\n",
        file=sys.stderr,
    )


def _listener(app: ASGIApp, settings: Settings) -> Listener:
    return listener(
        app,
        keep_alive_seconds=settings.server.keep_alive_seconds,
        client_stall_seconds=settings.server.client_stall_seconds,
        grace_seconds=GRACE_SECONDS,
    )


def _key_changed(calls: Calls, limits: Limits, key_id: str, key: Key | None) -> None:
    if key is None:
        calls.cut(_key_ended, key_id)
        limits.forget(key_id)


def _key_ended() -> GatewayError:
    return InvalidApiKey(
        "revoked or expired while the call was running",
        message="Your key was revoked or has expired while this call was running.",
    )


def _watch_signals(reload: Reload) -> asyncio.Event:
    """SIGTERM and SIGINT set the event, a second ends the process at once; SIGHUP loads the file again."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    reloads: set[asyncio.Task[None]] = set()

    def on_stop() -> None:
        stop.set()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(signum)
            signal.signal(signum, signal.SIG_DFL)

    def on_hangup() -> None:
        task = loop.create_task(reload.on_signal())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    loop.add_signal_handler(signal.SIGTERM, on_stop)
    loop.add_signal_handler(signal.SIGINT, on_stop)
    loop.add_signal_handler(signal.SIGHUP, on_hangup)
    return stop


async def _drain(running: Running, public: asyncio.Task[None]) -> None:
    """Refuse new calls, let running ones end, cut those that do not; then close, the ops port last."""
    calls = running.calls
    calls.draining = True
    seconds = running.reload.settings.server.drain_seconds
    _log.info("draining", open_calls=len(calls), seconds=seconds)
    if not await calls.idle(seconds):
        _log.warning("cutting_calls", open_calls=len(calls))
        calls.cut(shutting_down)
        await calls.idle(FAREWELL_SECONDS)
    running.public.stop()
    await public
    running.ops.stop()


def _tune_collector() -> None:
    """What start-up made stays; of what requests make, most dies by reference count."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 20)


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
