"""The file's sections: names, defaults, bounds. A message about a bad value repeats its description."""

from ipaddress import ip_network
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gateway.settings.fields import FilePath, Media, Networks, Number, Origins, Timezone, Whole

LIMIT = "leave it out for no limit"


class Section(BaseModel):
    """Frozen, and closed: an unknown name is a mistake to mend, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Server(Section):
    """How callers are listened to."""

    max_body_bytes: Whole = Field(
        default=33_554_432, ge=1, description="largest body of every route but files"
    )
    max_buffered_bytes: Whole = Field(default=268_435_456, ge=1, description="all bodies held at once")
    cors_origins: Origins = Field(default=(), description="origins whose browsers may call; empty: none")
    trusted_proxies: Networks = Field(
        default=(ip_network("127.0.0.1"), ip_network("::1")),
        description="whose X-Forwarded-For is believed",
    )
    keep_alive_seconds: Number = Field(
        default=180, gt=0, description="how long an idle caller's connection is kept"
    )
    drain_seconds: Number = Field(
        default=30, ge=0, description="how long running calls may go on at a stop; 0: not"
    )
    client_stall_seconds: Number = Field(
        default=60, gt=0, description="after it, a caller who reads nothing, or stops in a body, is dropped"
    )
    heartbeat_seconds: Number = Field(default=15, ge=0, description="comment lines in silent streams; 0: off")

    @model_validator(mode="after")
    def _one_body_fits(self) -> Self:
        if self.max_body_bytes > self.max_buffered_bytes:
            raise ValueError("must have max_buffered_bytes at least as large as max_body_bytes")
        return self


class Engine(Section):
    """How engines are spoken to."""

    connect_timeout_seconds: Number = Field(default=5, gt=0, description="for a new connection to an engine")
    first_byte_timeout_seconds: Number = Field(
        default=600, gt=0, description="from sending to the first data event of a stream, or the status line"
    )
    idle_timeout_seconds: Number = Field(
        default=120, gt=0, description="between two data events after the first"
    )
    keep_alive_seconds: Number = Field(
        default=4, gt=0, description="how long an idle connection is kept, under the engine's own keep-alive"
    )
    start_seconds: Number = Field(
        default=900, ge=0, description="how long an unreachable engine counts as loading; 0: never"
    )
    ca_file: FilePath = Field(
        default="", description="CA certificates for https engines; empty: the system's"
    )


class Policy(Section):
    """What one request may ask for."""

    max_n: Whole = Field(default=8, ge=1, description="choices for one prompt")
    max_prompts: Whole = Field(default=256, ge=1, description="prompts in one request")
    max_logprobs: Whole = Field(default=20, ge=0, description="log probabilities for each token; 0: none")
    default_max_tokens: Whole = Field(
        default=0, ge=0, description="output cap written into a request that gives none; 0: none"
    )
    media: Media = Field(default="data", description='media by URL: "data", "none" or a list of https hosts')


class DefaultLimits(Section):
    """Limits of keys that leave a field unset."""

    rpm: Whole | None = Field(default=None, ge=1, description=f"requests in a minute; {LIMIT}")
    tpm: Whole | None = Field(default=None, ge=1, description=f"tokens in a minute; {LIMIT}")
    max_parallel: Whole | None = Field(default=None, ge=1, description=f"calls at once; {LIMIT}")
    tokens_per_day: Whole | None = Field(default=None, ge=1, description=f"tokens in a day; {LIMIT}")
    tokens_per_month: Whole | None = Field(default=None, ge=1, description=f"tokens in a month; {LIMIT}")


class Limits(Section):
    """How much one key may use."""

    default: DefaultLimits = DefaultLimits()


class Budgets(Section):
    """When days and months begin."""

    timezone: Timezone = Field(default="UTC", description="days and months begin at 00:00 here")


class Admission(Section):
    """How long callers wait when the engine is full."""

    queue_limit: Whole = Field(
        default=1000, ge=0, description="calls that may wait for one model; 0: none waits"
    )
    max_wait_seconds: Number = Field(default=120, gt=0, description="the longest wait")


class Usage(Section):
    """How long usage is kept."""

    rollup_days: Whole = Field(default=30, ge=1, description="rows are rolled up by hour after this")
    retention_days: Whole = Field(default=400, ge=1, description="and deleted after this")
    gpu_energy: Literal["auto", "on", "off"] = Field(
        default="auto", description='what this box\'s GPUs consume; "auto": if an engine is on this host'
    )


class Files(Section):
    """What callers may store."""

    max_bytes: Whole = Field(default=209_715_200, ge=1, description="largest file")
    quota_bytes_per_key: Whole = Field(default=1_073_741_824, ge=1, description="all files of one key")
    expire_days: Whole = Field(default=30, ge=1, description="files are deleted after this")

    @model_validator(mode="after")
    def _one_file_fits(self) -> Self:
        if self.max_bytes > self.quota_bytes_per_key:
            raise ValueError("must have quota_bytes_per_key at least as large as max_bytes")
        return self


class Batches(Section):
    """How batches run."""

    max_lines: Whole = Field(default=50_000, ge=1, description="requests in one batch")
    max_parallel: Whole = Field(default=0, ge=0, description="lines at once; 0: what live callers leave")
    max_retries: Whole = Field(default=3, ge=0, description="further tries of a failed line; 0: none")


class Log(Section):
    """What is logged of each request."""

    requests: Literal["errors", "all"] = Field(default="errors", description='"all" for one line per request')
