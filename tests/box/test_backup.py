"""A backup holds what cannot be made again, is made while all goes on, and comes back whole or not at all."""

import json
import sqlite3
import stat
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from deploy.box import archive, volume
from deploy.local.problem import Problem
from gateway.store import Store
from tests.box.boxes import Box

CERTIFICATE = "caddy/pki/authorities/local/root.crt"


@pytest.fixture
async def stocked(box: Box) -> Box:
    """A box that was set up, with a database of the gateway's and an authority of Caddy's in its volumes."""
    box.set_up()
    (box.places.secrets / "first-key").write_text("sk-gw-of-before\n")
    box.runs("gateway")
    data = box.volume("gateway-data")
    async with Store(data) as store:
        await store.secret()
    (box.volume("caddy-data") / CERTIFICATE).parent.mkdir(parents=True)
    (box.volume("caddy-data") / CERTIFICATE).write_text("the root")
    (box.volume("caddy-data") / "caddy" / "locks").mkdir()
    (box.volume("caddy-data") / "caddy" / "locks" / "one.lock").touch()
    return box


def saved(box: Box, name: str = "saved.tar.gz") -> Path:
    """A backup of it."""
    file = box.folder.parent / name
    done = box.command("backup", FILE=str(file))
    assert done.returncode == 0, done.stderr
    return file


def names(file: Path) -> list[str]:
    """What lies in a backup, in its order."""
    with tarfile.open(file) as tar:
        return tar.getnames()


async def secret(folder: Path) -> str:
    """The gateway's own secret, which every database has once."""
    async with Store(folder) as store:
        return await store.secret()


async def test_what_is_in_it(stocked: Box) -> None:
    """Databases, certificates, secrets and .env, the manifest first; no locks, no companions of databases."""
    file = saved(stocked)
    found = names(file)
    assert found[0] == "manifest.json"
    for name in (
        "gateway-data/gateway.db",
        f"caddy-data/{CERTIFICATE}",
        "checkout/.env",
        "checkout/secrets/first-key",
    ):
        assert name in found
    assert not [name for name in found if name.endswith((".lock", "-wal", "-shm", ".backup-save"))]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with tarfile.open(file) as tar:
        manifest = json.load(tar.extractfile("manifest.json") or pytest.fail("no manifest"))
    assert manifest["revisions"] == {"gateway-data/gateway.db": "0001"}
    assert manifest["images"]["gateway"] == "vllm-gateway:0.1.0"


async def test_says_what_it_is(stocked: Box) -> None:
    """It says where it is, how large, and what is not in it; without FILE it lies in backups/, in private."""
    done = stocked.command("backup")
    assert done.returncode == 0, done.stderr
    [file] = stocked.places.backups.glob("*.tar.gz")
    assert f"{file} (" in done.stdout
    assert "Not in it: the model's weights" in done.stdout
    assert stat.S_IMODE(stocked.places.backups.stat().st_mode) == 0o700
    assert [item.name for item in stocked.places.backups.iterdir()] == [file.name]


async def test_database_in_use(stocked: Box) -> None:
    """What was committed is in it while somebody holds a transaction; its journal is of the same kind."""
    data = stocked.volume("gateway-data")
    with closing(sqlite3.connect(data / "gateway.db")) as writer:
        writer.execute("CREATE TABLE mine (what TEXT)")
        writer.execute("INSERT INTO mine VALUES ('committed')")
        writer.commit()
        writer.execute("INSERT INTO mine VALUES ('not yet')")
        file = saved(stocked)
        writer.rollback()
    with tarfile.open(file) as tar:
        volume.extract(tar, tar.getmember("gateway-data/gateway.db"), stocked.folder.parent / "out")
    copy = stocked.folder.parent / "out" / "gateway-data" / "gateway.db"
    assert copy.read_bytes()[18:20] == b"\x02\x02"
    with closing(sqlite3.connect(copy)) as reader:
        assert reader.execute("SELECT what FROM mine").fetchall() == [("committed",)]


@pytest.fixture
def opened(stocked: Box) -> Iterator[archive.Content]:
    """A backup of the box, checked and unpacked."""
    with archive.opened(saved(stocked), "box", stocked.places.backups) as content:
        yield content


async def test_comes_back(stocked: Box, tmp_path: Path) -> None:
    """Put into a folder in which something else is, it is what it was, and nothing else."""
    before = await secret(stocked.volume("gateway-data"))
    file = saved(stocked)
    other = tmp_path / "other"
    async with Store(other) as store:
        assert await store.secret() != before
    (other / "stray").touch()
    with (
        archive.opened(file, "box", stocked.places.backups) as content,
        (tmp_path / "tar").open("w+b") as tar,
    ):
        volume.pack(content.folder / "gateway-data", tar)
        tar.seek(0)
        volume.put(other, tar)
    assert await secret(other) == before
    assert not (other / "stray").exists()
    assert list(stocked.places.backups.iterdir()) == []


