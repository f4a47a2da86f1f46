"""A Dockerfile as its instructions, and what a .dockerignore lets through, as far as ours go."""

import json
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path


@dataclass(frozen=True)
class Instruction:
    """`name` in capitals; `text` without flags and continuations."""

    name: str
    flags: tuple[str, ...]
    text: str

    @property
    def words(self) -> list[str]:
        """The text, split."""
        return self.text.split()

    @property
    def listed(self) -> list[str]:
        """The command in exec form. Raises ValueError if it has the form of a shell's line."""
        words: list[str] = json.loads(self.text)
        return words


def instructions(text: str) -> list[Instruction]:
    """All of them, in order."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [_instruction(line) for line in joined.splitlines() if line.strip()]


def _instruction(line: str) -> Instruction:
    name, _, rest = line.partition(" ")
    flags: list[str] = []
    while (rest := rest.lstrip()).startswith("--"):
        flag, _, rest = rest.partition(" ")
        flags.append(flag)
    return Instruction(name, tuple(flags), rest.strip())


def last_stage(all_of_them: list[Instruction]) -> list[Instruction]:
    """What the image itself is made by."""
    begin = max(place for place, each in enumerate(all_of_them) if each.name == "FROM")
    return all_of_them[begin:]


def sent(ignore: str, path: str) -> bool:
    """Whether a path goes to the builder: the last pattern that names it or a folder above it decides."""
    rules = [line.strip() for line in ignore.splitlines() if line.strip() and not line.startswith("#")]
    answer = True
    for rule in rules:
        if _names(rule.removeprefix("!"), path):
            answer = rule.startswith("!")
    return answer


def _names(pattern: str, path: str) -> bool:
    parts = Path(path).parts
    above = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    if pattern.startswith("**/"):
        return any(fnmatchcase(part, pattern.removeprefix("**/")) for part in parts)
    return any(each.count("/") == pattern.count("/") and fnmatchcase(each, pattern) for each in above)
