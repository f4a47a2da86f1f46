"""The part of a gateway's settings file that tells of one engine's model: taken out, put in, text as it is.

The rest of the file is the operator's, comments too: it stays byte for byte, and is compared to be sure.
"""

import json
import re
import tomllib
from typing import Any

from deploy.local.problem import Problem

START = re.compile(r"\s*\[\[\s*models\s*\]\]")
TABLE = re.compile(r"\s*\[")
BELOW = re.compile(r"\s*\[\[?\s*models\s*\.")
CAP = re.compile(r"(?m)^(default_max_tokens[ \t]*=[ \t]*)(\d+)")


def of_engine(text: str, url: str) -> str:
    """The `[[models]]` block, its own tables with it, whose engines hold an address; empty without one.

    Raises Problem if the text is not TOML.
    """
    blocks, models = _blocks(text), _parsed(text).get("models", [])
    if len(blocks) != len(models):
        return ""
    found = zip(blocks, models, strict=True)
    return next((block for block, model in found if url in model.get("engines", [])), "")


def put(text: str, url: str, block: str, *, most_tokens: int = 0) -> str:
    """The text with another block for the engine of that address, at the end if there was none.

    A `default_max_tokens` over `most_tokens` (0: no such bound) comes down to it: an engine refuses more than
    it can write. Raises Problem if anything else would change.
    """
    old = of_engine(text, url)
    block = block.rstrip() + "\n"
    changed = text.replace(old, block, 1) if old else f"{text.rstrip()}\n\n{block}"
    if most_tokens:
        changed = CAP.sub(lambda found: f"{found[1]}{min(int(found[2]), most_tokens)}", changed)
    if not _differ_in_it_alone(text, changed, url):
        raise Problem(
            f"the gateway's settings are written in a way that cannot be changed here: put\n\n{block}\ninto "
            "them by hand, in the place of the model before."
        )
    return changed


def _differ_in_it_alone(text: str, changed: str, url: str) -> bool:
    before = _parsed(text)
    try:
        after = tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        return False
    return _others(before, url) == _others(after, url) and bool(of_engine(changed, url))


def adapted(block: str, text: str, url: str) -> str:
    """A block that was planned, with the aliases that the model before had in the text, and this address.

    An alias that is the new model's own id is none any more.
    """
    aliases: list[str] = next(
        (model.get("aliases", []) for model in _models(text) if url in model.get("engines", [])), []
    )
    block = _line(block, "engines", [url])
    own = next((model.get("id") for model in _models(block)), "")
    return _line(block, "aliases", [alias for alias in aliases or ["default"] if alias != own])


def id_of(text: str, url: str) -> str:
    """What the engine of that address calls its model, by the text; empty without one."""
    found = next((model for model in _models(text) if url in model.get("engines", [])), {})
    return str(found.get("engine_model", found.get("id", "")))


def _line(block: str, name: str, value: list[str]) -> str:
    # JSON's strings are TOML's, but for characters beyond the first 65,536 in their escaped form.
    written = json.dumps(value, ensure_ascii=False)
    return re.sub(rf"(?m)^{name} = .*$", lambda _: f"{name} = {written}", block, count=1)


def _blocks(text: str) -> list[str]:
    lines, found, at = text.splitlines(keepends=True), [], 0
    while at < len(lines):
        end = at + 1
        if START.match(lines[at]):
            while end < len(lines) and not (TABLE.match(lines[end]) and not BELOW.match(lines[end])):
                end += 1
            found.append("".join(_without_tail(lines[at:end])))
        at = end
    return found


def _without_tail(lines: list[str]) -> list[str]:
    """Blank lines and comments at the end tell of what comes next."""
    last = len(lines)
    while not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#"):
        last -= 1
    return lines[:last]


def _models(text: str) -> list[dict[str, Any]]:
    models: list[dict[str, Any]] = _parsed(text).get("models", [])
    return models


def _others(document: dict[str, Any], url: str) -> dict[str, Any]:
    """All but the engine's model, and the cap that may come down."""
    kept = [model for model in document.get("models", []) if url not in model.get("engines", [])]
    policy = {
        name: value for name, value in document.get("policy", {}).items() if name != "default_max_tokens"
    }
    return {**document, "models": kept, "policy": policy}


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Problem(f"the gateway's settings are not valid TOML: {error}. Mend them first.") from error
