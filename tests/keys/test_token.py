"""The form of keys: what is made, what is recognised, what is told about it."""

import hashlib
import re
import string

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.keys import token

ANY_ID = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=12, max_size=12)
PRINTABLE = st.text([chr(code) for code in range(0x20, 0x7F)], max_size=80)


def test_tokens_have_the_form_that_operators_know() -> None:
    """`sk-gw-<12 of a-z0-9>-<43 of base62>`, no two alike, every character in use."""
    made = [token.new(token.new_id()) for _ in range(500)]
    assert all(re.fullmatch(r"sk-gw-[a-z0-9]{12}-[A-Za-z0-9]{43}", each) for each in made)
    assert len({each[6:18] for each in made}) == len({each[19:] for each in made}) == 500
    assert set("".join(each[19:] for each in made)) == set(string.ascii_letters + string.digits)
    assert set("".join(each[6:18] for each in made)) == set(string.ascii_lowercase + string.digits)


@settings(deadline=None)
@given(ANY_ID)
def test_an_id_is_read_from_every_way_to_write_it(key_id: str) -> None:
    """Bare, with its prefix, or out of a whole token."""
    whole = token.new(key_id)
    assert token.id_of(key_id) == token.id_of(f"sk-gw-{key_id}") == token.id_of(whole) == key_id
    assert token.is_possible(whole.encode())


@settings(deadline=None)
@given(st.text())
def test_whatever_is_no_id_is_none(text: str) -> None:
    """Never an exception, and never anything that is not an id."""
    found = token.id_of(text)
    assert found is None or re.fullmatch("[a-z0-9]{12}", found, re.ASCII)


@settings(deadline=None)
@given(PRINTABLE)
def test_a_key_of_20_printable_characters_is_possible(text: str) -> None:
    """Spaces at its ends excepted: no header can carry them."""
    assert token.is_possible(text.encode()) == (len(text) >= 20 and text == text.strip(" "))


@settings(deadline=None)
@given(st.binary(max_size=64))
def test_other_bytes_are_not_possible(raw: bytes) -> None:
    """Control characters and bytes beyond ASCII are judged, not decoded."""
    if not all(0x20 <= byte < 0x7F for byte in raw):
        assert not token.is_possible(raw)


def test_what_is_stored_is_the_sha_256_of_the_whole_token() -> None:
    """As documented: a key can be found in the database with sha256sum."""
    made = token.new("abcdefghijkl")
    assert token.sha256(made.encode()) == hashlib.sha256(made.encode()).digest()
