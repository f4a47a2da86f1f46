"""The engine's flags: against each other, the card, the gateway's settings."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.box.places import Places
from deploy.box.profiles import known
from gateway.doctor.before import profile as judges
from gateway.doctor.before import together
from gateway.doctor.evidence import Compose, Service
from gateway.doctor.finding import NOT_ASKED, NotLookedError, Unseen
from gateway.doctor.look import files
from gateway.doctor.machine import Gpu, Machine
from gateway.doctor.profile import Profile
from gateway.planner.parsers import of_name
from tests.doctor.evidence import (
    RTX_3090,
    RTX_5090,
    SPARK,
    configuration,
    machine,
    only,
    profile,
    scrape,
    severities,
)

QWEN = '[[models]]\nid = "qwen"\nengines = ["http://127.0.0.1:8000"]\n'
CARDS = {"spark": SPARK, "rtx5090": machine(gpus=(RTX_5090,)), "rtx3090": machine(gpus=(RTX_3090,))}
FOR_3090 = machine(gpus=(RTX_3090,))


@pytest.mark.parametrize(
    ("flags", "looked", "severity", "title"),
    [
        ({"swap_space": 4}, machine(), "error", "no flag swap-space any more"),
        ({"disable_log_requests": True}, machine(), "error", "no flag disable-log-requests"),
        ({"model": None}, machine(), "error", "names no model"),
        ({"max_num_batched_tokens": 64, "max_num_seqs": 128}, machine(), "error", "vLLM refuses to start"),
        ({"gpu_memory_utilization": 90}, machine(), "error", "a share between 0 and 1"),
        ({"enable_prefix_caching": False}, machine(), "hint", "Prefix caching is off"),
        ({}, SPARK, "warning", "1,024 requests at once"),
        ({"kv_cache_dtype": "fp8"}, FOR_3090, "warning", "by FlashInfer alone"),
        ({"kv_cache_dtype": "fp8_e5m2"}, FOR_3090, "warning", "by FlashInfer alone"),
        ({"kv_cache_dtype": "fp8_per_token_head"}, FOR_3090, "error", "no fp8e4nv in Triton"),
        ({"kv_cache_memory_bytes": 10**9}, machine(), "hint", "still asks for 0.92"),
    ],
)
def test_flags_that_fail(flags: dict[str, Any], looked: Machine, severity: str, title: str) -> None:
    """Each is named with what to write instead, and where."""
    finding = only(judges.flags(profile(**{"model": "a/b-7B", **flags}), looked))
    assert finding.severity == severity
    assert title in finding.title
    assert "(in /box/mine.yaml)" in finding.mend


def test_flags_that_are_well() -> None:
    """The same card with another cache, the same cache on another card."""
    assert severities(judges.flags(profile(model="a/b", kv_cache_dtype="fp8"), machine())) == ["ok"]
    assert severities(judges.flags(profile(model="a/b", kv_cache_dtype="auto"), FOR_3090)) == ["ok"]
    assert severities(judges.flags(profile(model="a/b", max_num_seqs=64), SPARK)) == ["ok"]


def given(cards: tuple[int, ...] | Unseen) -> Compose:
    """A stack whose engine gets these."""
    return Compose("box", {"vllm": Service("vllm", cards=cards)})


NAMED = Unseen("the engine's cards are named, not counted")
LARGE = Gpu("NVIDIA RTX PRO 6000", 97_887, 300, (580,))


def test_flags_are_judged_by_the_card_that_the_engine_gets() -> None:
    """The first of the machine may be another."""
    two, fp8 = machine(gpus=(RTX_3090, RTX_5090)), profile(model="a/b", kv_cache_dtype="fp8")
    assert severities(judges.flags(fp8, two, given((1,)))) == ["ok"]
    assert severities(judges.flags(fp8, two, given((0,)))) == ["warning"]
    for unknown in (given(NAMED), given((3,))):
        assert severities(judges.flags(fp8, two, unknown)) == ["skipped", "ok"]
        refused = judges.flags(profile(model="a/b", swap_space=4), two, unknown)
        assert severities(refused) == ["error", "skipped"]


def test_in_flight_by_the_card_that_the_engine_gets(tmp_path: Path) -> None:
    """vLLM's own number of requests is four times as large on a large one."""
    two = machine(gpus=(RTX_3090, LARGE))
    settings = configuration(tmp_path, f"{QWEN}max_inflight = 1024\n")
    assert severities(together.in_flight(profile(), settings, two, given((1,)))) == ["ok"]
    assert severities(together.in_flight(profile(), settings, two, given((0,)))) == ["warning"]
    with pytest.raises(NotLookedError, match="not counted"):
        list(together.in_flight(profile(), settings, two, given(NAMED)))


