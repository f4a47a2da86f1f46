# ruff: noqa: RUF001  full-width commas belong to these languages
"""Prompts of four kinds to estimate: English, code, Chinese with Japanese and Korean, chats with tools.

English and code are the standard library's own, the rest is written for this. All of it is drawn by a seed,
so that a run sees the same prompts as the run before it.
"""

import importlib
import inspect
import json
import random
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

Messages = list[dict[str, Any]]
Body = dict[str, Any]
Draw = Callable[[random.Random], Body]

_MODULES = (
    "argparse", "ast", "asyncio.base_events", "calendar", "collections", "configparser", "csv", "dataclasses",
    "decimal", "difflib", "doctest", "email.message", "enum", "heapq", "inspect", "logging", "mailbox",
    "optparse", "pathlib", "pickle", "random", "shutil", "smtplib", "socketserver", "statistics", "string",
    "subprocess", "tarfile", "textwrap", "threading", "tokenize", "unittest.mock", "urllib.request",
)  # fmt: skip
_CHINESE = (
    "这座城市的春天来得很早，街道两旁的樱花在三月初就已经开满了枝头。",
    "请把下面的合同条款总结成三点，并指出其中对乙方不利的内容。",
    "人工智能模型的推理成本主要取决于显存带宽，而不是计算能力本身。",
    "会议定于下周三上午九点半在二号楼五层召开，请各部门负责人准时参加。",
    "他说自己从小就喜欢数学，后来却阴差阳错地成了一名中学语文老师。",
    "如果数据库连接失败，程序应当等待几秒钟再重试，最多重试五次。",
    "传统的豆腐制作需要经过浸泡、磨浆、煮浆、点卤和压制等多道工序。",
    "根据最新的统计数据，去年全国新能源汽车的销量同比增长了百分之三十七。",
)
_JAPANESE = (
    "このプログラムは、入力されたテキストを解析して、結果をファイルに保存します。",
    "明日の午後は雨が降るそうなので、傘を持って出かけたほうがいいですよ。",
    "日本の鉄道は時間に正確なことで知られており、遅れることはめったにありません。",
    "次の文章を英語に翻訳し、難しい単語には簡単な説明を付けてください。",
    "祖母の家の庭には大きな柿の木があって、秋になると毎年たくさんの実がなりました。",
)
_KOREAN = (
    "이 문서는 새로운 결제 시스템의 구조와 사용 방법을 자세히 설명합니다.",
    "오늘 저녁에는 친구들과 함께 한강 공원에서 자전거를 타기로 했어요.",
    "다음 코드를 검토하고 성능을 개선할 수 있는 방법을 세 가지 제안해 주세요.",
    "겨울이 되면 산골 마을에는 눈이 많이 내려서 길이 자주 끊기곤 합니다.",
)
_QUESTIONS = (
    "What does this do?", "Please explain it step by step.", "Find the bug and mend it.", "Thanks! And now?",
    "Summarise the following in two sentences.", "Translate this.", "Write tests for it, please.",
)  # fmt: skip
_NOUNS = (
    "order",
    "customer",
    "invoice",
    "weather",
    "calendar",
    "file",
    "ticket",
    "user",
    "branch",
    "payment",
)
_VERBS = ("get", "list", "create", "update", "delete", "search", "cancel", "export")
_FIELDS = ("id", "name", "status", "created_at", "limit", "query", "city", "amount", "currency", "tags")


def _docstrings(module: ModuleType) -> list[str]:
    values = [module, *(value for _, value in inspect.getmembers(module))]
    return [inspect.cleandoc(value.__doc__) for value in values if isinstance(value.__doc__, str)]


def _standard_library() -> tuple[list[str], list[str]]:
    """Docstrings, and classes and functions as they are written."""
    texts, sources = [], []
    for module in map(importlib.import_module, _MODULES):
        texts += _docstrings(module)
        sources += re.split(r"\n(?=class |def )", inspect.getsource(module))
    return texts, sources


