"""Debian's packages for the tests: another suite's, unpacked without a trace in the machine's own apt.

The mirrors are those that the machine is set up with. What the packages are for is said by `engine`, `rootfs`
and `systems`.
"""

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.local.places import cache_folder

ETC = Path("/etc/apt")
OS_RELEASE = Path("/etc/os-release")
ONE_LINE = re.compile(
    r"(?P<head>deb\s+(?:\[[^]]*\]\s+)?\S*/debian\S*)\s+(?P<suite>\S+)\s+(?P<rest>.*\bmain\b.*)"
)

# Of apt's own settings, the hooks are those of the machine: one of them empties its cache.
SETTINGS = """
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "{folder}/sources";
Dir::State::Lists "{folder}/lists";
Dir::Cache "{folder}/cache";
APT::Sandbox::User "root";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""


class AptFailure(Exception):
    """Apt or dpkg said no; the message is theirs."""


def codename(os_release: Path = OS_RELEASE) -> str:
    """The name of this machine's Debian release; empty on anything else."""
    lines = os_release.read_text().splitlines() if os_release.exists() else []
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    debian = fields.get("ID", "").strip('"') == "debian"
    return fields.get("VERSION_CODENAME", "").strip('"') if debian else ""


def sources_of(suite: str, etc: Path = ETC, own: str | None = None) -> dict[str, str]:
    """Files for sources.list.d that offer a suite from where the machine gets its own release, by name."""
    release = own or codename()
    one_line = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*.list"))]
    lines = [
        f"{match['head']} {match['suite'].replace(release, suite)} {match['rest']}"
        for file in one_line if file.exists()
        for line in file.read_text().splitlines()
        if (match := ONE_LINE.fullmatch(line.strip())) and _is_release(match["suite"], release)
    ]  # fmt: skip
    stanzas = [
        _with_suite(stanza, release, suite)
        for file in sorted((etc / "sources.list.d").glob("*.sources"))
        for stanza in _stanzas(file.read_text())
        if _offers(stanza, release)
    ]
    return {"suite.list": "".join(f"{line}\n" for line in lines), "suite.sources": "\n".join(stanzas)}


def _is_release(suite: str, release: str) -> bool:
    """Not backports, whose packages are another release's already."""
    return suite in {release, f"{release}-updates", f"{release}-security"}


def _stanzas(text: str) -> Iterator[str]:
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    yield from (f"{stanza.strip()}\n" for stanza in re.split(r"\n\s*\n", lines) if stanza.strip())


def _field(stanza: str, name: str) -> list[str]:
    found = re.search(rf"^{name}:(.*)$", stanza, re.MULTILINE | re.IGNORECASE)
    return found[1].split() if found else []


def _offers(stanza: str, release: str) -> bool:
    return (
        any(_is_release(suite, release) for suite in _field(stanza, "Suites"))
        and any("/debian" in uri for uri in _field(stanza, "URIs"))
        and "main" in _field(stanza, "Components")
        and _field(stanza, "Enabled") != ["no"]
    )


def _with_suite(stanza: str, release: str, suite: str) -> str:
    kept = [one.replace(release, suite) for one in _field(stanza, "Suites") if _is_release(one, release)]
    return re.sub(r"(?mi)^Suites:.*$", f"Suites: {' '.join(kept)}", stanza)


@dataclass(frozen=True)
class Apt:
    """An apt that knows one suite alone and keeps all that it writes in one folder."""

    suite: str
    folder: Path

    @property
    def sources(self) -> list[Path]:
        """The files with its sources, for other tools that take such."""
        return [file for file in sorted((self.folder / "sources").iterdir()) if file.stat().st_size]

    def set_up(self) -> None:
        """Learn what the suite holds today. Some seconds and 10 MB of lists. Raises AptFailure."""
        for part in ("sources", "lists/partial", "cache/archives/partial", "packages"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        for name, text in sources_of(self.suite).items():
            (self.folder / "sources" / name).write_text(text)
        (self.folder / "apt.conf").write_text(SETTINGS.format(folder=self.folder))
        self._run(["apt-get", "-qq", "update"])

    def unpack(self, packages: Sequence[str], root: Path) -> None:
        """Lay the packages' files below a folder, without what they depend on. Raises AptFailure."""
        root.mkdir(parents=True, exist_ok=True)
        self._run(["apt-get", "-qq", "download", *packages], cwd=self.folder / "packages")
        for package in packages:
            [deb] = sorted((self.folder / "packages").glob(f"{package}_*.deb"), key=_modified)[-1:]
            self._run(["dpkg", "-x", str(deb), str(root)])

    def bootstrap(self, root: Path, include: Sequence[str]) -> None:
        """A whole minimal system below a new folder, with some packages more. Raises AptFailure.

        mmdebstrap takes half of debootstrap's time. What nobody reads in a container is left out.
        """
        unread = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "man", "locale", "info")]
        self._run(
            [
                *("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--format=directory"),
                *("--dpkgopt=force-unsafe-io", f"--include={','.join(include)}", *unread),
                *(self.suite, str(root), *map(str, self.sources)),
            ],
            # Its own temporary files: not those of this apt.
            apt_config=False,
        )

    def _run(self, argv: Sequence[str], cwd: Path | None = None, *, apt_config: bool = True) -> None:
        environ = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
        environ |= {"APT_CONFIG": str(self.folder / "apt.conf")} if apt_config else {}
        _run(argv, cwd=cwd, environ=environ)


def unpacked(
    name: str, suite: str, packages: Sequence[str], mend: Callable[[Path], None] | None = None
) -> Path:
    """A folder with the packages' files and what `mend` makes of it, fetched once for each user.

    Nothing is installed, and no service is started. Raises AptFailure.
    """
    tag = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:8]
    root = cache_folder() / "debian" / f"{name}-{suite}-{tag}"
    if not root.is_dir():
        root.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root.parent) as work:
            apt, made = Apt(suite, Path(work) / "apt"), Path(work) / "root"
            apt.set_up()
            apt.unpack(packages, made)
            if mend is not None:
                mend(made)
            _put(made, root)
    return root


def _put(made: Path, root: Path) -> None:
    try:
        made.rename(root)
    except OSError:
        if not root.is_dir():  # otherwise another run was faster, and what it made is the same
            raise


def install(*packages: str) -> None:
    """Install on the machine itself what is missing there. Raises AptFailure."""
    missing = [name for name in packages if not _installed(name)]
    if missing:
        environ = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
        waiting = ["-qq", "--option", "DPkg::Lock::Timeout=300"]
        _run(["apt-get", *waiting, "update"], environ=environ)
        _run(["apt-get", *waiting, "install", "--no-install-recommends", *missing], environ=environ)


def _installed(package: str) -> bool:
    asked = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout == "installed"


def _modified(file: Path) -> float:
    return file.stat().st_mtime


def _run(argv: Sequence[str], *, environ: dict[str, str], cwd: Path | None = None) -> None:
    done = subprocess.run(
        argv,
        cwd=cwd,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AptFailure(f"{' '.join(argv[:3])} … failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
