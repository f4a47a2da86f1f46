"""The exported bundle: the operator's roots and ours, so that neither world is lost."""

import ssl
from pathlib import Path

import certifi
import pytest

from deploy.local import authority
from deploy.local.places import Places
from tests.local.caddies import Caddy


def test_bundle_holds_both(caddy: Caddy) -> None:
    """The bundle has the system's roots and one more; the certificate alone is that one."""
    bundle = ssl.create_default_context(cafile=str(caddy.places.ca_bundle)).get_ca_certs(binary_form=True)
    system = ssl.create_default_context(cafile=str(authority.system_roots())).get_ca_certs(binary_form=True)
    own = ssl.PEM_cert_to_DER_cert(caddy.places.ca_certificate.read_text())
    assert set(bundle) == {*system, own}
    assert own not in system


def test_operators_own_roots_first(tmp_path: Path) -> None:
    """Behind a proxy with its own CA, the file that SSL_CERT_FILE names is what the bundle starts from."""
    own = tmp_path / "corporate.pem"
    own.write_text("corporate")
    assert authority.system_roots({"SSL_CERT_FILE": str(own)}) == own


def test_a_file_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    """A variable that names no file does not leave the bundle without roots."""
    usual = tmp_path / "usual.pem"
    usual.write_text("usual")
    named = {"SSL_CERT_FILE": str(tmp_path / "gone.pem")}
    assert authority.system_roots(named, usual=[str(usual)]) == usual


def test_certifi_where_the_system_has_none() -> None:
    """A system without roots of its own gets certifi's."""
    assert authority.system_roots({}, usual=[]) == Path(certifi.where())


def test_before_caddy_made_its_root(tmp_path: Path) -> None:
    """Without a root there is nothing to export, and no half bundle is left behind."""
    places = Places(tmp_path)
    with pytest.raises(FileNotFoundError):
        authority.export(places, Path(certifi.where()))
    assert not places.ca_bundle.exists()
