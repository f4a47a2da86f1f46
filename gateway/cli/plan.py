"""`gateway plan`: does a model fit, how fast can it be, which flags and why. See `gateway.planner`."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gateway.planner.hardware import Hardware
    from gateway.planner.plan import Options, Plan
    from gateway.planner.shipped import Shipped

_LEAST = 2**20
_FILE_WIDTH = 130  # where it is not a terminal that says how wide it is
_HARDWARE = (
    "spark, rtx3090, rtx4090, rtx5090, rtx-pro-6000, h100, h200, cpu, or this: the card that NVML shows."
)

ModelName = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODEL]",
        help="A folder with config.json, a name of the catalogue (--table lists it), or a hub id.",
    ),
]
HardwareName = Annotated[str | None, typer.Option("--hardware", metavar="NAME", help=_HARDWARE)]
MemorySize = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="Instead of a name: its memory, as in 24GiB.")
]
Bandwidth = Annotated[
    str | None,
    typer.Option("--bandwidth", metavar="RATE", help="Instead of a name: its memory's rate, as in 936GB/s."),
]
MaxModelLen = Annotated[
    int | None,
    typer.Option("--max-model-len", metavar="N", min=1, help="Tokens of a request, prompt and answer."),
]
MaxNumSeqs = Annotated[
    int | None,
    typer.Option("--max-num-seqs", metavar="N", min=1, help="Requests that the engine runs at once."),
]
BatchedTokens = Annotated[
    int | None, typer.Option("--max-num-batched-tokens", metavar="N", min=1, help="Tokens of one step.")
]
Utilization = Annotated[
    float | None,
    typer.Option("--gpu-memory-utilization", metavar="F", help="The share of memory for vLLM, as in 0.90."),
]
CacheBytes = Annotated[
    str | None,
    typer.Option(
        "--kv-cache-bytes", metavar="N", help="The cache's size, as in 6GiB: no hardware is needed then."
    ),
]
CacheDtype = Annotated[
    str,
    typer.Option(
        "--kv-cache-dtype", metavar="D", help="auto, fp8, int8_per_token_head and so on, as vLLM's."
    ),
]
BlockSize = Annotated[
    int | None, typer.Option("--block-size", metavar="N", min=1, help="Tokens of a block, as vLLM's.")
]
NoPrefixCaching = Annotated[bool, typer.Option("--no-prefix-caching", help="Without the prefix cache.")]
SpeculativeTokens = Annotated[
    int,
    typer.Option("--speculative-tokens", metavar="N", min=0, help="Drafted by the model's own head (MTP)."),
]
TensorParallel = Annotated[
    int,
    typer.Option("--tensor-parallel-size", metavar="N", min=1, help="Cards that the model is spread over."),
]
AsTable = Annotated[bool, typer.Option("--table", help="All models of the catalogue on this hardware.")]
Write = Annotated[
    Path | None,
    typer.Option(
        "--write",
        metavar="FILE",
        help="Write the profile: FILE for vllm serve --config, gateway/NAME.toml beside it for the gateway.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def plan(
    context: typer.Context,
    model: ModelName = None,
    hardware: HardwareName = None,
    memory: MemorySize = None,
    bandwidth: Bandwidth = None,
    max_model_len: MaxModelLen = None,
    max_num_seqs: MaxNumSeqs = None,
    max_num_batched_tokens: BatchedTokens = None,
    gpu_memory_utilization: Utilization = None,
    kv_cache_bytes: CacheBytes = None,
    kv_cache_dtype: CacheDtype = "auto",
    block_size: BlockSize = None,
    no_prefix_caching: NoPrefixCaching = False,
    speculative_tokens: SpeculativeTokens = 0,
    tensor_parallel_size: TensorParallel = 1,
    table: AsTable = False,
    write: Write = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a model fits a machine, how fast it can be, and which flags of vLLM to use and why.

    The KV cache is computed as vLLM will log it; each figure says whether it is computed or estimated.
    Weights are never downloaded. Exit code 1 if no plan can be made, or --write is given and it does not fit.
    """
    from gateway.planner.plan import Options
    from gateway.planner.problem import PlanProblem
    from gateway.planner.units import size_bytes

    try:
        options = Options(
            max_model_len=max_model_len,
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            gpu_memory_utilization=_share(gpu_memory_utilization),
            kv_cache_bytes=size_bytes(kv_cache_bytes, "--kv-cache-bytes") if kv_cache_bytes else None,
            kv_cache_dtype=kv_cache_dtype,
            block_size=block_size,
            prefix_caching=not no_prefix_caching,
            speculative_tokens=speculative_tokens,
            tensor_parallel_size=tensor_parallel_size,
            said=_said(context),
        )
        machine, rate = _machine(hardware, memory, bandwidth, options)
        if table:
            _print_table(model, machine, options, write, as_json=as_json)
        else:
            _print_one(model, machine, rate, options, write, as_json=as_json)
    except PlanProblem as problem:
        typer.echo(f"gateway plan: {problem}", err=True)
        raise typer.Exit(1) from problem


