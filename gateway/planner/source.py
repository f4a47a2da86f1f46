"""Where a model's description comes from: a folder, the catalogue, or a hub; weights are never fetched."""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from gateway.planner import catalogue, config, hub_client, weights
from gateway.planner.fields import Fields
from gateway.planner.problem import PlanProblem
from gateway.planner.shape import Shape
from gateway.planner.weights import Weights

HUB = "https://huggingface.co"
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_FILE = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*)*\.safetensors")
_MOST_FILES = 1000
_SHOWN = 80
# For one file, however slowly it trickles.
_MOST_SECONDS = 60.0
_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_MAX_FILE_BYTES = 100_000_000


@dataclass(frozen=True, slots=True)
class Model:
    """A model to plan for. `repository` is what `vllm serve` is given: a hub id or a folder."""

    name: str
    repository: str
    shape: Shape
    weights: Weights


@dataclass(frozen=True, slots=True)
class Mends:
    """What an operator can do where a hub gives nothing, in the words of the command that asked it."""

    token: str = "set HF_TOKEN"  # noqa: S105  what to do, no token
    instead: str = (
        "a folder that has its config.json, or a model of the catalogue (gateway plan --table --hardware "
        "spark lists it)"
    )


_MENDS = Mends()


def find(
    name: str, *, drafts: bool = False, environ: Mapping[str, str] = os.environ, mends: Mends = _MENDS
) -> Model:
    """The model of that name: a folder with config.json, a catalogue name, or a hub id.

    With `drafts`, the weights of its own draft head count. Raises PlanProblem, which says what is missing.
    """
    folder = Path(name)
    if _is(stat.S_ISREG, folder / "config.json"):
        return _of_folder(folder, drafts=drafts)
    if entry := catalogue.find(name):
        return Model(entry.name, entry.repository, entry.shape, entry.weights)
    if _is(stat.S_ISDIR, folder):
        raise PlanProblem(f"{folder}/config.json is missing: name the model's own folder.")
    if not _REPOSITORY.fullmatch(name):
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
        raise PlanProblem(
            f"{shown!r} is no folder, no hub id (as in Qwen/Qwen3-8B-AWQ) and not in the catalogue: "
            f"{', '.join(catalogue.names())}."
        )
    return _of_hub(name, environ, mends, drafts=drafts)


def check(repository: str, environ: Mapping[str, str], mends: Mends) -> None:
    """Returns if a hub gives the files of a model. Raises PlanProblem: out of reach, gated, not there."""
    with _asking(repository, environ, mends) as client:
        _json(client, "config.json", repository, mends)


def _is(kind: Callable[[int], bool], path: Path) -> bool:
    """Whether it is there and of that kind; a name that no file can have is not."""
    try:
        return kind(path.stat().st_mode)
    except PermissionError as error:
        raise PlanProblem(f"{path} cannot be looked at ({error.strerror}): let this user read it.") from error
    except (OSError, ValueError):
        return False


def _of_folder(folder: Path, *, drafts: bool) -> Model:
    shape = config.load(folder)
    files = _shards(folder)
    if not files:
        counted = weights.estimate(shape)
        return Model(folder.resolve().name, str(folder), shape, counted)
    tensors = weights.in_folder(files)
    named = f"the headers of {len(files)} safetensors file{'s' if len(files) > 1 else ''}"
    return Model(
        folder.resolve().name, str(folder), shape, weights.measured(shape, tensors, named, drafts=drafts)
    )


def _shards(folder: Path) -> list[Path]:
    """The files that vLLM would load: those of the index where there is one, and nothing beside the model.

    Raises PlanProblem if some of them are not there: a download that has not ended.
    """
    index = folder / _INDEX
    if index.is_file():
        named = _files_of(weights.json_object(index.read_bytes(), str(index)), str(index))
        files = [folder / name for name in named]
        if absent := [file.name for file in files if not file.is_file()]:
            raise PlanProblem(
                f"{folder} lacks {len(absent)} of the {len(files)} files that {_INDEX} names, {absent[0]} "
                "first: finish the download."
            )
        return files
    if (folder / _SINGLE).is_file():
        return [folder / _SINGLE]
    # The same weights in another form, and adapters (vLLM's model_loader/default_loader.py).
    return sorted(
        file
        for file in folder.glob("*.safetensors")
        if file.is_file() and not file.name.startswith(("consolidated", "adapter"))
    )


def _files_of(index: Mapping[str, Any], source: str) -> list[str]:
    """The files that an index names. Raises PlanProblem for names that lead out of the model's folder."""
    named = index.get("weight_map")
    files = set(named.values()) if isinstance(named, dict) and _all_texts(named.values()) else set()
    if not files:
        raise PlanProblem(f"{source} has no weight_map: download it anew.")
    for file in files:
        if not _FILE.fullmatch(file) or ".." in file:
            raise PlanProblem(f"{source} names {file[:80]!r}, which is no file of the model's own.")
    if len(files) > _MOST_FILES:
        raise PlanProblem(f"{source} names {len(files):,} files, and at most {_MOST_FILES:,} can be right.")
    return sorted(files)


