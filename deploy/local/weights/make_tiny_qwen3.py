# mypy: disable-error-code="import-not-found"
# transformers, tokenizers and torch are installed beside the engine alone.
"""Makes a Qwen3-shaped model of two layers with random weights: no meaning, but every mechanism is real.

Run by the engine's Python: make_tiny_qwen3.py OUTPUT-FOLDER. The same seed gives the same model.
"""

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

SEED = 20240229
VOCABULARY_SIZE = 1024
CONTEXT_TOKENS = 4096
PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
MARKS = [PAD, START, END, "<think>", "</think>"]

# As Qwen3's own: a caller who switches thinking off gets an empty thought written into the prompt, which
# shows as four more prompt tokens.
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false -%}
{{ '<think>\\n\\n</think>\\n\\n' }}
{%- endif -%}
{%- endif -%}
"""


def tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer trained on a little English and JSON: it can write any text."""
    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=MARKS,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    plain.train_from_iterator(_texts(), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=plain,
        eos_token=END,
        pad_token=PAD,
        chat_template=CHAT_TEMPLATE,
        model_max_length=CONTEXT_TOKENS,
    )


def _texts() -> list[str]:
    here = Path(__file__)
    words = "the quick brown fox jumps over the lazy dog and says hello to the world of small models"
    numbers = " ".join(str(n) for n in range(100))
    return [
        here.read_text(encoding="utf-8"),
        words,
        words.title(),
        '{"name": "value", "list": [1, 2]}',
        numbers,
    ]


def model(vocabulary_size: int, end_token: int, pad_token: int) -> Qwen3ForCausalLM:
    """Random weights in the shape of Qwen3: grouped-query attention, two layers."""
    torch.manual_seed(SEED)
    config = Qwen3Config(
        vocab_size=vocabulary_size,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=end_token,
        pad_token_id=pad_token,
    )
    return Qwen3ForCausalLM(config).to(torch.bfloat16)


def make(target: Path) -> None:
    """Writes the folder that vLLM serves."""
    words = tokenizer()
    model(VOCABULARY_SIZE, words.eos_token_id, words.pad_token_id).save_pretrained(target)
    words.save_pretrained(target)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