class Corpus:
    """Draws bodies of chat calls without a model."""

    def __init__(self) -> None:
        texts, sources = _standard_library()
        self._texts = [text for text in dict.fromkeys(texts) if 80 <= len(text) <= 4000]
        self._sources = [source for source in dict.fromkeys(sources) if 200 <= len(source) <= 6000]
        self.classes: dict[str, Draw] = {
            "english": self.english, "code": self.code, "cjk": self.cjk, "mixed": self.mixed,
        }  # fmt: skip

    def english(self, draw: random.Random) -> Body:
        """A question on a few paragraphs, or a conversation about them."""
        return {"messages": _turns(draw, lambda: self._english(draw))}

    def code(self, draw: random.Random) -> Body:
        """A question on a piece of code."""
        question = draw.choice(_QUESTIONS)
        source = draw.choice(self._sources)[: draw.randint(300, 4000)]
        return {"messages": [*_system(draw), _said("user", f"{question}\n```python\n{source}\n```")]}

    def cjk(self, draw: random.Random) -> Body:
        """Sentences of one language of East Asia, sometimes beside English."""
        sentences = draw.choice((_CHINESE, _CHINESE, _JAPANESE, _KOREAN))

        def write() -> str:
            return "".join(draw.choice(sentences) for _ in range(draw.randint(1, 12)))

        return {"messages": _turns(draw, write)}

    def mixed(self, draw: random.Random) -> Body:
        """An agent's conversation: tools, calls of them, results as JSON, and some of all the above."""
        messages = [*_system(draw), _said("user", draw.choice(_QUESTIONS))]
        for number in range(draw.randint(1, 5)):
            messages += self._call(draw, f"call_{number}")
        messages.append(_said("user", self._anything(draw)))
        return {"messages": messages, "tools": [_tool(draw) for _ in range(draw.randint(1, 8))]}

    def _english(self, draw: random.Random) -> str:
        return "\n\n".join(draw.choice(self._texts) for _ in range(draw.randint(1, 3)))

    def _anything(self, draw: random.Random) -> str:
        kind = draw.randrange(3)
        if kind == 0:
            return self._english(draw)
        if kind == 1:
            return draw.choice(self._sources)[:1500]
        return "".join(draw.choice(_CHINESE + _JAPANESE) for _ in range(draw.randint(1, 4)))

    def _call(self, draw: random.Random, call_id: str) -> Messages:
        function = {"name": _name(draw), "arguments": json.dumps(_record(draw))}
        call = {"id": call_id, "type": "function", "function": function}
        result = [_record(draw) for _ in range(draw.randint(1, 6))]
        return [
            {"role": "assistant", "content": draw.choice(self._texts)[:200], "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": json.dumps(result)},
        ]


def _turns(draw: random.Random, write: Callable[[], str]) -> Messages:
    messages = [*_system(draw), _said("user", write())]
    for _ in range(draw.choice((0, 0, 1, 3))):
        messages += [_said("assistant", write()), _said("user", write())]
    return messages


def _system(draw: random.Random) -> Messages:
    return draw.choice(([], [], [_said("system", "You are a careful assistant. Answer briefly.")]))


def _said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def _name(draw: random.Random) -> str:
    return f"{draw.choice(_VERBS)}_{draw.choice(_NOUNS)}"


def _record(draw: random.Random) -> dict[str, Any]:
    values = (
        draw.randint(1, 10**7), round(draw.uniform(0, 1000), 2), draw.choice(_NOUNS),
        f"{draw.getrandbits(48):x}", "2026-03-14T09:26:53Z", True, None,
    )  # fmt: skip
    return {draw.choice(_FIELDS): draw.choice(values) for _ in range(draw.randint(2, 6))}


def _tool(draw: random.Random) -> dict[str, Any]:
    fields = draw.sample(_FIELDS, draw.randint(1, 5))
    properties = {
        name: {
            "type": draw.choice(("string", "integer")),
            "description": f"The {name} of the {draw.choice(_NOUNS)}.",
        }
        for name in fields
    }
    parameters = {"type": "object", "properties": properties, "required": fields[:1]}
    description = f"Use this to {draw.choice(_VERBS)} one {draw.choice(_NOUNS)}; answers an object as JSON."
    function = {"name": _name(draw), "description": description, "parameters": parameters}
    return {"type": "function", "function": function}
