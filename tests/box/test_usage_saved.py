"""The usage database in a backup: one moment of it while the gateway writes, and backups from before it."""

import asyncio
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from deploy.box import archive, volume
from deploy.local.problem import Problem
from gateway.store import Period, Store, UsageStore
from tests.box.boxes import Box
from tests.box.forged import forged, refusal, saved
from tests.store.usage_rows import NOON, NS, database, ns, row

USAGE = "gateway-data/usage.db"


@pytest.fixture
async def data(box: Box) -> Path:
    """The data of a box that was set up: keys, and usage of three requests."""
    box.set_up()
    folder = box.volume("gateway-data")
    async with Store(folder) as keys, UsageStore(folder) as usage:
        await keys.secret()
        await usage.write([row(ns(NOON) + number) for number in range(3)])
    return folder


async def test_it_is_saved_while_the_gateway_writes(box: Box, data: Path) -> None:
    """Whole batches with their hours, whatever is written meanwhile; the file is checked and comes back."""
    async with UsageStore(data) as store:
        making = asyncio.create_task(asyncio.to_thread(saved, box))
        batch = 0
        while not making.done():
            batch += 1
            await store.write([row(ns(NOON) + batch * NS + number) for number in range(200)])
            await asyncio.sleep(0.01)
        file = await making
        [(_, after)] = await store.summary("key", Period(NOON))
    with archive.opened(file, "box", box.places.backups) as content:
        assert content.manifest.revisions == {"gateway-data/gateway.db": "0001", USAGE: "0001"}
        copy = content.folder / USAGE
        [(rows,)] = database(copy, "SELECT count(*) FROM usage_rows")
        assert database(copy, "SELECT sum(requests) FROM usage_hours") == [(rows,)]
        assert (rows - 3) % 200 == 0
        assert 3 <= rows <= after.requests
        assert copy.read_bytes()[18:20] == b"\x02\x02"  # with a write-ahead log, as the gateway needs it


async def test_a_backup_from_before_it_is_put_back(box: Box, data: Path, tmp_path: Path) -> None:
    """It holds no usage: what is there then goes with it, and the gateway begins a new book."""
    older = forged(saved(box), {USAGE: None}, {"revisions": {"gateway-data/gateway.db": "0001"}})
    with (
        archive.opened(older, "box", box.places.backups) as content,
        (tmp_path / "tar").open("w+b") as tar,
    ):
        volume.pack(content.folder / "gateway-data", tar)
        tar.seek(0)
        volume.put(data, tar)
    assert not (data / "usage.db").exists()
    async with UsageStore(data) as store:
        assert await store.summary("key", Period(NOON)) == []


@pytest.mark.usefixtures("data")
async def test_what_it_is_counts(box: Box, tmp_path: Path) -> None:
    """A newer one, a damaged one and one that is none are refused as the keys' are."""
    file = saved(box)
    with tarfile.open(file) as tar:
        volume.extract(tar, tar.getmember(USAGE), tmp_path)
    copy = tmp_path / USAGE
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    said = refusal(forged(file, {USAGE: copy.read_bytes()}), tmp_path)
    assert "is of a newer gateway: its usage.db has revision 9999, this one works on 0001" in said
    copy.unlink()
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("CREATE TABLE other (x)")
    said = refusal(forged(file, {USAGE: copy.read_bytes()}), tmp_path)
    assert f"{USAGE} is no database of the gateway" in said
    newer = forged(file, manifest={"revisions": {USAGE: "0002"}})
    with pytest.raises(Problem, match=r"its usage\.db has revision 0002"):
        archive.opened(newer, "box", tmp_path).__enter__()
