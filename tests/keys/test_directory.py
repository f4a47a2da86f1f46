"""What a running server knows of the keys while an operator changes them."""

import shutil
import sqlite3
from contextlib import closing

import pytest
from structlog.testing import capture_logs

from gateway.errors import InvalidApiKey
from gateway.keys import Directory, Key, Keyring
from gateway.metrics import Metrics
from gateway.store import Store
from gateway.store.keys import PAGE
from tests.keys.serving import EFFECTIVE_SECONDS, Clock, Server, known
from tests.keys.waiting import until


async def test_a_key_works_within_a_second_of_its_creation(server: Server, keyring: Keyring) -> None:
    """Made by another process, found in memory, with all its fields."""
    issued = await keyring.create({"name": "a", "rpm": 5, "defaults": {"top_p": 1}})
    await until(lambda: server.refusal(issued.token) is None, EFFECTIVE_SECONDS)
    assert server.find(issued.token) == issued.key


async def test_a_key_of_before_the_start_is_known_at_once(store: Store, keyring: Keyring) -> None:
    """More of them than are loaded in one piece."""
    made = [await keyring.create({"name": str(number)}) for number in range(PAGE + 1)]
    async with Directory(store, Metrics()) as started:
        for issued in made:
            assert started.find(issued.token.encode()).id == issued.key.id


async def test_a_revoked_key_is_refused_within_a_second(server: Server, keyring: Keyring) -> None:
    """And its running streams are told to end; the log says why."""
    issued = await known(server, keyring)
    await keyring.revoke(issued.key.id)
    await until(lambda: server.refusal(issued.token) is not None, EFFECTIVE_SECONDS)
    assert f"key {issued.key.id} was revoked at" in str(server.refusal(issued.token))
    assert server.told[-1] == (issued.key.id, None)


async def test_an_updated_key_is_found_within_a_second(server: Server, keyring: Keyring) -> None:
    """Subscribers get it as it is now."""
    issued = await known(server, keyring)
    changed = await keyring.update(issued.key.id, {"rpm": 7})
    await until(lambda: server.find(issued.token).rpm == 7, EFFECTIVE_SECONDS)
    assert server.told[-1] == (issued.key.id, changed)


async def test_a_key_is_refused_from_the_moment_it_expires(
    server: Server, keyring: Keyring, clock: Clock
) -> None:
    """By the clock, not by the next poll; its running streams hear of it once."""
    issued = await known(server, keyring, expires_at="1h")
    clock.ahead_seconds = 3601
    assert f"key {issued.key.id} expired at" in str(server.refusal(issued.token))
    await until(lambda: (issued.key.id, None) in server.told, EFFECTIVE_SECONDS)
    await server.directory.refresh()
    assert server.told.count((issued.key.id, None)) == 1


async def test_a_prolonged_key_lives_again(server: Server, keyring: Keyring, clock: Clock) -> None:
    """An expired key is not a revoked one."""
    issued = await known(server, keyring, expires_at="1h")
    clock.ahead_seconds = 3601
    assert server.refusal(issued.token) is not None
    await keyring.update(issued.key.id, {"expires_at": None})
    await until(lambda: server.refusal(issued.token) is None, EFFECTIVE_SECONDS)


async def test_a_rotated_key_opens_with_the_new_secret_alone(server: Server, keyring: Keyring) -> None:
    """Without an overlap the old one ends within a second; the key itself goes on."""
    old = await known(server, keyring)
    server.told.clear()
    new = await keyring.rotate(old.key.id, {})
    await until(lambda: server.refusal(new.token) is None, EFFECTIVE_SECONDS)
    assert "was rotated" in str(server.refusal(old.token))
    assert server.find(new.token).id == old.key.id
    assert server.told == []


async def test_both_secrets_open_a_key_for_the_overlap(
    server: Server, keyring: Keyring, clock: Clock
) -> None:
    """And after it, the new one alone."""
    old = await known(server, keyring)
    new = await keyring.rotate(old.key.id, {"overlap": "24h"})
    await until(lambda: server.refusal(new.token) is None, EFFECTIVE_SECONDS)
    clock.ahead_seconds = 24 * 3600 - 60
    assert server.find(old.token) == server.find(new.token)
    clock.ahead_seconds = 24 * 3600 + 1
    assert "was rotated" in str(server.refusal(old.token))
    assert server.refusal(new.token) is None