def _all_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _of_hub(name: str, environ: Mapping[str, str], mends: Mends, *, drafts: bool) -> Model:
    with _asking(name, environ, mends) as client:
        values = _json(client, "config.json", name, mends)
        beside = _beside(client, name) if config.wants_beside(values) else None
        shape = config.read(values, f"{name}/config.json", beside=beside)
        tensors = _tensors(client, name)
    if tensors is None:
        return Model(name, name, shape, weights.estimate(shape))
    source = f"the headers of its safetensors files at {client.base_url.host}"
    return Model(name, name, shape, weights.measured(shape, tensors, source, drafts=drafts))


@contextmanager
def _asking(name: str, environ: Mapping[str, str], mends: Mends) -> Iterator[httpx.Client]:
    """A client for the files of a model. Raises PlanProblem for what the hub refuses, and if it is away."""
    endpoint = (environ.get("HF_ENDPOINT") or HUB).rstrip("/")
    try:
        hub = httpx.URL(endpoint).host or endpoint  # without a password that may stand in it
        with hub_client.connect(f"{endpoint}/{name}/resolve/main/", _headers(environ)) as client:
            yield client
    except httpx.HTTPStatusError as error:
        raise PlanProblem(f"{name}: {hub} answers {_said(error.response.status_code, mends)}") from error
    except httpx.InvalidURL as error:
        raise PlanProblem(f"HF_ENDPOINT is no address ({error}): as in {HUB}.") from error
    except httpx.HTTPError as error:
        raise PlanProblem(
            f"{name}: {hub} does not answer ({type(error).__name__}). Without a network name "
            f"{mends.instead}; another hub is named by HF_ENDPOINT."
        ) from error


def _beside(client: httpx.Client, name: str) -> Fields | None:
    answer = _get(client, config.BESIDE)
    if answer.status_code == 404:
        return None
    source = f"{name}/{config.BESIDE}"
    return Fields(_object(answer, source), source)


def _headers(environ: Mapping[str, str]) -> dict[str, str]:
    token = environ.get("HF_TOKEN", "").strip()
    if not (token.isascii() and token.isprintable()):
        raise PlanProblem("HF_TOKEN has characters that no token has: copy it anew.")
    return {"authorization": f"Bearer {token}"} if token else {}


def _said(status: int, mends: Mends) -> str:
    if status == 429:
        return f"429, too many requests: wait some minutes, or {mends.token}."
    if status in (401, 403):
        return f"{status}: accept the model's terms on the hub and {mends.token}."
    return f"{status}: try again later, or name {mends.instead}."


def _tensors(client: httpx.Client, name: str) -> dict[str, int] | None:
    """Bytes of all tensors, or None if the hub has no safetensors files of it."""
    index = _get(client, _INDEX)
    if index.status_code == 404:
        files = [_SINGLE] if _get(client, _SINGLE, first=0, last=7).status_code in (200, 206) else []
    else:
        files = _files_of(_object(index, f"{name}/{_INDEX}"), f"{name}/{_INDEX}")
    found: dict[str, int] = {}
    for file in files:
        found |= _header(client, file, f"{name}/{file}")
    return found or None


def _header(client: httpx.Client, file: str, source: str) -> dict[str, int]:
    length = weights.header_length(_get(client, file, first=0, last=7).content[:8], source)
    answer = _get(client, file, first=8, last=7 + length)
    return weights.tensors_of(_object(answer, source), source)


def _get(
    client: httpx.Client, file: str, first: int | None = None, last: int | None = None
) -> httpx.Response:
    """One file, or the bytes from first to last of it, and no more however much is sent."""
    headers = {"range": f"bytes={first}-{last}"} if first is not None else {}
    limit = _MAX_FILE_BYTES if last is None or first is None else last - first + 1
    with client.stream("GET", file, headers=headers) as answer:
        if answer.status_code == 200 and first:
            raise PlanProblem(
                f"{answer.url.host} ignores ranges, and whole weights are not fetched for a plan."
            )
        body, end = bytearray(), time.monotonic() + _MOST_SECONDS
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) >= limit:
                break
            if time.monotonic() > end:
                raise httpx.ReadTimeout(f"{file} is not there after {_MOST_SECONDS:g} s")
        return httpx.Response(answer.status_code, content=bytes(body[:limit]), request=answer.request)


def _json(client: httpx.Client, file: str, name: str, mends: Mends) -> dict[str, Any]:
    answer = _get(client, file)
    if answer.status_code in (401, 403):
        page = f"{client.base_url.netloc.decode()}/{name}"
        raise PlanProblem(f"{name} is gated or does not exist: accept its terms at {page} and {mends.token}.")
    if answer.status_code == 404:
        raise PlanProblem(f"{name} has no {file} on the hub: is the id right?")
    return _object(answer, f"{name}/{file}")


def _object(answer: httpx.Response, source: str) -> dict[str, Any]:
    answer.raise_for_status()
    return weights.json_object(answer.content, source)
