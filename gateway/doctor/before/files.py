"""The gateway's own files: its configuration, and the folder of its databases."""

import re
from collections.abc import Iterator
from shlex import quote

from gateway.doctor.evidence import Configuration, DataDir
from gateway.doctor.finding import Finding

# SQLite's write-ahead log needs memory that all readers share, which these do not give: https://sqlite.org/wal.html
OVER_A_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse.rclone", "ceph", "glusterfs"}
)
LEAST_BYTES = 1_000_000_000


def settings(found: Configuration) -> Iterator[Finding]:
    """What `gateway check` says: each problem an error, each warning a warning."""
    check = "settings"
    where = str(found.file) if found.file else "the environment"
    for problem in found.problems:
        title, where_in, mend = _told(problem, where) if found.settings is None else (problem, where, "")
        again = f"gateway check {quote(str(found.file))}" if found.file else "gateway check"
        yield Finding(check, "error", title, where_in, f"{mend}; then {again}" if mend else again)
    for warning in found.warnings:
        yield Finding(check, "warning", warning, where, "take it out or mend it, then gateway check")
    if not found.problems and not found.warnings:
        models = len(found.settings.models) if found.settings else 0
        told = f"{where}, {models} models" if models else f"{where}, models as the engine lists them"
        yield Finding(check, "ok", "The configuration is valid", told)


def _told(problem: str, where: str) -> tuple[str, str, str]:
    """Title, place and mend of a problem: what follows its place, or its first words, is what is wrong."""
    first, _, rest = problem.partition(": ")
    if rest and re.search(r", line \d+$|^[A-Z_]+$", first):
        return rest, first, f"mend {first}"
    return first, where, rest


def data_dir(data: DataDir) -> Iterator[Finding]:
    """Whether keys and usage can be written, on a disk that suits a database."""
    check, folder, path = "data-dir", data.folder, quote(str(data.folder))
    if data.trouble:
        title = f"The data folder cannot be written to ({data.trouble})"
        yield Finding(
            check, "error", title, str(folder), f"{_opened(data)}, or name another: GATEWAY_DATA_DIR"
        )
    elif data.filesystem in OVER_A_NETWORK:
        title = "The data folder lies on another machine's disk: SQLite's write-ahead log does not work there"
        mend = "name a folder on a disk of this machine: GATEWAY_DATA_DIR=/var/lib/vllm-gateway"
        yield Finding(check, "error", title, f"{folder} is {data.filesystem}", mend)
    elif data.free_bytes < LEAST_BYTES:
        title = "The disk of the data folder is nearly full: keys and usage could not be written"
        evidence = f"{data.free_bytes / 1e6:.0f} MB free at {folder}"
        yield Finding(check, "warning", title, evidence, f"free some space: du -xh {path} | sort -h | tail")
    else:
        told = f"{folder}, {data.free_bytes / 1e9:.0f} GB free, {data.filesystem or 'file system not told'}"
        yield Finding(check, "ok", "The data folder can be written to", told)


def _opened(data: DataDir) -> str:
    folder = quote(str(data.folder))
    if data.trouble.endswith("is no folder"):
        return "move that file away"
    if data.there:
        return f"sudo chown -R $(id -u):$(id -g) {folder} && chmod u+rwx {folder}"
    return f"sudo install -d -o $(id -u) -g $(id -g) {folder}"
