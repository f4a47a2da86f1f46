"""What is refused: each problem names the setting, its line and the mend."""

from pathlib import Path

import pytest

from gateway.settings import SettingsError, load
from tests.settings.conftest import MODEL, Problems

BAD_VALUES = [
    ("port = true", 1, "port must be a whole number; it is true"),
    ('port = "8080"', 1, 'port must be a whole number; it is "8080"'),
    ("port = 70000", 1, "port must be at most 65535; it is 70000"),
    ("port = 99999999999999999999", 1, "port must be at most 65535"),
    ('host = ""', 1, "host must not be empty"),
    ('host = "http://0.0.0.0"', 1, "host must be a host name"),
    ('data_dir = ""', 1, "data_dir must be the path of a directory"),
    ("data_dir = 5", 1, "data_dir must be a path in quotes"),
    ('log_format = "xml"', 1, "log_format must be 'json' or 'text'; it is \"xml\""),
    ("\n[limits.default]\nrpm = false", 3, "limits.default.rpm must be a whole number; it is false"),
    ('[limits.default]\ntpm = "1e5"', 2, 'limits.default.tpm must be a whole number; it is "1e5"'),
    ("[limits.default]\ntpm = 1e5", 2, "limits.default.tpm must be a whole number; it is 100000.0"),
    ("[limits.default]\nrpm = 0", 2, "limits.default.rpm must be at least 1; it is 0"),
    ("[limits.default]\nmax_parallel = -1", 2, "limits.default.max_parallel must be at least 1"),
    ("[limits.default]\nrmp = 5", 2, "limits.default.rmp is no setting; did you mean limits.default.rpm?"),
    ("limits.default.rmp = 5", 1, "limits.default.rmp is no setting; did you mean limits.default.rpm?"),
    ("max_n = 3", 1, "max_n is no setting; did you mean policy.max_n?"),
    ("[zzz]", 1, "known here: host, port, ops_host, ops_port, data_dir, upstream_url, log_format, server"),
    ("server = 5", 1, "server must be a table; it is 5"),
    ("[server]\nkeep_alive_seconds = 0", 2, "server.keep_alive_seconds must be more than 0"),
    ("[server]\ndrain_seconds = -0.5", 2, "server.drain_seconds must be at least 0"),
    ("[server]\ndrain_seconds = inf", 2, "server.drain_seconds must be a finite number"),
    ("[server]\ndrain_seconds = true", 2, "server.drain_seconds must be a number; it is true"),
    ("[server]\nmax_body_bytes = 300000000", 1, "server must have max_buffered_bytes at least"),
    ('[server]\ncors_origins = ["https://a.example/"]', 2, "server.cors_origins[0] must be an origin"),
    ('[server]\ncors_origins = "https://a.example"', 2, "server.cors_origins must be a list"),
    ('[server]\ntrusted_proxies = ["10.0.0.1/8"]', 2, "the range is written 10.0.0.0/8"),
    ('[server]\ntrusted_proxies = ["proxy"]', 2, "server.trusted_proxies[0] must be an IP address"),
    ("[server]\ntrusted_proxies = [5]", 2, "server.trusted_proxies[0] must be an IP address"),
    ('[engine]\nca_file = "/nowhere.pem"', 2, "engine.ca_file must be the path of an existing file"),
    ("[policy]\nmax_n = 1.0", 2, "policy.max_n must be a whole number; it is 1.0"),
    ('[policy]\nmedia = "all"', 2, 'policy.media must be "data", "none" or a list of hosts'),
    ('[policy]\nmedia = ["https://a.example"]', 2, "policy.media must list hosts without scheme"),
    ('[policy]\nmedia = ["a.example:443"]', 2, "policy.media must list hosts without scheme, port or path"),
    ("[policy]\nmedia = []", 2, "policy.media must be"),
    ('[budgets]\ntimezone = "Europe/Berlinn"', 2, "budgets.timezone must be a name"),
    ('[budgets]\ntimezone = "../etc/passwd"', 2, "budgets.timezone must be a name"),
    ('[budgets]\ntimezone = "Europe"', 2, "budgets.timezone must be a name"),
    ("[files]\nmax_bytes = 2000000000", 1, "files must have quota_bytes_per_key at least"),
    ('[log]\nrequests = "some"', 2, "log.requests must be 'errors' or 'all'"),
]

