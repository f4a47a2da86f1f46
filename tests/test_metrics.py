"""What Prometheus gets: names and labels that dashboards rely on, and no more series than configured."""

import asyncio
import random
import re
import string
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from gateway.metrics import Metrics
from gateway.routes import ROUTES
from gateway.usage import Usage, count
from tests.callers import CHAT, Caller, ask, chat, request
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway, wait_for

OPERATE = Path(__file__).parent.parent / "docs" / "operate.md"
LABELS = {
    "gateway_requests_total": ("model", "route", "status_class", "reason"),
    "gateway_request_duration_seconds": ("model", "route"),
    "gateway_time_to_first_token_seconds": ("model", "route"),
    "gateway_overhead_seconds": ("model", "route"),
    "gateway_tokens_total": ("key", "model", "kind"),
    "gateway_key_requests_total": ("key", "status_class"),
    "gateway_limited_total": ("key", "limit"),
    "gateway_budget_used_ratio": ("key", "limit"),
    "gateway_inflight": ("model",),
    "gateway_open_slots": (),
    "gateway_reserved_tokens": (),
    "gateway_engine_up": ("engine",),
    "gateway_engine_reconnects_total": ("engine",),
    "gateway_client_disconnects_total": ("phase",),
    "gateway_fields_dropped_total": ("field",),
    "gateway_gpu_energy_joules_total": ("gpu",),
    "gateway_key_store_up": (),
    "gateway_usage_store_up": (),
    "gateway_usage_rows_pending": (),
    "gateway_usage_rows_lost_total": (),
    "gateway_build_info": ("version",),
}
BESIDE_COUNTERS = "_created"  # when a counter began: the client library's own, for OpenMetrics


def touched() -> Metrics:
    """Metrics in which everything has happened once."""
    metrics = Metrics("1.2.3")
    series = metrics.traffic.series("m", CHAT)
    series.count(200, "ok")
    for distribution in (series.duration, series.overhead, series.time_to_first_token):
        distribution.observe(0.02)
    metrics.traffic.count_for_key("a-key", 200)
    count(metrics.traffic, "a-key", "m", Usage(7, 4, 3, 2))
    metrics.traffic.inflight["m"] = 1
    metrics.limited.labels("a-key", "max_parallel").inc()
    metrics.budgets.used_ratios = lambda: [("a-key", "tokens_per_day", 0.5)]
    metrics.client_disconnects.labels("waiting").inc()
    metrics.fields_dropped.labels("priority").inc()
    metrics.engine_up.labels("http://engine").set(1)
    metrics.engine_reconnects.labels("http://engine").inc()
    metrics.gpu_energy_joules.labels("0").inc(250.5)
    return metrics


def shown(text: str) -> dict[str, Metric]:
    """The families of an exposition that are ours, by the name that dashboards use."""
    families = text_string_to_metric_families(text)
    named = ((f"{f.name}_total" if f.type == "counter" else f.name, f) for f in families)
    return {
        name: family
        for name, family in named
        if name.startswith("gateway_") and not name.endswith(BESIDE_COUNTERS)
    }


def test_names_and_labels_are_those_that_dashboards_know() -> None:
    """A new one belongs into this table, a changed one breaks somebody's alerts."""
    families = shown(touched().render().decode())
    assert set(families) == set(LABELS)
    for name, family in families.items():
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(LABELS[name]), sample


def test_every_metric_explains_itself_and_has_base_units() -> None:
    """Times in seconds, counters by their ending."""
    for name, family in shown(touched().render().decode()).items():
        assert len(family.documentation) > 15, name
        assert not re.search(r"_(ms|milliseconds|minutes|kb|mb)\b", name)
        assert name.endswith("_total") == (family.type == "counter")
        assert name.endswith("_seconds") == (family.type == "histogram")


def test_a_histogram_counts_each_value_once_and_in_all_buckets_above() -> None:
    """As Prometheus' quantiles want them: cumulative, up to +Inf, with sum and count."""
    metrics = Metrics()
    durations = metrics.traffic.series("m", CHAT).duration
    for value in (0.05, 0.06, 1.0, 10_000.0):
        durations.observe(value)
    samples = shown(metrics.render().decode())["gateway_request_duration_seconds"].samples
    buckets = {s.labels["le"]: s.value for s in samples if s.name.endswith("_bucket")}
    assert (buckets["0.05"], buckets["0.1"], buckets["1.0"], buckets["600.0"], buckets["+Inf"]) == (
        1,
        2,
        3,
        3,
        4,
    )
    assert list(buckets.values()) == sorted(buckets.values())
    [total] = [s.value for s in samples if s.name.endswith("_sum")]
    assert total == pytest.approx(10_001.11)


@pytest.mark.parametrize(
    ("status", "shown_as"), [(200, "2xx"), (204, "2xx"), (400, "4xx"), (499, "4xx"), (503, "5xx")]
)
def test_statuses_are_counted_by_their_class(status: int, shown_as: str) -> None:
    """Two digits fewer, a sixth of the series."""
    metrics = Metrics()
    metrics.traffic.series("m", CHAT).count(status, "ok")
    labels = {"model": "m", "route": CHAT, "status_class": shown_as, "reason": "ok"}
    assert metrics.registry.get_sample_value("gateway_requests_total", labels) == 1


