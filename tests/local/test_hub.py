"""A hub that is asked whether a model may be had, and says no, or cannot be asked."""

import pytest

from deploy.local import hub
from deploy.local.problem import Problem
from tests.box.test_model_hub import hub as hub_of


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "acme/x is gated, or not there: accept its terms at {hub}/acme/x, and set HF_TOKEN"),
        (404, "{hub} answers with status 404 for acme/x."),
    ],
)
def test_hub_that_refuses(status: int, said: str) -> None:
    """What the hub does not give is said with the mend; it is shown the operator's token."""
    with hub_of(status) as (url, tokens), pytest.raises(Problem) as raised:
        hub.check("acme/x", "hf_mine", {"HF_ENDPOINT": url})
    assert said.format(hub=url) in str(raised.value)
    assert tokens == ["Bearer hf_mine"]


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"ALL_PROXY": "socks5://127.0.0.1:9"}, "ALL_PROXY names a SOCKS proxy"),
        ({"https_proxy": "ftp://user:secret@x"}, "https_proxy holds no address that can be used"),
        ({"SSL_CERT_FILE": "/not/there.pem"}, "SSL_CERT_FILE names certificates that cannot be read"),
        ({"SSL_CERT_FILE": __file__}, "SSL_CERT_FILE names certificates that cannot be read"),
        ({"NO_PROXY": "http://[::"}, "NO_PROXY holds no address that can be used"),
        ({"HF_ENDPOINT": "https://hub.example:x"}, "HF_ENDPOINT holds no address that can be used"),
    ],
)
def test_environment_that_leads_nowhere(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], said: str
) -> None:
    """A proxy or certificates that cannot be used are said by the variable's name, without a password."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Problem) as raised:
        hub.check("acme/x", "", {"HF_ENDPOINT": "https://127.0.0.1:9", **environ})
    assert said in str(raised.value)
    assert str(raised.value).endswith("Nothing was changed.")
    assert "secret" not in str(raised.value)
