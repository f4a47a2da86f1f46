"""`make model` in the local mode: what is written, what is refused, and a real engine that changes models."""

import json
import shutil
from pathlib import Path

import pytest

from deploy.local import chosen_model, configuration, engines, models, planned
from deploy.local.chosen_model import BUILT_IN, Chosen
from deploy.local.engine import ServedModel
from deploy.local.engines import Engine
from deploy.local.places import Places
from deploy.local.problem import Problem
from gateway.planner import hardware
from gateway.planner.plan import Options
from gateway.settings import load
from tests.box.boxes import Box
from tests.box.planned import CONFIG
from tests.local.checkouts import Checkout

SETTINGS = (
    '[[models]]\nid = "smollm2-135m"\naliases = ["default", "mine"]\nengines = ["http://127.0.0.1:8123"]\n'
)


def places(box: Box) -> Places:
    """The local mode's places in a box's checkout."""
    return Places(box.folder)


def test_nothing_runs(box: Box, folder: Path) -> None:
    """The choice is written down for `make up`, with what was said of the one before; BACK=1 returns."""
    at = places(box)
    at.data.mkdir(mode=0o700)
    at.config.write_text(SETTINGS)
    done = box.command("model", MODEL=str(folder), MODE="local")
    assert done.returncode == 0, done.stderr
    assert "Nothing runs here: tiny-model is what make up starts from now on." in done.stdout
    now = chosen_model.now(at.model)
    assert (now.id, now.folder) == ("tiny-model", str(folder))
    assert "--max-model-len" in now.flags
    before = chosen_model.before(at.model)
    assert before is not None
    assert before.block == SETTINGS
    assert at.config.read_text() == SETTINGS
    done = box.command("model", BACK="1", MODE="local")
    assert "Nothing runs here: smollm2-135m is what" in done.stdout
    assert chosen_model.now(at.model).block == SETTINGS


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({}, "name the model, as in MODEL=qwen3-8b-awq"),
        ({"BACK": "1"}, "there is no model before this one"),
        ({"MODEL": "qwen3-8b"}, "Did you mean qwen3-8b-awq"),
        ({"MODEL": "gpt-oss-120b", "ENGINE": "llamacpp"}, "this machine's CPU: its weights take 60.5 GiB of"),
        (
            {"MODEL": "{folder}", "ENGINE": "llamacpp"},
            "llama.cpp runs here, and it serves its own model alone",
        ),
    ],
)
def test_what_cannot_be(box: Box, folder: Path, wanted: dict[str, str], said: str) -> None:
    """It says what would do, and nothing is written."""
    given = {name: value.format(folder=folder) for name, value in wanted.items()}
    done = box.command("model", MODE="local", **given)
    assert done.returncode == 1
    assert said in done.stderr
    assert not places(box).model.exists()


def test_no_network(box: Box) -> None:
    """Where the hub is out of reach, that is said, and nothing has changed."""
    done = box.command("model", MODEL="acme/x", MODE="local", HF_ENDPOINT="http://127.0.0.1:9")
    assert "does not answer (ConnectError)" in done.stderr
    assert not places(box).model.exists()


@pytest.mark.parametrize("size", ["abc", "0", "4.5", "-1", " ", "²", "9" * 5000])
def test_size_of_the_cache(box: Box, folder: Path, size: str) -> None:
    """What vLLM does not read as a size is said with the variable's name; an empty one is the usual size."""
    done = box.command("model", MODEL=str(folder), MODE="local", VLLM_CPU_KVCACHE_SPACE=size)
    assert done.returncode == 1
    assert f"make model: VLLM_CPU_KVCACHE_SPACE={size} is no size of a KV cache" in done.stderr
    assert not places(box).model.exists()


def test_usual_size_of_the_cache(box: Box, folder: Path) -> None:
    """A variable that is empty is as good as none."""
    done = box.command("model", MODEL=str(folder), MODE="local", VLLM_CPU_KVCACHE_SPACE="")
    assert done.returncode == 0, done.stderr
    assert chosen_model.now(places(box).model).folder == str(folder)


@pytest.mark.parametrize(
    "name", ['na"me', "back\\slash", "it's", "sp ace", "null", "on", "1e5", "模型", "\U0001f600"]
)
def test_odd_names(box: Box, name: str) -> None:
    """The gateway's settings are valid, and name what the engine is told."""
    made = box.cache / name
    made.mkdir()
    (made / "config.json").write_text(json.dumps(CONFIG))
    at = places(box)
    at.data.mkdir(mode=0o700)
    at.config.write_text(SETTINGS)
    done = box.command("model", MODEL=str(made), MODE="local")
    assert done.returncode == 0, done.stderr
    now = chosen_model.now(at.model)
    assert (now.id, now.folder) == (name, str(made))
    chosen_model.name_in(at.config, now, 8123)
    [model] = load(at.config, {}).settings.models
    assert (model.id, model.aliases) == (name, ("default", "mine"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("two\nlines", "its path has a line break"),
        ("two\u2028lines", "its path has a line break"),
        ("-x", "what begins with a dash is a flag to an engine"),
        ("Default", "default is what callers write for whichever model is served"),
    ],
)
def test_names_that_cannot_be(tmp_path: Path, name: str, said: str) -> None:
    """What no settings file holds, or no engine takes, is refused before anything else."""
    made = tmp_path / name
    made.mkdir()
    (made / "config.json").write_text(json.dumps(CONFIG))
    with pytest.raises(
        Problem, match=r"cannot be served under that name: .* Nothing was changed\."
    ) as raised:
        planned.find(str(made), "", "HF_TOKEN")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["~nobody-has-this-name/x", "x" * 5000 + "/y"])