@pytest.mark.parametrize("name", known(Places()))
def test_shipped_profiles_are_well(name: str, tmp_path: Path) -> None:
    """No check has anything to say of what we ship, on the card that it is for."""
    shipped = files.profile(Places().profiles / f"{name}.yaml")
    assert isinstance(shipped, Profile)
    looked = next((card for mark, card in CARDS.items() if name.startswith(mark)), machine(gpus=()))
    settings = (Places().profiles / "gateway" / f"{name}.toml").read_text()
    found = [
        *judges.flags(shipped, looked),
        *judges.parsers(replace(shipped, parsers=of_name(shipped.model))),
        *together.served_names(shipped, configuration(tmp_path, settings)),
        *together.in_flight(shipped, configuration(tmp_path, settings), looked),
    ]
    assert severities(found) == ["ok"] * 4, found


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ({"enable_auto_tool_choice": True}, ["error"]),
        ({}, ["warning"]),
        ({"enable_auto_tool_choice": True, "tool_call_parser": "hermes"}, ["ok"]),
    ],
)
def test_tool_parser(flags: dict[str, Any], found: list[str]) -> None:
    """Without, calls with tools are refused."""
    assert severities(judges.parsers(profile(model="meta/plain-7B", **flags))) == found


@pytest.mark.parametrize(
    ("model", "tools", "reasoning"),
    [
        ("Qwen/Qwen3.5-35B-A3B-FP8", "qwen3_xml", "qwen3"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_coder", None),
        ("openai/gpt-oss-20b", "openai", None),
        ("team/secret-model", "hermes, or the model's own", None),
    ],
)
def test_parsers_fit_the_family(model: str, tools: str, reasoning: str | None) -> None:
    """What is advised is what `gateway plan` writes."""
    asked = replace(profile(model=model), parsers=of_name(model))
    found = {finding.mend for finding in judges.parsers(asked)}
    wanted = {f"enable-auto-tool-choice: true and tool-call-parser: {tools} (in /box/mine.yaml)"}
    assert found == wanted | ({f"reasoning-parser: {reasoning} (in /box/mine.yaml)"} if reasoning else set())


def test_served_model_name(tmp_path: Path) -> None:
    """The engine's name is the id, or engine_model says it."""
    settings = configuration(tmp_path, QWEN)
    finding = only(together.served_names(profile(model="Qwen/Qwen3-8B"), settings))
    assert (finding.severity, finding.mend.split(" (")[0]) == ("error", "served-model-name: qwen")
    assert severities(together.served_names(profile(model="x", served_model_name="qwen"), settings)) == ["ok"]
    named = configuration(tmp_path, QWEN + 'engine_model = "Qwen/Qwen3-8B"\n')
    assert severities(together.served_names(profile(model="Qwen/Qwen3-8B"), named)) == ["ok"]


@pytest.mark.parametrize(
    ("inflight", "seqs", "severity"),
    [(64, 64, "ok"), (65, 64, "warning"), (32, 64, "hint"), (40, 64, "ok"), (257, None, "warning")],
)
def test_in_flight(tmp_path: Path, inflight: int, seqs: int | None, severity: str) -> None:
    """More than the engine runs wait where nobody sorts them; half as many leave it idle."""
    settings = configuration(tmp_path, f"{QWEN}max_inflight = {inflight}\n")
    flags: dict[str, Any] = {} if seqs is None else {"max_num_seqs": seqs}
    assert only(together.in_flight(profile(**flags), settings, machine())).severity == severity


def test_in_flight_over_two_engines(tmp_path: Path) -> None:
    """Each engine runs its own number."""
    two = '[[models]]\nid = "q"\nengines = ["http://a:1", "http://b:1"]\nmax_inflight = 128\n'
    found = together.in_flight(profile(max_num_seqs=64), configuration(tmp_path, two), machine())
    assert severities(found) == ["ok"]
    short = only(together.in_flight(profile(max_num_seqs=16), configuration(tmp_path, two), machine()))
    assert short.mend == "max_inflight = 32 in gateway.toml, or max-num-seqs: 64 in /box/mine.yaml"


@pytest.mark.parametrize(
    ("flags", "severity"),
    [
        ({}, "ok"),
        ({"data_parallel_external_lb": True, "data_parallel_rank": 0}, "warning"),
        ({"data_parallel_size_local": 1, "data_parallel_hybrid_lb": True}, "warning"),
        ({"data_parallel_size_local": 1, "data_parallel_start_rank": 1}, "warning"),
    ],
)
def test_in_flight_over_ranks(tmp_path: Path, flags: dict[str, Any], severity: str) -> None:
    """Each data parallel rank runs max-num-seqs; with a balancer before them, each has its own address."""
    settings = configuration(tmp_path, f"{QWEN}max_inflight = 32\n")
    ranks = profile(max_num_seqs=16, data_parallel_size=2, **flags)
    assert only(together.in_flight(ranks, settings, machine())).severity == severity


def test_nothing_to_compare_without_models(tmp_path: Path) -> None:
    """Models that the engine lists have its own names."""
    discovered = configuration(tmp_path, "", GATEWAY_UPSTREAM_URL="http://127.0.0.1:8000")
    with pytest.raises(NotLookedError):
        list(together.served_names(profile(), discovered))


ASSUMED = Unseen("it cannot be seen")


@pytest.mark.parametrize(
    ("ours", "environment", "severity"),
    [
        (60, {"VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "120"}, "ok"),
        (120, {"VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "120"}, "warning"),
        (60, {"VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "soon"}, "warning"),
        (60, {}, "warning"),
        (4, {}, "ok"),
        (60, ASSUMED, "hint"),
        (4, ASSUMED, "ok"),
    ],
)
def test_keep_alive(tmp_path: Path, ours: int, environment: dict[str, str] | Unseen, severity: str) -> None:
    """The engine's is that of its process, else vLLM's default of 5 s; what is assumed is but a hint."""
    settings = configuration(tmp_path, f"[engine]\nkeep_alive_seconds = {ours}\n{QWEN}")
    finding = only(together.keep_alive(settings, environment, NOT_ASKED))
    assert finding.severity == severity
    assert ("VLLM_HTTP_TIMEOUT_KEEP_ALIVE" in finding.mend) == (severity != "ok")
    assert ("since it cannot be seen" in finding.evidence) == (environment is ASSUMED)


def test_keep_alive_that_the_settings_take(tmp_path: Path) -> None:
    """None of zero: an engine that keeps a second must keep longer."""
    finding = only(
        together.keep_alive(configuration(tmp_path, QWEN), {"VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "1"}, NOT_ASKED)
    )
    assert finding.mend == "VLLM_HTTP_TIMEOUT_KEEP_ALIVE=8 in the engine's environment"


def test_keep_alive_of_another_server(tmp_path: Path) -> None:
    """What vLLM does is nothing to go by."""
    with pytest.raises(NotLookedError, match="not vLLM"):
        list(together.keep_alive(configuration(tmp_path, f'{QWEN}kind = "openai"\n'), {}, NOT_ASKED))


def test_connections_that_turn_out_dead(tmp_path: Path) -> None:
    """Whatever the settings say, a count of replaced ones tells."""
    dead = scrape({'gateway_engine_reconnects_total{engine="http://vllm:8000"}': 50})
    finding = only(together.keep_alive(configuration(tmp_path, QWEN), {}, dead))
    assert (finding.severity, "50 replaced" in finding.evidence) == ("warning", True)


def test_in_flight_that_nobody_chose(tmp_path: Path) -> None:
    """The gateway's own default is no mistake of the operator."""
    found = together.in_flight(profile(max_num_seqs=32), configuration(tmp_path, QWEN), machine())
    assert severities(found) == ["hint"]
