"""Whether the engine answers, makes tokens, serves what the gateway asks for, and stays up."""

from collections.abc import Iterator, Sequence

from gateway.doctor.evidence import Configuration, Container, Engine
from gateway.doctor.finding import Finding, NotLookedError, Unseen, seen
from gateway.settings import Model

# A step over a whole batch of long prompts takes seconds on the slowest box; half a minute takes none.
SURE_SECONDS = 30.0
LEAST_SECONDS = 0.9  # --seconds 1; a busy engine takes less for a step as a rule, and not always
LOGS = "docker compose logs --tail 100 vllm"


def answers(engine: Engine, *, expected: bool) -> Iterator[Finding]:
    """Whether the engine lists its models; one that is not expected to run is not looked at."""
    models = engine.models if expected else seen(engine.models)
    if isinstance(models, tuple):
        yield Finding("engine", "ok", f"The engine {engine.url} answers", f"it serves {', '.join(models)}")
    else:
        title = f"The engine {engine.url} does not answer"
        mend = models.mend or f"curl {engine.url}/health; {LOGS}"
        yield Finding("engine", "error", title, models.why, mend)


def names(engine: Engine, configuration: Configuration) -> Iterator[Finding]:
    """Whether the engine lists the models that the gateway asks it for."""
    check, listed = "engine-models", seen(engine.models)
    models = configuration.settings.models if configuration.settings else ()
    missing = [model for model in models if _asks(model, engine, listed)]
    for model in missing:
        title = f"{model.id}: the engine does not serve {model.engine_model or model.id}"
        mend = (
            f'--served-model-name {model.id} for the engine, or engine_model = "{listed[0]}" in gateway.toml'
        )
        yield Finding(check, "error", title, f"{engine.url} lists {', '.join(listed)}", mend)
    if not missing:
        told = f"{engine.url} lists {', '.join(listed)}"
        yield Finding(check, "ok", "The engine serves what is asked for", told)


def _asks(model: Model, engine: Engine, listed: Sequence[str]) -> bool:
    return engine.url in model.engines and (model.engine_model or model.id) not in listed


def hung(engine: Engine) -> Iterator[Finding]:
    """Whether requests run and no token comes: the cache does not move either, so it reads no long prompt."""
    check, scrape = "engine-hung", seen(engine.scrape)
    running = min(sample.sum("vllm:num_requests_running") for sample in (scrape.first, scrape.last))
    made = scrape.grown("vllm:generation_tokens_total") + scrape.grown("vllm:prompt_tokens_total")
    still = scrape.grown("vllm:kv_cache_usage_perc") == 0
    evidence = f"{running:.0f} run, {made:.0f} tokens in {scrape.seconds:.0f} s"
    if not running or made or not still:
        yield Finding(check, "ok", "The engine makes tokens, or has nothing to do", evidence)
    elif scrape.seconds < LEAST_SECONDS:
        why = f"the counters were read {scrape.seconds:g} s apart, and a step may take longer"
        raise NotLookedError(Unseen(why, "gateway doctor --running --seconds 60"))
    elif scrape.seconds >= SURE_SECONDS:
        title = "The engine hangs: requests run and nothing comes of them"
        mend = f"{LOGS} > hung-vllm.log; docker compose restart vllm (docs/runbooks/EngineHung.md)"
        yield Finding(check, "error", title, evidence, mend)
    else:
        title = "The engine made no token while requests ran: it hangs, or has a very long step"
        yield Finding(check, "warning", title, evidence, "gateway doctor --running --seconds 60 decides")


def restarts(containers: Sequence[Container]) -> Iterator[Finding]:
    """Whether containers of the stack keep ending, and of what."""
    check, found = "containers", False
    for one in containers:
        if one.out_of_memory:
            found = True
            title = f"{one.service} was ended by the kernel, because memory ran out"
            mend = (
                "lower gpu-memory-utilization by 0.1 on unified memory; free -h; sudo dmesg -T | grep -i oom"
            )
            yield Finding(check, "error", title, f"exit code {one.exit_code}", mend)
        elif one.state not in {"running", "created"} and one.exit_code:
            found = True
            title = f"{one.service} ended with code {one.exit_code}"
            yield Finding(check, "error", title, one.state, f"docker compose logs --tail 50 {one.service}")
        elif one.restarts >= 3:
            found = True
            title = f"{one.service} was started again {one.restarts} times"
            yield Finding(check, "warning", title, one.state, f"docker compose logs --tail 200 {one.service}")
    if not found:
        told = f"{sum(one.state == 'running' for one in containers)} run, of {len(containers)}"
        yield Finding(check, "ok", "Containers stay up", told)
