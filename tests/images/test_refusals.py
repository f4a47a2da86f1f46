"""Whatever keeps weights from coming ends in one line that names it and its mend."""

import errno
import os
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
import trustme

from tests.images.conftest import HUGE, NEEDED
from tests.images.downloading import SCRIPT, Download
from tests.images.hub import COMMIT, GATE_TOKEN, OTHER_TOKEN, Hub, Model

FIRST = "model-00001-of-00002.safetensors"
STRANGER = 12345


def refused(download: Download, code: int = 1) -> str:
    """The last line of a run that must fail with this code."""
    done = download.run()
    assert done.code == code, done.said
    assert done.last.startswith("weights: ")
    return done.last


def test_a_gated_model_without_a_token(download: Download, hub: Hub) -> None:
    """Where to accept the terms, where to get a token and where to put it."""
    download.name("acme/gated")
    line = refused(download)
    assert f"acme/gated is gated: accept its terms at {hub.url}/acme/gated" in line
    assert "put it into secrets/hf-token" in line


def test_a_gated_model_with_the_token_of_somebody_else(download: Download) -> None:
    """The token is not at fault, its account is."""
    download.name("acme/gated")
    download.token.write_text(OTHER_TOKEN + "\n")
    assert "the token in secrets/hf-token has no access: accept its terms at" in refused(download)


def test_a_gated_model_with_a_token_that_may(download: Download) -> None:
    """White space at its ends does no harm, and it is in nothing that is written."""
    download.name("acme/gated")
    download.token.write_text(f" {GATE_TOKEN}\n")
    done = download.run()
    assert done.code == 0, done.said
    assert download.files("acme/gated") == NEEDED
    assert GATE_TOKEN not in done.said


def test_a_token_that_the_hub_does_not_know(download: Download) -> None:
    """Even for a public model it answers nothing then."""
    download.token.write_text("hf_revoked")
    line = refused(download)
    assert "the hub does not accept the token in secrets/hf-token" in line
    assert "hf_revoked" not in line


@pytest.mark.parametrize(
    ("token", "why"), [("", "secrets/hf-token is empty"), (OTHER_TOKEN, "may not read it")]
)
def test_a_model_that_is_not_there(download: Download, token: str, why: str) -> None:
    """The hub does not tell it from a private one, so both are said."""
    download.name("acme/tyni")
    download.token.write_text(token)
    line = refused(download)
    assert "the hub knows no model acme/tyni" in line
    assert why in line


def test_a_revision_that_is_not_there(download: Download, hub: Hub) -> None:
    """By its name, with the page that lists what there is."""
    download.name("acme/tiny", "v9")
    assert refused(download) == (
        f"weights: acme/tiny has no revision v9: {hub.url}/acme/tiny/commits lists what it has"
    )


def test_a_name_that_is_none(download: Download) -> None:
    """As a GGUF file, which vLLM does not read."""
    download.name("acme/tiny/model.gguf")
    assert "acme/tiny/model.gguf is not the name of a model" in refused(download)


def test_a_model_without_weights(download: Download, hub: Hub) -> None:
    """Said before vLLM says it in a hundred lines."""
    hub.models["acme/bare"] = Model({"config.json": b"{}", "weights.gguf": b"x"})
    download.name("acme/bare")
    assert refused(download).endswith("acme/bare holds no weights that vLLM reads with load-format auto")


def test_an_index_that_names_what_is_not_there(download: Download, hub: Hub) -> None:
    """A broken upload is the model's fault, not the network's."""
    del hub.models["acme/tiny"].files[FIRST]
    assert f"acme/tiny lacks {FIRST}, which its index names" in refused(download)


def test_a_hub_that_stays_down(download: Download, hub: Hub) -> None:
    """After some attempts, with the code that means: the same command again."""
    hub.broken.add(FIRST)
    line = refused(download, 75)
    assert "the hub answers with status 503 for acme/tiny" in line
    assert "`make up` again goes on where this stopped" in line
    assert len(hub.ranges(FIRST)) == 3
    hub.broken.clear()
    assert download.run().code == 0
    assert download.files() == NEEDED


def test_content_that_is_always_wrong(download: Download, hub: Hub) -> None:
    """It gets no name, whatever the hub says."""
    hub.models["acme/huge"].listed_digests[HUGE] = "0" * 64
    download.name("acme/huge")
    assert f"{HUGE} arrived damaged, again and again" in refused(download, 75)
    assert HUGE not in download.files("acme/huge")


def test_a_proxy_that_inspects_tls(tmp_path: Path, python: Path) -> None:
    """Its roots count once CA_BUNDLE names them; until then that is said, not that the network is down."""
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    with Hub({"acme/tiny": Model(NEEDED)}, tls) as hub:
        download = Download(tmp_path, python, hub)
        line = refused(download, 75)
        assert f"the certificate of {hub.url} is not trusted" in line
        assert "set CA_BUNDLE in .env" in line
        authority.cert_pem.write_to_path(str(tmp_path / "roots.pem"))
        download.settings["CA_BUNDLE_FILE"] = str(tmp_path / "roots.pem")
        assert download.run().code == 0
    assert download.files() == NEEDED


