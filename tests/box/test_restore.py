"""A restore mends damaged data, onto an empty machine too, and takes from a file only what a backup holds."""

import hashlib
import io
import json
import shutil
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deploy.box import archive, variables
from gateway.store import Store
from tests.box.boxes import SERVICES, Box
from tests.box.forged import DATABASE, env, forged, packed, refusal, saved
from tests.running import Gateway

BINARY = b"\x00\xff\xfe not text"


@pytest.fixture
async def running(box: Box, shared_gateway: Gateway) -> Box:
    """A box that runs, with data in its volume and a real gateway where its door is."""
    port = shared_gateway.url.rpartition(":")[2]
    box.set_up("cpu", SITE="off", GATEWAY_PORT=port, GRAFANA_PORT="39300")
    box.runs(*SERVICES, port=int(port))
    box.places.first_key.write_text(f"{shared_gateway.key}\n")
    (box.places.secrets / "own.bin").write_bytes(BINARY)
    await secret(box)
    return box


async def secret(box: Box) -> str:
    """The gateway's own secret in the volume, which every database has once."""
    async with Store(box.volume("gateway-data")) as store:
        return await store.secret()


def database(box: Box) -> Path:
    """The file in the volume."""
    return box.volume("gateway-data") / "gateway.db"


def damage(file: Path) -> bytes:
    """Overwrites most of a database; what it holds then."""
    content = file.read_bytes()
    file.write_bytes(content[:200] + b"\xa5" * (len(content) - 200))
    return file.read_bytes()


async def test_damaged_database(running: Box) -> None:
    """Data that cannot be saved as a backup is kept as it is, and the restore goes on."""
    before, file = await secret(running), saved(running)
    damaged = damage(database(running))
    done = running.command("restore", FILE=str(file), YES="1")
    assert done.returncode == 0, done.stderr
    assert "What is here cannot be saved as a backup" in done.stderr
    assert await secret(running) == before
    [kept] = running.places.backups.glob("before-restore-*")
    assert str(kept.name) in "".join(done.stderr.split())
    with tarfile.open(kept / "gateway-data.tar") as tar:
        reader = tar.extractfile("gateway.db")
        assert reader
        assert reader.read() == damaged
    assert (kept / "secrets" / "own.bin").read_bytes() == BINARY
    assert (kept / ".env").exists()
    assert kept.stat().st_mode & 0o777 == 0o700


async def test_what_cannot_even_be_copied(running: Box) -> None:
    """It is said, and the restore goes on."""
    before, file = await secret(running), saved(running)
    damage(database(running))
    running.has(fails={"raw /volume": "input/output error"})
    done = running.command("restore", FILE=str(file), YES="1")
    assert done.returncode == 0, done.stderr
    assert "The volume gateway-data cannot be copied either" in " ".join(done.stderr.split())
    assert await secret(running) == before


async def test_image_that_is_gone(running: Box) -> None:
    """The gateway's image, by which all is saved and put back, is built before it is used."""
    file = saved(running)
    running.has(absent=["vllm-gateway:0.1.0"])
    (running.docker / "calls").unlink()
    done = running.command("restore", FILE=str(file), YES="1")
    assert done.returncode == 0, done.stderr
    lines = [" ".join(call) for call in running.calls()]
    built = next(at for at, line in enumerate(lines) if line.startswith("compose build"))
    used = next(at for at, line in enumerate(lines) if line.startswith("run --rm -i"))
    assert built < used
    assert len(list(running.places.backups.glob("*.tar.gz"))) == 1


async def test_empty_machine(running: Box) -> None:
    """.env, secrets (those that are no text, too) and data come back; without .env in it, it says so."""
    before, file = await secret(running), saved(running)
    planned = variables.load(running.places)
    without = forged(file, {"checkout/.env": None})
    shutil.rmtree(running.places.secrets)
    shutil.rmtree(running.docker / "volumes")
    running.volume("weights").mkdir(parents=True)
    running.places.env_file.unlink()
    done = running.command("restore", FILE=str(without), YES="1")
    assert "holds no .env, and there is none here: nothing was changed" in done.stderr
    done = running.command("restore", FILE=str(file), YES="1")
    assert done.returncode == 0, done.stderr
    assert variables.load(running.places) == planned
    assert (running.places.secrets / "own.bin").read_bytes() == BINARY
    assert await secret(running) == before


