"""Secrets of the environment and their `*_FILE` twins. No message here ever holds a secret's text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.settings.schema import PREFIX, SECRETS

MAX_BYTES = 65_536
_BYTE_ORDER_MARK = "\ufeff"
_SENT_AS_HEADER = ("GATEWAY_UPSTREAM_API_KEY", "GATEWAY_ADMIN_TOKEN")

VARIABLES = tuple(PREFIX + name.upper() for name in SECRETS)
TWINS = tuple(f"{variable}_FILE" for variable in VARIABLES)


@dataclass(slots=True)
class Secrets:
    """What was found, by variable, and what is to be said about it."""

    values: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class RefusedError(Exception):
    """A secret that cannot be used; the message says where it stands and how to mend it."""


def read(environ: Mapping[str, str]) -> Secrets:
    """The secrets that the environment holds or whose files it names, white space at their ends stripped."""
    secrets = Secrets()
    for variable, twin in zip(VARIABLES, TWINS, strict=True):
        try:
            _read_one(environ, variable, twin, secrets)
        except RefusedError as refused:
            secrets.problems.append(str(refused))
    return secrets


def _read_one(environ: Mapping[str, str], variable: str, twin: str, secrets: Secrets) -> None:
    if variable in environ and twin in environ:
        raise RefusedError(f"{variable} and {twin} are both set: unset one of them")
    if variable in environ:
        secrets.values[variable] = _clean(environ[variable], variable, variable)
    elif twin in environ:
        text = _file_text(environ[twin], twin)
        origin = f"{twin}: {environ[twin]}"
        secret = _clean(text, variable, origin)
        secrets.values[variable] = secret
        if text.rstrip("\r\n") != secret:  # the newline that every editor adds is no mistake
            secrets.warnings.append(f"{origin} holds white space around the secret: it was stripped")


def _file_text(name: str, twin: str) -> str:
    if not name.strip():
        raise RefusedError(f"{twin} is empty: give the path of a file, or unset it")
    try:
        with Path(name).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RefusedError(f"{twin}: {name} cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise RefusedError(f"{twin}: {name} is larger than {MAX_BYTES} bytes: that is no secret")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise RefusedError(f"{twin}: {name} is not UTF-8 text") from None


def _clean(text: str, variable: str, origin: str) -> str:
    secret = text.strip().lstrip(_BYTE_ORDER_MARK).strip()
    if not secret:
        raise RefusedError(f"{origin} is empty: give the secret, or unset the variable")
    if len(secret.splitlines()) > 1:
        raise RefusedError(f"{origin} holds several lines: a secret is one line")
    if variable in _SENT_AS_HEADER and not (secret.isascii() and secret.isprintable()):
        raise RefusedError(f"{origin} must be printable ASCII: it is sent in a header")
    return secret
