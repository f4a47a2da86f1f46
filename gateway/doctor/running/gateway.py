"""The gateway itself: ready, its key store, what it refuses and what goes wrong."""

from collections.abc import Iterator

from gateway.doctor.evidence import Ready, Scrape, Watched
from gateway.doctor.exposition import Exposition
from gateway.doctor.finding import Finding, NotLookedError, Unseen, seen

FEW_CALLS = 20  # below it a share says nothing
ENGINE_FAULTS = ("engine_error", "engine_timeout", "engine_unavailable", "engine_loading")
LOGS = "make logs SERVICE=gateway, or its standard error: the line of a failed call names its cause"


def ready(found: Ready | Unseen, *, expected: bool) -> Iterator[Finding]:
    """Whether the gateway answers and has an engine that can; one not expected to run is not looked at."""
    check = "ready"
    if isinstance(found, Unseen) and expected:
        yield Finding(check, "error", "The gateway does not answer", found.why, found.mend)
        return
    found = seen(found)
    evidence = f"{found.url}/readyz: {found.status}"
    if found.status == 200:
        yield Finding(check, "ok", "The gateway is ready", evidence)
    else:
        why = "; ".join(found.reasons) or "no reason given"
        yield Finding(check, "error", f"The gateway is not ready: {why}", evidence, "make status; make logs")


def key_store(gateway: Scrape) -> Iterator[Finding]:
    """Whether keys can be read: without, those that are known go on and others get 503."""
    check, value = "key-store", gateway.last.sum("gateway_key_store_up")
    if not gateway.last.has("gateway_key_store_up"):
        raise NotLookedError(Unseen("these are not the gateway's counters", "gateway doctor --ops URL"))
    if value >= 1:
        yield Finding(check, "ok", "The key store can be read", "gateway_key_store_up 1")
    else:
        title = "The key store cannot be read: keys that the gateway does not know yet get 503"
        mend = (
            "ls -l $GATEWAY_DATA_DIR/gateway.db; df -h $GATEWAY_DATA_DIR "
            "(docs/runbooks/KeyStoreUnreadable.md)"
        )
        yield Finding(check, "error", title, f"gateway_key_store_up {value:g}", mend)


def errors(gateway: Scrape) -> Iterator[Finding]:
    """The share of calls that failed, callers' own mistakes left out, and what failed most."""
    check, last = "errors", gateway.last
    reasons = _failures(last)
    failed, calls = sum(reasons.values()), last.sum("gateway_requests_total")
    evidence = f"{failed:.0f} of {calls:.0f} calls since the start"
    if calls < FEW_CALLS or failed < 0.01 * calls:
        yield Finding(check, "ok", "Calls succeed", evidence)
        return
    worst = max(reasons, key=lambda reason: reasons[reason])
    title = f"{failed / calls:.0%} of all calls fail, most with {worst}"
    of_engine = worst in ENGINE_FAULTS
    mend = f"make logs SERVICE=vllm (docs/errors.md#{worst})" if of_engine else f"{LOGS} (docs/errors.md)"
    yield Finding(check, "error" if failed >= 0.05 * calls else "warning", title, evidence, mend)


def _failures(last: Exposition) -> dict[str, float]:
    """Calls by the error that ended them: streams too, whose status had been 200."""
    found: dict[str, float] = {}
    for labels, count in last.samples("gateway_requests_total"):
        reason = labels.get("reason", "")
        if labels.get("status_class") != "4xx" and reason not in {"ok", "client_closed"}:
            found[reason] = found.get(reason, 0.0) + count
    return found


def refusals(gateway: Scrape) -> Iterator[Finding]:
    """Keys whose limits refuse so many calls that the limit, or the client, is wrong."""
    check, last = "limits", gateway.last
    refused = last.by("gateway_limited_total", "key")
    found = False
    for key, count in sorted(refused.items()):
        calls = last.sum("gateway_key_requests_total", key=key)
        if calls < FEW_CALLS or count < 0.2 * calls:
            continue
        found = True
        limits = last.by("gateway_limited_total", "limit", key=key)
        worst = max(limits, key=lambda limit: limits[limit])
        title = f"{count / calls:.0%} of the calls of key {key} are refused by its {worst}"
        option = f"--{worst.replace('_', '-')}"
        mend = f"gateway keys update {key} {option} N, or let its client wait as Retry-After says"
        yield Finding(check, "warning", title, f"{count:.0f} of {calls:.0f} calls", mend)
    if not found:
        told = f"{sum(refused.values()):.0f} refusals in all"
        yield Finding(check, "ok", "No key is refused much", told)


def alerts(watched: Watched) -> Iterator[Finding]:
    """What Prometheus says is wrong now."""
    check = "alerts"
    for name in watched.firing:
        title, mend = f"The alert {name} fires", f"docs/runbooks/{name}.md"
        yield Finding(check, "error", title, f"{watched.url}/api/v1/alerts", mend)
    if not watched.firing:
        yield Finding(check, "ok", "No alert fires", watched.url)