async def test_no_place_to_unpack(running: Box) -> None:
    """Where backups/ takes no files, that is said."""
    file = saved(running)
    running.places.backups.rmdir()
    running.places.backups.touch()
    done = running.command("restore", FILE=str(file), YES="1")
    assert f"make restore: {running.places.backups} takes no files (File exists): mend that" in done.stderr
    assert "Traceback" not in done.stderr


async def test_badly_edited_env(running: Box) -> None:
    """An .env that lacks something is said before anything is changed."""
    file = saved(running)
    text = running.places.env_file.read_text()
    running.places.env_file.write_text(text.replace("SECRETS_GID=", "SECRETS_GID=staff"))
    key = running.places.first_key.read_text()
    running.places.first_key.write_text("another")
    done = running.command("restore", FILE=str(file), YES="1")
    assert done.returncode == 1
    assert "SECRETS_GID=staff" in done.stderr
    assert "Traceback" not in done.stderr
    assert running.places.first_key.read_text() == "another" != key


STRANGE: dict[str, dict[str, bytes | None]] = {
    "code": {"checkout/deploy/box/restore.py": b"harm"},
    "Makefile": {"checkout/Makefile": b"harm"},
    "hook": {"checkout/.git/hooks/post-checkout": b"harm"},
    "deep secret": {"checkout/nope/secrets/y": b"harm"},
    "folder in secrets": {"checkout/secrets/a/b": b"harm"},
    "hidden secret": {"checkout/secrets/.x.new": b"harm"},
    "not named": {"checkout/deploy/profiles/mine.yaml": b"harm"},
    "compose": {"checkout/compose.yaml": b"harm", "checkout/.env": env(PROFILE_FILE="compose.yaml")},
    "python": {"checkout/deploy/x.py": b"harm", "checkout/.env": env(PROFILE_FILE="deploy/x.py")},
    "up": {"checkout/../x.yaml": b"harm", "checkout/.env": env(PROFILE_FILE="deploy/../../x.yaml")},
    "absolute": {"/tmp/x.yaml": b"harm"},  # noqa: S108  a name, nothing is written there
    "own folder": {"gateway-data/.backup-put/x": b"harm"},
    "another folder": {"data/x": b"harm"},
    "no keys": {DATABASE: None},
    "no database": {DATABASE: b"not one"},
    "empty database": {DATABASE: b""},
}


async def test_strange_files(running: Box, tmp_path: Path) -> None:
    """Nothing is let in but what `make backup` puts into a file."""
    file = saved(running)
    for name, changes in STRANGE.items():
        said = refusal(forged(file, changes), tmp_path)
        assert "nothing was changed" in said, name
        assert [held for held in changes if held in said] or "its manifest does not" in said, name
    assert "an .env that is not UTF-8" in refusal(forged(file, {"checkout/.env": b"SITE=\xfc\n"}), tmp_path)
    own = {"checkout/deploy/mine.yaml": b"a: 1", "checkout/.env": env(PROFILE_FILE="./deploy/mine.yaml")}
    with archive.opened(forged(file, own), "box", tmp_path / "work") as content:
        assert (content.folder / "checkout" / "deploy" / "mine.yaml").read_bytes() == b"a: 1"


async def test_databases_are_looked_at(running: Box, tmp_path: Path) -> None:
    """What a database is counts, not what the manifest says of it."""
    file = saved(running)
    with tarfile.open(file) as tar:
        whole = (tar.extractfile(DATABASE) or io.BytesIO()).read()
    copy = tmp_path / "copy.db"
    copy.write_bytes(whole)
    damage(copy)
    assert "holds a damaged gateway-data/gateway.db" in refusal(
        forged(file, {DATABASE: copy.read_bytes()}), tmp_path
    )
    copy.write_bytes(whole)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    said = refusal(forged(file, {DATABASE: copy.read_bytes()}), tmp_path)
    assert "is of a newer gateway: its gateway.db has revision 9999" in said
    copy.unlink()
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("CREATE TABLE other (x)")
    assert "is no database of the gateway" in refusal(forged(file, {DATABASE: copy.read_bytes()}), tmp_path)


