"""`make backup`: keys, usage, secrets, .env and Caddy's certificates in one file, while all goes on."""

import errno
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from deploy.box import archive, contents, docker, images, variables, volume
from deploy.box.contents import CADDY, CHECKOUT, DATA
from deploy.box.manifest import Manifest
from deploy.box.places import Places
from deploy.local.places import Places as LocalPlaces
from deploy.local.problem import Problem
from deploy.local.progress import step

PROGRAM = Path(volume.__file__)
NOT_IN_IT = (
    "the model's weights, compiled kernels, metrics, silences, Grafana's own users, Open WebUI's chats, logs"
)


def of_box(places: Places, file: Path | None) -> Path:
    """Makes a backup of the stack, running or not, and says what is in it. Raises Problem if it cannot."""
    with _target(places.backups, file) as target, archive.workspace(places.backups) as folder:
        for name in saved_volumes(places):
            with tempfile.TemporaryFile(dir=folder) as stream:
                docker.stream(places, *container(places, name), "save", "/volume", target=stream)
                _unpack(stream, folder / name)
        left_out = _copy_checkout(places, folder / CHECKOUT)
        manifest = archive.write(folder, target, "box", images.of_stack(places))
    _tell(target, manifest, [NOT_IN_IT, *left_out])
    return target


def of_local(places: LocalPlaces, file: Path | None) -> Path:
    """The same for the local mode, whose data is one folder."""
    if not places.data.exists():
        raise Problem("There is nothing to save yet: make up makes it.")
    beside = places.checkout / "backups"
    with _target(beside, file) as target, archive.workspace(target.parent) as folder:
        with tempfile.TemporaryFile(dir=folder) as stream:
            volume.save(places.data, stream)
            _unpack(stream, folder / "data")
        manifest = archive.write(folder, target, "local", {})
    _tell(target, manifest, ["engine and weights", "logs"])
    return target


@contextmanager
def _target(folder: Path, file: Path | None) -> Iterator[Path]:
    """Where it is written to, while it is. Raises Problem for what cannot be written there."""
    target = (file or folder / f"vllm-gateway-{datetime.now(UTC):%Y%m%d-%H%M%S}.tar.gz").absolute()
    try:
        if target.exists():
            raise Problem(f"{target} is there already: name another with FILE=…")
        if file is None:
            folder.mkdir(mode=0o700, exist_ok=True)
        elif not target.parent.is_dir():
            raise Problem(f"{target.parent} is no directory: make it, or name another FILE.")
        with step(f"Saving to {target}"):
            yield target
    except FileNotFoundError as error:
        raise Problem(
            f"no backup was made: {error.filename} is missing. Put it back, or mend .env."
        ) from error
    except FileExistsError as error:
        raise Problem(f"{target} is there already: name another with FILE=…") from error
    except OSError as error:
        mend = "free some space" if error.errno == errno.ENOSPC else "mend that"
        why = f"{error.strerror}: {error.filename or target}"
        raise Problem(f"no backup was made ({why}): {mend}, or name another place with FILE=…") from error


def saved_volumes(places: Places) -> list[str]:
    """The volumes to save that are there: not Caddy's with SITE=off. Raises Problem without keys."""
    project = variables.project(variables.load(places))
    there = [
        name
        for name in (DATA, CADDY)
        if not docker.tried(places, "volume", "inspect", f"{project}_{name}").code
    ]
    if DATA not in there:
        raise Problem("There is nothing to save yet: make up makes it.")
    return there


def container(places: Places, name: str, *, image: str | None = None) -> list[str]:
    """The arguments of docker that run `volume` on a volume, without network and with what its owner may."""
    found = variables.load(places)
    wanted = image or images.of_stack(places)[images.GATEWAY]
    # Caddy runs as root without capabilities, and its files are root's; the gateway's are its image's user's.
    user = ["--user", "0:0"] if name == CADDY else []
    mount = ["--mount", f"type=volume,source={variables.project(found)}_{name},target=/volume"]
    confined = [
        "--network",
        "none",
        "--read-only",
        "--tmpfs",
        "/tmp",  # noqa: S108  the container's own
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges:true",
    ]
    program = ["--entrypoint", "python3", wanted, "-c", PROGRAM.read_text(encoding="utf-8")]
    return ["run", "--rm", "-i", *confined, *user, *mount, *program]


def _unpack(stream: IO[bytes], folder: Path) -> None:
    stream.seek(0)
    folder.mkdir(mode=0o700)
    with tarfile.open(fileobj=stream) as tar:
        for member in tar:
            volume.extract(tar, member, folder)


def _copy_checkout(places: Places, folder: Path) -> list[str]:
    """Copies .env, secrets/ and the operator's files that .env names; answers those that no backup holds."""
    found = variables.load(places)
    own = {str(path) for path in contents.own_files(found)}
    # What BACK=1 would return to may be gone: that is no reason to go without a backup.
    current = {
        str(path) for path in contents.own_files({name: found.get(name, "") for name in contents.IN_USE})
    }
    own -= {name for name in own - current if not (places.checkout / name).is_file()}
    named = [found[name] for name in contents.OWN_FILES if found.get(name)]
    elsewhere = [name for name in named if name.removeprefix("./") not in own]
    secrets = [file for file in places.secrets.iterdir() if file.is_file() and not file.name.startswith(".")]
    for file in [places.env_file, *secrets, *(places.checkout / name for name in own)]:
        # Under the name by which it is called, even if that is a link: it comes back under it.
        target = folder / file.relative_to(places.checkout)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy2(file, target)
    return elsewhere


def _tell(target: Path, manifest: Manifest, left_out: list[str]) -> None:
    size = target.stat().st_size
    print(f"{target} ({size / 1e6:.1f} MB, mode 0600: it holds secrets; keep a copy on another machine)")
    parts = sorted({name.split("/")[0] for name in manifest.files})
    print(f"In it: {', '.join(parts)}, {len(manifest.files)} files.")
    print(f"Not in it: {', '.join(left_out)}.")
