"""What programs and addresses answer, recorded or scripted."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from gateway.doctor.finding import Unseen
from gateway.doctor.look.programs import Done
from gateway.doctor.look.web import Answer
from tests.doctor.evidence import RECORDED


def text(name: str) -> str:
    """A recorded answer."""
    return (RECORDED / name).read_text()


def docker(answers: Mapping[str, str]) -> Callable[..., Done]:
    """A docker that knows these commands by how they begin."""

    def answer(*argv: str, **_: float | None) -> Done:
        said = next((out for words, out in answers.items() if " ".join(argv).startswith(words)), None)
        return Done(1, "", "no such thing") if said is None else Done(0, said, "")

    return answer


def web(answers: Mapping[str, Any]) -> Callable[[str], Answer | Unseen]:
    """A network that knows these addresses."""
    return lambda url: (
        Unseen(f"{url} does not answer")
        if url not in answers
        else Answer(200, answers[url] if isinstance(answers[url], str) else json.dumps(answers[url]))
    )
