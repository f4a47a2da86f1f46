"""What the environment says of proxies and certificates, and cannot mean, is named without its value."""

from pathlib import Path

import pytest

from gateway.planner import source
from gateway.planner.problem import PlanProblem

NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks4://me:hidden@127.0.0.1:9"),
        ("HTTPS_PROXY", "ftp://me:hidden@127.0.0.1"),
        ("http_proxy", "ftp://me:hidden@127.0.0.1"),
        ("HTTPS_PROXY", "http://hidden:port"),
    ],
)
def test_a_proxy_that_cannot_be(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Of a kind that is not spoken here, or no address: the variable is named, its password is not told."""
    monkeypatch.setenv(name, value)
    with pytest.raises(PlanProblem, match=f"^{name} names a proxy that cannot be used here") as told:
        source.find("a/b", environ={"HF_ENDPOINT": "http://127.0.0.1:9"})
    assert "hidden" not in str(told.value)


def test_the_one_at_fault_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside one that is right."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "ftp://127.0.0.1:9")
    with pytest.raises(PlanProblem, match=r"^ALL_PROXY names"):
        source.find("a/b", environ={"HF_ENDPOINT": "http://127.0.0.1:9"})


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    """A file that is not there, or holds none."""
    file = tmp_path / "roots.pem"
    if content:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(PlanProblem, match=r"^SSL_CERT_FILE names certificates that cannot be read"):
        source.find("a/b", environ={"HF_ENDPOINT": "http://127.0.0.1:9"})
