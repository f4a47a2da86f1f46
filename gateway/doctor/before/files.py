"""The gateway's own files: its configuration, and the folder of its databases."""

from collections.abc import Iterator

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
        title, _, mend = problem.partition(": ") if found.settings is None else (problem, "", "")
        again = f"gateway check {found.file}" if found.file else "gateway check"
        yield Finding(check, "error", title, where, f"{mend}; then {again}" if mend else again)
    for warning in found.warnings:
        yield Finding(check, "warning", warning, where, "take it out or mend it, then gateway check")
    if not found.problems and not found.warnings:
        models = len(found.settings.models) if found.settings else 0
        told = f"{where}, {models} models" if models else f"{where}, models as the engine lists them"
        yield Finding(check, "ok", "The configuration is valid", told)


def data_dir(data: DataDir) -> Iterator[Finding]:
    """Whether keys and usage can be written, on a disk that suits a database."""
    check, folder = "data-dir", data.folder
    if data.trouble:
        title = f"The data folder cannot be written to ({data.trouble})"
        mend = (
            f"sudo chown -R $(id -u):$(id -g) {folder} && chmod u+rwx {folder}, or name another: "
            "GATEWAY_DATA_DIR"
        )
        yield Finding(check, "error", title, str(folder), mend)
    elif data.filesystem in OVER_A_NETWORK:
        title = "The data folder lies on another machine's disk: SQLite's write-ahead log does not work there"
        mend = "name a folder on a disk of this machine: GATEWAY_DATA_DIR=/var/lib/vllm-gateway"
        yield Finding(check, "error", title, f"{folder} is {data.filesystem}", mend)
    elif data.free_bytes < LEAST_BYTES:
        title = "The disk of the data folder is nearly full: keys and usage could not be written"
        evidence = f"{data.free_bytes / 1e6:.0f} MB free at {folder}"
        yield Finding(check, "warning", title, evidence, f"free some space: du -xh {folder} | sort -h | tail")
    else:
        told = f"{folder}, {data.free_bytes / 1e9:.0f} GB free, {data.filesystem or 'file system not told'}"
        yield Finding(check, "ok", "The data folder can be written to", told)
