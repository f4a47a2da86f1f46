"""From a file and an environment to settings: environment over file over default, or all that is wrong."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gateway.settings import checks, document, environment
from gateway.settings.document import Document
from gateway.settings.fault import Fault
from gateway.settings.problems import SettingsError, suggestion, tell
from gateway.settings.problems import faults as found
from gateway.settings.schema import ENVIRONMENT_ONLY, PREFIX, SECRETS, Settings

DEFAULT_FILE = Path("gateway.toml")


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings that may be used, and what the operator should hear about them."""

    settings: Settings
    warnings: tuple[str, ...]


def load(file: Path | None, environ: Mapping[str, str], *, to_serve: bool = True) -> Loaded:
    """The settings. `file` wins over GATEWAY_CONFIG, which wins over a gateway.toml that is present.

    `to_serve` False is for commands that need no model. Raises SettingsError with every problem found, one
    line each.
    """
    given = environment.read(environ)
    written = _document(file, environ)
    values = _over(_settable(written.values), given.values)
    settings, faults = _validate(values)
    faults += [*_misplaced(written.values), *checks.clashes(values)]
    problems = [*given.problems, *written.problems]
    if faults:
        problems += tell(faults, written.path, document.lines(written.text), given.names)
    if to_serve and not written.problems:
        problems += checks.nothing_to_serve(values)
    if settings:
        problems += checks.same_port(settings)
    if problems or not settings:
        raise SettingsError(problems)
    settings = settings.model_copy(update={"file": written.path})
    return Loaded(settings, (*given.warnings, *checks.unused(settings)))


def _document(file: Path | None, environ: Mapping[str, str]) -> Document:
    if file is not None:
        return document.read(file, "the file")
    if environment.CONFIG in environ:
        name = environ[environment.CONFIG]
        if not name.strip():
            empty = f"{environment.CONFIG} is empty: give the path of a file, or unset it"
            return Document(problems=(empty,))
        return document.read(Path(name), environment.CONFIG)
    return document.read(DEFAULT_FILE, "the file") if DEFAULT_FILE.exists() else Document()


def _settable(values: Mapping[str, Any]) -> dict[str, Any]:
    allowed = Settings.model_fields.keys() - ENVIRONMENT_ONLY
    return {name: value for name, value in values.items() if name in allowed}


def _misplaced(values: Mapping[str, Any]) -> Iterator[Fault]:
    """Top-level names that are no settings, and secrets: a file that people share must not hold them."""
    for name in values.keys() - _settable(values).keys():
        if name in SECRETS:
            variable = PREFIX + name.upper()
            yield Fault((name,), f"does not belong into this file: set {variable} or {variable}_FILE")
        else:
            yield Fault((name,), f"is no setting{suggestion((name,))}")


def _over(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """`low` with `high` above it, sections merged."""
    merged = dict(low)
    for name, value in high.items():
        held = merged.get(name)
        if isinstance(value, dict) and isinstance(held, dict):
            merged[name] = _over(held, value)
        elif not (isinstance(value, dict) and name in low):  # a section that is no table stays, to be refused
            merged[name] = value
    return merged


def _validate(values: dict[str, Any]) -> tuple[Settings | None, list[Fault]]:
    try:
        return Settings(**values), []
    except ValidationError as error:
        return None, found(error)