BAD_MODELS = [
    ('id = ""', 2, "models[0].id must not be empty"),
    ('id = " m"', 2, "models[0].id must not begin or end with white space"),
    ('id = "m*"', 2, "models[0].id must not hold a *"),
    ('id = "m"\naliases = ["a*b"]', 3, "models[0].aliases[0] must hold a * as its last character alone"),
    ('id = "m"\naliases = "a"', 3, "models[0].aliases must be a list"),
    ('id = "m"\naliases = ["m"]', 3, "models[0].aliases[0] is 'm', a name that models[0].id has"),
    (
        'id = "m"\naliases = ["a", "a"]',
        3,
        "models[0].aliases[1] is 'a', a name that models[0].aliases[0] has",
    ),
    ('id = "m"\naliases = ["m:v"]\nvariants.v.defaults.n = 1', 4, "models[0].variants.v is 'm:v', a name"),
    ('id = "m"\nknd = "vllm"', 3, "models[0].knd is no setting; did you mean models[0].kind?"),
    ('id = "m"\nkind = "tgi"', 3, "models[0].kind must be 'vllm' or 'openai'"),
    ('id = "m"\nmax_inflight = 0', 3, "models[0].max_inflight must be at least 1"),
    ('id = "m"\nallow_chat_template = "yes"', 3, "models[0].allow_chat_template must be true or false"),
    ('id = "m"\nroutes = ["/v1/embedding"]', 3, "models[0].routes[0] must be one of the model routes"),
    ('id = "m"\nroutes = []', 3, "models[0].routes must not be empty"),
    ('id = "m"\nvariants."a:b".defaults = {}', 3, "models[0].variants.a:b must be a name without colon"),
    ('id = "m"\nvariants.v.force = {}', 3, "models[0].variants.v.force is no setting; known here: defaults"),
]

BAD_ENGINES = [
    ("[]", "models[0].engines must not be empty"),
    ('"http://a"', "models[0].engines must be a list"),
    ('["a:8000"]', "models[0].engines[0] must begin with http:// or https://"),
    ('["ftp://a"]', "models[0].engines[0] must begin with http:// or https://"),
    ('["http://"]', "models[0].engines[0] must name a host"),
    ('["http://a b"]', "models[0].engines[0] must name a host"),
    ('["http://a:99999"]', "models[0].engines[0] must be a URL"),
    ('["http://[::1"]', "models[0].engines[0] must be a URL"),
    ('["http://a?key=geheim"]', "models[0].engines[0] must end with its path"),
    ('["http://user:geheim@a"]', "models[0].engines[0] must not hold a user or password"),
    ('["http://a", "http://a/v1"]', "models[0].engines must not list an engine twice"),
]

RESERVED_KWARGS = [
    "chat_template", "tokenize", "add_generation_prompt", "continue_final_message",
    "messages", "conversation", "tools",
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "expected"), BAD_VALUES)
def test_a_bad_value_is_told_with_its_line(problems: Problems, text: str, line: int, expected: str) -> None:
    """One problem, the line on which the setting stands, its dotted name and what it must be."""
    [problem] = problems(text)

    assert problem.startswith(f"some.toml, line {line}: ")
    assert expected in problem


@pytest.mark.parametrize(("text", "line", "expected"), BAD_MODELS)
def test_a_bad_model_is_told_with_its_line(problems: Problems, text: str, line: int, expected: str) -> None:
    """The same for what stands in [[models]]."""
    [problem] = problems(model=f'[[models]]\n{text}\nengines = ["http://a"]')

    assert problem.startswith(f"some.toml, line {line + 1}: ")
    assert expected in problem


