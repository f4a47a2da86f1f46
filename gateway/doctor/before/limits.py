"""How many files and processes the system allows: each call takes two files, each engine many threads."""

from collections.abc import Iterator

from gateway.doctor.evidence import Limits, Scrape
from gateway.doctor.finding import Finding, Unseen, seen

# Two connections a call, a thousand waiting, databases and logs.
ENOUGH_FILES = 4096
# An engine starts some 300 threads, and compiles kernels in as many processes as there are CPUs.
ENOUGH_PIDS = 1000
NEARLY = 0.8


def open_files(limits: Limits | Unseen, gateway: Scrape | Unseen) -> Iterator[Finding]:
    """How near a running gateway is to its limit of open files; else whether one started here has enough."""
    check = "open-files"
    if not isinstance(gateway, Unseen) and (most := gateway.last.sum("process_max_fds")):
        held = gateway.last.sum("process_open_fds")
        evidence = f"the gateway has {held:.0f} of {most:.0f} open"
        if held > NEARLY * most:
            title = "The gateway is about to run out of open files: callers are refused then"
            yield Finding(check, "error", title, evidence, _mend(limits))
            return
        if most < ENOUGH_FILES:
            title = "The running gateway may open few files: each call takes two"
            yield Finding(check, "warning", title, evidence, _mend(limits))
            return
        yield Finding(check, "ok", "Open files", evidence)
        return
    here = seen(limits)
    evidence = f"ulimit -n is {here.open_files}, at most {here.most_open_files}"
    if here.open_files < ENOUGH_FILES:
        title = f"A gateway started here could serve some {here.open_files // 2 - 50} callers at once"
        yield Finding(check, "warning", title, evidence, _mend(here))
    else:
        yield Finding(check, "ok", "Open files", evidence)


def _mend(limits: Limits | Unseen) -> str:
    if isinstance(limits, Unseen):
        return "ulimits: {nofile: 65536} for the gateway in compose.yaml, then make up"
    if limits.most_open_files >= ENOUGH_FILES:
        return f"ulimit -n {min(limits.most_open_files, 65536)}, then start; in systemd LimitNOFILE=65536"
    return "in systemd LimitNOFILE=65536; in a shell: ulimit -n 65536 as root, then start"


def pids(limits: Limits) -> Iterator[Finding]:
    """Whether an engine and a gateway find room for their threads."""
    left = limits.pids_left
    evidence = "no limit" if left is None else f"{left} more processes or threads are allowed"
    if left is not None and left < ENOUGH_PIDS:
        title = "Few more processes are allowed: an engine starts hundreds of threads"
        mend = "sudo systemctl set-property user-$UID.slice TasksMax=infinity; ulimit -u unlimited"
        yield Finding("pids", "error" if left < ENOUGH_PIDS // 10 else "warning", title, evidence, mend)
    else:
        yield Finding("pids", "ok", "Processes", evidence)
