"""Profiles that `make model` writes: beside the shipped ones, never over one, and kept once they are there.

The overlay stays that of the box's card (PROFILE); what changes is what the engine and the gateway read.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from deploy.box import profiles
from deploy.box.machine import Machine
from deploy.box.places import Places
from deploy.local import model_block, whole_file
from deploy.local.problem import Problem
from gateway.doctor.machine import Gpu
from gateway.planner import catalogue, hardware, profile, shipped
from gateway.planner.hardware import Hardware
from gateway.planner.plan import Options, Plan, served_name
from gateway.planner.problem import PlanProblem
from gateway.planner.profile import ENGINE_URL
from gateway.planner.source import Model
from gateway.planner.units import GIB

MIB = 2**20
MEMORY_LIMIT = re.compile(r"(?m)^\s*mem_limit:\s*(\d+)g")
# Of the 3.0 GB that vLLM's CPU build was seen to take with SmolLM2: all but weights and cache.
CPU_OVERHEAD_BYTES = 1_700_000_000
CPU_SEQS = 32
IN_CONTAINER = "/weights"
MOST_OF_A_NAME = 150


@dataclass(frozen=True)
class Files:
    """What the engine and the gateway read, as .env names it: paths below the checkout."""

    engine: str
    gateway: str

    @staticmethod
    def named(found: Mapping[str, str], prefix: str = "") -> "Files":
        """Those that .env names; with `BACK_` those of the model before, empty without one."""
        return Files(found.get(f"{prefix}PROFILE_FILE", ""), found.get(f"{prefix}GATEWAY_CONFIG_FILE", ""))

    def variables(self, prefix: str = "") -> dict[str, str]:
        """The lines of .env that name them."""
        return {f"{prefix}PROFILE_FILE": self.engine, f"{prefix}GATEWAY_CONFIG_FILE": self.gateway}

    def missing(self, places: Places) -> list[str]:
        """Which of them are no files."""
        return [name for name in (self.engine, self.gateway) if not (places.checkout / name).is_file()]


def hardware_of(places: Places, seen: Machine, found: Mapping[str, str]) -> Hardware:
    """What the engine of this box runs on. Raises Problem for a card that cannot be planned for."""
    name = found["PROFILE"]
    if name == profiles.WITHOUT_GPU:
        return _cpu(places)
    if not seen.gpus:
        raise Problem("nvidia-smi shows no GPU here, so that nothing can be planned: nothing was changed.")
    at = profiles.card(seen, name)
    try:
        return _of_card(seen.gpus[at])
    except PlanProblem as problem:
        raise Problem(f"{problem} Nothing was changed.") from problem


def _of_card(card: Gpu) -> Hardware:
    told = card.memory * MIB if card.memory else None
    return hardware.of_card(card.name, told, capability=card.capability)


def _cpu(places: Places) -> Hardware:
    here = hardware.find(profiles.WITHOUT_GPU)
    overlay = (places.profiles / "compose" / f"{profiles.WITHOUT_GPU}.yaml").read_text(encoding="utf-8")
    limit = MEMORY_LIMIT.search(overlay)
    most = min(here.memory_bytes, int(limit[1]) * GIB if limit else here.memory_bytes) - CPU_OVERHEAD_BYTES
    return replace(here, memory_bytes=most, utilization=1.0)


def options(places: Places, machine: Hardware, found: Mapping[str, str]) -> Options:
    """What is decided already: never more of a card than the profile in use takes."""
    if machine.cpu:
        return Options(kv_cache_bytes=GIB, max_num_seqs=CPU_SEQS)
    taken = profiles.memory_taken(places.checkout / found["PROFILE_FILE"])
    return Options(gpu_memory_utilization=min(taken or 1.0, machine.utilization))


def in_container(model: Model, found: Mapping[str, str]) -> Model:
    """A model as the engine's container names it. Raises Problem for a folder that it does not see."""
    if not Path(model.repository).is_dir():
        return model
    folder, weights = Path(model.repository).resolve(), found.get("WEIGHTS_DIR", "")
    if not weights or not folder.is_relative_to(Path(weights).resolve()):
        raise Problem(
            f"the engine's container sees no folder but WEIGHTS_DIR ({weights or 'not set'}): move the model "
            "into it, or set WEIGHTS_DIR in .env to a folder that holds it, then make up. Nothing was "
            "changed."
        )
    return replace(model, repository=f"{IN_CONTAINER}/{folder.relative_to(Path(weights).resolve())}")


