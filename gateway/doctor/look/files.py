"""Files of ours: settings, the profile, secrets (never their text), the data folder, the engine's log."""

import ast
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gateway.doctor.evidence import Configuration, DataDir, EngineLog, SecretFile
from gateway.doctor.finding import Unseen
from gateway.doctor.look import host, regular
from gateway.doctor.profile import Profile
from gateway.doctor.well_known import is_well_known
from gateway.settings import SettingsError, load

NEWEST_BYTES, FIRST_BYTES = 2 << 20, 256 << 10
CONFIG, DEFAULT_FILE = "GATEWAY_CONFIG", Path("gateway.toml")  # as gateway/settings reads them
FOLDER_OF_SECRETS = "secrets"
VARIABLES = ("GATEWAY_UPSTREAM_API_KEY", "GATEWAY_ADMIN_TOKEN", "GATEWAY_SECRET")
ARGS = re.compile(r"non-default args: (\{.*\})")


def configuration(file: Path | None, environ: Mapping[str, str]) -> Configuration | Unseen:
    """The gateway's settings, or all that is wrong with them."""
    if trouble := _unreadable(file, environ):
        return Configuration(None, (trouble,), file=file)
    for twin in (f"{name}_FILE" for name in VARIABLES if environ.get(f"{name}_FILE")):
        # A shell's <(…) does for a gateway, and is gone when it was read.
        if regular.is_endless(Path(environ[twin])):
            return Unseen(f"{twin} names a pipe or a device", f"name a file with {twin}")
    try:
        loaded = load(file, environ)
    except SettingsError as error:
        return Configuration(None, tuple(error.problems), file=file)
    return Configuration(loaded.settings, (), loaded.warnings, loaded.settings.file or file)


def _unreadable(file: Path | None, environ: Mapping[str, str]) -> str:
    """What keeps the file of settings from being read to its end, or at all, with the mend; else nothing."""
    named = environ.get(CONFIG, "").strip()
    config = file or Path(named or DEFAULT_FILE)
    by = f"{CONFIG}_FILE in .env" if file else CONFIG  # the local mode's own is there, or is not named
    if why := regular.trouble(config):
        return f"{why}: put a file of settings in its place, or name another with {by}"
    if (file or named) and regular.is_missing(config):
        return f"{by} names {config}, which is not there: write that file, or name another with {by}"
    if not regular.is_missing(config) and not os.access(config, os.R_OK):
        return f"{config} cannot be read by this user: sudo chmod a+r {shlex.quote(str(config))}"
    return ""


def profile(file: Path) -> Profile | Unseen:
    """The engine's flags in a file for `vllm serve --config`."""
    import yaml  # where no profile is named, nothing is parsed

    if why := regular.trouble(file):
        return Unseen(f"{why}, which holds no flags", "gateway doctor --profile FILE")
    try:
        read = yaml.safe_load(regular.text(file))
    except OSError as error:
        return Unseen(f"{file} cannot be read ({error.strerror})", "gateway doctor --profile FILE")
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return Unseen(f"{file} is not YAML ({' '.join(str(error).split())[:120]})", f"mend {file}")
    if not isinstance(read, dict):
        return Unseen(f"{file} holds no flags", "gateway doctor --profile FILE")
    return Profile(_dashed(read), file)


def logged_profile(log: EngineLog | Unseen) -> Profile | Unseen:
    """The flags as the engine's log tells them at its last start."""
    told = ARGS.findall(log.text) if isinstance(log, EngineLog) else []
    args = _literals(told[-1]) if told else {}
    if not args:
        return Unseen(
            "the engine's flags are not known", "gateway doctor --profile FILE, or --engine-log FILE"
        )
    return Profile(_dashed(args))


def _literals(written: str) -> Mapping[str, Any]:
    """What a printed dict holds; of objects in it, how they are written. Empty if it is no dict."""
    try:
        read = ast.parse(re.sub(r"<[^<>]*>", "None", written), mode="eval").body
    except SyntaxError:
        return {}
    if not isinstance(read, ast.Dict):
        return {}
    pairs = zip(read.keys, read.values, strict=True)
    return {str(key.value): _literal(value) for key, value in pairs if isinstance(key, ast.Constant)}


def _literal(value: ast.expr) -> Any:
    try:
        return ast.literal_eval(value)
    except ValueError:
        return ast.unparse(value)


def _dashed(flags: Mapping[Any, Any]) -> Mapping[str, Any]:
    """vLLM takes its flags with dashes and with underscores."""
    return {str(name).replace("_", "-"): value for name, value in flags.items()}


def log(file: Path) -> EngineLog | Unseen:
    """The engine's log: its beginning, which has the flags, and its newest lines."""
    try:
        if file.exists() and not file.is_file():
            return Unseen(f"{file} is no file", "gateway doctor --engine-log FILE")
        size = file.stat().st_size
        with file.open("rb") as opened:
            text = opened.read(FIRST_BYTES)
            if size > FIRST_BYTES + NEWEST_BYTES:
                opened.seek(size - NEWEST_BYTES)
            text += opened.read(NEWEST_BYTES)
    except OSError as error:
        return Unseen(f"{file} cannot be read ({error.strerror})", "gateway doctor --engine-log FILE")
    return EngineLog(str(file), text.decode(errors="replace"))


def data_dir(folder: Path) -> DataDir:
    """Whether the folder can be written to, or made."""
    there = host.nearest(folder)
    trouble = ""
    if not there.is_dir():
        trouble = f"{there} is no folder"
    elif not os.access(there, os.W_OK | os.X_OK):
        trouble = f"{there} is not writable by this user"
    else:
        closed = [file.name for file in folder.glob("*.db*") if not os.access(file, os.R_OK | os.W_OK)]
        trouble = f"{', '.join(closed)} is not writable by this user" if closed else ""
    return DataDir(
        folder, trouble, host.filesystem(there), host.free_bytes(there), there=there == folder.absolute()
    )


def secrets(folder: Path, environ: Mapping[str, str]) -> tuple[SecretFile, ...]:
    """The secrets in `secrets/`, in variables and in the files that those name."""
    found = [_file(file, f"{FOLDER_OF_SECRETS}/{file.name}") for file in _in(folder / FOLDER_OF_SECRETS)]
    for name in VARIABLES:
        if environ.get(name):
            found.append(_of(name, environ[name], 0, reachable=False))
        elif environ.get(f"{name}_FILE"):
            found.append(_file(Path(environ[f"{name}_FILE"]), environ[f"{name}_FILE"]))
    return tuple(one for one in found if one)


def _in(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(file for file in folder.iterdir() if file.is_file())
    except OSError:
        return


def _file(file: Path, name: str) -> SecretFile | None:
    try:
        if not file.is_file():
            return None
        mode = stat.S_IMODE(file.stat().st_mode)
        with file.open("rb") as opened:
            text = opened.read(65_536).decode(errors="replace").strip()
    except OSError:
        return None
    return _of(name, text, mode, reachable=_open_to_all(file))


def _of(name: str, text: str, mode: int, *, reachable: bool) -> SecretFile:
    return SecretFile(name, mode, len(text), is_well_known(text), reachable)


def _open_to_all(file: Path) -> bool:
    """Whether every folder on the way lets others of this host through."""
    return all(folder.stat().st_mode & 0o001 for folder in file.resolve().parents)


def line(file: Path) -> str:
    """What a file holds beside white space; empty if it is not there."""
    try:
        return regular.text(file).strip()
    except (OSError, UnicodeDecodeError):
        return ""
