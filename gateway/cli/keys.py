"""`gateway keys`: the verbs of the keyring as commands, on the same database as a running server.

Libraries of the database are imported by the command that needs them: `gateway --help` answers at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orjson
import typer

from gateway.cli import key_options as option
from gateway.errors import GatewayError

if TYPE_CHECKING:
    from gateway.keys import Issued, Key, Keyring
    from gateway.store import Opening

_Answer = TypeVar("_Answer")

NOT_ENFORCED = ("priority", "weight")

# No locals in a traceback: they hold keys.
app = typer.Typer(help="Manage API keys.", no_args_is_help=True, pretty_exceptions_show_locals=False)


@app.command()
def create(
    name: option.Name,
    rpm: option.Rpm = None,
    tpm: option.Tpm = None,
    max_parallel: option.MaxParallel = None,
    tokens_per_day: option.TokensPerDay = None,
    tokens_per_month: option.TokensPerMonth = None,
    models: option.Models = None,
    expires: option.Expires = None,
    priority: option.Priority = None,
    weight: option.Weight = None,
    cache_group: option.CacheGroup = None,
    defaults: option.Defaults = None,
    force: option.Force = None,
    metadata: option.Metadata = None,
    key: option.Token = None,
    as_json: option.AsJson = False,
    data_dir: option.DataDir = None,
) -> None:
    """Create a key and print it, this once."""
    with _errors_told():
        given = option.fields(
            name=name, rpm=rpm, tpm=tpm, max_parallel=max_parallel,
            tokens_per_day=tokens_per_day, tokens_per_month=tokens_per_month, models=models,
            expires_at=expires, priority=priority, weight=weight, cache_group=cache_group,
            defaults=defaults, force=force, metadata=metadata, key=key,
        )  # fmt: skip
        directory = _directory(data_dir)
        is_first = not _database(directory).exists()
        issued = _run(directory, lambda keyring: keyring.create(given), "create")
    if is_first:
        made = _database(directory)
        typer.echo(
            f"{made} was made for it: a gateway with another data directory knows no such key.", err=True
        )
    _tell_not_enforced(given)
    _print_issued(issued, as_json)


@app.command("list")
def list_all(as_json: option.AsJson = False, data_dir: option.DataDir = None) -> None:
    """List all keys, revoked ones too."""
    with _errors_told():
        found = _run(data_dir, lambda keyring: keyring.list_all())
    if as_json:
        _print_json([key.as_json() for key in found])
    else:
        _print_table(found)


@app.command()
def show(key_id: option.KeyId, as_json: option.AsJson = False, data_dir: option.DataDir = None) -> None:
    """Show all fields of a key."""
    with _errors_told():
        found = _run(data_dir, lambda keyring: keyring.show(key_id))
    _print_key(found, as_json)


@app.command()
def update(
    key_id: option.KeyId,
    name: option.NewName = None,
    rpm: option.Rpm = None,
    tpm: option.Tpm = None,
    max_parallel: option.MaxParallel = None,
    tokens_per_day: option.TokensPerDay = None,
    tokens_per_month: option.TokensPerMonth = None,
    models: option.Models = None,
    expires: option.Expires = None,
    priority: option.Priority = None,
    weight: option.Weight = None,
    cache_group: option.CacheGroup = None,
    defaults: option.Defaults = None,
    force: option.Force = None,
    metadata: option.Metadata = None,
    as_json: option.AsJson = False,
    data_dir: option.DataDir = None,
) -> None:
    """Change fields of a key: none unsets one, unlimited overrides a default limit."""
    with _errors_told():
        given = option.fields(
            name=name, rpm=rpm, tpm=tpm, max_parallel=max_parallel,
            tokens_per_day=tokens_per_day, tokens_per_month=tokens_per_month, models=models,
            expires_at=expires, priority=priority, weight=weight, cache_group=cache_group,
            defaults=defaults, force=force, metadata=metadata,
        )  # fmt: skip
        changed = _run(data_dir, lambda keyring: keyring.update(key_id, given))
    _tell_not_enforced(given)
    _print_key(changed, as_json)


@app.command()
def rotate(
    key_id: option.KeyId,
    overlap: option.Overlap = None,
    as_json: option.AsJson = False,
    data_dir: option.DataDir = None,
) -> None:
    """Give a key a new secret under the same id, and print it, this once."""
    with _errors_told():
        given = option.fields(overlap=overlap)
        issued = _run(data_dir, lambda keyring: keyring.rotate(key_id, given))
    _print_issued(issued, as_json)
    if not as_json:
        typer.echo(_old_key(issued.key, overlap), err=True)


@app.command()
def revoke(key_id: option.KeyId, as_json: option.AsJson = False, data_dir: option.DataDir = None) -> None:
    """Shut a key out for good; its running streams are cut within a second."""
    with _errors_told():
        revoked = _run(data_dir, lambda keyring: keyring.revoke(key_id))
    if as_json:
        _print_json(revoked.as_json())
    else:
        typer.echo(f"Key {revoked.id} ({revoked.name}) is revoked.")


@contextmanager
def _errors_told() -> Iterator[None]:
    try:
        yield
    except GatewayError as error:
        typer.echo(f"gateway: {error.message}", err=True)
        raise typer.Exit(1) from error


def _run(
    data_dir: Path | None,
    work: "Callable[[Keyring], Awaitable[_Answer]]",
    opening: "Opening" = "existing",
) -> _Answer:
    from gateway.keys import Keyring
    from gateway.store import Store

    async def with_keyring() -> _Answer:
        async with Store(_directory(data_dir), opening) as store:
            return await work(Keyring(store))

    return asyncio.run(with_keyring())


def _database(directory: Path) -> Path:
    from gateway.store.schema import KEYS

    return directory.absolute() / KEYS.file_name


def _directory(given: Path | None) -> Path:
    if given is not None:
        return given.expanduser()
    from gateway.cli.configuration import loaded

    advice = ("mend that, or name the data directory with --data-dir",)
    return loaded(to_serve=False, advice=advice).settings.data_dir


def _print_json(value: object) -> None:
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def _print_issued(issued: "Issued", as_json: bool) -> None:
    if as_json:
        _print_json(issued.as_json())
        return
    typer.echo(issued.token)
    typer.echo(
        f"This is key {issued.key.id} ({issued.key.name}). Keep it now: only its hash is stored, "
        "and it cannot be shown again.",
        err=True,
    )


def _tell_not_enforced(given: Mapping[str, object]) -> None:
    kept = [name for name in NOT_ENFORCED if given.get(name) is not None]
    if kept:
        typer.echo(f"kept, and not yet enforced by this version: {', '.join(kept)}", err=True)


def _old_key(key: "Key", overlap: str | None) -> str:
    """What becomes of the secret that was replaced just now; `overlap` has been found valid."""
    from gateway.keys import times

    length = times.duration(overlap or "")
    if not length:
        return "The old key no longer works."
    ends = (times.now() + length).replace(microsecond=0)
    if key.expires_at is not None:
        ends = min(ends, key.expires_at)
    return f"The old key works until {times.as_text(ends)}."


def _print_key(key: "Key", as_json: bool) -> None:
    if as_json:
        _print_json(key.as_json())
        return
    for name, value in key.as_json().items():
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        unset = "all" if name == "models" else "-"
        typer.echo(f"{name:<16}  {unset if value is None else text}")


def _print_table(found: "list[Key]") -> None:
    from gateway.cli.key_table import print_table

    print_table(found)
