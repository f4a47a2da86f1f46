"""What an operator does to keys, on a real database."""

import asyncio
import hashlib
import sqlite3
from contextlib import closing

import pytest

from gateway.errors import InvalidRequest, NotFound
from gateway.keys import UNLIMITED, Keyring
from gateway.store import Store
from tests.keys.serving import Clock

OLD = "a key that clients have had for years"
EVERYTHING = {
    "name": "alice",
    "rpm": 30,
    "tpm": "unlimited",
    "max_parallel": 4,
    "tokens_per_day": None,
    "tokens_per_month": 10**9,
    "models": ["a", "b:thinking"],
    "priority": "batch",
    "weight": 2.5,
    "cache_group": "team",
    "expires_at": "2099-01-31T00:00:00Z",
    "defaults": {"temperature": 0.5, "chat_template_kwargs": {"enable_thinking": False}},
    "force": {"max_tokens": 100},
    "metadata": {"team": "ü", "n": [1, 1.0, None]},
}


async def test_a_key_comes_back_as_it_was_created(keyring: Keyring) -> None:
    """Every field under the same name with the same value, in what was answered and in what is read."""
    issued = await keyring.create(EVERYTHING)
    shown = (await keyring.show(issued.key.id)).as_json()
    assert {name: shown[name] for name in EVERYTHING} == EVERYTHING
    assert shown == issued.key.as_json()
    assert issued.as_json() == {"id": issued.key.id, "key": issued.token, **shown}
    assert (shown["last_used_at"], shown["revoked_at"]) == (None, None)


async def test_a_plain_key_has_the_defaults(keyring: Keyring) -> None:
    """No limit of its own, all models, interactive, a cache group to itself."""
    key = (await keyring.create({"name": "plain"})).key
    assert (key.rpm, key.tpm, key.max_parallel, key.models) == (None, None, None, None)
    assert (key.priority, key.weight, key.cache_group, key.expires_at) == ("interactive", 1.0, key.id, None)


async def test_the_database_holds_no_key_only_its_hash(keyring: Keyring, store: Store) -> None:
    """Who steals the file cannot call."""
    made = await keyring.create({"name": "a"})
    taken = await keyring.create({"name": "b", "key": OLD})
    files = b"".join(path.read_bytes() for path in store.path.parent.iterdir())
    for issued in (made, taken):
        assert issued.token.encode() not in files
        assert issued.token[-43:].encode() not in files
        assert hashlib.sha256(issued.token.encode()).digest() in files


async def test_a_key_that_clients_have_is_taken_over(keyring: Keyring) -> None:
    """It gets an id of its own."""
    issued = await keyring.create({"name": "old", "key": OLD})
    assert issued.token == OLD
    assert len(issued.key.id) == 12


async def test_a_key_is_taken_over_once(keyring: Keyring) -> None:
    """Also after it was rotated away or revoked: what was shut out must not come back by accident."""
    holder = (await keyring.create({"name": "old", "key": OLD})).key.id
    for shut in (None, keyring.rotate(holder, {}), keyring.revoke(holder)):
        if shut is not None:
            await shut
        with pytest.raises(InvalidRequest, match=holder) as refused:
            await keyring.create({"name": "again", "key": OLD})
        assert refused.value.param == "key"
        assert OLD not in refused.value.message
    assert len(await keyring.list_all()) == 1


async def test_keys_are_listed_oldest_first_revoked_ones_too(keyring: Keyring, clock: Clock) -> None:
    """The list is the whole truth."""
    ids = []
    for name in "abc":
        clock.ahead_seconds += 1
        ids.append((await keyring.create({"name": name})).key.id)
    await keyring.revoke(ids[1])
    assert [key.id for key in await keyring.list_all()] == ids


async def test_an_update_changes_what_is_given_and_nothing_else(keyring: Keyring) -> None:
    """Null unsets, unlimited is a value."""
    made = (await keyring.create(EVERYTHING)).key
    changed = await keyring.update(f"sk-gw-{made.id}", {"rpm": None, "max_parallel": "unlimited"})
    assert (changed.rpm, changed.max_parallel) == (None, UNLIMITED)
    assert {**changed.as_json(), "rpm": 30, "max_parallel": 4} == made.as_json()
    assert await keyring.show(made.id) == changed


