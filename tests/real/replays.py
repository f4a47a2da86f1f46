"""Requests as well-known programs send them, written down from their source or documentation.

What is theirs is kept: headers, query parameters, fields that only they know. Prompts and caps are small.
`MODEL` stands for the model's name, `KEY` for the caller's key.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

Shape = Literal["models", "chat", "completion", "response", "message", "count", "embedding", "rerank"]

STAINLESS = {
    "user-agent": "OpenAI/JS 5.12.2",
    "x-stainless-lang": "js",
    "x-stainless-package-version": "5.12.2",
    "x-stainless-os": "Linux",
    "x-stainless-arch": "x64",
    "x-stainless-runtime": "node",
    "x-stainless-runtime-version": "v22.15.0",
    "x-stainless-retry-count": "0",
    "x-stainless-timeout": "600",
}
HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello."}]
PARAMETERS = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "The path of the file."}},
    "required": ["path"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": "read_file", "description": "…", "parameters": PARAMETERS}}
]


@dataclass(frozen=True, slots=True)
class Replay:
    """One request and the shape of its answer. `key` is the header that the key comes in."""

    client: str
    path: str
    shape: Shape
    body: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    key: str = "authorization"
    zstd: bool = False

    @property
    def streams(self) -> bool:
        """Whether the answer comes as events."""
        return bool(self.body and self.body.get("stream"))


def _openai(client: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> Replay:
    return Replay(client, "/v1/chat/completions", "chat", {"model": "MODEL", **body}, headers or {})


OPEN_WEBUI = {
    "X-OpenWebUI-User-Name": "Zo%C3%AB",
    "X-OpenWebUI-User-Id": "7c1c7a1e-6a2f-4d8e-9a55-0d6b7f0f3b11",
    "X-OpenWebUI-User-Email": "zoe@example.org",
    "X-OpenWebUI-User-Role": "user",
    "X-OpenWebUI-Chat-Id": "b3c0a6de-1f2a-4c6c-8f1e-2d9d3c1b7a55",
}
CONTINUE = {"api-key": "KEY"}
CLINE = {**STAINLESS, "http-referer": "https://cline.bot", "x-title": "Cline"}
CLAUDE_CODE = {
    "user-agent": "claude-cli/2.1.39 (external, cli)",
    "x-app": "cli",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27",
    "anthropic-dangerous-direct-browser-access": "true",
    **{name: value for name, value in STAINLESS.items() if name != "user-agent"},
}
CLAUDE_CODE_BODY: dict[str, Any] = {
    "model": "MODEL",
    "system": [
        {
            "type": "text",
            "text": "x-anthropic-billing-header: cc_version=2.1.39.c39; cc_entrypoint=cli; cch=1;",
        },
        {"type": "text", "text": "You are a coding agent.", "cache_control": {"type": "ephemeral"}},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<system-reminder>Today is Monday.</system-reminder>"},
                {"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}},
            ],
        }
    ],
    "tools": [
        {
            "name": "Read",
            "description": "Reads a file.",
            "input_schema": {"$schema": "https://json-schema.org/draft/2020-12/schema", **PARAMETERS},
        }
    ],
}
CODEX: dict[str, Any] = {
    "model": "MODEL",
    "instructions": "You are a coding agent.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say hello."}]},
    ],
    "tools": [
        {"type": "function", "name": "shell", "description": "…", "strict": False, "parameters": PARAMETERS}
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "019a1d6c-8a51-7d70-b9c8-3c6f0f5a2b11",
    "max_output_tokens": 8,
}

REPLAYS = [
    Replay("Open WebUI lists models", "/v1/models", "models", headers=OPEN_WEBUI),
    _openai(
        "Open WebUI chats",
        {
            "stream": True, "messages": HELLO, "max_tokens": 8, "temperature": 0.8, "stop": ["</s>"],
            "chat_id": "b3c0a6de", "session_id": "s1", "id": "m1", "features": {"web_search": False},
            "background_tasks": {"title_generation": True}, "variables": {"{{USER_NAME}}": "Zoë"},
        },
        OPEN_WEBUI,
    ),
    _openai(
        "Open WebUI asks for a title",
        {
            "stream": False, "messages": HELLO, "max_completion_tokens": 8,
            "metadata": {"task": "title_generation", "task_body": {"messages": HELLO}, "chat_id": "b3c0a6de"},
        },
        OPEN_WEBUI,
    ),
    _openai(
        "Cline works",
        {
            "messages": HELLO, "temperature": 0, "max_tokens": 8, "stream": True,
            "stream_options": {"include_usage": True}, "tools": TOOLS,
        },
        CLINE,
    ),
    Replay("Continue lists models", "/v1/models", "models", headers=CONTINUE),
    _openai(
        "Continue chats",
        {
            "messages": HELLO, "max_tokens": 8, "temperature": 0.5, "top_p": 1, "frequency_penalty": 0,
            "presence_penalty": 0, "stream": True, "stop": ["<|im_end|>", "<|endoftext|>"],
        },
        CONTINUE,
    ),
    Replay(
        "Continue completes as one types", "/v1/completions", "completion",
        {
            "model": "MODEL", "prompt": "<fim_prefix>def add(a, b):\n    <fim_suffix>\n\n<fim_middle>",
            "max_tokens": 8, "temperature": 0.01, "stream": True,
            "stop": [
                "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>", "<|endoftext|>",
                "</fim_middle>", "</code>", "/src/", "#- coding: utf-8", "```", "\ndef", "\nclass", '\n"""#',
            ],
        },
        CONTINUE,
    ),
    _openai(
        "Cursor asks",
        {
            "messages": HELLO, "temperature": 0, "max_tokens": 8, "user": "github|user_01", "stream": True,
            "stream_options": {"include_usage": True}, "tools": TOOLS, "tool_choice": "auto",
        },
    ),
    Replay(
        "Claude Code works", "/v1/messages?beta=true", "message",
        {
            **CLAUDE_CODE_BODY, "max_tokens": 8, "stream": True, "temperature": 1,
            "metadata": {"user_id": "user_0a1b_account__session_7d70"},
            "thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        },
        CLAUDE_CODE,
    ),
    Replay(
        "Claude Code counts", "/v1/messages/count_tokens?beta=true", "count", CLAUDE_CODE_BODY, CLAUDE_CODE,
        key="x-api-key",
    ),
    Replay(
        "Codex works", "/v1/responses", "response", CODEX,
        {"user-agent": "codex_cli_rs/0.114.0", "originator": "codex_cli_rs", "accept": "text/event-stream"},
        zstd=True,
    ),
    Replay("n8n tests a credential", "/v1/models", "models", headers={"user-agent": "axios/1.8.3"}),
    _openai(
        "n8n's agent asks",
        {
            "messages": HELLO, "temperature": 0.7, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0,
            "n": 1, "max_tokens": 8, "stream": True, "stream_options": {"include_usage": True},
            "tools": TOOLS, "parallel_tool_calls": True,
        },
        STAINLESS,
    ),
    _openai(
        "LlamaIndex's OpenAILike chats",
        {
            "messages": HELLO, "temperature": 0.1, "max_tokens": 8, "stream": False, "tools": TOOLS,
            "tool_choice": "auto", "parallel_tool_calls": False,
        },
        {"user-agent": "OpenAI/Python 1.109.1", "x-stainless-lang": "python", "x-stainless-async": "false"},
    ),
    Replay(
        "LlamaIndex's OpenAILike completes", "/v1/completions", "completion",
        {"model": "MODEL", "prompt": "Hello", "temperature": 0.1, "max_tokens": 8, "stream": False},
    ),
]  # fmt: skip

OF_EMBEDDINGS = [
    Replay(
        "Open WebUI embeds", "/v1/embeddings", "embedding",
        {"model": "MODEL", "input": ["a cat", "a dog"]}, OPEN_WEBUI,
    ),
    Replay(
        "Open WebUI reranks", "/v1/rerank", "rerank",
        {"model": "MODEL", "query": "a pet", "documents": ["a cat", "a bank"], "top_n": 2}, OPEN_WEBUI,
    ),
    Replay(
        "Continue embeds", "/v1/embeddings", "embedding",
        {"model": "MODEL", "input": ["def add(a, b):"]}, CONTINUE,
    ),
    Replay(
        "LlamaIndex embeds", "/v1/embeddings", "embedding",
        {"model": "MODEL", "input": ["a cat"], "encoding_format": "base64"},
    ),
    Replay(
        "n8n embeds", "/v1/embeddings", "embedding",
        {"model": "MODEL", "input": ["a cat"], "encoding_format": "float"}, STAINLESS,
    ),
]  # fmt: skip
