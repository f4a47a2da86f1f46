"""A hub that is asked whether a model may be had, and says no, or cannot be asked."""

import pytest

from deploy.local import planned
from deploy.local.problem import Problem
from gateway.planner.source import Model
from tests.hubs import hub

NAME = "Qwen/Qwen3-8B-AWQ"


@pytest.fixture
def known() -> Model:
    """A model that is known by name, so that no hub was asked for it yet."""
    return planned.find("qwen3-8b-awq", "", "HF_TOKEN")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, f"accept its terms at {{hub}}/{NAME} and put a token that may read it into HF_TOKEN."),
        (404, f"{NAME} has no config.json on the hub"),
        (500, "answers 500: try again later, or name a folder that holds the model."),
    ],
)
def test_hub_that_refuses(known: Model, status: int, said: str) -> None:
    """What the hub does not give is said with the mend; it is shown the operator's token."""
    with hub(status) as (url, tokens), pytest.raises(Problem) as raised:
        planned.check(known, "hf_mine", "HF_TOKEN", {"HF_ENDPOINT": url})
    assert said.format(hub=url.removeprefix("http://")) in str(raised.value)
    assert str(raised.value).endswith(" Nothing was changed.")
    assert tokens == ["Bearer hf_mine"]


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"ALL_PROXY": "socks5://127.0.0.1:9"}, "ALL_PROXY names a proxy that cannot be used"),
        ({"https_proxy": "ftp://user:secret@x"}, "https_proxy names a proxy that cannot be used"),
        ({"SSL_CERT_FILE": "/not/there.pem"}, "SSL_CERT_FILE names certificates that cannot be read"),
        ({"SSL_CERT_FILE": __file__}, "SSL_CERT_FILE names certificates that cannot be read"),
        ({"NO_PROXY": "http://[::"}, "NO_PROXY names a proxy that cannot be used"),
        ({"HF_ENDPOINT": "https://hub.example:x"}, "HF_ENDPOINT is no address"),
        ({}, "does not answer (ConnectError). Without a network name a folder that holds the model; another"),
    ],
)
def test_environment_that_leads_nowhere(
    monkeypatch: pytest.MonkeyPatch, known: Model, environ: dict[str, str], said: str
) -> None:
    """A proxy or certificates that cannot be used are said by the variable's name, without a password."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Problem) as raised:
        planned.check(known, "", "HF_TOKEN", {"HF_ENDPOINT": "https://127.0.0.1:9", **environ})
    assert said in str(raised.value)
    assert str(raised.value).endswith("Nothing was changed.")
    assert "secret" not in str(raised.value)
