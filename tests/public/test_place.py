"""Errors of numbers say where the number stands."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import InvalidJson
from gateway.public.document import parse
from gateway.public.place import MAX_TOKENS, path_to


@pytest.mark.parametrize(
    ("raw", "param"),
    [
        (b'{"temperature":NaN}', "temperature"), (b'{"a":{"b":[1,{"c":1e999}]}}', "a.b[1].c"),
        (b'{"a":[[],[1],-Infinity]}', "a[2]"), ('{"é":"é","ü":Infinity}'.encode(), "ü"),
        (b'{"a":"\\"[{","b":18446744073709551616}', "b"), (b'{"a":1,"b":[0,-9223372036854775809]}', "b[1]"),
        (b'{"s":"99999999999999999999","a":{},"b":[99999999999999999999]}', "b[0]"),
        (b"[NaN]", "[0]"), (b"NaN", None), (b'{"' + b"a" * 200 + b'":NaN}', "a" * 100),
        (b'{"a":[' + b"1," * MAX_TOKENS + b"NaN]}", None), (b'{"a" "b"}', None),
    ],
)  # fmt: skip
def test_the_number_at_fault_is_named(raw: bytes, param: str | None) -> None:
    """By its dotted name; what would take long to find is not named."""
    with pytest.raises(InvalidJson) as refused:
        parse(raw)
    assert refused.value.param == param


STEPS = st.lists(st.text(max_size=5) | st.integers(0, 20), max_size=6)


@given(STEPS, st.text())
def test_any_place_is_found(steps: list[str | int], before: str) -> None:
    """Whatever names and texts stand around it."""
    document: object = "here it stands"
    for step in reversed(steps):
        document = [*[{before: [before]}] * step, document] if isinstance(step, int) else {step: document}
    raw = orjson.dumps({before: [{}, before], "a": document})
    written = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    found = path_to(raw, raw.index(b'"here it stands"'))
    assert found == f"a{written}"[:100] or before == "a"


@given(st.binary(max_size=200), st.integers(0, 200))
def test_no_text_is_too_broken(raw: bytes, position: int) -> None:
    """It is asked about bodies that are no JSON."""
    path_to(raw, position)
