"""Where a backup cannot be written, one line says so and nothing is left; what has no hard links will do."""

import errno
import os
import resource
from pathlib import Path

import pytest

from deploy.box import archive, contents
from deploy.box.backup import of_local
from deploy.local.places import Places as LocalPlaces
from deploy.local.problem import Problem
from tests.box.boxes import Box


@pytest.fixture
def places(tmp_path: Path) -> LocalPlaces:
    """A checkout of the local mode with 100 kB that cannot be compressed."""
    found = LocalPlaces(tmp_path / "checkout")
    found.data.mkdir(parents=True)
    (found.data / "noise").write_bytes(os.urandom(100_000))
    return found


def test_name_that_is_too_long(places: LocalPlaces, tmp_path: Path) -> None:
    """Longer than the disk takes, or just too long for the file beside it that is written first."""
    for name in ("x" * 300, "x" * 254):
        with pytest.raises(Problem, match=r"no backup was made \(File name too long: .*FILE=…"):
            of_local(places, tmp_path / name)


def test_disk_that_takes_no_files(places: LocalPlaces) -> None:
    """The kernel's own folders take none, whoever asks."""
    with pytest.raises(Problem, match="/sys/kernel takes no files"):
        of_local(places, Path("/sys/kernel/saved.tar.gz"))


def test_disk_that_gets_full(tmp_path: Path) -> None:
    """No part of a backup stays behind."""
    folder = tmp_path / "out"
    folder.mkdir()
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "noise").write_bytes(os.urandom(100_000))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            archive.write(tmp_path / "held", folder / "saved.tar.gz", "local", {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(folder.iterdir()) == []


def test_disk_without_hard_links(
    places: LocalPlaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stick with FAT gets its backup, and keeps a file that is there."""

    def refuse(source: Path, _target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(source))

    monkeypatch.setattr(os, "link", refuse)
    target = of_local(places, tmp_path / "saved.tar.gz")
    assert archive.mode_of(target) == "local"
    assert target.stat().st_mode & 0o777 == 0o600
    before = target.read_bytes()
    with pytest.raises(FileExistsError):
        archive.write(places.data, target, "local", {})
    assert target.read_bytes() == before
    assert not list(tmp_path.glob(".*.new"))


def test_own_files_are_in_it(box: Box) -> None:
    """Copies that .env names are saved; what lies where no restore puts it is said to be missing."""
    box.set_up()
    box.volume("gateway-data").mkdir()
    text = box.places.env_file.read_text()
    text = text.replace("./deploy/profiles/rtx5090.yaml", "./deploy/profiles/mine.yaml")
    box.places.env_file.write_text(text.replace("./deploy/profiles/gateway/rtx5090.toml", "./mine.toml"))
    (box.folder / "deploy" / "profiles" / "mine.yaml").write_text("model: mine\n")
    (box.folder / "mine.toml").touch()
    file = box.folder.parent / "saved.tar.gz"
    done = box.command("backup", FILE=str(file))
    assert done.returncode == 0, done.stderr
    assert "./mine.toml" in done.stdout.partition("Not in it:")[2]
    with pytest.raises(Problem, match=contents.DATABASE), archive.opened(file, "box", box.places.backups):
        pass
    (box.folder / "deploy" / "profiles" / "mine.yaml").unlink()
    done = box.command("backup", FILE=f"{file}.2")
    assert "profiles/mine.yaml is missing. Put it back, or mend .env." in " ".join(done.stderr.split())