async def test_updates_at_once_all_count(keyring: Keyring, store: Store) -> None:
    """Two operators who set different fields do not undo each other."""
    key_id = (await keyring.create({"name": "a"})).key.id
    other = Keyring(store)
    await asyncio.gather(
        *(ring.update(key_id, {field: 7}) for ring in (keyring, other) for field in ("rpm", "tpm")),
        other.update(key_id, {"max_parallel": 7}),
    )
    key = await keyring.show(key_id)
    assert (key.rpm, key.tpm, key.max_parallel) == (7, 7, 7)


async def test_an_update_of_nothing_is_refused(keyring: Keyring) -> None:
    """With the fields that there are."""
    key_id = (await keyring.create({"name": "a"})).key.id
    with pytest.raises(InvalidRequest, match="Nothing to change: give one or more of name, rpm"):
        await keyring.update(key_id, {})


async def test_a_refused_update_changes_nothing(keyring: Keyring) -> None:
    """One bad field keeps the good ones out too."""
    made = (await keyring.create({"name": "a"})).key
    with pytest.raises(InvalidRequest):
        await keyring.update(made.id, {"name": "b", "rpm": -1})
    assert await keyring.show(made.id) == made


async def test_revoking_is_for_good_and_may_be_repeated(keyring: Keyring, clock: Clock) -> None:
    """The second time answers the first time's moment; the key can be neither changed nor rotated."""
    key_id = (await keyring.create({"name": "a"})).key.id
    revoked = await keyring.revoke(key_id)
    clock.ahead_seconds += 60
    assert (await keyring.revoke(key_id)).revoked_at == revoked.revoked_at
    for attempt in (keyring.update(key_id, {"rpm": 1}), keyring.rotate(key_id, {})):
        with pytest.raises(InvalidRequest, match=f"Key {key_id} was revoked at .*create another one"):
            await attempt


async def test_an_expired_key_is_not_rotated_but_can_be_prolonged(keyring: Keyring, clock: Clock) -> None:
    """A new secret that opens nothing would only confuse."""
    key_id = (await keyring.create({"name": "a", "expires_at": "1h"})).key.id
    clock.ahead_seconds = 3601
    with pytest.raises(InvalidRequest, match=r"expired at .*set another expires_at first"):
        await keyring.rotate(key_id, {})
    await keyring.update(key_id, {"expires_at": "1h"})
    assert (await keyring.rotate(key_id, {})).key.id == key_id


@pytest.mark.parametrize(
    "written", ["", "x", "ABCDEFGHIJKL", "sk-gw-", "a secret passed by mistake 012345", "../x"]
)
async def test_what_is_no_id_is_not_repeated(keyring: Keyring, written: str) -> None:
    """It may be a secret."""
    with pytest.raises(NotFound, match="an id is 12 characters of a-z0-9") as refused:
        await keyring.show(written)
    assert not written or written not in refused.value.message.replace("sk-gw-'", "").split()


async def test_an_unknown_id_is_not_found(keyring: Keyring) -> None:
    """On each verb alike."""
    unknown = "abcdefghijkl"
    verbs = (
        keyring.show(unknown),
        keyring.update(unknown, {"rpm": 1}),
        keyring.rotate(unknown, {}),
        keyring.revoke(unknown),
    )
    for verb in verbs:
        with pytest.raises(NotFound, match=f"no key {unknown}"):
            await verb


async def test_the_first_key_is_made_once(keyring: Keyring) -> None:
    """For a server's first start: two that start at once make one key, and a later start makes none."""
    made = await asyncio.gather(*(keyring.create_first() for _ in range(2)))
    issued = [each for each in made if each is not None]
    assert [each.key.name for each in issued] == ["first"]
    await keyring.revoke(issued[0].key.id)
    assert await keyring.create_first() is None


async def test_a_change_is_announced_after_it_is_written(store: Store) -> None:
    """The server's directory knows of it before the admin API answers."""
    seen: list[int] = []

    async def changed() -> None:
        with closing(sqlite3.connect(store.path)) as connection:
            seen.append(connection.execute("SELECT max(version) FROM key_changes").fetchone()[0])

    ring = Keyring(store, changed)
    key_id = (await ring.create({"name": "a"})).key.id
    await ring.update(key_id, {"rpm": 1})
    await ring.rotate(key_id, {})
    await ring.revoke(key_id)
    await ring.list_all()
    assert len(seen) == 4
    assert seen == sorted(set(seen))
