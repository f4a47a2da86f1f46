"""The options of `gateway keys`, and how their texts become the fields that the admin API takes as JSON.

Whether a value is right is judged in `gateway.keys`, for both alike.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from gateway.errors import InvalidJson, InvalidRequest

NONE = "none"

_LIMIT = "N|none|unlimited"
_OBJECT = "JSON|none"

KeyId = Annotated[str, typer.Argument(metavar="ID", help="The key's id, with or without sk-gw-.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", envvar="GATEWAY_DATA_DIR", help="Where gateway.db is; default: as for the server."
    ),
]
Name = Annotated[str, typer.Option("--name", help="Who or what uses the key.")]
NewName = Annotated[str | None, typer.Option("--name", help="Another name.")]
Rpm = Annotated[str | None, typer.Option("--rpm", metavar=_LIMIT, help="Requests per minute.")]
Tpm = Annotated[
    str | None, typer.Option("--tpm", metavar=_LIMIT, help="Tokens per minute, prompt and completion.")
]
MaxParallel = Annotated[
    str | None, typer.Option("--max-parallel", metavar=_LIMIT, help="Requests running at once.")
]
TokensPerDay = Annotated[
    str | None,
    typer.Option("--tokens-per-day", metavar=_LIMIT, help="Tokens per day, by the setting budgets.timezone."),
]
TokensPerMonth = Annotated[
    str | None, typer.Option("--tokens-per-month", metavar=_LIMIT, help="Tokens per calendar month.")
]
Models = Annotated[
    str | None,
    typer.Option("--models", metavar="A,B|none", help="Models it may use, by id or alias; none: all."),
]
Expires = Annotated[
    str | None,
    typer.Option(
        "--expires", metavar="30d|TIME|none", help="A duration (s, m, h, d, w) or an RFC 3339 time."
    ),
]
Priority = Annotated[
    str | None,
    typer.Option(
        "--priority", metavar="interactive|batch", help="Default: interactive (kept, not yet enforced)."
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight", metavar="N|none", help="Its share when keys compete, default 1 (kept, not yet enforced)."
    ),
]
CacheGroup = Annotated[
    str | None,
    typer.Option(
        "--cache-group",
        metavar="G|none",
        help="Keys of one group share the prefix cache; default: its own id, shared with nobody.",
    ),
]
Defaults = Annotated[
    str | None, typer.Option("--defaults", metavar=_OBJECT, help="Parameters where callers are silent.")
]
Force = Annotated[
    str | None, typer.Option("--force", metavar=_OBJECT, help="Parameters that win over callers.")
]
Metadata = Annotated[str | None, typer.Option("--metadata", metavar=_OBJECT, help="Anything of your own.")]
Token = Annotated[
    str | None,
    typer.Option("--key", metavar="VALUE", help="Take over a key that clients have; -: read it from stdin."),
]
Overlap = Annotated[
    str | None,
    typer.Option("--overlap", metavar="24h", help="How long the old key works on; default: not at all."),
]


def fields(**options: str | None) -> dict[str, object]:
    """The options that were given, by the field's name, as JSON has them. Raises InvalidRequest."""
    return {name: _value(name, text) for name, text in options.items() if text is not None}


def _value(name: str, text: str) -> object:
    if name == "name":
        return text
    if text == NONE:
        return None
    try:
        return _READERS.get(name, str)(text)
    except InvalidJson as error:
        raise InvalidRequest(f"{name}: {error.message}", param=name) from error


def _number(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        return text  # "unlimited", or nonsense that is then refused by its field


def _decimal(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def _names(text: str) -> object:
    return [name.strip() for name in text.split(",")]


def _json(text: str) -> object:
    from gateway.keys import parse_json  # it brings the database's libraries, which --help does not need

    return parse_json(text)


def _token(text: str) -> object:
    return typer.get_text_stream("stdin").readline().rstrip("\r\n") if text == "-" else text


_READERS: Mapping[str, Callable[[str], object]] = MappingProxyType(
    {
        **dict.fromkeys(("rpm", "tpm", "max_parallel", "tokens_per_day", "tokens_per_month"), _number),
        **dict.fromkeys(("defaults", "force", "metadata"), _json),
        "weight": _decimal,
        "models": _names,
        "key": _token,
    }
)