async def test_parts_that_are_not_here(running: Box) -> None:
    """On an empty machine, an .env whose stack this checkout does not have is refused and not written."""
    file = saved(running)
    running.places.env_file.unlink()
    for part in ("deploy/mine.yaml", "/etc/hostname", "../docker/stack.json"):
        other = forged(file, {"checkout/.env": env(PROFILE="cpu", COMPOSE_FILE=f"compose.yaml:{part}")})
        done = running.command("restore", FILE=str(other), YES="1")
        assert f"names '{part}' in COMPOSE_FILE, which is no file of this checkout" in done.stderr
        assert not running.places.env_file.exists()


NESTED = b"[" * 100_000 + b"]" * 100_000
MANIFESTS = [b"[]", b"null", b'"x"', b"1", b"", b"{}", b"\xff", b'{"format": 1}', b'{"format": [1]}', NESTED]
FIELDS: list[dict[str, Any]] = [
    {"revisions": []},
    {"revisions": {DATABASE: 1}},
    {"images": None},
    {"files": []},
    {"files": {"x": 1}},
    {"files": {"x": {"bytes": -1, "sha256": "0" * 64}}},
    {"files": {"x": {"bytes": True, "sha256": "0" * 64}}},
    {"files": {"a//b": {"bytes": 1, "sha256": "0" * 64}}},
    {"made_at": "\x1b[2J"},
    {"mode": "other"},
    {"mode": []},
    {"more": 1},
]


async def test_strange_manifests(running: Box, tmp_path: Path) -> None:
    """A manifest that is none is said to be so, whatever it is, also when only its mode is asked for."""
    file = saved(running)
    strange = [packed(tmp_path / f"{at}.tar.gz", {"manifest.json": it}) for at, it in enumerate(MANIFESTS)]
    for one in strange:
        assert "is no backup that can be read" in refusal(one, tmp_path)
        assert archive.mode_of(one) == ""
    for fields in FIELDS:
        assert "its manifest" in refusal(forged(file, manifest=fields), tmp_path), fields
    done = running.command("restore", FILE=str(strange[0]), YES="1")
    assert "its manifest is no JSON object" in done.stderr
    assert "Traceback" not in done.stderr


async def test_sizes(running: Box, tmp_path: Path) -> None:
    """What is larger than it says, or than the disk, is refused before it is unpacked."""
    file = saved(running)
    large = packed(tmp_path / "large.tar.gz", {"manifest.json": b" " * (1 << 20) + b"{}"})
    assert "no backup has more than 1 MiB" in refusal(large, tmp_path)
    entry = {"bytes": 10**15, "sha256": "0" * 64}
    assert "GB to be unpacked, and the disk of" in refusal(
        forged(file, manifest={"files": {"gateway-data/x": entry, DATABASE: entry}}), tmp_path
    )
    entry = {"bytes": 3, "sha256": hashlib.sha256(b"four").hexdigest()}
    files = {"gateway-data/x": b"four"}
    assert "of which its manifest does not know" in refusal(
        forged(file, files, {"files": {"gateway-data/x": entry}}), tmp_path
    )


async def test_sparse_member(running: Box, tmp_path: Path) -> None:
    """A member that is small in the file and huge on the disk is refused."""
    file = saved(running)
    with tarfile.open(file) as old:
        said = json.load(old.extractfile("manifest.json") or io.BytesIO())
    said["files"] = {"gateway-data/x": {"bytes": 512, "sha256": "0" * 64}}
    text = json.dumps(said).encode()
    with tarfile.open(tmp_path / "sparse.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as new:
        member = tarfile.TarInfo("manifest.json")
        member.size = len(text)
        new.addfile(member, io.BytesIO(text))
        member = tarfile.TarInfo("gateway-data/x")
        member.size = 512
        member.pax_headers = {"GNU.sparse.size": "512", "GNU.sparse.map": "0,512"}
        new.addfile(member, io.BytesIO(bytes(512)))
    assert "of which its manifest does not know" in refusal(tmp_path / "sparse.tar.gz", tmp_path)
