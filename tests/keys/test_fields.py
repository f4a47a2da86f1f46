"""What may be set on a key: every refusal names the field and the mend, for both faces alike."""

import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import InvalidJson, InvalidRequest
from gateway.keys import fields, objects, times

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LIMITS = ("rpm", "tpm", "max_parallel", "tokens_per_day", "tokens_per_month")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def change(**data: Any) -> fields.KeyChange:
    return fields.read(fields.KeyChange, data, NOW)


def nested(levels: int) -> dict[str, Any]:
    """An object of so many levels."""
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("value", [0, -1, 1.5, 1e5, True, False, "5", "1e5", "", [], 2**53])
def test_a_limit_is_a_whole_number_of_one_or_more(limit: str, value: object) -> None:
    """Booleans and texts are not taken for numbers; zero is told what it may have meant."""
    with pytest.raises(InvalidRequest, match=f"^{limit} must be a whole number of 1 or more") as refused:
        change(**{limit: value})
    assert refused.value.param == limit
    assert ("revoke it" in refused.value.message) == (value == 0)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("value", [1, 2**53 - 1, None, "unlimited"])
def test_unset_and_unlimited_are_two_things(limit: str, value: object) -> None:
    """Null falls back to the default limit, "unlimited" overrides it."""
    assert getattr(change(**{limit: value}), limit) == value


@pytest.mark.parametrize(
    ("field", "value", "mend"),
    [
        ("name", "", "1 to 200 printable characters"),
        ("name", "  ", "1 to 200 printable characters"),
        ("name", None, "1 to 200 printable characters"),
        ("name", "a\x1b[31m", "printable"),
        ("name", "\ud800", "printable"),
        ("name", "n" * 201, "1 to 200"),
        ("models", [], "none for all"),
        ("models", "a", "list model ids"),
        ("models", ["a", 5], "list model ids"),
        ("models", ["a", ""], "list model ids"),
        ("models", [" a"], "list model ids"),
        ("priority", "high", "'interactive' or 'batch'"),
        ("priority", 1, "'interactive' or 'batch'"),
        ("weight", 0, "above 0 and up to 1000"),
        ("weight", -1, "above 0"),
        ("weight", True, "above 0"),
        ("weight", "2", "above 0"),
        ("weight", math.nan, "above 0"),
        ("weight", math.inf, "up to 1000"),
        ("cache_group", "", "1 to 64 letters"),
        ("cache_group", "a b", "1 to 64 letters"),
        ("cache_group", "g" * 65, "1 to 64 letters"),
        ("cache_group", 5, "1 to 64 letters"),
        ("expires_at", "soon", "'30d'"),
        ("expires_at", 30, "'30d'"),
        ("expires_at", "2027-01-31", "'2027-01-31T00:00:00Z'"),
        ("expires_at", "2027-01-31T00:00:00", "'2027-01-31T00:00:00Z'"),
        ("expires_at", "2027-13-31T00:00:00Z", "'2027-01-31T00:00:00Z'"),
        ("expires_at", "2026-06-01T12:00:00Z", "revoke it"),
        ("expires_at", "0d", "revoke it"),
        ("expires_at", "999999999w", "'30d'"),
        ("metadata", [], "must be a JSON object"),
        ("metadata", "x", "must be a JSON object"),
        ("metadata", {"a": "x" * 65536}, "at most 65536 bytes"),
        ("defaults", 5, "must be a JSON object"),
        ("force", True, "must be a JSON object"),
    ],
)
def test_a_bad_value_is_refused_by_name_with_the_mend(field: str, value: object, mend: str) -> None:
    """The operator reads which field, what was wrong with it, and what to write."""
    with pytest.raises(InvalidRequest) as refused:
        change(**{field: value})
    assert refused.value.message.startswith(f"{field} ")
    assert mend in refused.value.message
    assert refused.value.param == field
    assert len(refused.value.message) < 400


@pytest.mark.parametrize("field", ["defaults", "force"])
@pytest.mark.parametrize(
    "reserved",
    [
        "chat_template",
        "tokenize",
        "add_generation_prompt",
        "continue_final_message",
        "messages",
        "conversation",
        "tools",
    ],
)
def test_kwargs_of_the_renderer_are_refused_by_name(field: str, reserved: str) -> None:
    """Set in a key, they would fail every request of its caller."""
    with pytest.raises(InvalidRequest, match=rf"^{field} .*chat_template_kwargs\.{reserved}"):
        change(**{field: {"chat_template_kwargs": {reserved: True}}})


@pytest.mark.parametrize("field", ["defaults", "force"])
@pytest.mark.parametrize("kwargs", [[], "", None, True, 5])
def test_kwargs_that_are_no_object_are_refused(field: str, kwargs: object) -> None:
    """They would pass now and fail at the first request."""
    with pytest.raises(InvalidRequest, match=f"^{field} .*chat_template_kwargs"):
        change(**{field: {"chat_template_kwargs": kwargs}})


@pytest.mark.parametrize("field", ["defaults", "force", "metadata"])
def test_objects_are_bounded_in_depth(field: str) -> None:
    """As bodies are: 128 levels pass, 129 do not, and ten thousand crash nothing."""
    assert getattr(change(**{field: nested(128)}), field) == nested(128)
    for levels in (129, 10_000):
        with pytest.raises(InvalidRequest, match=f"^{field} must not be nested deeper than 128"):
            change(**{field: nested(levels)})