def _said(context: typer.Context) -> frozenset[str]:
    """vLLM's flags that were given by name, so that they win over a shipped profile's own values."""
    renamed = {
        "kv-cache-bytes": "kv-cache-memory-bytes",
        "no-prefix-caching": "enable-prefix-caching",
        "speculative-tokens": "speculative-config",
    }
    given = {
        name.replace("_", "-")
        for name, value in context.params.items()
        if value is not None
        and (source := context.get_parameter_source(name))
        and source.name == "COMMANDLINE"
    }
    ours = {"model", "hardware", "memory", "bandwidth", "table", "write", "as-json"}
    return frozenset(renamed.get(name, name) for name in given - ours)


def _share(given: float | None) -> float | None:
    from gateway.planner.problem import PlanProblem

    if given is not None and not 0 < given <= 1:
        raise PlanProblem(
            f"--gpu-memory-utilization {given:g} is no share of memory: as in --gpu-memory-utilization 0.90."
        )
    return given


def _machine(
    name: str | None, memory: str | None, bandwidth: str | None, options: "Options"
) -> "tuple[Hardware | None, float | None]":
    """The machine, if one was named or described, and a bandwidth that was given without one."""
    from gateway.planner import hardware
    from gateway.planner.problem import PlanProblem
    from gateway.planner.units import rate_bytes, size_bytes

    rate = rate_bytes(bandwidth, "--bandwidth") if bandwidth else None
    if bandwidth and rate is not None:
        _large(rate, "--bandwidth", bandwidth)
    if memory:
        _large(size_bytes(memory, "--memory"), "--memory", memory)
    if name is not None:
        if memory or (bandwidth and name != "this"):
            raise PlanProblem("--hardware and --memory or --bandwidth exclude each other: give one of them.")
        found = hardware.find(name)
        return (replace(found, bandwidth_bytes_per_second=rate) if rate else found), None
    if memory and rate:
        return hardware.described(size_bytes(memory, "--memory"), rate), None
    if options.kv_cache_bytes is not None and not memory:
        return None, rate
    if memory:
        raise PlanProblem("--bandwidth is missing beside --memory: as in --bandwidth 936GB/s.")
    if rate:
        raise PlanProblem("--memory is missing beside --bandwidth: as in --memory 24GiB.")
    return None, None


def _large(amount: float, option: str, text: str) -> None:
    """No machine has less than 2**20 of either: a unit was left out."""
    from gateway.planner.problem import PlanProblem

    if amount < _LEAST:
        raise PlanProblem(
            f"{option} {text!r} is too little for any machine: say its unit, as in GiB or GB/s."
        )


def _print_table(
    name: str | None, machine: "Hardware | None", options: "Options", write: Path | None, *, as_json: bool
) -> None:
    from gateway.planner import answer, every, report
    from gateway.planner.plan import Plan
    from gateway.planner.problem import PlanProblem

    if name or write:
        raise PlanProblem("--table is of all models: leave out MODEL and --write, or --table.")
    plans = every.make_all(machine, options)
    if as_json:
        _print_json([answer.of(one) if isinstance(one, Plan) else answer.refused(one) for one in plans])
    else:
        _print(report.table(plans), whole=True)


def _print_one(
    name: str | None,
    machine: "Hardware | None",
    rate: float | None,
    options: "Options",
    write: Path | None,
    *,
    as_json: bool,
) -> None:
    from gateway.planner import answer, report

    made, profile = _made(name, machine, rate, options, write)
    if write is not None:
        _write(made, write, profile)
    if as_json:
        _print_json(answer.of(made))
    elif write is None:
        _print(report.render(made))


def _made(
    name: str | None, machine: "Hardware | None", rate: float | None, options: "Options", write: Path | None
) -> "tuple[Plan, Shipped | None]":
    """The plan and, if FILE has the name of a shipped profile of this model, that profile."""
    from gateway.planner import hardware, shipped, source
    from gateway.planner.adjusted import make_shipped
    from gateway.planner.plan import make
    from gateway.planner.problem import PlanProblem

    profile = shipped.find(write.stem) if write is not None else None
    if name is None and profile is None:
        raise PlanProblem(
            "MODEL is missing: a folder, a hub id, or a name of the catalogue, as in gateway plan "
            "qwen3.5-35b-a3b-fp8 --hardware spark. --table lists them."
        )
    found = source.find(name or (profile.model if profile else ""), drafts=options.speculative_tokens > 0)
    if profile is not None and found.name == profile.model:
        own = hardware.find(profile.hardware)
        if machine in (None, own):
            return make_shipped(found, own, options, profile), profile
    return make(found, machine, options, rate), None


def _write(made: "Plan", file: Path, profile: "Shipped | None") -> None:
    """FILE and gateway/NAME.toml beside it; what stood there before is kept as `.before`."""
    from gateway.planner import report, writing
    from gateway.planner.problem import PlanProblem

    if not made.fits:
        raise PlanProblem(
            f"{made.model.name} does not fit, and {file} was not written: {report.why_not(made)}"
        )
    kept = writing.write(made, file, profile)
    typer.echo(f"Wrote {file} and {writing.beside(file)}.", err=True)
    if kept:
        typer.echo(f"What stood there before is {' and '.join(map(str, kept))}.", err=True)


def _print(found: Any, *, whole: bool = False) -> None:
    """On a narrow terminal, cells are broken or, of a `whole` table, lines run on: no figure is cut."""
    from rich.console import Console, ConsoleDimensions

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    if whole:
        console.size = ConsoleDimensions(max(console.width, _FILE_WIDTH), console.height)
    console.print(found)


def _print_json(found: Iterable[Any]) -> None:
    import json

    typer.echo(json.dumps(found, indent=2))
