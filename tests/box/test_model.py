"""`make model` on a box: planned, downloaded while the old model serves, and taken back if it fails."""

import json
import tarfile

import pytest

from deploy.box import contents, variables
from gateway.planner import config
from gateway.store import Store
from tests.box.boxes import Box, clean
from tests.box.planned import AWQ, CONFIG, OWN, SHIPPED, calls, changed, profile

START = "up -d --no-build --remove-orphans"
DOWNLOAD = "run --rm -T weights"


def test_another_model(running: Box) -> None:
    """It is written beside the shipped files, downloaded before .env names it, started, and asked."""
    done = running.command("model", MODEL="qwen3-8b-awq")
    assert done.returncode == 0, done.stderr
    serve, settings = profile(running)
    assert serve["model"] == "Qwen/Qwen3-8B-AWQ"
    [model] = settings["models"]
    assert (model["id"], model["aliases"]) == (serve["served-model-name"], ["default"])
    own = {
        "PROFILE_FILE": f"./{OWN}/{AWQ}.yaml",
        "GATEWAY_CONFIG_FILE": f"./{OWN}/gateway/{AWQ}.toml",
    }
    assert changed(running) == {**own, **{f"BACK_{name}": value for name, value in SHIPPED.items()}}
    found = calls(running, DOWNLOAD, START)
    assert found[0].startswith(f"PROFILE_FILE=./{OWN}/{AWQ}.yaml compose")
    assert START in found[-1]
    assert "serves now, to callers of `default` too. Asked for the capital of France it says: " in done.stdout
    assert "make model BACK=1 returns to deploy/profiles/rtx5090.yaml." in done.stdout
    assert f"rtx5090 ({OWN}/{AWQ}.yaml)" in running.command("status").stdout


def test_back(running: Box) -> None:
    """BACK=1 returns, and once more would go forward; all else in .env stays as it was.

    The profile before is an operator's own file, which a backup holds; one that has gone is named before
    anything is stopped.
    """
    text = running.places.env_file.read_text()
    running.command("model", MODEL="qwen3-8b-awq")
    own = changed(running)
    done = running.command("model", BACK="1")
    assert done.returncode == 0, done.stderr
    found = changed(running)
    assert {name: found[name] for name in SHIPPED} == SHIPPED
    assert running.places.env_file.read_text().startswith(text)
    assert running.places.env_file.stat().st_mode & 0o777 == 0o600
    assert {name: found[f"BACK_{name}"] for name in SHIPPED} == {name: own[name] for name in SHIPPED}
    assert f"{OWN}/{AWQ}.yaml" in map(str, contents.own_files(variables.load(running.places)))
    (running.folder / OWN / f"{AWQ}.yaml").unlink()
    done = running.command("model", BACK="1")
    assert f"make model: ./{OWN}/{AWQ}.yaml, the profile before, is gone" in done.stderr


async def test_backup(running: Box) -> None:
    """A backup holds the profiles in use and before, as far as they are there; `make clean` names them."""
    running.command("model", MODEL="qwen3-8b-awq")
    own = variables.load(running.places)
    variables.change(running.places, {**SHIPPED, **{f"BACK_{name}": own[name] for name in SHIPPED}})
    (running.folder / OWN / "gateway" / f"{AWQ}.toml").unlink()
    async with Store(running.volume("gateway-data")) as store:
        await store.secret()
    done = running.command("backup", FILE=str(running.cache / "saved.tar.gz"))
    assert done.returncode == 0, done.stderr
    with tarfile.open(running.cache / "saved.tar.gz") as tar:
        names = tar.getnames()
    assert f"checkout/{OWN}/{AWQ}.yaml" in names
    assert f"checkout/{OWN}/gateway/{AWQ}.toml" not in names
    running.runs()
    assert f"{running.folder / OWN}  (profiles that make model has planned)" in clean(running).stdout


