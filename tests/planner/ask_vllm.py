# mypy: disable-error-code="import-not-found"
# vLLM is installed beside the engine alone.
"""What vLLM's own functions make of configs, without weights: ask_vllm.py QUESTIONS-FILE ANSWERS-FILE.

Run by the engine's Python, one process for all: importing vLLM takes most of the time. The engine that is
installed is the one for CPUs; where a question says CUDA, the three things that differ there are set as on an
NVIDIA card: the platform changes nothing of the configuration, the block is found as on other platforms, and
the attention backend takes multiples of 16.
"""

import contextlib
import importlib.abc
import importlib.machinery
import json
import os
import socket
import sys
import tempfile
import types
from collections.abc import Iterator, MutableSequence
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", VLLM_LOGGING_LEVEL="ERROR", VLLM_NO_USAGE_STATS="1")

os.environ.pop("VLLM_CPU_KVCACHE_SPACE", None)

import torch
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment, parallel_state
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase
from vllm.model_executor.model_loader.utils import initialize_model
from vllm.model_executor.models import registry
from vllm.platforms.cpu import CpuPlatform
from vllm.platforms.interface import Platform
from vllm.v1.attention.backend import MultipleOf
from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend
from vllm.v1.attention.backends.mla.cpu_mla import CPUMLABackend
from vllm.v1.attention.backends.triton_attn import TritonAttentionBackend
from vllm.v1.core.kv_cache_utils import get_kv_cache_capacity, get_kv_cache_configs
from vllm.v1.kv_cache_interface import AttentionSpec, KVCacheSpec
from vllm.v1.worker.utils import customize_attention_spec

LAYOUT = "LBNHC"  # vLLM's default; the engine core resolves it, which does not run here


class _Anything(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _Empty(types.ModuleType):
    __path__: MutableSequence[str] = []  # noqa: RUF012  # as types.ModuleType says it

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _WithoutVision(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands for torchvision, which the modules of multimodal models import and no text layer uses."""

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if fullname.split(".")[0] != "torchvision":
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        del module


@contextlib.contextmanager
def on_cuda(wanted: bool) -> Iterator[None]:
    """vLLM's decisions as on an NVIDIA card of any generation but SM100, while inside."""
    if not wanted:
        yield
        return
    changes = [
        (CpuPlatform, "check_and_update_config", classmethod(lambda _cls, _config: None)),
        (CpuPlatform, "update_block_size_for_backend", Platform.__dict__["update_block_size_for_backend"]),
        (
            CPUAttentionBackend,
            "get_supported_kernel_block_sizes",
            staticmethod(lambda _=None: [MultipleOf(16)]),
        ),
        (CPUAttentionBackend, "customize_spec", TritonAttentionBackend.__dict__["customize_spec"]),
        (CPUMLABackend, "get_supported_kernel_block_sizes", staticmethod(lambda _=None: [MultipleOf(16)])),
        (
            CPUMLABackend,
            "supports_block_size",
            classmethod(lambda _cls, size: size is None or size % 16 == 0),
        ),
    ]
    before = [(owner, name, owner.__dict__.get(name)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The figures of one question, or vLLM's `refusal` with the length that it names."""
    with tempfile.TemporaryDirectory() as folder, on_cuda(question["cuda"]):
        Path(folder, "config.json").write_text(json.dumps(question["config"]))
        config = _engine_config(folder, question)
        specs = _specs(config, question["tensor_parallel_size"])
    config.cache_config.kv_cache_layout = LAYOUT
    try:
        [cache] = get_kv_cache_configs(config, [specs], [question["kv_cache_bytes"]])
    except ValueError as error:
        return {"refusal": str(error)}
    tokens, concurrency = get_kv_cache_capacity(config, cache)
    return {
        "num_blocks": cache.num_blocks,
        "block_size": min(group.kv_cache_spec.block_size for group in cache.kv_cache_groups),
        "groups": len(cache.kv_cache_groups),
        "tokens": tokens,
        "max_concurrency": concurrency,
    }


def _engine_config(folder: str, question: dict[str, Any]) -> VllmConfig:
    drafts = question["speculative_tokens"]
    return EngineArgs(
        model=folder,
        tokenizer=folder,
        skip_tokenizer_init=True,
        max_model_len=question["max_model_len"] or None,
        max_num_seqs=64,
        max_num_batched_tokens=question["max_num_batched_tokens"],
        kv_cache_dtype=question["kv_cache_dtype"],
        enable_prefix_caching=None if question["prefix_caching"] else False,  # its default, or off
        block_size=question["block_size"],
        speculative_config={"method": "mtp", "num_speculative_tokens": drafts} if drafts else None,
        load_format="dummy",
        enforce_eager=True,
        language_model_only=True,
    ).create_engine_config()


def _specs(config: VllmConfig, ranks: int) -> dict[str, KVCacheSpec]:
    """The cache of each layer of the model, and of its draft head."""
    _one_process(config)
    config.parallel_config.tensor_parallel_size = ranks
    parallel_state.get_tp_group().world_size = ranks
    with set_current_vllm_config(config), torch.device("meta"):
        initialize_model(config)
        if config.speculative_config:
            initialize_model(
                config, model_config=config.speculative_config.draft_model_config, prefix="draft"
            )
    CpuPlatform.update_block_size_for_backend(config)
    found = {}
    for name, layer in config.compilation_config.static_forward_context.items():
        # As the model runner's `get_kv_cache_spec`.
        if not isinstance(layer, AttentionLayerBase) or getattr(layer, "kv_sharing_target_layer_name", None):
            continue
        if spec := layer.get_kv_cache_spec(config):
            attention = isinstance(spec, AttentionSpec)
            found[name] = customize_attention_spec(layer.get_attn_backend(), spec) if attention else spec
    return found


def _one_process(config: VllmConfig) -> None:
    if parallel_state.model_parallel_is_initialized():
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with set_current_vllm_config(config):
        init_distributed_environment(1, 0, f"tcp://127.0.0.1:{port}", 0, backend="gloo")
        ensure_model_parallel_initialized(1, 1)
    # It is made for models with experts alone, and the first need not be one.
    parallel_state._EP = parallel_state._EP or parallel_state._TP


def main(questions: Path, answers: Path) -> None:
    """Writes one JSON object: the question's name to its answer."""
    sys.meta_path.append(_WithoutVision())
    registry._run_in_subprocess = lambda inspect: inspect()
    found = {}
    for question in json.loads(questions.read_text()):
        try:
            found[question["name"]] = answer(question)
        except Exception as error:  # noqa: BLE001  # what vLLM cannot load here is an answer too
            found[question["name"]] = {"error": repr(error)[:2000]}
    answers.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
