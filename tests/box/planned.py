"""What `make model` writes on a box, and what it asks of docker, as the tests look at it."""

import tomllib
from typing import Any

import yaml

from deploy.box import contents, variables
from tests.box.boxes import Box

OWN = "deploy/profiles/own"
AWQ = "qwen-qwen3-8b-awq"
SHIPPED = {
    "PROFILE_FILE": "./deploy/profiles/rtx5090.yaml",
    "GATEWAY_CONFIG_FILE": "./deploy/profiles/gateway/rtx5090.toml",
}
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64, "head_dim": 32,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "vocab_size": 1000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip


def changed(box: Box) -> dict[str, str]:
    """What .env says of the files."""
    found = variables.load(box.places)
    return {name: found[name] for name in contents.OWN_FILES if found.get(name)}


def calls(box: Box, *words: str) -> list[str]:
    """The calls of docker that hold one of some commands, in their order."""
    lines = [" ".join(call) for call in box.calls()]
    return [line for line in lines if any(word in line for word in words)]


def profile(box: Box, name: str = AWQ) -> tuple[dict[str, Any], dict[str, Any]]:
    """Flags of the engine and settings of the gateway, of a profile that was written."""
    serve = yaml.safe_load((box.folder / OWN / f"{name}.yaml").read_text())
    return serve, tomllib.loads((box.folder / OWN / "gateway" / f"{name}.toml").read_text())
