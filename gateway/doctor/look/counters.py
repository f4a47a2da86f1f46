"""The counters of gateway and engines, read twice; what Prometheus has kept."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from gateway.doctor.evidence import Engine, Ready, Scrape, Watched
from gateway.doctor.exposition import Exposition, parsed
from gateway.doctor.finding import Unseen
from gateway.doctor.look.programs import document
from gateway.doctor.look.web import Answer, Fetch

DAY = "max(max_over_time({}[1d]))"


@dataclass(frozen=True)
class Read:
    """What ran, at two moments. `ahead`: this clock against that of an engine elsewhere, and of which."""

    ready: Ready | Unseen
    gateway: Scrape | Unseen
    engines: tuple[Engine, ...]
    ahead: tuple[float, str] | None


def read(
    ops: str,
    engines: Sequence[str],
    fetch: Fetch,
    fetch_engine: Fetch,
    seconds: float,
    wait: Callable[[float], None],
) -> Read:
    """Asks all, waits, asks for the counters again. `wait` is not called where nothing has counters."""
    asked = {ops: fetch, **dict.fromkeys(engines, fetch_engine)}
    first = {url: _metrics(url, how) for url, how in asked.items()}
    listed = {url: fetch_engine(f"{url}/v1/models") for url in engines}
    if any(isinstance(found, Exposition) for found in first.values()):
        wait(seconds)
    again = {
        url: _metrics(url, asked[url]) if isinstance(found, Exposition) else found
        for url, found in first.items()
    }
    scrapes = {url: _pair(first[url], again[url], seconds) for url in asked}
    scrapes |= {url: _of_vllm(url, scrapes[url]) for url in engines}
    return Read(
        ready=_ready(ops, fetch(f"{ops}/readyz")),
        gateway=scrapes[ops],
        engines=tuple(Engine(url, _models(listed[url], url), scrapes[url]) for url in engines),
        ahead=next(_clocks(listed), None),
    )


def _clocks(listed: Mapping[str, Answer | Unseen]) -> Iterator[tuple[float, str]]:
    for url, answer in listed.items():
        if not isinstance(answer, Answer):
            continue
        here = urlsplit(url).hostname or ""
        if here.startswith("127.") or here in {"localhost", "::1"}:
            continue  # the same clock
        if answer.ahead_seconds is not None:
            yield answer.ahead_seconds, url


def _metrics(url: str, fetch: Fetch) -> Exposition | Unseen:
    answer = fetch(f"{url}/metrics")
    if isinstance(answer, Unseen):
        return answer
    if answer.status != 200:
        return Unseen(f"{url}/metrics answers {answer.status}", f"curl {url}/metrics")
    try:
        return parsed(answer.text)
    except ValueError:
        return Unseen(f"{url}/metrics answers with something that is no metrics")


def _pair(first: Exposition | Unseen, last: Exposition | Unseen, seconds: float) -> Scrape | Unseen:
    if isinstance(first, Unseen):
        return first
    return last if isinstance(last, Unseen) else Scrape(first, last, seconds)


def _of_vllm(url: str, scrape: Scrape | Unseen) -> Scrape | Unseen:
    if isinstance(scrape, Scrape) and not scrape.last.has("vllm:num_requests_running"):
        return Unseen(f"{url}/metrics has no counters of vLLM")
    return scrape


def _models(answer: Answer | Unseen, url: str) -> tuple[str, ...] | Unseen:
    if isinstance(answer, Unseen):
        return answer
    if answer.status in {401, 403}:
        return Unseen(
            f"{url}/v1/models answers {answer.status}", "export GATEWAY_UPSTREAM_API_KEY=the engine's key"
        )
    entries = _document(answer).get("data")
    listed = entries if isinstance(entries, list) else []
    names = tuple(str(entry["id"]) for entry in listed if isinstance(entry, dict) and "id" in entry)
    return names or Unseen(f"{url}/v1/models answers {answer.status} and no list of models")


def _ready(ops: str, answer: Answer | Unseen) -> Ready | Unseen:
    if isinstance(answer, Unseen):
        return Unseen(answer.why, answer.mend or "gateway serve, or make up; another address: --ops URL")
    reasons = _document(answer).get("reasons") or []
    return Ready(ops, answer.status, tuple(map(str, reasons)) if isinstance(reasons, list) else ())


def watched(url: str, fetch: Fetch) -> Watched | Unseen:
    """What a Prometheus says fires, and the highest counts that it has seen within a day."""
    answer = fetch(f"{url}/api/v1/alerts")
    if isinstance(answer, Unseen):
        return answer
    alerts = _part(answer, "alerts")
    if not isinstance(alerts, list):
        return Unseen(f"{url} is no Prometheus: /api/v1/alerts answers {answer.status}")
    firing = {name for one in alerts if (name := _alert(one))}
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")
    return Watched(url, tuple(sorted(firing)), *(_highest(url, name, fetch) for name in names))


def _alert(said: Any) -> str:
    """Its name if it fires, else nothing."""
    match said:
        case {"state": "firing", "labels": {"alertname": str(name)}}:
            return name
    return ""


def _highest(url: str, name: str, fetch: Fetch) -> float | None:
    answer = fetch(f"{url}/api/v1/query?query={quote(DAY.format(name))}")
    if isinstance(answer, Unseen):
        return None
    match _part(answer, "result"):
        case [{"value": [_, str(value)]}, *_] if math.isfinite(number := _number(value)):
            return number
    return None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _document(answer: Answer) -> Mapping[str, Any]:
    return document(answer.text)


def _part(answer: Answer, name: str) -> Any:
    """What stands under `data` in what a Prometheus answers, or None."""
    data = _document(answer).get("data")
    return data.get(name) if isinstance(data, dict) else None
