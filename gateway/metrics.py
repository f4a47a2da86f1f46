"""Everything the gateway counts: one registry, base units, labels only from configured values.

Who counts what is decided in the rooms; names and help texts are here alone. What moves on each request
is held in plain numbers that a collector shows when it is asked: one thread writes them, so a lock for
each would buy nothing, and prometheus-client's own took a tenth of a request's CPU.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

LATENCY_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
OVERHEAD_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0)


def status_class(status: int) -> str:
    """`2xx` and the like."""
    return "2xx" if status == 200 else f"{status // 100}xx"


class Distribution:
    """How often values fell into each bucket, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value, in the unit of the bounds."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def cumulative(self) -> list[tuple[str, float]]:
        """The buckets as Prometheus has them: each with all that is not above its bound."""
        total, buckets = 0, []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        return buckets


@dataclass(slots=True)
class Series:
    """What one route of one model has served."""

    duration: Distribution = field(default_factory=lambda: Distribution(LATENCY_SECONDS))
    time_to_first_token: Distribution = field(default_factory=lambda: Distribution(LATENCY_SECONDS))
    overhead: Distribution = field(default_factory=lambda: Distribution(OVERHEAD_SECONDS))
    outcomes: dict[tuple[str, str], int] = field(default_factory=dict)

    def count(self, status: int, reason: str) -> None:
        """One request more with this outcome."""
        outcome = (status_class(status), reason)
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1


class Traffic(Collector):
    """The numbers of requests and tokens, as they are written and as they are shown."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], Series] = {}
        self._tokens: dict[tuple[str, str, str], int] = {}
        self._key_requests: dict[tuple[str, str], int] = {}
        self.inflight: dict[str, int] = {}

    def series(self, model: str, route: str) -> Series:
        """The series of one route of one model; both come from configuration, so there are few."""
        known = self._series.get((model, route))
        if known is None:
            known = self._series[model, route] = Series()
        return known

    def add_tokens(self, key: str, model: str, kind: str, tokens: int) -> None:
        """Tokens that a key has used on a model: prompt, cached, completion or reasoning."""
        series = (key, model, kind)
        self._tokens[series] = self._tokens.get(series, 0) + tokens

    def count_for_key(self, key: str, status: int) -> None:
        """One request more of a key, whatever it asked for."""
        series = (key, status_class(status))
        self._key_requests[series] = self._key_requests.get(series, 0) + 1

    def collect(self) -> Iterator[Metric]:
        """All of it, for a scrape."""
        yield self._requests()
        keys = CounterMetricFamily(
            "gateway_key_requests", "Requests of each key by outcome.", labels=("key", "status_class")
        )
        for series, requests in self._key_requests.items():
            keys.add_metric(series, requests)
        yield keys
        yield from self._durations()
        tokens = CounterMetricFamily(
            "gateway_tokens", "Tokens as the engine told, or as estimated.", labels=("key", "model", "kind")
        )
        for labels, count in self._tokens.items():
            tokens.add_metric(labels, count)
        yield tokens
        inflight = GaugeMetricFamily(
            "gateway_inflight", "Calls that the engine is working on.", labels=("model",)
        )
        for model, calls in self.inflight.items():
            inflight.add_metric((model,), calls)
        yield inflight

    def _requests(self) -> Metric:
        family = CounterMetricFamily(
            "gateway_requests", "Requests by outcome.", labels=("model", "route", "status_class", "reason")
        )
        for where, series in self._series.items():
            for outcome, count in series.outcomes.items():
                family.add_metric((*where, *outcome), count)
        return family

    def _durations(self) -> Iterator[Metric]:
        texts = {
            "duration": ("request_duration", "From the request's head to the answer's last byte."),
            "time_to_first_token": (
                "time_to_first_token",
                "From the request's head to the first data event of a stream.",
            ),
            "overhead": (
                "overhead",
                "From the body read to the request handed to the engine: the gateway's own share.",
            ),
        }
        for attribute, (name, text) in texts.items():
            family = HistogramMetricFamily(f"gateway_{name}_seconds", text, labels=("model", "route"))
            for where, series in self._series.items():
                distribution: Distribution = getattr(series, attribute)
                family.add_metric(where, distribution.cumulative(), distribution.sum)
            yield family


class Budgets(Collector):
    """How much of each budget is spent: worked out when a scrape asks, so that no request pays for it."""

    def __init__(self) -> None:
        self.used_ratios: Callable[[], Iterable[tuple[str, str, float]]] = lambda: ()

    def collect(self) -> Iterator[Metric]:
        """A series for each budget of a key that has called since the start."""
        family = GaugeMetricFamily(
            "gateway_budget_used_ratio",
            "Tokens spent of a key's budget, 1 when it is used up.",
            labels=("key", "limit"),
        )
        for key, limit, ratio in self.used_ratios():
            family.add_metric((key, limit), ratio)
        yield family


class Metrics:
    """One set of collectors in a registry of its own, so that two gateways in one process stay apart."""

    def __init__(self, version: str = "") -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.traffic = Traffic()
        self.registry.register(self.traffic)
        self.budgets = Budgets()
        self.registry.register(self.budgets)
        self.limited = self._counter("limited", "Calls refused by a limit of their key.", "key", "limit")
        self.client_disconnects = self._counter(
            "client_disconnects", "Callers who left before the answer was complete.", "phase"
        )
        self.fields_dropped = self._counter(
            "fields_dropped", "Request fields that callers may not set.", "field"
        )
        self.engine_up = self._gauge("engine_up", "1 while the engine answers its health probe.", "engine")
        self.engine_reconnects = self._counter(
            "engine_reconnects", "Kept-alive connections that turned out dead and were replaced.", "engine"
        )
        self.gpu_energy_joules = self._counter(
            "gpu_energy_joules", "What a GPU of this box has consumed, idle time included.", "gpu"
        )
        self.key_store_up = self._gauge("key_store_up", "1 while the key database can be read.")
        self.open_slots = self._gauge("open_slots", "Calls that hold a slot of their key; 0 at rest.")
        self.reserved_tokens = self._gauge(
            "reserved_tokens", "Tokens held for calls that are not settled; 0 at rest."
        )
        self.usage_store_up = self._gauge("usage_store_up", "1 while the usage database can be written.")
        self.usage_rows_pending = self._gauge("usage_rows_pending", "Usage rows that are not written yet.")
        self.usage_rows_lost = self._counter("usage_rows_lost", "Usage rows that were never written.")
        self.build_info = self._gauge("build_info", "The running version, always 1.", "version")
        self.build_info.labels(version=version).set(1)

    def render(self) -> bytes:
        """All series in Prometheus' text format 0.0.4."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"gateway_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"gateway_{name}", text, labels, registry=self.registry)