def test_path_that_cannot_be_looked_at(name: str) -> None:
    """One line says so."""
    with pytest.raises(Problem, match="cannot be looked at"):
        planned.find(name, "", "HF_TOKEN")


def test_alias_of_that_name(tmp_path: Path) -> None:
    """Where callers wrote the new model's own id as an alias, it is one no longer: both would clash."""
    file = tmp_path / "gateway.toml"
    file.write_text(SETTINGS)
    block = SETTINGS.replace("smollm2-135m", "mine").replace('["default", "mine"]', '["default"]')
    chosen_model.name_in(file, Chosen("mine", "/weights", (), block, 0), 8123)
    [model] = load(file, {}).settings.models
    assert (model.id, model.aliases) == ("mine", ("default",))


def test_aliases_stay(tmp_path: Path) -> None:
    """The gateway's settings name the model that is served, with the aliases of the one before."""
    file = tmp_path / "gateway.toml"
    file.write_text(SETTINGS)
    block = SETTINGS.replace("smollm2-135m", "new").replace('["default", "mine"]', '["default"]')
    chosen = Chosen("new", "/weights", (), block, 100)
    chosen_model.name_in(file, chosen, 8123)
    [model] = load(file, {}).settings.models
    assert (model.id, model.aliases, model.engines) == (
        "new",
        ("default", "mine"),
        ("http://127.0.0.1:8123",),
    )
    chosen_model.name_in(file, BUILT_IN, 8123)
    [model] = load(file, {}).settings.models
    assert (model.id, model.aliases) == ("smollm2-135m", ("default", "mine"))


def test_first_start_with_a_chosen_model(tmp_path: Path) -> None:
    """What is written into a new file for the engine's own model is not said of another."""
    file = tmp_path / "gateway.toml"
    served = ServedModel("new", Path("/weights"))
    engine = Engine("vllm", "vllm", served, lambda _: [], {}, idle_seconds=120, stop_seconds=10)
    configuration.write_if_absent(file, engine, 8123)
    block = SETTINGS.replace("smollm2-135m", "new")
    chosen_model.name_in(file, Chosen("new", "/weights", (), block, 100), 8123)
    found = load(file, {}).settings
    assert [model.id for model in found.models] == ["new"]
    assert "temperature" not in file.read_text()
    assert found.policy.default_max_tokens == 100


def test_name_of_the_operator(tmp_path: Path) -> None:
    """Where callers write another name for the same model, the settings stay as they are."""
    file = tmp_path / "gateway.toml"
    text = SETTINGS.replace('id = "smollm2-135m"', 'id = "house"\nengine_model = "smollm2-135m"')
    file.write_text(text)
    chosen_model.name_in(file, BUILT_IN, 8123)
    assert file.read_text() == text


def test_folder_that_has_gone(tmp_path: Path) -> None:
    """A chosen model whose folder was removed is named, with the way back."""
    with pytest.raises(
        Problem, match="/gone, the model that was chosen, is gone: put it back, or make model BACK=1"
    ):
        chosen_model.served(Chosen("gone", "/gone", (), "", 0))
    with pytest.raises(Problem, match=r"llama.cpp does not serve /gone: ENGINE=vllm, or make model BACK=1"):
        engines.prepare("llamacpp", Chosen("gone", "/gone", (), "", 0))
    (tmp_path / "model.json").write_text("{")
    with pytest.raises(Problem, match="remove it, then make up serves its own model"):
        chosen_model.now(tmp_path / "model.json")


def test_what_would_fit_does() -> None:
    """What is named in the place of a model that does not fit is planned without a complaint."""
    card, options = hardware.find("rtx3090"), Options(gpu_memory_utilization=0.6)
    with pytest.raises(Problem, match="These would, the largest first: ") as raised:
        planned.fitting(planned.find("gpt-oss-120b", "", "HF_TOKEN"), card, options)
    named = str(raised.value).partition("the largest first: ")[2].partition(". ")[0].split(", ")
    assert len(named) > 1
    for name in named:
        assert planned.fitting(planned.find(name, "", "HF_TOKEN"), card, options).fits


def test_context_that_the_cache_holds(folder: Path) -> None:
    """With a small cache of a given size, the context is shortened to what that holds."""
    (folder / "config.json").write_text(json.dumps({**CONFIG, "max_position_embeddings": 1_000_000}))
    options = Options(kv_cache_bytes=16 * 2**20, max_num_seqs=32)
    made = planned.fitting(planned.find(str(folder), "", "HF_TOKEN"), hardware.find("cpu"), options)
    assert made.cache.engine.max_model_len == 16_384


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that the planner takes and vLLM does not: its tokenizer is missing."""
    target = tmp_path_factory.mktemp("models") / "broken"
    shutil.copytree(models.tiny_qwen3().folder, target)
    for file in target.glob("tokenizer*"):
        file.unlink()
    return target


@pytest.mark.long
def test_real_engine(checkout: Checkout, broken: Path) -> None:
    """Up, another model, one that does not start, back: callers of `default` get an answer each time."""
    printed = checkout.make("up", MODE="local")
    tiny = models.tiny_qwen3().folder
    said = checkout.make("model", MODEL=str(tiny))
    assert f"{tiny.name} serves now, to callers of `default` too." in said
    assert tiny.name in json.loads(checkout.paste(printed))["model"]
    failed = checkout.tried("model", MODEL=str(broken))
    assert failed.returncode != 0
    assert f"make model: broken did not come up, and {tiny.name} serves again." in failed.stderr
    assert "ReasoningConfig" in failed.stderr
    assert tiny.name in json.loads(checkout.paste(printed))["model"]
    assert "Paris" in checkout.make("model", BACK="1")
    assert "The capital of France is Paris" in checkout.paste(printed)
