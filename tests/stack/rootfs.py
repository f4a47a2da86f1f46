"""The stand-ins that hold one program each: busybox, a C library and it, as the makers' own images do.

Which others there are, and how all of them become images, is said by `images`.
"""

import os
import shutil
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.stack import grafana_stand_in
from tests.stack.debian import Apt

NOBODY = 65534
ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n",
    "etc/group": "root:x:0:\nnobody:x:65534:\n",
}
# `wget` is what the health checks call, the others stand in the scripts that start a service.
APPLETS = ("sh", "wget", "grep", "tr", "cat", "mkdir", "id", "kill", "sleep", "date", "ls")
CADDY = Path(sys.executable).with_name("caddy")
ROOTS = Path("/etc/ssl/certs/ca-certificates.crt")

# capabilities(7): revision 2 with the effective bit; then permitted and inheritable, low words and high ones.
MAY_BIND_LOW_PORTS = struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0)


@dataclass(frozen=True)
class Program:
    """One program's image: Debian's packages, which of their files go where, and the image's settings.

    `owned` are folders of the user nobody; a new volume takes its owner from there.
    """

    packages: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    owned: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


PROGRAMS: Mapping[str, Program] = {
    "prom/prometheus": Program(
        packages=("prometheus",),
        files={"bin/prometheus": "usr/bin/prometheus"},
        owned=("prometheus", "etc/prometheus"),
        changes=(
            "USER nobody",
            "WORKDIR /prometheus",
            'ENTRYPOINT ["/bin/prometheus"]',
            'CMD ["--config.file=/etc/prometheus/prometheus.yml","--storage.tsdb.path=/prometheus"]',
        ),
    ),
    "prom/alertmanager": Program(
        packages=("prometheus-alertmanager",),
        files={
            "bin/alertmanager": "usr/bin/prometheus-alertmanager",
            "bin/amtool": "usr/bin/amtool",
            # The makers' build holds its templates in itself, Debian's beside it.
            "usr/share/prometheus/alertmanager": "usr/share/prometheus/alertmanager",
        },
        owned=("alertmanager", "etc/alertmanager"),
        changes=(
            "USER nobody",
            "WORKDIR /alertmanager",
            'ENTRYPOINT ["/bin/alertmanager"]',
            'CMD ["--config.file=/etc/alertmanager/alertmanager.yml","--storage.path=/alertmanager"]',
        ),
    ),
    "prom/node-exporter": Program(
        packages=("prometheus-node-exporter",),
        files={"bin/node_exporter": "usr/bin/prometheus-node-exporter"},
        changes=("USER nobody", 'ENTRYPOINT ["/bin/node_exporter"]'),
    ),
    "prom/blackbox-exporter": Program(
        packages=("prometheus-blackbox-exporter",),
        files={"bin/blackbox_exporter": "usr/bin/prometheus-blackbox-exporter"},
        folders=("etc/blackbox_exporter",),
        changes=(
            'ENTRYPOINT ["/bin/blackbox_exporter"]',
            'CMD ["--config.file=/etc/blackbox_exporter/config.yml"]',
        ),
    ),
    "caddy": Program(
        folders=("config/caddy", "data/caddy", "etc/caddy", "usr/share/caddy", "srv"),
        changes=(
            "ENV XDG_CONFIG_HOME=/config",
            "ENV XDG_DATA_HOME=/data",
            "WORKDIR /srv",
            'CMD ["caddy","run","--config","/etc/caddy/Caddyfile","--adapter","caddyfile"]',
        ),
    ),
}

# Laid over the image with Python.
GRAFANA_CHANGES = (
    "RUN install -d -o 472 -g 0 /var/lib/grafana",
    "USER 472",
    'ENTRYPOINT ["python3","/usr/local/bin/grafana_stand_in.py"]',
)


def furnish(root: Path, repository: str, apt: Apt) -> None:
    """Lay all files of a repository's stand-in below a new folder. Raises AptFailure."""
    program = PROGRAMS[repository]
    unpacked = root.with_name("packages")
    apt.unpack(["busybox-static", "libc6", *program.packages], unpacked)
    _lay_base(root, unpacked)
    for name, there in program.files.items():
        _install(unpacked / there, root / name)
    for folder in (*program.folders, *program.owned):
        (root / folder).mkdir(parents=True)
    for folder in program.owned:
        os.chown(root / folder, NOBODY, NOBODY)
    if repository == "caddy":
        _install_caddy(root)


def furnish_grafana(root: Path, apt: Apt) -> None:
    """Lay Grafana's stand-in into a new folder, and what its health check calls. Raises AptFailure."""
    unpacked = root.with_name("packages")
    apt.unpack(["busybox-static"], unpacked)
    _install(unpacked / "usr/bin/busybox", root / "usr/local/bin/wget")
    _install(Path(grafana_stand_in.__file__), root / "usr/local/bin/grafana_stand_in.py")


def _lay_base(root: Path, unpacked: Path) -> None:
    _install(unpacked / "usr/bin/busybox", root / "bin/busybox")
    for applet in APPLETS:
        (root / "bin" / applet).symlink_to("busybox")
    for folder in ("lib", "lib64"):
        shutil.copytree(unpacked / "usr" / folder, root / folder, symlinks=True)
    for name, text in ACCOUNTS.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    _install(ROOTS, root / "etc/ssl/certs/ca-certificates.crt")
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)


def _install_caddy(root: Path) -> None:
    """Caddy's own build, as a wheel. As in its image, the file itself may bind to ports below 1024."""
    caddy = root / "usr/bin/caddy"
    _install(CADDY, caddy)
    os.setxattr(caddy, "security.capability", MAY_BIND_LOW_PORTS)
    (root / "etc/caddy/Caddyfile").write_text(":80\nroot * /usr/share/caddy\nfile_server\n")


def _install(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)
