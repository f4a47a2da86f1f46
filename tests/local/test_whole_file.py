"""Files that are written in one step: with their mode, over what was left behind, and whole or not at all."""

import os
from pathlib import Path

import pytest

from deploy.local import whole_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """One that is there, open to everybody."""
    made = tmp_path / ".env"
    made.write_text("before")
    made.chmod(0o666)
    return made


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_mode(file: Path, mode: int) -> None:
    """It is what was asked for, whatever the file had and the user's mask is."""
    mask = os.umask(0o077)
    try:
        whole_file.replace(file, "after ü", mode=mode, group=os.getgid())
    finally:
        os.umask(mask)
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("after ü", mode)
    assert [one.name for one in file.parent.iterdir()] == [".env"]


def test_what_a_kill_left(file: Path) -> None:
    """A file beside it is never written into: others may have it open, and may read it."""
    left = file.with_name(".env.new")
    left.write_text("half")
    left.chmod(0o666)
    with left.open() as opened:
        whole_file.replace(file, "secret", mode=whole_file.PRIVATE)
        assert opened.read() == "half"
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("secret", 0o600)
    assert not left.exists()


def test_what_fails(file: Path) -> None:
    """The file is as it was, and nothing lies beside it."""
    with pytest.raises(UnicodeEncodeError):
        whole_file.replace(file, "\ud800", mode=whole_file.PUBLIC)
    assert file.read_text() == "before"
    (file.parent / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        whole_file.replace(file.parent / "folder", "text", mode=whole_file.PUBLIC)
    assert sorted(one.name for one in file.parent.iterdir()) == [".env", "folder"]


def test_one_that_is_there(file: Path) -> None:
    """What is made for the first time takes no other's place."""
    with pytest.raises(FileExistsError):
        whole_file.create(file, "after", mode=whole_file.PRIVATE)
    assert file.read_text() == "before"
    whole_file.create(file.with_name("new"), "text", mode=whole_file.PRIVATE)
    assert file.with_name("new").stat().st_mode & 0o777 == 0o600
    assert sorted(one.name for one in file.parent.iterdir()) == [".env", "new"]