@pytest.mark.parametrize(("engines", "expected"), BAD_ENGINES)
def test_a_bad_engine_address_is_told_without_repeating_it(
    problems: Problems, engines: str, expected: str
) -> None:
    """An address may hold a password, so no message repeats one."""
    [problem] = problems(model=f'[[models]]\nid = "m"\nengines = {engines}')

    assert problem.startswith(f"some.toml, line 4: {expected}")
    assert "geheim" not in problem


@pytest.mark.parametrize("layer", ["defaults", "force", "variants.v.defaults"])
@pytest.mark.parametrize("name", RESERVED_KWARGS)
def test_kwargs_of_the_renderer_are_refused_by_name(problems: Problems, layer: str, name: str) -> None:
    """Set by an operator they would break every request of the model."""
    [problem] = problems(model=f"{MODEL}{layer}.chat_template_kwargs.{name} = true")

    assert problem.startswith(f"some.toml, line 5: models[0].{layer}.chat_template_kwargs.{name} is used by")


@pytest.mark.parametrize("layer", ["defaults", "force"])
@pytest.mark.parametrize(
    "name", ["model", "messages", "prompt", "input", "stream", "stream_options", "request_id"]
)
def test_what_belongs_to_one_call_has_no_default(problems: Problems, layer: str, name: str) -> None:
    """A default for it would answer another question than the caller's."""
    [problem] = problems(model=f'{MODEL}{layer}.{name} = "x"')

    assert f"line 5: models[0].{layer}.{name} belongs to each call alone" in problem


@pytest.mark.parametrize("value", ["[]", '""', "5", "true"])
def test_template_kwargs_that_are_no_table_are_refused(problems: Problems, value: str) -> None:
    """They would pass the start and fail every request."""
    [problem] = problems(model=f"{MODEL}defaults.chat_template_kwargs = {value}")

    assert "models[0].defaults.chat_template_kwargs must be a table" in problem


@pytest.mark.parametrize("value", ["2020-01-01", "inf", "nan", "18446744073709551616", "[1, 12:00:00]"])
def test_defaults_hold_only_what_json_has(problems: Problems, value: str) -> None:
    """TOML knows dates and infinity; a request's body does not."""
    [problem] = problems(model=f"{MODEL}defaults.seed = {value}")

    assert "line 5: models[0].defaults.seed" in problem


def test_two_models_may_not_share_a_name(problems: Problems) -> None:
    """An id or alias of one is free for no other; the line is that of the second."""
    second = '[[models]]\nid = "a"\nengines = ["http://b"]\naliases = ["m", "x*"]\n'
    third = '[[models]]\nid = "a"\nengines = ["http://c"]\naliases = ["x*"]\n'

    assert problems(model=MODEL + second + third) == [
        "some.toml, line 8: models[1].aliases[0] is 'm', a name that models[0].id has: rename one of them",
        "some.toml, line 10: models[2].id is 'a', a name that models[1].id has: rename one of them",
        "some.toml, line 12: models[2].aliases[0] is 'x*', a name that models[1].aliases[1] has: "
        "rename one of them",
    ]


def test_all_problems_are_told_at_once_in_the_order_of_lines(problems: Problems) -> None:
    """Variables first, then the file from its top to its end; unknown names, bad values and clashes alike."""
    told = problems(
        "prot = 1\n[policy]\nmax_n = 0\nmax_nn = 1",
        model=MODEL + 'aliases = ["m"]',
        GATEWAY_SERVER__DRAIN_SECONDS="soon",
        GATEWAY_ADMIN_TOKEN="",
    )

    assert [problem.split(": ")[0] for problem in told] == [
        "GATEWAY_ADMIN_TOKEN is empty",
        'GATEWAY_SERVER__DRAIN_SECONDS (server.drain_seconds) must be a number; it is "soon" '
        "(how long running calls may go on at a stop; 0",
        "some.toml, line 1",
        "some.toml, line 3",
        "some.toml, line 4",
        "some.toml, line 8",
    ]


