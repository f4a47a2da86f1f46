"""Each profile is three files that agree with each other, with compose.yaml and with the local mode."""

import re

import pytest

from deploy.local import models
from tests.profiles import files

ORIGIN = re.compile(r"\((computed|published by \w|guess)[^)]*\)")
REMOVED = {"swap-space", "disable-log-requests", "log-config-file", "disable-cascade-attn"}
# Code from a model's repository, templates from callers, answers in the log, a secret in a committed file.
UNSAFE = {"trust-remote-code", "trust-request-chat-template", "enable-log-outputs", "api-key"}
# One decision for all boxes: who may differ is a matter of hardware, not of safety.
EVERYWHERE = {
    "host": "0.0.0.0",  # noqa: S104  # of a container on a network without a way out
    "port": 8000,
    "shutdown-timeout": 60,
    "fingerprint-mode": "none",
    "enable-prompt-tokens-details": True,
    "disable-fastapi-docs": True,
    "disable-uvicorn-access-log": True,
    "enable-log-requests": False,
    "sse-keep-alive-interval": 0,
    "allowed-media-domains": ["media.invalid"],
}


def test_a_profile_is_three_files() -> None:
    """Flags, gateway settings and overlay under one name; an operator's own profile is so too."""
    parts = (files.FOLDER, "yaml"), (files.FOLDER / "gateway", "toml"), (files.FOLDER / "compose", "yaml")
    found = [{file.stem for file in folder.glob(f"*.{suffix}")} for folder, suffix in parts]
    assert found[0] == found[1] == found[2] >= set(files.NAMES)


@pytest.mark.parametrize("name", files.NAMES)
def test_every_flag_has_its_reason_and_its_origin(name: str) -> None:
    """A sentence, and whether its value was computed, published or guessed."""
    flags = files.flags(name)
    assert [flag.name for flag in flags] == list(files.serve(name))
    for flag in flags:
        assert ORIGIN.search(flag.comment), f"{flag.name}: {flag.comment!r} says no origin"
        reason = ORIGIN.sub("", flag.comment).strip()
        assert len(reason.split()) >= 2, f"{flag.name} has no reason"


@pytest.mark.parametrize("name", files.NAMES)
def test_what_holds_everywhere(name: str) -> None:
    """Safety, logs and listeners are the same on every box."""
    flags = files.serve(name)
    assert {flag: flags.get(flag) for flag in EVERYWHERE} == EVERYWHERE
    assert not (REMOVED | UNSAFE) & flags.keys()


@pytest.mark.parametrize("name", files.NAMES)
def test_the_model_is_pinned(name: str) -> None:
    """A hub id and a commit: a branch would be another model one day."""
    flags = files.serve(name)
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", flags["model"])
    assert re.fullmatch(r"[0-9a-f]{40}", flags["revision"])


@pytest.mark.parametrize("name", files.NAMES)
def test_engine_and_gateway_say_one_name(name: str) -> None:
    """The served name is the id that callers write, and it is the default."""
    [model] = files.gateway(name)["models"]
    assert model["id"] == files.serve(name)["served-model-name"]
    assert model["aliases"] == ["default"]


@pytest.mark.parametrize("name", files.NAMES)
def test_the_queue_is_the_gateways(name: str) -> None:
    """As many calls in flight as the engine has seats; its own valve is far behind that."""
    [model] = files.gateway(name)["models"]
    flags = files.serve(name)
    assert model["max_inflight"] == flags["max-num-seqs"] <= flags["max-num-batched-tokens"]
    assert flags["max-num-queued-reqs"] >= 4 * model["max_inflight"]
    comment = next(flag.comment for flag in files.flags(name) if flag.name == "max-num-queued-reqs")
    assert f"max_inflight ({model['max_inflight']})" in comment
    [factor] = re.findall(r"computed: (\d+) x max_inflight", comment)
    assert flags["max-num-queued-reqs"] == int(factor) * model["max_inflight"]


@pytest.mark.parametrize("name", files.NAMES)
def test_the_output_cap_leaves_room_for_a_prompt(name: str) -> None:
    """The cap for callers who set none is under half of the context."""
    cap = files.gateway(name)["policy"]["default_max_tokens"]
    assert 0 < cap <= files.serve(name)["max-model-len"] / 2


def test_the_article() -> None:
    """spark-batch is the published setting word for word."""
    flags = files.serve("spark-batch")
    said = {
        "model": "Qwen/Qwen3.5-35B-A3B-FP8",
        "max-model-len": 4096,
        "max-num-seqs": 256,
        "gpu-memory-utilization": 0.50,
        "enable-prefix-caching": True,
        "language-model-only": True,
    }
    assert {flag: flags.get(flag) for flag in said} == said
    [model] = files.gateway("spark-batch")["models"]
    assert model["defaults"]["chat_template_kwargs"] == {"enable_thinking": False}


def test_the_boxes_asked_for() -> None:
    """64 sequences for a team on a Spark; four tenths of a shared 3090 stay free."""
    assert files.serve("spark")["max-num-seqs"] == 64
    assert files.serve("spark")["model"] == files.serve("spark-batch")["model"]
    assert files.serve("rtx3090-shared")["gpu-memory-utilization"] == 0.6


def test_the_cpu_profile_has_the_local_modes_model() -> None:
    """The same weights at the same commit under the same id, so that what is tried here holds there."""
    flags = files.serve("cpu")
    local = (models.HUB_REPOSITORY, models.HUB_REVISION, models.SMOLLM2_ID)
    assert (flags["model"], flags["revision"], flags["served-model-name"]) == local


@pytest.mark.parametrize("name", files.NAMES)
def test_times_fit_compose(name: str) -> None:
    """Idle connections are closed by the gateway first; a stop waits for what the engine finishes."""
    vllm = files.compose()["services"]["vllm"]
    idle = int(vllm["environment"]["VLLM_HTTP_TIMEOUT_KEEP_ALIVE"])
    assert files.gateway(name)["engine"]["keep_alive_seconds"] * 2 <= idle
    grace = int(vllm["stop_grace_period"].removesuffix("s"))
    assert grace == files.serve(name)["shutdown-timeout"] + 15


def test_compose_starts_the_engine_from_a_profile() -> None:
    """What no profile can say is in its environment: offline, no statistics, no redirects of media."""
    vllm = files.compose()["services"]["vllm"]
    assert vllm["entrypoint"][-2:] == ["--config", "/etc/vllm-profile/serve.yaml"]
    wanted = {"HF_HUB_OFFLINE": "1", "HF_HOME": "/weights", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    assert wanted.items() <= vllm["environment"].items()
    assert vllm["environment"]["VLLM_MEDIA_URL_ALLOW_REDIRECTS"] == "0"