@pytest.mark.parametrize("text", ["served-model-name: x\n", "", "- a list\n", "model: [", "model: 7\n"])
def test_a_profile_that_names_no_model(download: Download, text: str) -> None:
    """The file is named."""
    download.profile.write_text(text)
    assert f"weights: {download.profile} " in refused(download)


def test_a_folder_needs_no_hub(download: Download, hub: Hub) -> None:
    """A model of one's own, under WEIGHTS_DIR."""
    own = download.home / "own"
    own.mkdir()
    (own / "config.json").write_text("{}")
    download.name(str(own))
    done = download.run()
    assert (done.code, done.last) == (0, f"weights: {own} is a folder on this machine: nothing to download")
    assert hub.asked == []


def test_a_folder_that_is_not_there(download: Download) -> None:
    """It says what the path must look like inside the container."""
    download.name("/weights/nothing")
    assert "there is no model in the folder /weights/nothing: WEIGHTS_DIR is /weights" in refused(download)


def test_a_cache_that_vllm_may_not_read(download: Download) -> None:
    """It is neither the owner nor root; found here and not in vLLM's traceback."""
    assert download.run().code == 0
    blob = (download.repository() / "snapshots" / COMMIT / FIRST).resolve()
    os.chown(blob, os.getuid(), 1 if os.getuid() == 0 else -1)
    blob.chmod(0o600)
    line = refused(download)
    assert f"vLLM, user 2000 with group 0, may not read {blob}: `sudo chmod -R o+rX WEIGHTS_DIR`" in line


def test_the_engines_cache_becomes_writable_for_its_group(download: Download) -> None:
    """A new volume is root's alone; what vLLM makes in it stays with the group."""
    assert download.run().code == 0
    assert download.cache.stat().st_mode & 0o7777 == 0o2775


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others and mount")


def without_capabilities(*kept: str) -> list[str]:
    """As in the container: root, but without the right to pass over permissions."""
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv here")
    lost = [f"-{name}" for name in ("dac_override", "dac_read_search", "fowner", "chown") if name not in kept]
    return ["setpriv", f"--bounding-set={','.join(lost)}", "--inh-caps=-all"]


@root_only
def test_a_folder_of_somebody_else(download: Download) -> None:
    """Before anything is asked for: the user that may not, the folder, and the command that mends it."""
    hub_folder = download.home / "hub"
    hub_folder.mkdir(mode=0o755)
    os.chown(hub_folder, STRANGER, STRANGER)
    download.prefix = without_capabilities()
    line = refused(download)
    assert (
        f"user 0:0 may not write to {hub_folder}, which is in WEIGHTS_DIR: `sudo chown -R 0:0 WEIGHTS_DIR`"
        in line
    )


@root_only
def test_an_engine_cache_of_somebody_else(download: Download) -> None:
    """vLLM could not write there either."""
    os.chown(download.cache, STRANGER, STRANGER)
    download.prefix = without_capabilities()
    assert f"the volume vllm-cache: its owner is {STRANGER}, and this runs as 0" in refused(download)


@root_only
def test_what_it_writes_belongs_to_the_owner_of_the_cache(download: Download) -> None:
    """Who may use it on the host as well, and could not with files of root in it."""
    os.chown(download.home, STRANGER, STRANGER + 1)
    call = "import download, pathlib; download.become_owner(pathlib.Path()); pathlib.Path('made').touch()"
    environ = os.environ | {"PYTHONPATH": str(SCRIPT.parent)}
    subprocess.run([str(download.python), "-c", call], env=environ, cwd=download.home, check=True)
    made = (download.home / "made").stat()
    assert (made.st_uid, made.st_gid) == (STRANGER, STRANGER + 1)


def on_a_disk(download: Download, options: str) -> list[str]:
    """A file system of its own for the cache, seen by this process alone."""
    mount = f'mount -t tmpfs -o {options} none "{download.home}" && exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", mount, "sh"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    return prefix


@root_only
def test_a_disk_that_becomes_full(download: Download) -> None:
    """Somebody else may fill it meanwhile: what was refused is said, and what to do."""
    # Room for the content, as was looked up, and none for more than a few names.
    download.prefix = on_a_disk(download, "size=64m,nr_inodes=8")
    line = refused(download)
    assert "the disk of WEIGHTS_DIR is full, " in line
    assert " are left: make room, or set another one; `make up` again goes on where this stopped" in line


@root_only
def test_a_read_only_disk(download: Download) -> None:
    """Another owner would not mend it."""
    download.prefix = on_a_disk(download, "ro")
    line = refused(download)
    assert "is on a file system that is read-only: set WEIGHTS_DIR in .env" in line
    assert os.strerror(errno.EROFS) not in line