def documented() -> Iterator[tuple[str, tuple[str, ...]]]:
    """The table of metrics in the documentation."""
    for name, labels in re.findall(r"^\| `(gateway_\w+)` \| ([^|]*)\|", OPERATE.read_text(), re.MULTILINE):
        yield name, tuple(label.strip() for label in labels.split(",") if label.strip())


def test_the_documentation_lists_the_metrics_and_their_labels() -> None:
    """All of them and no other."""
    assert dict(documented()) == LABELS


async def exposition(gateway: Gateway, http: httpx.AsyncClient) -> str:
    """What a scrape of a running gateway gets."""
    answer = await http.get(gateway.ops + "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return answer.text


async def test_a_running_gateway_shows_them(gateway: Gateway, http: httpx.AsyncClient) -> None:
    """Its own process's figures beside them; keys by their id alone."""
    made = await gateway.create_key(name="shown@example.com")
    await ask(gateway, chat(made["key"]))
    text = await exposition(gateway, http)
    assert set(shown(text)) == set(LABELS)
    assert "process_resident_memory_bytes" in text
    assert f'key="{made["id"]}"' in text
    for secret in (made["key"], "shown@example.com", "127.0.0.1:80"):
        assert secret not in text


def odd_requests(key: str, chance: random.Random) -> list[bytes]:
    """One of each kind, with names that nobody configured."""

    def word() -> str:
        return "".join(chance.choices(string.ascii_letters + "-._:", k=12))

    return [
        chat(key, model=word()),
        request("GET", f"/{word()}"),
        request("GET", f"/v1/models/{word()}", [("x-api-key", key)]),
        request("DELETE", "/wp-login.php"),
        request(chance.choice(["PUT", "TRACE", "PROPFIND", "OPTIONS"]), CHAT),
        chat(key, metadata={word(): 1}, priority=1, vllm_xargs={word(): 1}),
        request("GET", "/v1/models", [("x-api-key", word() * 4)]),
    ]


async def send(gateway: Gateway, requests: list[bytes]) -> None:
    """One after the other on one connection."""
    async with Caller(gateway) as caller:
        for data in requests:
            await caller.send(data)
            await caller.answer()


async def test_what_callers_write_makes_no_series(gateway: Gateway, http: httpx.AsyncClient) -> None:
    """A thousand random models and paths, odd methods, fields and keys: all count, under `other`."""
    chance = random.Random(3)  # noqa: S311  for variety, not for secrecy
    await send(gateway, odd_requests(gateway.key, chance))
    before = await gateway.metric("gateway_requests_total")
    series = len((await exposition(gateway, http)).splitlines())
    floods = [[data for _ in range(15) for data in odd_requests(gateway.key, chance)] for _ in range(10)]
    await asyncio.gather(*(send(gateway, flood) for flood in floods))

    async def all_counted() -> bool:
        return await gateway.metric("gateway_requests_total") >= before + 1050

    await wait_for(all_counted)
    text = await exposition(gateway, http)
    assert len(text.splitlines()) == series
    samples = shown(text)["gateway_requests_total"].samples
    assert {s.labels["model"] for s in samples} <= {"fake-model", "other-model", "other"}
    assert {s.labels["route"] for s in samples} <= {*(route.template for route in ROUTES), "other"}
    failed = {"model_not_found", "not_found", "method_not_allowed", "invalid_api_key"}
    assert failed <= {s.labels["reason"] for s in samples if s.labels["status_class"] == "4xx"}


@pytest.mark.parametrize(
    ("phase", "script", "part"),
    [
        ("request", scripts.chat(), 0.8),
        ("waiting", [{"hang": True}], 1.0),
        ("streaming", scripts.stream(2, end="hang"), 1.0),
    ],
)
async def test_a_departure_is_counted_by_how_far_its_call_had_come(
    gateway: Gateway, fake_engine: FakeEngine, phase: str, script: scripts.Steps, part: float
) -> None:
    """As a 499 that nobody reads."""
    await fake_engine.script(script)
    before = await gateway.metric("gateway_client_disconnects_total", phase=phase)
    closed = await gateway.metric("gateway_requests_total", reason="client_closed", status_class="4xx")
    data = chat(gateway.key, stream=True)
    async with Caller(gateway) as caller:
        await caller.send(data[: int(len(data) * part)])
        if part == 1.0:
            await fake_engine.wait(running=1)
        if phase == "streaming":
            await caller.until(b"tok1")
        if phase == "request":
            await ask(gateway, request("GET", "/healthz"))

    async def counted() -> bool:
        return await gateway.metric("gateway_client_disconnects_total", phase=phase) == before + 1

    async def booked() -> bool:
        counters = {"reason": "client_closed", "status_class": "4xx"}
        return await gateway.metric("gateway_requests_total", **counters) == closed + 1

    await wait_for(counted)
    if phase != "streaming":
        await wait_for(booked)
