"""How a bad setting is told: where it stands, its name, what is wrong and how to mend it, in one line."""

import difflib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gateway.settings.environment import settings_paths
from gateway.settings.fault import Fault, Where
from gateway.settings.schema import ENVIRONMENT_ONLY, SECRETS, Settings

_PHRASES = {
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "int_type": "must be a whole number",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    "missing": "is missing",
    "model_type": "must be a table",
    "path_type": "must be a path in quotes",
    "string_too_short": "must not be empty",
    "string_type": "must be text in quotes",
    "too_short": "must not be empty",
    "tuple_type": 'must be a list, as in ["…"], or tables written as [[…]]',
}
_SELF_EXPLAINED = ("missing", "override")
_LONGEST_QUOTE = 100


class SettingsError(Exception):
    """Why the gateway does not start: `problems`, one line each."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


def tell(
    faults: Iterable[Fault], file: Path | None, lines: Mapping[Where, int], variables: Mapping[Where, str]
) -> list[str]:
    """One line each: the place, the setting's name, what is wrong. First the variables, then by line."""
    told: list[tuple[int, str]] = []
    for where, text in faults:
        variable = _variable(where, variables)
        if variable:
            name = variable if len(where) == 1 else f"{variable} ({dotted(where)})"
            told.append((0, f"{name} {text}"))
        else:
            line = _line(where, lines)
            told.append((line, f"{f'{file}, line {line}: ' if line else ''}{dotted(where)} {text}"))
    told.sort(key=lambda pair: pair[0])
    return [text for _, text in told]


def faults(error: ValidationError) -> list[Fault]:
    """All that pydantic found. A list is not called too short if it is short of its faulty items."""
    found = [(_where(detail), detail) for detail in error.errors(include_url=False)]
    around = {where[:length] for where, _ in found for length in range(len(where))}
    return [Fault(where, _text(where, detail)) for where, detail in found if where not in around]


def dotted(where: Where) -> str:
    """A setting's name as people write it: `models[0].engines[1]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).lstrip(".")


def suggestion(where: Where) -> str:
    """What an unknown name was probably meant to be, as a question, or else the names known there."""
    *section, name = where
    known = _names(section)
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {dotted((*section, near[0]))}?"
    elsewhere = [path for path in settings_paths() if path[-1] == name]
    return f"; did you mean {dotted(elsewhere[0])}?" if elsewhere else f"; known here: {', '.join(known)}"


def _variable(where: Where, variables: Mapping[Where, str]) -> str | None:
    """The variable that gave a setting, or the list in which it is one item."""
    return next((variables[where[:n]] for n in range(len(where), 0, -1) if where[:n] in variables), None)


def _line(where: Where, lines: Mapping[Where, int]) -> int:
    """The line of a setting, or else of the nearest table around it; 0 if the file has neither."""
    return next((lines[where[:n]] for n in range(len(where), 0, -1) if where[:n] in lines), 0)


def _where(detail: ErrorDetails) -> Where:
    return tuple(part for part in detail["loc"] if part != "[key]")


def _text(where: Where, detail: ErrorDetails) -> str:
    kind = detail["type"]
    if kind == "extra_forbidden":
        return f"is no setting{suggestion(where)}"
    if kind == "value_error":
        return f"{detail['ctx']['error']}{_meaning(where)}"
    phrase = _PHRASES[kind].format(**detail.get("ctx", {})) if kind in _PHRASES else detail["msg"]
    if kind in _SELF_EXPLAINED or _may_be_secret(where):
        return f"{phrase}{_meaning(where)}"
    return f"{phrase}; it is {_shown(detail['input'])}{_meaning(where)}"


def _may_be_secret(where: Where) -> bool:
    return where[0] in (*SECRETS, "upstream_url") or "engines" in where


def _shown(value: object) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"


def _meaning(where: Where) -> str:
    *section, name = where
    model = _model(section)
    field = model.model_fields.get(str(name)) if model else None
    return f" ({field.description})" if field and field.description else ""


def _names(section: list[str | int]) -> list[str]:
    model = _model(section)
    hidden = () if section else ENVIRONMENT_ONLY
    return [name for name in model.model_fields if name not in hidden] if model else []


def _model(section: list[str | int]) -> type[BaseModel] | None:
    """The class whose fields the names of a section are, or None where names are free."""
    kind: Any = Settings
    for part in section:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            field = kind.model_fields.get(str(part))
            kind = field.annotation if field else None
        else:  # tuple[Model, ...] or dict[str, Variant]: an index or a free name leads to the class in it
            kind = next((a for a in getattr(kind, "__args__", ()) if _is_model(a)), None)
    return kind if _is_model(kind) else None


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
