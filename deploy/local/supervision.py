"""Supervisord keeps the services running: its configuration, its start and stop, and what it says of them.

It is the only process that the stack's own commands speak to; what each service is, is said by `services`.
"""

import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import SupervisorTransport

from deploy.local import services, session
from deploy.local.places import Places
from deploy.local.problem import Problem
from deploy.local.progress import Step
from deploy.local.services import Service

SOCKET = "data/run/supervisor.sock"
SERVICES = "data/run/services.json"
CONFIGURATION = "data/run/supervisord.conf"
# What macOS takes, less supervisord's own ending while it makes the socket.
SOCKET_PATH_BYTES = 90
OPEN_FILES = 65_536
# As many as every macOS grants, whatever it says the limit is.
OPEN_FILES_ELSEWHERE = 10_240
START_SECONDS = 20.0
STOP_SECONDS = 220.0


@dataclass(frozen=True)
class State:
    """A service as supervisord sees it: `state` is RUNNING, STARTING, BACKOFF, FATAL, EXITED or STOPPED."""

    name: str
    state: str
    process: int
    up_seconds: int
    cause: str


def configuration(wanted: Iterable[Service]) -> str:
    """The text of supervisord.conf, for a supervisord that is started in the checkout.

    Its paths are relative, so that any folder name will do: supervisord expands `%` in values, in some of
    them twice, and makes the path of its socket absolute, for which the kernel takes 108 bytes at most.
    Without /proc that path cannot be made shorter.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = OPEN_FILES if _has_proc() else OPEN_FILES_ELSEWHERE
    files = enough if most == resource.RLIM_INFINITY else min(most, enough)
    head = f"""\
[supervisord]
logfile = data/log/supervisord.log
logfile_maxbytes = 5MB
logfile_backups = 1
pidfile = data/run/supervisord.pid
minfds = {files}
umask = 077
{"user = root" if os.getuid() == 0 else ""}

[unix_http_server]
file = {f"/proc/self/cwd/{SOCKET}" if _has_proc() else "%(here)s/supervisor.sock"}
chmod = 0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
"""
    return "\n".join([head, *(_program(service) for service in wanted)])


def _has_proc() -> bool:
    return Path("/proc/self/cwd").exists()


def _program(service: Service) -> str:
    python = shlex.quote(sys.executable).replace("%", "%%")
    return f"""\
[program:{service.name}]
command = {python} -m deploy.local.launch {SERVICES} {service.name}
priority = {service.order}
autorestart = true
startsecs = 3
startretries = 5
stopwaitsecs = {service.stop_seconds}
stopasgroup = true
killasgroup = true
redirect_stderr = true
stdout_logfile = data/log/{service.name}.log
stdout_logfile_maxbytes = 20MB
stdout_logfile_backups = 3
"""


def log_file(places: Places, name: str) -> Path:
    """What a service has written; older parts lie beside it, numbered."""
    return places.logs / f"{name}.log"


def running(places: Places) -> bool:
    """Whether supervisord runs."""
    return session.running(places.pid_file, places.checkout) is not None


def start(places: Places, wanted: list[Service]) -> None:
    """Starts supervisord in the background, and with it all services. Raises Problem if it does not start."""
    if not _has_proc() and len(os.fsencode(places.checkout / SOCKET)) > SOCKET_PATH_BYTES:
        raise Problem(f"The path of this folder is too long for a socket in it: move {places.checkout}.")
    services.save(wanted, places.checkout / SERVICES)
    (places.checkout / CONFIGURATION).write_text(configuration(wanted), encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "supervisor.supervisord", "-c", CONFIGURATION),
            *session.mark_as_arguments(places.checkout),
        ],
        cwd=places.checkout,
        env={**os.environ, **session.mark(places.checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Problem(f"The supervisor did not start: {(done.stderr or done.stdout).strip()}")
    # It has gone to the background, and writes its process id from there.
    deadline = time.monotonic() + START_SECONDS
    while not running(places):
        if time.monotonic() > deadline:
            raise Problem(f"The supervisor did not start. See {log_file(places, 'supervisord')}")
        time.sleep(0.05)


def states(places: Places) -> dict[str, State]:
    """The services by name. Raises Problem if supervisord does not answer."""
    try:
        with _rpc(places) as supervisor:
            found: Any = supervisor.getAllProcessInfo()
    except OSError as error:
        log = log_file(places, "supervisord")
        raise Problem(f"The supervisor does not answer ({error}). See {log}, then make down.") from error
    return {item["name"]: _state(item) for item in found}


def start_service(places: Places, name: str) -> None:
    """Starts a service that has stopped; nothing happens to one that runs."""
    with _rpc(places) as supervisor:
        try:
            supervisor.startProcess(name, False)
        except Fault as fault:
            if "ALREADY_STARTED" not in fault.faultString:
                raise Problem(f"{name} cannot be started: {fault.faultString}") from fault


def stop_service(places: Places, name: str) -> None:
    """Stops a service and returns once it has ended; nothing happens to one that does not run."""
    with _rpc(places) as supervisor:
        try:
            supervisor.stopProcess(name, True)
        except Fault as fault:
            if "NOT_RUNNING" not in fault.faultString:
                raise Problem(f"{name} cannot be stopped: {fault.faultString}") from fault


@contextmanager
def _rpc(places: Places) -> Iterator[Any]:
    # Named through the open folder, the socket's path is short here too.
    folder = os.open(places.checkout, os.O_RDONLY | os.O_DIRECTORY)
    root = f"/proc/self/fd/{folder}" if _has_proc() else str(places.checkout)
    transport = SupervisorTransport(None, None, f"unix://{root}/{SOCKET}")
    try:
        # The address is only a form: the transport speaks over the Unix socket.
        yield ServerProxy("http://127.0.0.1", transport=transport).supervisor
    finally:
        transport.close()
        os.close(folder)


def _state(item: Mapping[str, Any]) -> State:
    seconds = item["now"] - item["start"] if item["pid"] else 0
    return State(
        item["name"],
        item["statename"],
        item["pid"],
        seconds,
        item["spawnerr"] or item["description"],
    )


def stop(places: Places, progress: Step) -> None:
    """Stops all services, the gateway first so that it can drain, and supervisord; kills what is left."""
    leader = session.recorded(places.pid_file)
    if leader is None:
        return
    if running(places):
        os.kill(leader, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while running(places) and time.monotonic() < deadline:
            progress.note("running calls may finish first")
            time.sleep(0.1)
    session.kill(session.members(leader, places.checkout))
    forget(places)


def left_behind(places: Places) -> list[str]:
    """Names and ids of the processes of an earlier run that are still there."""
    leader = session.recorded(places.pid_file)
    members = session.members(leader, places.checkout) if leader else []
    return [f"{session.name(process.id)} ({process.id})" for process in members]


def forget(places: Places) -> None:
    """Removes what a supervisord that has ended left in the folder."""
    for left in (places.pid_file, places.checkout / SOCKET):
        left.unlink(missing_ok=True)
