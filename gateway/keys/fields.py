"""What an operator may set on a key, judged in one place for the command line and the admin API.

Values arrive as JSON has them; null unsets a field. Every refusal names the field and the mend.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError, ValidationInfo
from pydantic_core import ErrorDetails

from gateway.errors import InvalidRequest, quote
from gateway.keys import objects, times, token
from gateway.keys.key import UNLIMITED, Limit

MAX_LIMIT = 2**53 - 1  # the largest integer that every JSON reader keeps
MAX_WEIGHT = 1000
MAX_NAME = 200

_GROUP = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MADE_HERE = frozenset({"id", "created_at", "last_used_at", "revoked_at"})


def _limit(value: object) -> Limit:
    if value is None or value == UNLIMITED:
        return None if value is None else UNLIMITED
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_LIMIT:
        return value
    raise ValueError(
        f"must be a whole number of 1 or more, 'unlimited' to override the default limit, or none to fall "
        f"back to it; got {quote(value)}" + (". To shut a key out, revoke it" if value == 0 else "")
    )


def _name(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if text and len(text) <= MAX_NAME and text.isprintable():
        return text
    raise ValueError(f"must be a text of 1 to {MAX_NAME} printable characters; got {quote(value)}")


def _models(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = value if isinstance(value, list) else []
    if names and all(isinstance(name, str) and _is_model(name) for name in names):
        return tuple(dict.fromkeys(names))
    raise ValueError(
        f"must list model ids such as 'a' or 'a:variant', or be none for all; got {quote(value)}"
    )


def _is_model(name: str) -> bool:
    return bool(name) and len(name) <= MAX_NAME and name.isprintable() and name == name.strip()


def _priority(value: object) -> str:
    if value in (None, "interactive", "batch"):
        return "batch" if value == "batch" else "interactive"
    raise ValueError(f"must be 'interactive' or 'batch'; got {quote(value)}")


def _weight(value: object) -> float:
    if value is None:
        return 1.0
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_WEIGHT:
        return float(value)
    raise ValueError(f"must be a number above 0 and up to {MAX_WEIGHT}; got {quote(value)}")


def _cache_group(value: object) -> str | None:
    if value is None or (isinstance(value, str) and _GROUP.fullmatch(value)):
        return value
    raise ValueError(f"must be 1 to 64 letters, digits, dots, dashes or underscores; got {quote(value)}")


def _expires_at(value: object, info: ValidationInfo) -> datetime | None:
    if value is None:
        return None
    now: datetime = info.context["now"] if info.context else times.now()
    length = times.duration(value) if isinstance(value, str) else None
    at = times.moment(value) if length is None and isinstance(value, str) else None
    ends = at if length is None else now + length
    if ends is None:
        raise ValueError(f"must be {times.EXAMPLES}; got {quote(value)}")
    if ends <= now:
        raise ValueError(f"must be in the future; got {quote(value)}. To end a key now, revoke it")
    return ends


def _overlap(value: object) -> timedelta:
    length = timedelta(0) if value is None else times.duration(value) if isinstance(value, str) else None
    if length is None:
        raise ValueError(f"must be a duration such as '24h' (s, m, h, d, w); got {quote(value)}")
    return length


def _parameters(value: object) -> dict[str, Any]:
    return _object(value, objects.parameters_problem)


def _metadata(value: object) -> dict[str, Any]:
    return _object(value, objects.problem)


def _object(value: object, problem: Callable[[object], str | None]) -> dict[str, Any]:
    if value is None:
        return {}
    if found := problem(value):
        raise ValueError(found)
    return dict(value) if isinstance(value, dict) else {}


def _token(value: object) -> str | None:
    if value is None or (isinstance(value, str) and value.isascii() and token.is_possible(value.encode())):
        return value
    # Not repeated here: it may be a secret with a slip of the finger.
    raise ValueError(f"must be {token.SHORTEST} or more printable ASCII characters with no space at the ends")


_Limit = Annotated[Limit, PlainValidator(_limit)]
_Parameters = Annotated[dict[str, Any], PlainValidator(_parameters)]


class KeyChange(BaseModel):
    """Any of the fields of a key; only those in `model_fields_set` were given."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, PlainValidator(_name)] = ""
    rpm: _Limit = None
    tpm: _Limit = None
    max_parallel: _Limit = None
    tokens_per_day: _Limit = None
    tokens_per_month: _Limit = None
    models: Annotated[tuple[str, ...] | None, PlainValidator(_models)] = None
    priority: Annotated[Literal["interactive", "batch"], PlainValidator(_priority)] = "interactive"
    weight: Annotated[float, PlainValidator(_weight)] = 1.0
    cache_group: Annotated[str | None, PlainValidator(_cache_group)] = None
    expires_at: Annotated[datetime | None, PlainValidator(_expires_at)] = None
    defaults: _Parameters = {}
    force: _Parameters = {}
    metadata: Annotated[dict[str, Any], PlainValidator(_metadata)] = {}

    def columns(self, key_id: str, names: Iterable[str]) -> dict[str, Any]:
        """The named fields as the database holds them; a key's cache group is its own id by default."""
        values = {name: getattr(self, name) for name in names}
        if "cache_group" in values:
            values["cache_group"] = self.cache_group or key_id
        return values


class NewKey(KeyChange):
    """All fields of a key to create. `key`: a token that clients already have."""

    name: Annotated[str, PlainValidator(_name)]
    key: Annotated[str | None, PlainValidator(_token)] = None


class Rotation(BaseModel):
    """How long the old secret goes on beside the new one; unset: not at all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    overlap: Annotated[timedelta, PlainValidator(_overlap)] = timedelta(0)


_Fields = TypeVar("_Fields", bound=BaseModel)


def read(kind: type[_Fields], data: Mapping[str, object], now: datetime) -> _Fields:
    """The fields in `data`, all of them valid; durations count from `now`.

    Raises InvalidRequest with every problem in its message and the first one's field as `param`.
    """
    try:
        return kind.model_validate(dict(data), context={"now": now})
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise InvalidRequest(
            "; ".join(_sentence(problem, kind) for problem in problems) + ".",
            param=str(problems[0]["loc"][0])[:100],
        ) from error


def _sentence(problem: ErrorDetails, kind: type[BaseModel]) -> str:
    field = str(problem["loc"][0])
    match problem["type"]:
        case "missing":
            return f"{field} is missing: it must be given"
        case "extra_forbidden":
            return _unknown(field, kind)
        case "value_error":
            return f"{field} {problem['ctx']['error']}"
    return f"{field}: {problem['msg']}"


def _unknown(field: str, kind: type[BaseModel]) -> str:
    if field in _MADE_HERE:
        return f"{field} is set by the gateway and cannot be given"
    if field == "key":
        return "key cannot be changed: rotate the key to get a new secret"
    known = sorted(kind.model_fields)
    near = difflib.get_close_matches(field, known, 1)
    return f"{quote(field)} is not a field; " + (
        f"did you mean {near[0]}" if near else f"use {', '.join(known)}"
    )
