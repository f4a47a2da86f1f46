"""The kinds of value that a setting can hold, and how each is read. Which setting holds which is not here."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson
from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator
from pydantic_settings import NoDecode

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?[0-9]+\.[0-9]+")
_HOST = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_ORIGIN = re.compile(r"https?://[^\s/?#@]+")


class Spelled(str):
    """A value as an environment variable spells it: the only text that may stand for a number or a list."""

    __slots__ = ()


def _number(value: object) -> object:
    if isinstance(value, Spelled):
        if _WHOLE.fullmatch(value):
            return int(value)
        if _DECIMAL.fullmatch(value):
            return float(value)
    return value


def _items(value: object) -> object:
    if not isinstance(value, Spelled):
        return value
    if not value.lstrip().startswith("["):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    try:
        return orjson.loads(str(value))  # orjson takes no subclass of str
    except orjson.JSONDecodeError:
        raise ValueError("must be a list: values separated by commas, or a JSON array") from None


def _no_spaces_around(value: str) -> str:
    if value != value.strip() or not value.isprintable():
        raise ValueError("must not begin or end with white space or hold control characters")
    return value


def _bind_host(value: str) -> str:
    if re.search(r"[\s/]", value):
        raise ValueError("must be a host name or an IP address alone, as in 127.0.0.1")
    return value


def _base_url(value: str) -> str:
    """The address without a trailing `/` or `/v1`; never quoted in a message, it may hold a password."""
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise ValueError("must be a URL, as in http://127.0.0.1:8000") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError("must begin with http:// or https://, as in http://127.0.0.1:8000")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user or password; set GATEWAY_UPSTREAM_API_KEY instead")
    if not parts.hostname or port == 0 or re.search(r"[\s\\]", value) or not value.isprintable():
        raise ValueError("must name a host, as in http://127.0.0.1:8000")
    if "?" in value or "#" in value:
        raise ValueError("must end with its path: no query and no fragment")
    return value.rstrip("/").removesuffix("/v1").rstrip("/")


def _network(value: object) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    if not isinstance(value, str):
        raise ValueError("must be an IP address or a CIDR range in quotes")  # noqa: TRY004 pydantic reads ValueError
    try:
        return ipaddress.ip_network(value)
    except ValueError:
        pass
    try:
        mend = f"the range is written {ipaddress.ip_network(value, strict=False)}"
    except ValueError:
        mend = "as in 10.0.0.7 or 10.0.0.0/8"
    raise ValueError(f"must be an IP address or a CIDR range, {mend}")


def _origin(value: str) -> str:
    if value != "*" and not _ORIGIN.fullmatch(value):
        raise ValueError('must be an origin without a path, as in "https://chat.example.com", or "*"')
    return value


def _media(value: object) -> str | tuple[str, ...]:
    if value in ("data", "none"):
        return str(value)
    hosts = _items(value)
    if not isinstance(hosts, list | tuple) or not hosts:
        raise ValueError('must be "data", "none" or a list of hosts')
    for host in hosts:
        if not isinstance(host, str) or not _HOST.fullmatch(host.lower()):
            raise ValueError(
                f"must list hosts without scheme, port or path, as images.example.com; {_shown(host)} is none"
            )
    return tuple(host.lower() for host in hosts)


def _shown(value: object) -> str:
    return repr(value)[:100]


def _timezone(value: str) -> str:
    if value == "UTC":  # must work where there is no time zone database
        return value
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            "must be a name of the time zone database, as in Europe/Berlin; where this machine has none, "
            "install its tzdata package"
        ) from None
    return value


def _existing_file(value: str) -> str:
    if value and not Path(value).is_file():
        raise ValueError("must be the path of an existing file")
    return value


def _directory(value: object) -> object:
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("must be the path of a directory")
        return Path(value).expanduser()  # neither TOML nor an .env file expands ~
    return value


Whole = Annotated[int, BeforeValidator(_number), Field(strict=True)]
Number = Annotated[float, BeforeValidator(_number), Field(strict=True, allow_inf_nan=False)]
Port = Annotated[Whole, Field(ge=0, le=65535)]
Name = Annotated[str, Field(min_length=1), AfterValidator(_no_spaces_around)]
BindHost = Annotated[str, Field(min_length=1), AfterValidator(_bind_host)]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
Directory = Annotated[Path, BeforeValidator(_directory)]
FilePath = Annotated[str, AfterValidator(_existing_file)]
Timezone = Annotated[str, AfterValidator(_timezone)]
Network = Annotated[ipaddress.IPv4Network | ipaddress.IPv6Network, PlainValidator(_network)]
Networks = Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_items)]
Origin = Annotated[str, AfterValidator(_origin)]
Origins = Annotated[tuple[Origin, ...], NoDecode, BeforeValidator(_items)]
Media = Annotated[Literal["data", "none"] | tuple[str, ...], NoDecode, PlainValidator(_media)]
