"""Where values come from: the environment over the file over defaults."""

from ipaddress import ip_network
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from gateway.settings import Policy, SettingsError, load
from gateway.settings.environment import variables
from tests.settings.conftest import MODEL, Load

ENGINE = {"GATEWAY_UPSTREAM_URL": "http://127.0.0.1:8000"}
SAMPLES: dict[str, tuple[str, object]] = {
    "GATEWAY_HOST": ("0.0.0.0", "0.0.0.0"),  # noqa: S104 a value to read, nothing listens
    "GATEWAY_OPS_HOST": ("::1", "::1"),
    "GATEWAY_DATA_DIR": ("/srv/data", Path("/srv/data")),
    "GATEWAY_UPSTREAM_URL": ("http://engine:8000/v1/", "http://engine:8000"),
    "GATEWAY_UPSTREAM_API_KEY": ("sk-engine", SecretStr("sk-engine")),
    "GATEWAY_ADMIN_TOKEN": ("admin", SecretStr("admin")),
    "GATEWAY_SECRET": ("root", SecretStr("root")),
    "GATEWAY_LOG_FORMAT": ("text", "text"),
    "GATEWAY_SERVER__MAX_BUFFERED_BYTES": ("4300000000", 4_300_000_000),
    "GATEWAY_SERVER__CORS_ORIGINS": (
        "https://a.example, https://b.example:8443",
        ("https://a.example", "https://b.example:8443"),
    ),
    "GATEWAY_SERVER__TRUSTED_PROXIES": (
        '["10.0.0.0/8", "fd00::1"]',
        (ip_network("10.0.0.0/8"), ip_network("fd00::1")),
    ),
    "GATEWAY_SERVER__HEARTBEAT_SECONDS": ("0.5", 0.5),
    "GATEWAY_ENGINE__CA_FILE": (__file__, __file__),
    "GATEWAY_POLICY__MEDIA": (
        "Images.example.com,cdn.example.com",
        ("images.example.com", "cdn.example.com"),
    ),
    "GATEWAY_BUDGETS__TIMEZONE": ("Europe/Berlin", "Europe/Berlin"),
    "GATEWAY_FILES__QUOTA_BYTES_PER_KEY": ("1073741825", 1_073_741_825),
    "GATEWAY_USAGE__GPU_ENERGY": ("off", "off"),
    "GATEWAY_LOG__REQUESTS": ("all", "all"),
}
A_NUMBER = ("77", 77)


def test_one_variable_is_enough() -> None:
    """An engine's address is all that must be set; everything else is as the documents say."""
    settings = load(None, ENGINE).settings

    assert settings.upstream_url == "http://127.0.0.1:8000"
    assert (settings.host, settings.port, settings.ops_port) == ("127.0.0.1", 8080, 8081)
    assert settings.policy == Policy()
    assert settings.models == ()
    assert settings.file is None


def test_environment_wins_over_file_and_file_over_default(settings: Load) -> None:
    """Each name for itself: a section that both mention keeps what only the file says."""
    loaded = settings(
        "port = 9000\n[server]\ndrain_seconds = 1\nheartbeat_seconds = 2",
        GATEWAY_SERVER__DRAIN_SECONDS="7",
    )

    assert loaded.port == 9000
    assert loaded.server.drain_seconds == 7
    assert loaded.server.heartbeat_seconds == 2
    assert loaded.server.client_stall_seconds == 60


@pytest.mark.parametrize("variable", variables())
def test_every_setting_outside_models_has_a_variable(variable: str) -> None:
    """GATEWAY_<SECTION>__<NAME> sets what the file's name would."""
    text, expected = SAMPLES.get(variable, A_NUMBER)

    value: object = load(None, {**ENGINE, variable: text}).settings

    for name in variables()[variable]:
        value = getattr(value, name)
    assert value == expected


@pytest.mark.parametrize("variable", ["GATEWAY_SERVER__CORS_ORIGINS", "GATEWAY_SERVER__TRUSTED_PROXIES"])
def test_empty_list_in_a_variable(variable: str) -> None:
    """An empty text is an empty list, so that a default can be taken back."""
    server = load(None, {**ENGINE, variable: ""}).settings.server

    assert getattr(server, variables()[variable][-1]) == ()


