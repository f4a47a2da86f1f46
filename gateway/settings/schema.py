"""All settings as one frozen object. It reads nothing by itself: `load` gives it its values."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from gateway.settings.fields import BaseUrl, BindHost, Directory, Port
from gateway.settings.models import Model
from gateway.settings.sections import (
    Admission,
    Batches,
    Budgets,
    Engine,
    Files,
    Limits,
    Log,
    Policy,
    Server,
    Usage,
)

PREFIX = "GATEWAY_"
SECRETS = ("upstream_api_key", "admin_token", "secret")
ENVIRONMENT_ONLY = (*SECRETS, "file")
FILE_ONLY = ("models",)


class Settings(BaseSettings):
    """What the gateway runs with; every value is checked and none changes until the next load."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        env_prefix=PREFIX,
        env_nested_delimiter="__",
    )

    host: BindHost = Field(default="127.0.0.1", description="address of the public listener")
    port: Port = Field(default=8080, description="port of the public listener; 0: any free one")
    ops_host: BindHost = Field(default="127.0.0.1", description="address of the ops listener")
    ops_port: Port = Field(default=8081, description="port of the ops listener; 0: any free one")
    data_dir: Directory = Field(default=Path("./data"), description="databases, spool and batch files")
    upstream_url: BaseUrl | None = Field(default=None, description="one engine whose models are discovered")
    upstream_api_key: SecretStr | None = Field(default=None, description="what the gateway shows the engine")
    admin_token: SecretStr | None = Field(
        default=None, description="bearer token of /admin; unset: no admin API"
    )
    secret: SecretStr | None = Field(
        default=None, description="root of derived secrets; unset: made once and kept"
    )
    log_format: Literal["json", "text"] | None = Field(
        default=None, description="unset: json off a terminal, text on one"
    )
    file: Path | None = Field(default=None, description="the file these settings came from")

    server: Server = Server()
    engine: Engine = Engine()
    policy: Policy = Policy()
    limits: Limits = Limits()
    budgets: Budgets = Budgets()
    admission: Admission = Admission()
    usage: Usage = Usage()
    files: Files = Files()
    batches: Batches = Batches()
    log: Log = Log()
    models: tuple[Model, ...] = ()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 pydantic-settings passes it by this name
        init_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **__: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Nothing but what `load` passes: the process's own environment is never read behind its back."""
        return (init_settings,)