@pytest.mark.parametrize("value", ["true", "1e5", "0x10", "1_000", "1.5", "", " 5", "٣"])
def test_variables_spell_whole_numbers_in_digits(problems: Problems, value: str) -> None:
    """Nothing else is read into a variable's text."""
    [problem] = problems(GATEWAY_LIMITS__DEFAULT__RPM=value)

    assert problem.startswith("GATEWAY_LIMITS__DEFAULT__RPM (limits.default.rpm) must be")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GATEWAY_PORT", ""),
        ("GATEWAY_HOST", ""),
        ("GATEWAY_UPSTREAM_URL", ""),
        ("GATEWAY_UPSTREAM_URL", "http://user:geheim@a"),
        ("GATEWAY_LOG_FORMAT", ""),
        ("GATEWAY_DATA_DIR", " "),
        ("GATEWAY_SERVER__TRUSTED_PROXIES", "127.0.0.1,nobody"),
        ("GATEWAY_SERVER__TRUSTED_PROXIES", '["127.0.0.1"'),
    ],
)
def test_a_bad_variable_is_named(problems: Problems, variable: str, value: str) -> None:
    """An empty variable is a forgotten one, never a default; no line of the file is blamed."""
    [problem] = problems("[server]\ntrusted_proxies = []", **{variable: value})

    assert problem.startswith(f"{variable} ")
    assert "geheim" not in problem


def test_a_variable_does_not_hide_a_section_that_is_no_table(problems: Problems) -> None:
    """What is wrong in the file is told, although a variable sets a name of that section."""
    [problem] = problems("server = 5", GATEWAY_SERVER__DRAIN_SECONDS="1")

    assert problem.startswith("some.toml, line 1: server must be a table")


@pytest.mark.parametrize("name", ["upstream_api_key", "admin_token", "secret"])
def test_secrets_in_the_file_are_refused(problems: Problems, name: str) -> None:
    """A file is shown to people and put into repositories."""
    [problem] = problems(f'{name} = "geheim"')

    assert problem.startswith(
        f"some.toml, line 1: {name} does not belong into this file: set GATEWAY_{name.upper()}"
    )
    assert "geheim" not in problem


@pytest.mark.parametrize("name", ["file", "_env_file", "_case_sensitive"])
def test_names_of_the_machinery_are_no_settings(problems: Problems, name: str) -> None:
    """What the settings library would take for itself is an unknown name in a file."""
    [problem] = problems(f'{name} = "x"')

    assert problem.startswith(f"some.toml, line 1: {name} is no setting")


def test_listeners_may_not_share_an_address(problems: Problems) -> None:
    """Both ports are named; two times 0 is two free ports."""
    [problem] = problems("port = 9000\nops_port = 9000")

    assert "GATEWAY_PORT and GATEWAY_OPS_PORT are both 9000" in problem


def test_both_listeners_may_take_any_free_port(tmp_path: Path) -> None:
    """Port 0 twice is no clash."""
    file = tmp_path / "free.toml"
    file.write_text("port = 0\nops_port = 0\n" + MODEL)

    assert load(file, {}).settings.ops_port == 0


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = [1,\nc = 2\n", 3),
        ("a = 1\na = 2\n", 2),
        ("[server]\n[server]\n", 2),
        ("port = 80 80\n", 1),
        ('host = "x\n', 1),
        ("\n\nkeys = [1,\n\n", 3),
    ],
)
def test_what_is_not_toml_is_told_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    """The only problem told is the syntax: nothing is said about values that were not read."""
    file = tmp_path / "broken.toml"
    file.write_text(text)

    with pytest.raises(SettingsError) as refused:
        load(file, {})

    [problem] = refused.value.problems
    assert problem.startswith(f"{file}, line {line}: not TOML: ")


def test_what_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    """A file in Latin-1 is refused, not guessed at."""
    file = tmp_path / "latin.toml"
    file.write_bytes(b"port = 1\n# M\xfcnchen\n")

    with pytest.raises(SettingsError, match=r"latin\.toml, line 2: not UTF-8"):
        load(file, {})
