"""What is asked over HTTP: counters read twice, Prometheus."""

from dataclasses import replace

from gateway.doctor.evidence import Ready, Scrape, Watched
from gateway.doctor.finding import Unseen
from gateway.doctor.look import counters
from gateway.doctor.look.web import Answer
from tests.doctor.answers import web


def test_counters_of_what_runs() -> None:
    """Read twice; of an engine elsewhere its clock too; what has no counters is waited for by nobody."""
    waited: list[float] = []
    told = {
        "http://ops/metrics": "gateway_key_store_up 1.0\n",
        "http://ops/readyz": {"ready": True, "reasons": []},
        "http://10.0.0.7:8000/metrics": "vllm:num_requests_running 2.0\n",
        "http://10.0.0.7:8000/v1/models": {"data": [{"id": "qwen"}]},
        "http://127.0.0.1:1/metrics": "llamacpp:tokens 2.0\n",
        "http://127.0.0.1:1/v1/models": {"data": []},
    }

    def late(url: str) -> Answer | Unseen:
        answer = web(told)(url)
        return answer if isinstance(answer, Unseen) else replace(answer, ahead_seconds=-40.0)

    read = counters.read(
        "http://ops", ["http://127.0.0.1:1", "http://10.0.0.7:8000"], late, late, 7, waited.append
    )
    assert (waited, read.ahead) == ([7], (-40.0, "http://10.0.0.7:8000"))
    assert read.ready == Ready("http://ops", 200)
    [other, engine] = read.engines
    assert engine.models == ("qwen",)
    assert isinstance(engine.scrape, Scrape)
    assert isinstance(other.models, Unseen)
    assert isinstance(other.scrape, Unseen)
    counters.read("http://no", ["http://no"], late, late, 7, waited.append)
    assert waited == [7]


def test_prometheus() -> None:
    """Alerts that fire, and a day's highest counts; something else is no Prometheus."""
    alerts = [{"labels": {"alertname": "EngineHung"}, "state": state} for state in ("firing", "pending")]
    query = "http://p/api/v1/query?query=max%28max_over_time%28vllm%3Anum_requests_running%5B1d%5D%29%29"
    told = {
        "http://p/api/v1/alerts": {"data": {"alerts": alerts}},
        query: {"data": {"result": [{"value": [0, "17"]}]}},
    }
    assert counters.watched("http://p", web(told)) == Watched("http://p", ("EngineHung",), 17.0, None, None)
    assert isinstance(counters.watched("http://p", web({"http://p/api/v1/alerts": "no"})), Unseen)
    assert isinstance(counters.watched("http://p", web({})), Unseen)