def test_a_broken_stream_changes_nothing(tmp_path: Path) -> None:
    """What was there stays until all of the new has arrived."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "old").write_text("old")
    source = tmp_path / "source"
    source.mkdir()
    (source / "new").write_bytes(bytes(100_000))
    with (tmp_path / "tar").open("w+b") as tar:
        volume.pack(source, tar)
        tar.truncate(50_000)
        tar.seek(0)
        with pytest.raises(tarfile.ReadError):
            volume.put(folder, tar)
    assert [item.name for item in folder.iterdir()] == ["old"]


def rewritten(file: Path, **changes: object) -> Path:
    """A backup whose manifest says something else."""
    target = file.with_name("changed.tar.gz")
    with tarfile.open(file) as old, tarfile.open(target, "w:gz") as new:
        for member in old:
            reader = old.extractfile(member)
            assert reader
            text = reader.read()
            if member.name == "manifest.json":
                text = json.dumps({**json.loads(text), **changes}).encode()
            member.size = len(text)
            (file.parent / "member").write_bytes(text)
            with (file.parent / "member").open("rb") as content:
                new.addfile(member, content)
    return target


CHANGED: dict[str, dict[str, object]] = {
    r"is of a newer gateway .*: its gateway\.db has": {"revisions": {"gateway-data/gateway.db": "9999"}},
    r"has format 2, and this version reads 1": {"format": 2},
    r"is of the local mode \(MODE=local\), and here is the compose stack": {"mode": "local"},
    r"of which its manifest does not know": {"files": {}},
}


async def test_refused(stocked: Box) -> None:
    """What this version cannot put back is refused as it is opened."""
    file = saved(stocked)
    for message, changes in CHANGED.items():
        with (
            pytest.raises(Problem, match=message),
            archive.opened(rewritten(file, **changes), "box", stocked.places.backups),
        ):
            pass


async def test_newer_revision(stocked: Box) -> None:
    """A backup of a newer gateway is refused before anything is changed or stopped."""
    newer = rewritten(saved(stocked), revisions={"gateway-data/gateway.db": "9999"})
    before = (stocked.volume("gateway-data") / "gateway.db").read_bytes()
    done = stocked.command("restore", FILE=str(newer), YES="1")
    assert done.returncode == 1
    assert "has revision 9999, this one works on" in done.stderr
    assert (stocked.volume("gateway-data") / "gateway.db").read_bytes() == before
    assert not [call for call in stocked.calls() if "stop" in call]


async def test_damaged(stocked: Box, tmp_path: Path) -> None:
    """A file that was cut, or is none, is said to be so."""
    file = saved(stocked)
    file.write_bytes(file.read_bytes()[:-2000])
    with (
        pytest.raises(Problem, match=r"no backup that can be read|is damaged"),
        archive.opened(file, "box", tmp_path),
    ):
        pass
    done = stocked.command("restore", FILE=str(stocked.folder / "compose.yaml"), YES="1")
    assert "is no backup that can be read" in done.stderr


async def test_asks(stocked: Box) -> None:
    """Without an answer nothing is put back."""
    done = stocked.command("restore", FILE=str(saved(stocked)))
    assert done.returncode == 1
    assert "nothing was changed. YES=1 puts it back without asking." in done.stderr
    assert "A backup of 20" in done.stdout
    assert not [call for call in stocked.calls() if "stop" in call]


async def test_no_file(box: Box) -> None:
    """Without FILE, or with one that is not there, it says so."""
    assert "name a backup with FILE=…" in box.command("restore").stderr
    assert "/not/there is no file" in box.command("restore", FILE="/not/there").stderr


async def test_local_mode(box: Box) -> None:
    """The local mode's data is saved and put back in the same kind of file; logs are not in it."""
    data = box.folder / "data"
    before = await secret(data)
    for name in ("log/gateway.log", "run/ports.json", "caddy/root.crt", "first-key"):
        (data / name).parent.mkdir(exist_ok=True)
        (data / name).write_text(name)
    file = saved(box)
    assert not [name for name in names(file) if name.startswith(("data/log", "data/run"))]
    (data / "gateway.db").unlink()
    (data / "first-key").write_text("another")
    done = box.command("restore", FILE=str(file), YES="1")
    assert done.returncode == 0, done.stderr
    assert await secret(data) == before
    assert (data / "first-key").read_text() == "first-key"
    assert (data / "log" / "gateway.log").exists()