async def test_a_rotation_without_overlap_ends_all_older_secrets(server: Server, keyring: Keyring) -> None:
    """A key that has leaked must not live on in the overlap of an earlier rotation."""
    first = await known(server, keyring)
    second = await keyring.rotate(first.key.id, {"overlap": "24h"})
    third = await keyring.rotate(first.key.id, {})
    await until(lambda: server.refusal(third.token) is None, EFFECTIVE_SECONDS)
    assert server.refusal(first.token) is not None
    assert server.refusal(second.token) is not None


@pytest.mark.parametrize(
    "raw", [b"", b" ", b"\xff\xfe", "caf\xe9-caf\xe9-caf\xe9-caf\xe9".encode(), b"\0" * 40, b"x" * 70_000]
)
async def test_what_is_no_key_is_refused(server: Server, raw: bytes) -> None:
    """Never another exception."""
    with pytest.raises(InvalidApiKey):
        server.directory.find(raw)


async def test_an_ended_subscription_hears_nothing(server: Server, keyring: Keyring) -> None:
    """While others go on."""
    heard: list[str] = []
    end = server.directory.subscribe(lambda key_id, _: heard.append(key_id))
    end()
    issued = await known(server, keyring)
    assert heard == []
    assert [key_id for key_id, _ in server.told] == [issued.key.id]


async def test_the_time_of_use_is_written_behind(
    server: Server, store: Store, keyring: Keyring, clock: Clock
) -> None:
    """Not by the request that uses the key; and it is no change that anybody is told of."""
    issued = await known(server, keyring)
    quiet = Directory(store, Metrics(), clock)  # without its tasks, one of which writes every few seconds
    await quiet.refresh()
    clock.ahead_seconds = 60
    before = clock.now().replace(microsecond=0)
    quiet.find(issued.token.encode())
    earlier = (await keyring.show(issued.key.id)).last_used_at
    assert earlier is None or earlier < before
    server.told.clear()
    await quiet.write_uses()
    used = (await keyring.show(issued.key.id)).last_used_at
    assert used is not None
    assert before <= used <= clock.now()
    shutil.copystat(store.path, store.path)  # another time of change: everything is loaded anew
    await server.directory.refresh()
    assert server.told == []


async def test_uses_are_written_when_the_server_stops(store: Store, keyring: Keyring) -> None:
    """The last seconds before a restart are not lost."""
    issued = await keyring.create({"name": "a"})
    async with Directory(store, Metrics()) as started:
        started.find(issued.token.encode())
    assert (await keyring.show(issued.key.id)).last_used_at is not None


async def test_everything_is_loaded_anew_every_ten_minutes(
    server: Server, store: Store, keyring: Keyring, clock: Clock
) -> None:
    """What was changed past the gateway, by hand, counts then; a clock that was set back harms nothing."""
    issued = await known(server, keyring)

    def rename(name: str) -> None:
        with closing(sqlite3.connect(store.path)) as connection, connection:
            connection.execute("UPDATE keys SET name = ?", (name,))

    for name, ahead_seconds in (("late", 601), ("early", -3600)):
        rename(name)
        await server.directory.refresh()
        assert server.find(issued.token).name != name
        clock.ahead_seconds = ahead_seconds
        await server.directory.refresh()
        assert server.find(issued.token).name == name


async def test_a_fault_in_a_subscriber_costs_one_poll(server: Server, keyring: Keyring) -> None:
    """It is logged with its traceback, and the directory goes on: nobody's revoked key lives for ever."""
    issued = await known(server, keyring)

    def broken(_key_id: str, _key: Key | None) -> None:
        raise LookupError

    with capture_logs() as lines:
        end = server.directory.subscribe(broken)
        await keyring.update(issued.key.id, {"rpm": 7})
        await until(lambda: any(line["event"] == "key_task_failed" for line in lines), EFFECTIVE_SECONDS)
        end()
        await until(lambda: server.directory.available, EFFECTIVE_SECONDS)
    await keyring.revoke(issued.key.id)
    await until(lambda: server.refusal(issued.token) is not None, EFFECTIVE_SECONDS)
