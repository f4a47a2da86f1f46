# mypy: disable-error-code="import-not-found"
# transformers and torch are installed beside the engine alone.
"""Turns a GGUF file into what vLLM serves: bf16 safetensors, tokenizer and chat template.

Run by the engine's Python: convert_gguf.py GGUF-FILE OUTPUT-FOLDER. vLLM 0.32 reads no GGUF itself.
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def convert(source: Path, target: Path) -> None:
    """Writes the folder. The quantised weights are kept as the numbers that they stand for."""
    where = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
    tokenizer = AutoTokenizer.from_pretrained(**where)
    # Weights that stay packed cannot be saved as plain tensors.
    unpacked = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.bfloat16, quantization_config=unpacked)
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
