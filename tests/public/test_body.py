"""A body is one JSON object in strict UTF-8, or a clear 400; nothing two parsers read differently passes."""

import time

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import GatewayError, InvalidJson, QueueFull, RequestTooLarge
from gateway.public.body import Bodies
from gateway.public.document import MAX_DEPTH, MAX_LOOKS, parse
from tests.running import least

INTEGERS = st.integers(-(2**63), 2**64 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | INTEGERS | FLOATS | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=15)


@given(st.dictionaries(st.text(), JSON))
def test_what_is_valid_arrives_with_its_order_and_values(body: dict[str, object]) -> None:
    """Order, integers and floats keep their values through parse and serialisation."""
    raw = orjson.dumps(body)
    assert orjson.dumps(parse(raw)) == raw


@pytest.mark.parametrize(
    "raw",
    [
        b"", b" ", b"[1]", b'"x"', b"5", b"null", b"true", b"{", b'{"a":1}{"b":2}',
        b'\xef\xbb\xbf{"model":"m"}', b'{"model":"m\xff"}', b'{"a":"\\ud800"}',
        b'{"temperature":NaN}', b'{"top_p":1e400}', b'{"logit_bias":{"1":-Infinity}}',
        b'{"a":18446744073709551616}', b'{"a":[-9223372036854775809]}', b'{"a":{"b":' + b"9" * 5000 + b"}}",
        b"[" * 20_000 + b"]" * 20_000, b'{"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        '{"model":"m"}'.encode("utf-16"),
    ],
)  # fmt: skip
def test_what_is_not_one_json_object_is_refused(raw: bytes) -> None:
    """Each is a 400 in our shape whose text holds none of the raw bytes."""
    with pytest.raises(InvalidJson) as refused:
        parse(raw)
    assert "\ufffd" not in refused.value.message


@pytest.mark.parametrize(
    "raw", [b'{"a":1e300}', b'{"a":18446744073709551615}', b'{"a":"99999999999999999999"}']
)
def test_large_but_exact_numbers_pass(raw: bytes) -> None:
    """A float beyond 64 bits is a float, and digits in a string are text."""
    assert "a" in parse(raw)


def test_long_integers_are_not_looked_for_among_too_many_values() -> None:
    """Everybody waits for it: a body with a number that may be one and that many strings is refused."""
    raw = b'{"a":1e300,"b":"99999999999999999999","c":[%b0]}' % (b'"",' * MAX_LOOKS)

    with pytest.raises(RequestTooLarge):
        parse(raw)
    assert parse(raw.replace(b"1e300", b"1"))


def test_of_duplicate_names_the_last_wins_once_and_for_all() -> None:
    """The engine is sent one name, so it cannot take the other."""
    assert orjson.dumps(parse(b'{"model":"a","model":"b"}')) == b'{"model":"b"}'


@pytest.mark.parametrize(("depth", "passes"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_depth_has_a_limit(depth: int, passes: bool) -> None:
    """Whatever walks the body after this may recurse."""
    raw = b'{"a":' * (depth - 1) + b"{}" + b"}" * (depth - 1)
    if passes:
        parse(raw)
    else:
        with pytest.raises(InvalidJson):
            parse(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":[' + b"[]," * 3_000_000 + b"1]}",
        b'{"a":[' + b"{}," * 3_000_000 + b"1]}",
        b'{"a":[' + b"1," * 4_000_000 + b"1]}",
        b'{"a":[' + (b"[" * 100 + b"]" * 100 + b",") * 40_000 + b"1]}",
        b"{" + b",".join(b'"%d":1' % number for number in range(1_000_000)) + b"}",
    ],
    ids=["lists", "objects", "numbers", "nested", "names"],
)
def test_more_values_than_are_worth_the_time_are_refused_before_they_are_parsed(raw: bytes) -> None:
    """Everybody waits while a body is parsed, and small values are the slowest bytes."""

    def cpu_seconds() -> float:
        started = time.process_time()
        with pytest.raises(RequestTooLarge):
            parse(raw)
        return time.process_time() - started

    assert least(cpu_seconds, 0.3) < 0.3


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": "A" * 30_000_000}]},
        {"messages": [{"role": "user", "content": "Some [text] of {code}: x = 1, y = 2\n" * 100_000}]},
        {"prompt": [[1] * 8192] * 256},
        {"messages": [{"role": "user", "content": "hello"}] * 20_000},
    ],
    ids=["image", "text", "token ids", "messages"],
)
def test_what_a_model_could_read_is_taken_in_less_than_a_second(body: dict[str, object]) -> None:
    """An image of 30 MB, a book of code, 256 prompts of token ids."""
    raw = orjson.dumps(body)

    def cpu_seconds() -> float:
        started = time.process_time()
        assert parse(raw) == body
        return time.process_time() - started

    assert least(cpu_seconds, 1) < 1


def test_bodies_return_what_they_took() -> None:
    """The memory for bodies is shared; a refused one leaves nothing behind."""
    bodies = Bodies(100)
    with bodies.hold() as first:
        first.grow(60)
        with pytest.raises(QueueFull), bodies.hold() as second:
            second.grow(60)
        assert bodies.held_bytes == 60
    assert bodies.held_bytes == 0


def test_one_key_cannot_take_all_the_memory_for_bodies() -> None:
    """Bodies that are sent for ever keep nobody else out; the largest that is allowed passes all the same."""
    bodies = Bodies(1600)
    with bodies.hold("mallory", 100) as first, bodies.hold("mallory", 100) as second:
        first.grow(1000)
        second.grow(500)
        with pytest.raises(QueueFull):
            second.grow(1)
        with bodies.hold("bob", 100) as other:
            other.grow(100)
            first.spill(1000)
            second.grow(900)
    assert (bodies.held_bytes, bodies.on_disk_bytes, bodies.bytes_of) == (0, 0, {})
    with bodies.hold("bob", 1600) as large:
        large.grow(1600)


def test_an_error_of_a_body_is_one_of_ours() -> None:
    """No parser's exception leaves the room."""
    assert issubclass(InvalidJson, GatewayError)
