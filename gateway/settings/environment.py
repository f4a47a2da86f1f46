"""The variables: which there are, what they hold, and what is said about those that are none of ours."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_settings import EnvSettingsSource

from gateway.settings import secret_files
from gateway.settings.fault import Where
from gateway.settings.fields import Spelled
from gateway.settings.schema import FILE_ONLY, PREFIX, Settings

CONFIG = "GATEWAY_CONFIG"


@dataclass(frozen=True, slots=True)
class Environment:
    """Nested values for the settings that variables give; `names` holds the variable of each path."""

    values: dict[str, Any]
    names: dict[Where, str]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def variables() -> dict[str, tuple[str, ...]]:
    """Every variable that is a setting, with the setting's path; without the secrets' `*_FILE` twins."""
    return {PREFIX + "__".join(path).upper(): path for path in settings_paths() if path[0] not in FILE_ONLY}


def settings_paths(
    model: type[BaseModel] = Settings, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """The path of every setting, sections unfolded; `models` is one path and `file` none."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from settings_paths(kind, (*path, name))
        elif (*path, name) != ("file",):
            yield (*path, name)


def read(environ: Mapping[str, str]) -> Environment:
    """What the variables say. Unknown ones and those that a container platform injected become warnings."""
    known = variables()
    secrets = secret_files.read(environ)
    ours = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    injected = {name for name in ours if name.endswith("PORT") and name in known and "://" in ours[name]}
    unknown = ours.keys() - known.keys() - {CONFIG, *secret_files.TWINS}
    given = {
        name: value
        for name, value in ours.items()
        if name in known and name not in injected and name not in secret_files.VARIABLES
    }
    given.update(secrets.values)
    return Environment(
        values=_nest(given),
        names={known[name]: name for name in given},
        problems=tuple(secrets.problems),
        warnings=(
            *secrets.warnings,
            *(f"{name} holds '://': a container platform set it, ignored" for name in sorted(injected)),
            *(_unknown(name, [*known, CONFIG, *secret_files.TWINS]) for name in sorted(unknown)),
        ),
    )


def _nest(given: Mapping[str, str]) -> dict[str, Any]:
    source = EnvSettingsSource(Settings)
    source.env_vars = {name.lower(): Spelled(value) for name, value in given.items()}
    return source()


def _unknown(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return f"{name} is not a setting, ignored" + (f"; did you mean {close[0]}?" if close else "")