def provide(places: Places, plan: Plan, found: Mapping[str, str]) -> tuple[Files, list[Path]]:
    """The files of a plan, and those that were written for it: none that was there is touched.

    For the model of the box's shipped profile that is the profile.
    """
    if (own := shipped.find(found["PROFILE"])) and own.model == plan.model.name and _of_hub(plan):
        return Files(f"./deploy/profiles/{own.name}.yaml", f"./deploy/profiles/gateway/{own.name}.toml"), []
    name = _name(places, plan)
    files = _files(places, name)
    texts = {files.engine: profile.serve_file(plan), files.gateway: _gateway(places, plan, name, found)}
    written: list[Path] = []
    try:
        for path, text in texts.items():
            file = places.checkout / path
            if not file.exists():
                written.append(file)
                file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                whole_file.replace(file, text, mode=whole_file.PUBLIC)
    except BaseException:
        # Half a profile would be taken as it is the next time.
        for file in written:
            file.unlink(missing_ok=True)
        raise
    return files, written


def _of_hub(plan: Plan) -> bool:
    """Whether it is the catalogue's model, and no folder that is called the same."""
    known = catalogue.find(plan.model.name)
    return known is not None and known.repository == plan.model.repository


def _name(places: Places, plan: Plan) -> str:
    """What the files of a model are called: another name than files have that are of another model."""
    repository = plan.model.repository
    plain = re.sub(r"[^a-z0-9.]+", "-", repository.lower()).strip("-.")[:MOST_OF_A_NAME]
    told_apart = f"{plain}-{hashlib.sha256(repository.encode()).hexdigest()[:8]}"
    return plain if _is_of(places, _files(places, plain), plan) else told_apart


def _files(places: Places, name: str) -> Files:
    folder = f"./{places.own_profiles.relative_to(places.checkout)}"
    return Files(f"{folder}/{name}.yaml", f"{folder}/gateway/{name}.toml")


def _is_of(places: Places, files: Files, plan: Plan) -> bool:
    """Whether these files are of that model, or not there; whatever else an operator has edited in them."""
    engine, gateway = places.checkout / files.engine, places.checkout / files.gateway
    if engine.exists():
        return (
            _read(engine.read_text(encoding="utf-8", errors="replace")).get("model") == plan.model.repository
        )
    if not gateway.exists():
        return True
    text = gateway.read_text(encoding="utf-8", errors="replace")
    return model_block.id_of(text, ENGINE_URL) == served_name(plan.model.name)


def _read(text: str) -> dict[str, object]:
    """The flags of an engine's file, as vLLM reads them; none if it cannot."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, dict) else {}


def _gateway(places: Places, plan: Plan, name: str, found: Mapping[str, str]) -> str:
    """The gateway's file: as planned, or an operator's own with the planned model in the place of its own."""
    planned = profile.gateway_file(plan, name)
    before = places.checkout / found["GATEWAY_CONFIG_FILE"]
    ours = before.parent == places.profiles / "gateway" and before.stem in shipped.names()
    if ours or not before.is_file():
        return planned
    text = before.read_text(encoding="utf-8")
    block = model_block.adapted(model_block.of_engine(planned, ENGINE_URL), text, ENGINE_URL)
    return model_block.put(text, ENGINE_URL, block, most_tokens=profile.most_tokens(plan))