def test_no_way_back(running: Box) -> None:
    """Before any other model there is nothing to return to, and nothing happens."""
    done = running.command("model", BACK="1")
    assert done.returncode == 1
    assert "there is no model before this one" in done.stderr
    assert calls(running, "weights", "up -d") == []


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("", ["name the model, as in MODEL=qwen3-8b-awq", "BACK=1 returns", "Known by name are "]),
        ("qwen3-8b", ["qwen3-8b is no folder, no hub id", "Did you mean qwen3-8b-awq"]),
        ("gpt-oss-120b", ["does not fit on RTX 5090", "its weights take 60.5 GiB", "These would, the larg"]),
        ("deploy", ["deploy/config.json is missing"]),
        ("{folder}", ["the engine's container sees no folder but WEIGHTS_DIR (not set)"]),
    ],
)
def test_what_cannot_be(running: Box, wanted: str, said: list[str]) -> None:
    """Each says what would do, and that it changed nothing: no file, no download, no restart."""
    folder = running.cache / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    before = running.places.env_file.read_text()
    done = running.command("model", MODEL=wanted.format(folder=folder))
    assert done.returncode == 1
    assert all(words in done.stderr for words in said), done.stderr
    assert running.places.env_file.read_text() == before
    assert not (running.folder / OWN).exists()
    assert calls(running, "weights", "up -d") == []


def test_folder(still: Box) -> None:
    """A folder below WEIGHTS_DIR is planned where it is, and named as the container sees it."""
    folder = still.cache / "kept" / "mine"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    variables.change(still.places, {"WEIGHTS_DIR": str(still.cache)})
    done = still.command("model", MODEL=str(folder))
    assert done.returncode == 0, done.stderr
    serve, _ = profile(still, "weights-kept-mine")
    assert serve["model"] == "/weights/kept/mine"
    assert serve["max-model-len"] == config.read(CONFIG, "here").max_model_len


def test_download_that_fails(running: Box) -> None:
    """A model that cannot be had leaves no file, and the one before is not touched."""
    before = running.places.env_file.read_text()
    running.has(fails={DOWNLOAD: "weights: acme/x is gated: accept its terms"})
    done = running.command("model", MODEL="qwen3-8b-awq")
    assert done.returncode == 1
    assert "weights: acme/x is gated" in done.stderr
    assert "Nothing was changed, the model before goes on serving" in done.stderr
    assert running.places.env_file.read_text() == before
    assert not list((running.folder / OWN).rglob("*.*"))
    assert calls(running, "up -d") == []


def test_engine_that_does_not_come_up(running: Box) -> None:
    """The old model is back by itself, and it is said why, in the engine's words and with the mend."""
    log = "INFO non-default args: {}\nERROR CUDA out of memory. Tried to allocate 2.00 GiB"
    running.has(fails_while={f"\nPROFILE_FILE=./{OWN}": {START: "vllm is unhealthy"}}, log=log)
    done = running.command("model", MODEL="qwen3-8b-awq")
    assert done.returncode == 1
    name = f"{OWN}/{AWQ}.yaml"
    assert (
        f"make model: {name} did not come up, and deploy/profiles/rtx5090.yaml serves again." in done.stderr
    )
    assert "docker compose up failed" in done.stderr
    assert "  - Out of memory at start" in done.stderr
    assert f"gateway doctor --before --profile {name}" in done.stderr
    assert changed(running) == SHIPPED
    assert len(calls(running, START)) == 2
    assert (running.folder / name).is_file()


def test_interrupted(running: Box) -> None:
    """Ctrl-C while the new model starts: the old one is started again, and that is said."""
    running.has(fails_while={f"\nPROFILE_FILE=./{OWN}": {START: "SIGINT"}})
    done = running.command("model", MODEL="qwen3-8b-awq")
    assert done.returncode == 130
    assert f"{OWN}/{AWQ}.yaml was not waited for (interrupted). Going back to deploy/profiles" in done.stderr
    assert "deploy/profiles/rtx5090.yaml serves again." in done.stderr
    assert changed(running) == SHIPPED
    assert len(calls(running, START)) == 2


