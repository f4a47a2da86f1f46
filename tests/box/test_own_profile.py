"""Profiles that `make model` writes: for the card that is there, of the folder that was named, and valid."""

import json
from typing import Any

import pytest
import yaml

from deploy.box import own_profile, variables
from deploy.local.problem import Problem
from gateway.doctor.machine import Gpu, Machine
from gateway.planner.units import GIB
from gateway.settings import load
from tests.box.boxes import Box
from tests.box.planned import AWQ, CONFIG, OWN, SHIPPED, calls, changed, profile


def folders(box: Box, *names: str) -> list[str]:
    """Models in folders below WEIGHTS_DIR."""
    variables.change(box.places, {"WEIGHTS_DIR": str(box.cache)})
    for name in names:
        (box.cache / name).mkdir()
        (box.cache / name / "config.json").write_text(json.dumps(CONFIG))
    return [str(box.cache / name) for name in names]


def served(box: Box) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the files that .env names tell the engine, and the gateway of its model."""
    engine, gateway = (box.folder / changed(box)[name] for name in SHIPPED)
    [model] = load(gateway, {}).settings.models
    return yaml.safe_load(engine.read_text()), {"id": model.id, "engine": model.engine_model}


def test_folders_of_nearly_one_name(still: Box) -> None:
    """Each has files of its own, where only characters differ that the name of a file does not hold."""
    names = ("模型", "モデル", "a_b", "a-b", "A-b")
    for name, folder in zip(names, folders(still, *names), strict=True):
        assert still.command("model", MODEL=folder).returncode == 0
        assert served(still)[0]["model"] == f"/weights/{name}"
    again = still.command("model", MODEL=str(still.cache / "モデル"))
    assert "is there already, and is taken as it is" in again.stderr
    assert served(still)[0]["model"] == "/weights/モデル"


def test_gateway_file_of_another(still: Box) -> None:
    """A gateway's file that was left behind by a profile of another model is not taken for this one's."""
    first, second = folders(still, "模型", "モデル")
    still.command("model", MODEL=first)
    (still.folder / changed(still)["PROFILE_FILE"]).unlink()
    assert still.command("model", MODEL=second).returncode == 0
    assert served(still)[1]["id"] == "モデル"


@pytest.mark.parametrize(
    "name", ['na"me', "back\\slash", "it's", "null", "on", "no", "1e5", "0x1f", "\U0001f600"]
)
def test_odd_names(still: Box, name: str) -> None:
    """Both files are valid, and engine and gateway call the model the same."""
    [folder] = folders(still, name)
    done = still.command("model", MODEL=folder)
    assert done.returncode == 0, done.stderr
    engine, gateway = served(still)
    assert (engine["model"], engine["served-model-name"]) == (f"/weights/{name}", name)
    assert gateway["id"] == name


def test_name_with_a_line_break(running: Box) -> None:
    """It is refused before anything is written or stopped."""
    before = running.places.env_file.read_text()
    folder = running.cache / "two\nlines"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    done = running.command("model", MODEL=str(folder))
    assert "its path has a line break, or another character that is not printed" in done.stderr
    assert running.places.env_file.read_text() == before
    assert calls(running, "weights", "up -d") == []


def test_profile_that_cannot_be_written(still: Box) -> None:
    """Half a profile is none: the next time it would be taken as it is."""
    [folder] = folders(still, "mine")
    own = still.folder / OWN
    own.mkdir()
    (own / "gateway").write_text("no folder")
    assert still.command("model", MODEL=folder).returncode != 0
    assert [file.name for file in own.iterdir()] == ["gateway"]


@pytest.mark.parametrize(
    ("name", "mib", "title", "gib"),
    [
        ("NVIDIA GeForce RTX 5090", 32607, "RTX 5090, 32 GB", 31.4),
        ("NVIDIA GB10", None, "DGX Spark (GB10, 128 GB unified)", 121.7),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", 24463, "NVIDIA GeForce RTX 5090 Laptop GPU", 23.9),
        ("NVIDIA GH200 480GB", 97871, "NVIDIA GH200 480GB", 95.6),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9984, "NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9.8),
        ("NVIDIA L40S", 46068, "NVIDIA L40S", 45.0),
    ],
)
def test_cards(box: Box, name: str, mib: int | None, title: str, gib: float) -> None:
    """A known card by its name and memory; what merely is called like one has the memory that it says."""
    seen = Machine("", (27,), (2, 30), None, False, True, "", (Gpu(name, mib, 300, (580,)),), 1, 1)
    found = own_profile.hardware_of(box.places, seen, {"PROFILE": "rtx5090"})
    assert (found.title, round(found.memory_bytes / GIB, 1)) == (title, gib)


def test_card_that_is_not_known(box: Box) -> None:
    """Its driver says which CUDA it has; one of no known name and no memory cannot be planned for."""
    cards = (
        Gpu("NVIDIA L4", 23034, 0, (580,), (8, 9)),
        Gpu("NVIDIA GeForce RTX 5090 Laptop GPU", 24463, 0, (580,), (12, 0)),
    )
    seen = Machine("", (27,), (2, 30), None, False, True, "", cards, 1, 1)
    assert own_profile.hardware_of(box.places, seen, {"PROFILE": "rtx5090"}).capability == (12, 0)
    strange = Machine("", (27,), (2, 30), None, False, True, "", (Gpu("Other", None, 0, (580,)),), 1, 1)
    with pytest.raises(Problem, match=r"^Other is no card that is known.* Nothing was changed\."):
        own_profile.hardware_of(box.places, strange, {"PROFILE": "rtx5090"})


def test_card_that_is_shared(box: Box) -> None:
    """No model takes more of a card than the profile before: what it leaves is somebody else's."""
    box.has_gpus("NVIDIA GeForce RTX 3090, 24576, 500, 580.95.05")
    box.set_up("rtx3090-shared")
    done = box.command("model", MODEL="gpt-oss-20b")
    assert done.returncode == 0, done.stderr
    assert profile(box, "openai-gpt-oss-20b")[0]["gpu-memory-utilization"] == 0.6


def test_settings_of_the_operator(still: Box) -> None:
    """Limits, aliases and other models of a gateway file of one's own go along; a cap too high does not."""
    mine = still.folder / "deploy/profiles/gateway/mine.toml"
    mine.write_text(
        "# mine\n[policy]\ndefault_max_tokens = 900000  # much\n[limits.default]\nrpm = 30\n"
        '[[models]]\nid = "old"\naliases = [\n  "default",\n  "claude-*",\n]\nengines = ["http://vllm:8000"]\n'
        "[models.defaults]\ntop_k = 3\n\n# beside it\n"
        '[[models]]\nid = "other"\nengines = ["http://ollama:11434"]\nkind = "openai"\n'
    )
    variables.change(still.places, {"GATEWAY_CONFIG_FILE": "./deploy/profiles/gateway/mine.toml"})
    done = still.command("model", MODEL="qwen3-8b-awq")
    assert done.returncode == 0, done.stderr
    serve, settings = profile(still)
    assert settings["limits"] == {"default": {"rpm": 30}}
    assert settings["policy"]["default_max_tokens"] == serve["max-model-len"] // 2
    new, other = settings["models"]
    assert (new["id"], new["aliases"]) == ("qwen3-8b-awq", ["default", "claude-*"])
    assert "top_k" not in new.get("defaults", {})
    assert other == {"id": "other", "engines": ["http://ollama:11434"], "kind": "openai"}
    assert "# beside it\n[[models]]" in (still.folder / OWN / "gateway" / f"{AWQ}.toml").read_text()
