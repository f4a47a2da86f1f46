"""The engine's flags against each other, against the GPU, and against what callers send."""

from collections.abc import Iterator

from gateway.doctor import spread
from gateway.doctor.evidence import Compose
from gateway.doctor.finding import NOT_ASKED, Finding, NotLookedError, Severity, Unseen
from gateway.doctor.kv_cache import HALF_WITHOUT_FP8, OF_FLASHINFER, capability, fp8
from gateway.doctor.machine import Gpu, Machine, memory
from gateway.doctor.profile import Profile
from gateway.doctor.vllm import LARGE_DEVICE_MIB

# vLLM ends with "unrecognized arguments" on these; what stands for them now, as of 0.32.
REMOVED = {
    "swap-space": "leave it out: vLLM recomputes instead of swapping",
    "disable-log-requests": "leave it out: requests are not logged unless enable-log-requests: true",
    "guided-decoding-backend": "structured-outputs-config: {backend: auto}",
    "enable-reasoning": "leave it out: reasoning-parser alone switches it on",
    "use-v2-block-manager": "leave it out",
    "num-scheduler-steps": "leave it out: scheduling is asynchronous by itself",
}
Trouble = tuple[Severity, str, str, str]  # its severity, title, evidence and mend
# v1/attention/backends/flashinfer.py of vLLM; on these cards it leaves them to Triton.
WITHOUT_FLASHINFER = (
    "attention sinks (gpt-oss), MLA (DeepSeek), images read both ways (Gemma 3), or heads other than 64, "
    "128, 256 and 512"
)
USUAL_TOOLS = "hermes"  # what most families write that are not known by name


def flags(
    profile: Profile, machine: Machine | Unseen, compose: Compose | Unseen = NOT_ASKED
) -> Iterator[Finding]:
    """Flags that the engine would refuse, or that the first of its cards cannot."""
    check, place = "profile", profile.place
    troubles, unknown = list(_refused(profile)), None
    if isinstance(machine, Machine) and machine.gpus:
        try:
            troubles += _of_card(profile, machine, spread.used(machine, profile, compose)[0])
        except NotLookedError as lacking:
            unknown = lacking.unseen
    for severity, title, evidence, mend in troubles:
        yield Finding(check, severity, title, evidence, f"{mend} (in {place})")
    if unknown:
        why = f"not looked at, because {unknown.why}"
        yield Finding(check, "skipped", "Flags against the engine's card", why, unknown.mend)
    if not troubles:
        model = profile.model or "no model named"
        yield Finding(check, "ok", "The engine's flags go together", f"{place}: {model}")


def _refused(profile: Profile) -> Iterator[Trouble]:
    for flag in REMOVED.keys() & profile.flags.keys():
        yield "error", f"vLLM has no flag {flag} any more and does not start with it", flag, REMOVED[flag]
    if profile.file and not profile.flags.get("model"):
        yield "error", "The profile names no model", "no line `model:`", "write model: owner/name"
    batched, seqs = profile.number("max-num-batched-tokens"), profile.number("max-num-seqs")
    if batched and seqs and batched < seqs:
        evidence = f"max-num-batched-tokens {batched:g}, max-num-seqs {seqs:g}"
        title = "A step of fewer tokens than there are requests: vLLM refuses to start"
        yield "error", title, evidence, f"max-num-batched-tokens: {max(2048, int(seqs))}"
    share = profile.number("gpu-memory-utilization")
    if share is not None and not 0 < share <= 1:
        title = "gpu-memory-utilization is a share between 0 and 1"
        yield "error", title, f"{share:g}", "gpu-memory-utilization: 0.90"
    if profile.flags.get("enable-prefix-caching") is False:
        title = "Prefix caching is off: each turn of a chat is read from its beginning"
        yield "hint", title, "enable-prefix-caching: false", "enable-prefix-caching: true"


def _of_card(profile: Profile, machine: Machine, gpu: Gpu) -> Iterator[Trouble]:
    total, _ = memory(machine, gpu)
    if total >= LARGE_DEVICE_MIB and profile.number("max-num-seqs") is None:
        title = "vLLM takes 1,024 requests at once on so much memory: large graphs, and all of them slow"
        yield "warning", title, f"max-num-seqs unset, {total / 1024:.0f} GiB", "max-num-seqs: 64"
    yield from _of_cache(profile, gpu)


def _of_cache(profile: Profile, gpu: Gpu) -> Iterator[Trouble]:
    cache = str(profile.flags.get("kv-cache-dtype") or "auto").lower()
    if cache.startswith("fp8"):
        yield from _of_fp8(profile, gpu, cache)
    if profile.number("kv-cache-memory-bytes") and profile.number("gpu-memory-utilization") is None:
        title = "The size of the cache is fixed, and the start still asks for 0.92 of the memory to be free"
        mend = "gpu-memory-utilization: 0.5, lower than what is free (v1/worker/utils.py, request_memory)"
        yield "hint", title, "kv-cache-memory-bytes set, gpu-memory-utilization not", mend


def _of_fp8(profile: Profile, gpu: Gpu, cache: str) -> Iterator[Trouble]:
    starts, has = fp8(profile, gpu, cache), capability(gpu)
    if starts == "yes":
        return
    told = "" if has is None else f", compute capability {has[0]}.{has[1]}"
    evidence, others = f"kv-cache-dtype {cache}{told}", f"{HALF_WITHOUT_FP8} for half the memory"
    if starts == "by FlashInfer":
        title = f"{gpu.name} has fp8 caches by FlashInfer alone: models that it cannot serve do not start"
        mend = f"attention-backend: flashinfer; for a model with {WITHOUT_FLASHINFER}: "
        yield "warning", title, evidence, f"{mend}kv-cache-dtype: auto, or {others}, which MLA has not"
        return
    title = f"{gpu.name} has no fp8e4nv in Triton: an fp8 cache does not start there"
    backend = ", or attention-backend: flashinfer" if cache in OF_FLASHINFER and has and has >= (8, 0) else ""
    yield "error", title, evidence, f"kv-cache-dtype: auto, or {others}{backend}"


def parsers(profile: Profile) -> Iterator[Finding]:
    """Whether tools and thinking are read out of the model's text, by what fits it."""
    check, place, found = "parsers", profile.place, profile.flags
    model = profile.model
    tools, tool_parser = found.get("enable-auto-tool-choice"), found.get("tool-call-parser")
    fitting = profile.parsers.tools if profile.parsers else f"{USUAL_TOOLS}, or the model's own"
    troubles = False
    if tools and not tool_parser:
        troubles = True
        title = "vLLM does not start: enable-auto-tool-choice requires tool-call-parser"
        yield Finding(check, "error", title, place, f"tool-call-parser: {fitting} (in {place})")
    elif not tools:
        troubles = True
        title = 'Calls with tools are refused: "auto" tool choice requires a tool parser'
        mend = f"enable-auto-tool-choice: true and tool-call-parser: {fitting} (in {place})"
        yield Finding(check, "warning", title, f"{place} sets neither", mend)
    wanted = profile.parsers.reasoning if profile.parsers else None
    if wanted and not found.get("reasoning-parser"):
        troubles = True
        title = "The model's thinking ends up in its answers: there is no reasoning parser"
        yield Finding(check, "warning", title, model, f"reasoning-parser: {wanted} (in {place})")
    if not troubles:
        told = f"tools: {tool_parser}, reasoning: {found.get('reasoning-parser') or 'none'}"
        yield Finding(check, "ok", "Tools and thinking are parsed", told)