def test_file_that_cannot_be_written_at_the_start(running: Box) -> None:
    """What the system refuses on the way is a failure like any other: the old model is back."""
    running.places.first_key.unlink()
    running.places.first_key.mkdir()
    done = running.command("model", MODEL="qwen3-8b-awq")
    assert done.returncode == 1
    assert "neither deploy/profiles/own/" in done.stderr
    assert "The new one: IsADirectoryError: " in done.stderr
    assert changed(running) == SHIPPED


def test_neither_comes_up(running: Box) -> None:
    """Both are told, the new one's trouble first, and .env names the old one."""
    running.has(fails={START: "no GPU"})
    done = running.command("model", MODEL="qwen3-8b-awq")
    assert "neither deploy/profiles/own/" in done.stderr
    assert "The old one: docker compose up failed" in done.stderr
    assert changed(running) == SHIPPED


def test_nothing_runs(still: Box) -> None:
    """It is written, not downloaded, and `make up` will start it."""
    done = still.command("model", MODEL="qwen3-8b-awq")
    assert done.returncode == 0, done.stderr
    assert f"Nothing runs here: ./{OWN}/{AWQ}.yaml is what make up starts from now on." in done.stdout
    assert changed(still)["PROFILE_FILE"] == f"./{OWN}/{AWQ}.yaml"
    assert calls(still, "weights", "up -d") == []


def test_not_set_up(box: Box) -> None:
    """A box that `make up` has never seen says so."""
    assert "make up does that" in box.command("model", MODEL="qwen3-8b-awq", MODE="box").stderr


def test_same_again(running: Box) -> None:
    """The same model once more keeps what an operator has edited, and what BACK=1 returns to."""
    running.command("model", MODEL="qwen3-8b-awq")
    before = changed(running)
    file = running.folder / OWN / f"{AWQ}.yaml"
    file.write_text(file.read_text() + "# mine\n")
    done = running.command("model", MODEL="qwen3-8b-awq")
    assert done.returncode == 0, done.stderr
    assert "is there already, and is taken as it is" in done.stderr
    assert file.read_text().endswith("# mine\n")
    assert changed(running) == before


def test_shipped_model(still: Box) -> None:
    """The model of the card's own profile is served by that profile, whose values were thought over."""
    variables.change(still.places, dict.fromkeys(SHIPPED, "./deploy/profiles/rtx3090.yaml"))
    done = still.command("model", MODEL="nvidia/Qwen3.6-35B-A3B-NVFP4")
    assert done.returncode == 0, done.stderr
    found = changed(still)
    assert {name: found[name] for name in SHIPPED} == SHIPPED


def test_without_a_gpu(box: Box) -> None:
    """The profile cpu has as much memory as its container may take, and a cache of 1 GiB."""
    box.set_up("cpu")
    done = box.command("model", MODEL="qwen3-8b-awq")
    assert "does not fit on this machine's CPU" in done.stderr
    assert "These would, the largest first: smollm2-135m." in done.stderr
    folder = box.cache / "mine"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    variables.change(box.places, {"WEIGHTS_DIR": str(box.cache)})
    done = box.command("model", MODEL=str(folder))
    assert done.returncode == 0, done.stderr
    serve, _ = profile(box, "weights-mine")
    assert serve["kv-cache-memory-bytes"] == 2**30
    assert serve["enforce-eager"] is True


def test_engine_alone(running: Box) -> None:
    """A service that .env describes anew is made anew, not restarted with its old files first."""
    file = running.folder / "deploy/profiles/rtx5090.yaml"
    stack = json.loads((running.docker / "stack.json").read_text())
    stack["services"]["vllm"]["volumes"] = [{"type": "bind", "source": str(file), "target": "/serve.yaml"}]
    running.say("stack.json", stack)
    found = json.loads((running.docker / "containers.json").read_text())
    for container in found:
        container["State"]["StartedAt"] = "2020-01-01T00:00:00.123456789Z"
        container["Config"]["Labels"]["com.docker.compose.config-hash"] = "another"
    running.say("containers.json", found)
    assert running.command("model", MODEL="qwen3-8b-awq").returncode == 0
    assert calls(running, "compose restart") == []