def test_null_unsets_a_field_to_its_default() -> None:
    """The cache group of a key is its own id again."""
    names = [name for name in fields.KeyChange.model_fields if name != "name"]
    columns = change(**dict.fromkeys(names)).columns("abcdefghijkl", names)
    assert {name: value for name, value in columns.items() if value is not None} == {
        "priority": "interactive",
        "weight": 1.0,
        "cache_group": "abcdefghijkl",
        "defaults": {},
        "force": {},
        "metadata": {},
    }


def test_unknown_model_names_are_taken() -> None:
    """Keys outlive configurations: a model may come later. Twice the same is once."""
    assert change(models=["no-such", "a:b", "no-such"]).models == ("no-such", "a:b")


def test_an_unknown_field_is_refused_with_the_likely_one() -> None:
    """A slip of the finger must not leave a key without its limit."""
    with pytest.raises(InvalidRequest, match="'rmp' is not a field; did you mean rpm"):
        change(rmp=5)
    with pytest.raises(InvalidRequest, match="'zzz' is not a field; use cache_group, defaults"):
        change(zzz=5)


@pytest.mark.parametrize("field", ["id", "created_at", "last_used_at", "revoked_at"])
def test_what_the_gateway_sets_cannot_be_given(field: str) -> None:
    """A PATCH with a whole key object says so instead of ignoring it."""
    with pytest.raises(InvalidRequest, match=f"{field} is set by the gateway"):
        change(**{field: "x"})


def test_all_problems_are_told_at_once() -> None:
    """The first one's field is the param."""
    with pytest.raises(InvalidRequest, match=r"rpm must .*; weight must ") as refused:
        change(weight=-1, rpm=-1)
    assert refused.value.param == "rpm"


def test_a_new_key_needs_a_name() -> None:
    """It is how people know it again."""
    with pytest.raises(InvalidRequest, match="name is missing"):
        fields.read(fields.NewKey, {}, NOW)


@pytest.mark.parametrize("value", ["short", "k" * 19, "k" * 19 + "é", " " + "k" * 20, "k" * 20 + "\n", 5])
def test_a_key_taken_over_must_be_long_and_printable(value: object) -> None:
    """The refusal does not repeat it: it may be a secret with a slip of the finger."""
    with pytest.raises(InvalidRequest, match=r"^key must be 20 or more printable ASCII") as refused:
        fields.read(fields.NewKey, {"name": "a", "key": value}, NOW)
    assert str(value) not in refused.value.message.removeprefix("key must be 20")


@pytest.mark.parametrize("value", ["24", "h", "-1h", 5, "2027-01-31T00:00:00Z"])
def test_an_overlap_is_a_duration(value: object) -> None:
    """Not a time and not a number."""
    with pytest.raises(InvalidRequest, match="overlap must be a duration such as '24h'"):
        fields.read(fields.Rotation, {"overlap": value}, NOW)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
@given(st.dictionaries(st.sampled_from([*fields.NewKey.model_fields, "id", "x"]), JSON, max_size=4))
def test_any_json_is_taken_or_refused(data: dict[str, object]) -> None:
    """Never another exception, whatever an operator's script sends."""
    with suppress(InvalidRequest):
        read = fields.read(fields.NewKey, {"name": "a", **data}, NOW)
        assert data.keys() <= read.model_fields_set


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", NOW + timedelta(seconds=90)),
        ("15m", NOW + timedelta(minutes=15)),
        ("24h", NOW + timedelta(hours=24)),
        ("30d", NOW + timedelta(days=30)),
        ("2w", NOW + timedelta(weeks=2)),
        ("2027-01-31T00:00:00Z", datetime(2027, 1, 31, tzinfo=UTC)),
        ("2027-01-31t01:30:00.250+01:30", datetime(2027, 1, 31, microsecond=250000, tzinfo=UTC)),
    ],
)
def test_a_key_expires_after_a_duration_or_at_a_time(text: str, expected: datetime) -> None:
    """Durations count from now; times are kept in UTC."""
    assert change(expires_at=text).expires_at == expected


def test_times_are_written_as_they_are_read() -> None:
    """RFC 3339 with Z; milliseconds only if there are any."""
    for text in ("2027-01-31T00:00:00Z", "2027-01-31T00:00:00.250Z"):
        moment = times.moment(text)
        assert times.as_text(moment) == text
    assert times.as_text(None) is None


@pytest.mark.parametrize(
    "text", ["", "{", "nan", "[NaN]", "1e400", '"\\ud800"', str(2**64), b'"\xff"', "[" * 5000 + "]" * 5000]
)
def test_what_is_not_strict_json_is_refused(text: str | bytes) -> None:
    """Nothing that two parsers could understand differently is stored."""
    with pytest.raises(InvalidJson, match=r"^Not valid JSON"):
        objects.parse(text)


def test_numbers_keep_their_kind() -> None:
    """Integers up to 64 bits stay exact, floats stay floats, the last of two names wins."""
    parsed = objects.parse('{"a": 18446744073709551615, "b": 1.0, "b": 2.0}')
    assert repr(parsed) == "{'a': 18446744073709551615, 'b': 2.0}"
