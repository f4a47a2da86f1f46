"""What an engine says of itself when asked: is it well, which models does it serve. No state is kept here.

vLLM listens only once its model is loaded and answers `/health` with 503 when its engine process has
died. llama.cpp answers 503 there while it loads, whereas its `/v1/models` answers already: so `/health`
is asked first whatever the kind of engine, and `/v1/models` only where that says neither yes nor no.
"""

import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import httpx
import orjson

from gateway.engines.unwell import Unwell
from gateway.errors import reason_of
from gateway.settings import SettingsError

PROBE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Served:
    """One entry of an engine's list; `max_model_len` are tokens of a prompt and its answer, if told."""

    id: str
    kind: Literal["vllm", "openai"]
    max_model_len: int | None = None


def trust(urls: Iterable[str], ca_file: str) -> ssl.SSLContext:
    """Whom to trust when talking to these engines: `ca_file` or else the system's roots; always verified.

    Without an https engine the context is empty: loading some 150 roots takes time and memory.
    Raises SettingsError if the file holds no certificate.
    """
    if not any(url.startswith("https:") for url in urls):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        why = f"engine.ca_file: {ca_file} cannot be used ({reason_of(error)})"
        raise SettingsError([f"{why}: name a file with CA certificates in PEM format"]) from error


def prober(trusted: ssl.SSLContext, api_key: str) -> httpx.AsyncClient:
    """A client for probes, each on a new connection, so that it shows whether the engine takes any."""
    return httpx.AsyncClient(
        verify=trusted,
        trust_env=False,
        timeout=PROBE_SECONDS,
        limits=httpx.Limits(max_keepalive_connections=0),
        headers={"authorization": f"Bearer {api_key}"} if api_key else {},
    )


async def check(http: httpx.AsyncClient, url: str) -> None:
    """Return if the engine can answer requests. Raises Unwell."""
    status = (await _get(http, url + "/health")).status_code
    if status == 503:
        why = "GET /health answers 503: its model is loading, or its engine process has died"
        raise Unwell(why, starting=True)
    if not 200 <= status < 300:
        await served(http, url)


async def served(http: httpx.AsyncClient, url: str) -> tuple[Served, ...]:
    """The models that the engine lists, at least one. Raises Unwell."""
    answer = await _get(http, url + "/v1/models")
    if answer.status_code in (401, 403):
        raise Unwell(
            f"GET /v1/models answers {answer.status_code}: is GATEWAY_UPSTREAM_API_KEY the engine's?"
        )
    if answer.status_code != 200:
        raise Unwell(f"GET /v1/models answers {answer.status_code}", starting=answer.status_code == 503)
    try:
        found = tuple(map(_entry, orjson.loads(answer.content)["data"]))
    except (ValueError, KeyError, TypeError):
        raise Unwell("GET /v1/models answers with something that is no list of models") from None
    if not found:
        raise Unwell("GET /v1/models lists no model")
    return found


def _entry(entry: Any) -> Served:
    if not isinstance(entry, dict) or not isinstance(entry["id"], str):
        raise TypeError("an entry is an object with an id")
    longest = entry.get("max_model_len")
    return Served(
        entry["id"],
        "vllm" if entry.get("owned_by") == "vllm" else "openai",
        longest if type(longest) is int and longest > 0 else None,
    )


async def _get(http: httpx.AsyncClient, url: str) -> httpx.Response:
    try:
        return await http.get(url)
    except httpx.TimeoutException:
        raise Unwell(f"no answer within {PROBE_SECONDS:g} s", starting=True) from None
    except httpx.InvalidURL as error:
        raise Unwell(reason_of(error)) from error
    except httpx.HTTPError as error:
        raise Unwell(reason_of(error), starting=not _tls_failed(error)) from error


def _tls_failed(error: BaseException) -> bool:
    """Whether a certificate or the protocol is at fault; an end of file is only a lost connection."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLError):
            return not isinstance(seen, ssl.SSLEOFError)
        seen = seen.__cause__ or seen.__context__
    return False
