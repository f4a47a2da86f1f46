"""Bodies that an engine takes, drawn at random, and ones that it refuses: for comparing two answers to one.

Temperature 0 and few tokens: an engine must give the same answer twice. Thinking is always spelled out,
so that no
default of the gateway's changes a prompt, and prompts stay shorter than a block of the prefix cache.
"""

from typing import Any

from hypothesis import strategies as st

Body = dict[str, Any]

MAX_TOKENS = 6
WORDS = st.text(
    st.characters(max_codepoint=0x1F64F, categories=("L", "M", "N", "P", "S", "Z",
    "Cc")) | st.sampled_from('"\\\n\t{}<|>\u2028é😀 a'),
    min_size=1, max_size=6,
)  # fmt: skip
SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": [1, 2]}},
    "required": ["a"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
# Each with values to choose from; a field is left out as often as not.
SAMPLING: dict[str, list[Any]] = {
    "seed": [0, 7, 2**40], "top_p": [1, 1.0, 0.5], "top_k": [1, -1, 40], "min_p": [0, 0.0, 0.1],
    "user": ["u", None], "frequency_penalty": [0, 0.5, -1], "presence_penalty": [0.25],
    "repetition_penalty": [1.0, 1.1], "stop": ["5", ["\n", "a"], [], None], "ignore_eos": [True, False],
    "min_tokens": [0, 2], "skip_special_tokens": [False], "logit_bias": [{"20": 5}, {"7": -100.0}, {}, None],
    "zzz_future": [{"a": [1, 1.0, None]}], "include_stop_str_in_output": [True], "stop_token_ids": [[5]],
    "bad_words": [["a"]], "metadata": [None],
}  # fmt: skip
CHAT: dict[str, list[Any]] = {
    "logprobs": [True, False, None], "top_logprobs": [0, 2], "return_token_ids": [True], "echo": [False],
    "response_format": [{"type": "text"}, {"type": "json_object"},
                        {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}],
    "tools": [[TOOL], None], "tool_choice": ["none"], "parallel_tool_calls": [True], "store": [False],
    "add_generation_prompt": [True], "documents": [None], "max_completion_tokens": [1, 3, None], "n": [1, 2],
}  # fmt: skip
TEXT: dict[str, list[Any]] = {
    "logprobs": [0, 1, 2, None], "echo": [True, False], "suffix": [None], "n": [1, 2],
    "return_token_ids": [True], "add_special_tokens": [False], "response_format": [{"type": "json_object"}],
    "structured_outputs": [{"choice": ["a", "b"]}, {"regex": "[0-9]{2}"}],
    "truncate_prompt_tokens": [4, None],
}  # fmt: skip
RESPONSES: dict[str, list[Any]] = {
    "instructions": ["x", None], "top_p": [1.0], "metadata": [None], "include": [[], None],
    "truncation": ["disabled"],
    "text": [{"format": {"type": "text"}}, {"format": {"type": "json_schema", "name": "s",
    "schema": SCHEMA}}],
    "user": ["u"], "service_tier": ["auto"], "parallel_tool_calls": [True], "store": [False],
    "skip_special_tokens": [True], "max_tool_calls": [None], "seed": [3], "repetition_penalty": [1.1],
}  # fmt: skip
MESSAGES: dict[str, list[Any]] = {
    "system": ["x", [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]],
    "stop_sequences": [["5"]], "top_p": [0.5], "top_k": [3], "metadata": [{"user_id": "u"}],
    "tool_choice": [{"type": "none"}], "tools": [None],
}  # fmt: skip
TOKENS: dict[str, list[Any]] = {
    "add_special_tokens": [True, False], "return_token_strs": [True], "add_generation_prompt": [True, False],
}  # fmt: skip


@st.composite
def some(draw: st.DrawFn, fields: dict[str, list[Any]], most: int = 4) -> Body:
    """A few of these fields."""
    names = draw(st.lists(st.sampled_from(sorted(fields)), max_size=most, unique=True))
    return {name: draw(st.sampled_from(fields[name])) for name in names}


@st.composite
def messages(draw: st.DrawFn) -> list[Any]:
    """A short conversation, in strings or in parts."""
    roles = draw(
        st.sampled_from((["user"], ["system", "user"], ["user", "assistant", "user"], ["developer", "user"]))
    )
    texts = [draw(WORDS) for _ in roles]
    if draw(st.booleans()):
        return [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    return [
        {"role": role, "content": [{"type": "text", "text": text}]}
        for role, text in zip(roles, texts, strict=True)
    ]


@st.composite
def chat(draw: st.DrawFn) -> Body:
    """For /v1/chat/completions."""
    body = {"messages": draw(messages()), "max_tokens": draw(st.integers(1, MAX_TOKENS)), **draw(streamed())}
    return body | draw(some(SAMPLING)) | draw(some(CHAT)) | draw(thinking()) | {"temperature": 0}


@st.composite
def text(draw: st.DrawFn) -> Body:
    """For /v1/completions: prompts as text, as token ids, several."""
    ids = st.lists(st.integers(5, 900), min_size=1, max_size=5)
    prompt = draw(
        WORDS | ids | st.lists(WORDS, min_size=1, max_size=2) | st.lists(ids, min_size=1, max_size=2)
    )
    body = {"prompt": prompt, "max_tokens": draw(st.integers(1, MAX_TOKENS)), **draw(streamed())}
    return body | draw(some(SAMPLING)) | draw(some(TEXT)) | {"temperature": 0.0}


@st.composite
def streamed(draw: st.DrawFn) -> Body:
    """A stream or none, with and without usage at its end."""
    return draw(st.sampled_from((
        {}, {"stream": False}, {"stream": None, "stream_options": None}, {"stream": True}, {"stream": True},
        {"stream": True, "stream_options": {}}, {"stream": True, "stream_options": {"include_usage": False}},
        {"stream": True, "stream_options": {"include_usage": True}},
        {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    )))  # fmt: skip


def thinking() -> st.SearchStrategy[Body]:
    """A word on thinking, in one spelling or another."""
    words = (
        {"enable_thinking": True},
        {"enable_thinking": False},
        {"enable_thinking": False, "x": {"y": [1.0]}},
    )
    return st.sampled_from([{"chat_template_kwargs": word} for word in words] + [{"reasoning_effort": "low"}])


@st.composite
def responses(draw: st.DrawFn) -> Body:
    """For /v1/responses, which the engine is never asked to store."""
    said = draw(
        WORDS
        | st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": WORDS}), min_size=1, max_size=2)
    )
    body = {
        "input": said,
        "max_output_tokens": draw(st.integers(1, MAX_TOKENS)),
        "stream": draw(st.booleans()),
    }
    words: list[Body] = [
        {"reasoning": {"effort": "low"}},
        {"chat_template_kwargs": {"enable_thinking": False}},
    ]
    return body | draw(some(RESPONSES)) | draw(st.sampled_from(words)) | {"temperature": 0, "store": False}


@st.composite
def claude(draw: st.DrawFn) -> Body:
    """For /v1/messages."""
    turns = [turn for turn in draw(messages()) if turn["role"] in ("user", "assistant")]
    body = {"messages": turns, "max_tokens": draw(st.integers(1, MAX_TOKENS)), "stream": draw(st.booleans())}
    word = {"chat_template_kwargs": {"enable_thinking": draw(st.booleans())}}
    return body | draw(some(MESSAGES)) | word | {"temperature": 0}


@st.composite
def counted(draw: st.DrawFn) -> Body:
    """For /v1/messages/count_tokens."""
    body = draw(claude())
    return {
        name: value for name, value in body.items() if name in ("messages", "system", "chat_template_kwargs")
    }


@st.composite
def tokenized(draw: st.DrawFn) -> Body:
    """For /tokenize: a prompt or messages."""
    if draw(st.booleans()):
        return {"prompt": draw(WORDS), **draw(some({name: TOKENS[name] for name in sorted(TOKENS)[1:]}))}
    return {"messages": draw(messages()), **draw(some(TOKENS)), **draw(thinking())}


detokenized = st.fixed_dictionaries({"tokens": st.lists(st.integers(0, 1000), max_size=8)})
VALID = {
    "/v1/chat/completions": chat(), "/v1/completions": text(), "/v1/responses": responses(),
    "/v1/messages": claude(), "/v1/messages/count_tokens": counted(), "/tokenize": tokenized(),
    "/detokenize": detokenized,
}  # fmt: skip

LONG = [{"role": "user", "content": "a b " * 4000}]
# What an engine refuses, and the gateway leaves for it to judge: one of these is put into a valid body.
SPOILT: dict[str, list[Body]] = {
    "/v1/chat/completions": [
        {"messages": []}, {"messages": None}, {"messages": "x"}, {"messages": [{"content": "x"}]},
        {"messages": [{"role": "user", "content": 5}]}, {"messages": [5]}, {"messages": LONG},
        {"messages": [{"role": "user", "content": [{"type": "nothing"}]}]}, {"temperature": -1},
        {"temperature": "hot"}, {"top_p": 0}, {"top_p": 1.5}, {"top_k": -7}, {"min_p": 2},
        {"frequency_penalty": 9}, {"presence_penalty": -9}, {"repetition_penalty": 0}, {"seed": "x"},
        {"seed": 1.5}, {"stop": 5}, {"logit_bias": {"x": 1}}, {"logit_bias": []},
        {"logit_bias": {"99999": 1}}, {"top_logprobs": 3},
        {"stream_options": {"include_usage": True}, "stream": False},
        {"response_format": {"type": "nothing"}}, {"response_format": {"type": "json_schema"}},
        {"response_format": "json"}, {"tools": "x"}, {"tools": [{"type": "function"}]}, {"tool_choice": "f"},
        {"tools": [], "tool_choice": "required"},
        {"tool_choice": {"type": "function", "function": {"name": "g"}}, "tools": [TOOL]},
        {"max_tokens": 5000}, {"structured_outputs": {"regex": "("}},
        {"structured_outputs": {"regex": "a", "choice": ["a"]}}, {"min_tokens": 99},
        {"structured_outputs": {"json": "{"}}, {"stop_token_ids": "x"}, {"bad_words": 5},
        {"reasoning_effort": 5}, {"add_generation_prompt": True, "continue_final_message": True},
        {"user": 5}, {"truncate_prompt_tokens": -7},
    ],
    "/v1/completions": [
        {"prompt": None}, {"prompt": []}, {"prompt": ""}, {"prompt": {}}, {"prompt": [[]]},
        {"prompt": ["a", 5]}, {"prompt": 5}, {"prompt": [99999]}, {"prompt": [-1]},
        {"prompt": "a b " * 4000}, {"max_tokens": 5000}, {"temperature": -1}, {"echo": "maybe"},
        {"suffix": "x"}, {"structured_outputs": {"grammar": "nothing"}}, {"top_p": -1},
        {"response_format": {"type": "json_schema", "json_schema": {}}},
        {"stream": True, "echo": True, "prompt_logprobs": 1},
    ],
    "/v1/responses": [
        {"input": None}, {"input": 5}, {"input": []}, {"input": [{"role": "user"}]}, {"temperature": -1},
        {"tools": "x"}, {"max_output_tokens": 5000}, {"text": {"format": {"type": "nothing"}}},
        {"top_logprobs": 5, "include": ["x"]}, {"truncation": "sometimes"}, {"tool_choice": "sometimes"},
        {"input": "a b " * 4000}, {"include": 5},
    ],
    "/v1/messages": [
        {"messages": []}, {"messages": None}, {"messages": [{"role": "user"}]},
        {"messages": [{"role": "x", "content": "x"}]}, {"max_tokens": None}, {"temperature": -1},
        {"messages": LONG}, {"system": 5}, {"tools": [{}]}, {"stop_sequences": "x"},
        {"thinking": {"type": "nothing"}}, {"tool_choice": {"type": "nothing"}},
    ],
    "/v1/messages/count_tokens": [{"messages": None}, {"messages": 5}, {"messages": [{"role": "user",
    "content": 5}]}],
    "/tokenize": [{"prompt": 5}, {"prompt": None}, {"prompt": []}],
    "/detokenize": [{"tokens": None}, {"tokens": "x"}, {"tokens": [-1]}, {"tokens": [1.5]}],
}  # fmt: skip
OFF: Body = {"chat_template_kwargs": {"enable_thinking": False}}
PLAIN: dict[str, Body] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, **OFF},
    "/v1/completions": {"prompt": "a", "max_tokens": 1},
    "/v1/responses": {"input": "a", "max_output_tokens": 1, "store": False, **OFF},
    "/v1/messages": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, **OFF},
    "/v1/messages/count_tokens": {"messages": [{"role": "user", "content": "a"}], **OFF}, "/tokenize": OFF,
    "/detokenize": {},
}  # fmt: skip