def test_the_file_is_looked_for_where_documented(tmp_path: Path) -> None:
    """The argument, then GATEWAY_CONFIG, then gateway.toml in the working directory."""
    for name, port in (("argument", 1), ("config", 2), ("gateway", 3)):
        (tmp_path / f"{name}.toml").write_text(f"port = {port}\n{MODEL}")
    config = {"GATEWAY_CONFIG": str(tmp_path / "config.toml")}

    assert load(tmp_path / "argument.toml", config).settings.port == 1
    assert load(None, config).settings.port == 2
    found = load(None, {}).settings
    assert (found.port, found.file) == (3, Path("gateway.toml"))


@pytest.mark.parametrize("config", ["", "missing.toml", "."])
def test_a_named_file_that_cannot_be_read_stops_the_start(config: str) -> None:
    """GATEWAY_CONFIG is named in the message; there is no falling back to defaults."""
    with pytest.raises(SettingsError, match=r"^GATEWAY_CONFIG[^\n]*$"):
        load(None, {**ENGINE, "GATEWAY_CONFIG": config})


def test_nothing_to_serve_says_what_to_set() -> None:
    """Neither models nor an engine: the message names both ways out."""
    with pytest.raises(SettingsError, match=r"GATEWAY_UPSTREAM_URL.*\[\[models\]\]"):
        load(None, {})


def test_commands_that_need_no_model_load_without_one() -> None:
    """`gateway keys` works before an engine is named."""
    assert load(None, {"GATEWAY_DATA_DIR": "/srv"}, to_serve=False).settings.data_dir == Path("/srv")


def test_unknown_variables_are_warned_about_by_name() -> None:
    """Their values stay out of the warning, and a near name is offered."""
    loaded = load(None, {**ENGINE, "GATEWAY_PROT": "geheim", "GATEWAY_SERVICE_HOST": "10.0.0.1", "PATH": "x"})

    assert loaded.warnings == (
        "GATEWAY_PROT is not a setting, ignored; did you mean GATEWAY_PORT?",
        "GATEWAY_SERVICE_HOST is not a setting, ignored",
    )


@pytest.mark.parametrize("variable", ["GATEWAY_PORT", "GATEWAY_OPS_PORT"])
def test_port_variables_of_container_platforms_are_ignored(variable: str) -> None:
    """Kubernetes sets GATEWAY_PORT=tcp://… for a service named gateway."""
    loaded = load(None, {**ENGINE, variable: "tcp://10.0.0.1:8080"})

    assert (loaded.settings.port, loaded.settings.ops_port) == (8080, 8081)
    assert [warning for warning in loaded.warnings if warning.startswith(f"{variable} ")]


def test_an_engine_beside_models_is_warned_about(settings: Load, tmp_path: Path) -> None:
    """GATEWAY_UPSTREAM_URL is a shortcut for a file without [[models]]."""
    assert settings().models[0].id == "m"
    assert "GATEWAY_UPSTREAM_URL is not used" in load(tmp_path / "some.toml", ENGINE).warnings[0]


def test_settings_are_frozen(settings: Load) -> None:
    """Nothing changes a setting but the next load."""
    loaded = settings()

    with pytest.raises(ValidationError):
        loaded.port = 1
    with pytest.raises(ValidationError):
        loaded.server.drain_seconds = 1
    with pytest.raises(ValidationError):
        loaded.models[0].max_inflight = 1


def test_engine_addresses_are_normalised(settings: Load) -> None:
    """A trailing slash or /v1 is how people copy addresses; it means the same engine."""
    addresses = ["http://a:1", "http://a:2/", "http://a:3/v1", "https://a:4/v1/", "http://a:5/engine/v1"]

    model = settings(model=f'[[models]]\nid = "m"\nengines = {addresses}').models[0]

    assert model.engines == ("http://a:1", "http://a:2", "http://a:3", "https://a:4", "http://a:5/engine")


def test_a_byte_order_mark_and_crlf_are_no_problem(tmp_path: Path) -> None:
    """Editors on Windows write both."""
    file = tmp_path / "windows.toml"
    file.write_bytes(b"\xef\xbb\xbfport = 9000\r\n" + MODEL.replace("\n", "\r\n").encode())

    assert load(file, {}).settings.port == 9000


def test_the_process_environment_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is passed counts: a reload and a test see what they were given."""
    monkeypatch.setenv("GATEWAY_PORT", "1234")

    assert load(None, ENGINE).settings.port == 8080


def test_secrets_do_not_show() -> None:
    """Neither printing nor formatting settings shows a secret."""
    settings = load(None, {**ENGINE, "GATEWAY_ADMIN_TOKEN": "geheim"}).settings

    assert settings.admin_token is not None
    assert settings.admin_token.get_secret_value() == "geheim"
    assert "geheim" not in f"{settings!r} {settings}"
