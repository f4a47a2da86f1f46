"""Which repositories a file for `vllm serve --config` names. What they hold is the hub's to say."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from problems import Problem

DEFAULT_REVISION = "main"


@dataclass(frozen=True)
class Wanted:
    """A model, or with `weights` unset the tokenizer alone, at a revision: a commit, a branch or a tag."""

    name: str
    revision: str = DEFAULT_REVISION
    load_format: str = "auto"
    weights: bool = True

    @property
    def is_folder(self) -> bool:
        """Whether the name is a path and not a repository's `owner/name`."""
        return self.name.startswith(("/", ".", "~"))


def wanted(file: Path) -> tuple[Wanted, ...]:
    """The model first, then what else is to be downloaded with it. Raises Problem if it names no model."""
    settings = _settings(file)
    if not isinstance(model := settings.get("model"), str) or not model.strip():
        raise Problem(f"{file} names no model: it needs a line `model: owner/name`")
    load_format = str(settings.get("load-format") or "auto")
    first = Wanted(model, _revision(settings), load_format)
    return (first, *_tokenizer(settings, first), *_draft(settings, load_format))


def _settings(file: Path) -> dict[str, Any]:
    try:
        read = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Problem(f"{file} cannot be read: {error.strerror}; PROFILE_FILE in .env names it") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Problem(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    return _dashed(read)


def _dashed(read: Any) -> dict[str, Any]:
    """vLLM takes its flags with dashes and with underscores."""
    return (
        {str(name).replace("_", "-"): value for name, value in read.items()} if isinstance(read, dict) else {}
    )


def _revision(settings: dict[str, Any], name: str = "revision") -> str:
    # A commit of digits alone, unquoted, is a number to YAML.
    return str(settings.get(name) or DEFAULT_REVISION)


def _tokenizer(settings: dict[str, Any], model: Wanted) -> tuple[Wanted, ...]:
    name = settings.get("tokenizer")
    if not isinstance(name, str) or name == model.name:
        return ()
    return (Wanted(name, _revision(settings, "tokenizer-revision"), weights=False),)


def _draft(settings: dict[str, Any], load_format: str) -> tuple[Wanted, ...]:
    """The draft model of speculative decoding, where it is another one (an MTP head lies in the model)."""
    speculative = settings.get("speculative-config")
    if isinstance(speculative, str):
        speculative = yaml.safe_load(speculative)  # JSON in a string, which is YAML too
    draft = _dashed(speculative)
    name = draft.get("model")
    if not isinstance(name, str) or "/" not in name or name == settings.get("model"):
        return ()
    return (Wanted(name, _revision(draft), load_format),)
