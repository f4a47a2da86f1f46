"""Which files are downloaded, for the forms that models come in and the settings that profiles have."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.images.downloading import SCRIPT, Download
from tests.images.hub import Hub, Model

PROFILES = SCRIPT.parent.parent / "profiles"
BESIDE = {"config.json", "tokenizer.json"}


@pytest.mark.parametrize(
    ("holds", "load_format", "weights"),
    [
        ({"model.safetensors", "pytorch_model.bin"}, "auto", {"model.safetensors"}),
        ({"pytorch_model.bin", "optimizer.bin", "training_args.bin"}, "auto", {"pytorch_model.bin"}),
        ({"consolidated.safetensors", "model.safetensors"}, "auto", {"consolidated.safetensors"}),
        ({"consolidated.safetensors", "model.safetensors"}, "mistral", {"consolidated.safetensors"}),
        ({"model.safetensors", "pytorch_model.bin"}, "fastsafetensors", {"model.safetensors"}),
        ({"model.safetensors", "pytorch_model.bin"}, "npcache", {"pytorch_model.bin"}),
        ({"model.safetensors"}, "dummy", set()),
    ],
)
def test_weights_come_once_and_as_vllm_reads_them(
    download: Download, hub: Hub, holds: set[str], load_format: str, weights: set[str]
) -> None:
    """A second form of the same weights would be as many gigabytes again."""
    hub.models["acme/forms"] = Model({path: path.encode() for path in holds | BESIDE})
    download.name("acme/forms", more=f"load-format: {load_format}\n")
    done = download.run()
    assert done.code == 0, done.said
    assert set(download.files("acme/forms")) == BESIDE | weights


def test_files_that_a_start_needs_come_with_the_weights(download: Download, hub: Hub) -> None:
    """Tokenizers of all kinds, templates in folders, code: offline, nothing can be had later."""
    needed = {
        "params.json",
        "tekken.json",
        "tokenizer.model.v3",
        "qwen.tiktoken",
        "merges.txt",
        "modeling_tiny.py",
        "additional_chat_templates/tools.jinja",
        "1_Pooling/config.json",
        "model.safetensors",
    }
    hub.models["acme/all"] = Model(dict.fromkeys([*needed, "paper.pdf", "onnx/model.onnx"], b"{}"))
    download.name("acme/all")
    assert download.run().code == 0
    assert set(download.files("acme/all")) == needed


def test_a_tokenizer_and_a_draft_model_of_their_own_come_too(download: Download, hub: Hub) -> None:
    """The tokenizer without the weights beside it."""
    one = {"config.json": b"{}", "tokenizer.json": b"{}", "model.safetensors": b"weights"}
    hub.models |= {"acme/tokens": Model(one), "acme/draft": Model(one)}
    commit = hub.models["acme/tiny"].commit
    more = f"""
tokenizer: acme/tokens
tokenizer_revision: {commit}
speculative-config: {{"method": "eagle3", "model": "acme/draft", "revision": "{commit}"}}
"""
    download.name("acme/tiny", more=more)
    assert download.run().code == 0
    assert set(download.files("acme/tokens")) == {"config.json", "tokenizer.json"}
    assert set(download.files("acme/draft")) == set(one)
    hub.asked.clear()
    assert download.run().code == 0
    assert hub.asked == []


@pytest.mark.parametrize("profile", sorted(PROFILES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_profile_pins_a_commit(python: Path, profile: Path) -> None:
    """What is downloaded today and in a year is the same, and a box without a network starts."""
    call = (
        "import json, pathlib, sys, serve_profile as p; "
        "print(json.dumps([[w.name, w.revision] for w in p.wanted(pathlib.Path(sys.argv[1]))]))"
    )
    argv = [str(python), "-c", call, str(profile)]
    done = subprocess.run(argv, cwd=SCRIPT.parent, capture_output=True, text=True, check=True)
    for name, revision in json.loads(done.stdout):
        assert name.count("/") == 1
        assert len(revision) == 40
