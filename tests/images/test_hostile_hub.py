"""A hub that lies: nothing is written outside its folder, nothing over its size, and one line says so."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.images.conftest import HUGE, NEEDED
from tests.images.downloading import SCRIPT, Download
from tests.images.hub import COMMIT, Hub, Model, digest

ESCAPE = "../../../../escaped"
CONFIG = {"rfilename": "config.json", "size": 2}
LARGE = {"rfilename": "model.safetensors", "size": 3}
POINTER = {"size": 3, "pointerSize": 130}
MALFORMED: list[Any] = [
    [],
    "a text",
    {"id": "x", "sha": COMMIT, "siblings": ["config.json", "model.safetensors"]},
    {"id": "x", "sha": COMMIT, "siblings": [{"size": 2}]},
    {"id": "x", "sha": COMMIT, "siblings": 7},
    {"id": "x", "sha": COMMIT, "siblings": [{"rfilename": 7, "size": 2}]},
    {"id": "x", "sha": COMMIT, "siblings": [{**CONFIG, "lfs": "x"}]},
    *(
        {"id": "x", "sha": COMMIT, "siblings": [{**CONFIG, "size": size}]}
        for size in ("x", -1, 1.5, True, [1])
    ),
    *(
        {"id": "x", "sha": COMMIT, "siblings": [CONFIG, {"rfilename": name, "size": 2}]}
        for name in (
            "../escaped.json", "/escaped.json", "a/../../escaped.json", "a//b.json", "", ".", "a\n.json",
            "\u001b[2J.json", "\ud800.json", "a\0.json",
        )
    ),
    *(
        {"id": "x", "sha": COMMIT, "siblings": [{**LARGE, "lfs": {**POINTER, "sha256": named}}]}
        for named in (ESCAPE, "", "A" * 64, "0" * 63, "0" * 64 + "\n", 7)
    ),
    *({"id": "x", "sha": sha, "siblings": [CONFIG]} for sha in (ESCAPE, None, "main", COMMIT + "\n", 7)),
]  # fmt: skip


def there(folder: Path) -> set[Path]:
    """All that lies in the folder of a test."""
    return set(folder.rglob("*"))


@pytest.mark.parametrize("answer", MALFORMED, ids=lambda answer: json.dumps(answer)[:200])
def test_a_malformed_answer_is_one_line_and_writes_nothing(download: Download, hub: Hub, answer: Any) -> None:
    """Whatever is wrong with it; it is not called the network's fault, for it would come again."""
    hub.models["acme/tiny"].answer = answer
    download.name("acme/tiny", "main")
    before = there(download.folder)
    done = download.run()
    assert (done.code, len(done.said.splitlines())) == (1, 1), done.said
    assert "the hub's answer for acme/tiny is malformed (" in done.last
    assert there(download.folder) == before


def test_another_commit_than_the_one_that_was_asked_for(download: Download, hub: Hub) -> None:
    """Who pins a revision gets that one or nothing."""
    other = "f" * 40
    hub.models["acme/tiny"].answer = hub.models["acme/tiny"].listing() | {"sha": other}
    done = download.run()
    assert done.code == 1
    assert f"it is of commit {other}, and {COMMIT} was asked for" in done.last


@pytest.mark.parametrize("etag", [ESCAPE, "/escaped", "x" * 300])
def test_no_path_is_made_of_an_etag(download: Download, hub: Hub, etag: str) -> None:
    """Names in the cache come from content, so a header cannot lead out of it."""
    hub.models["acme/tiny"].etag = etag
    assert download.run().code == 0
    assert download.files() == NEEDED
    blobs = {path.name for path in (download.repository() / "blobs").iterdir()}
    assert len(blobs) == len(NEEDED)
    assert all(set(name) <= set("0123456789abcdef") for name in blobs)
    assert not list(download.folder.rglob("escaped*"))


@pytest.mark.parametrize("path", ["tokenizer.json", HUGE])
def test_no_file_grows_over_what_was_announced(download: Download, hub: Hub, path: str) -> None:
    """24 MB for a file of 300 bytes would fill the disk that was found to have room."""
    files = {"config.json": b"{}", "tokenizer.json": b"{}", HUGE: b"weights"} | {path: b"x" * 24_000_000}
    hub.models["acme/liar"] = Model(files, listed_sizes={path: 300})
    download.name("acme/liar")
    done = download.run()
    assert done.code == 1
    assert f"the hub sends more for {path} than the 300 bytes that it announced" in done.last
    written = [path for path in download.home.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in written) < 1000


@pytest.mark.parametrize("index", [b"[]", b'{"weight_map": ["x"]}', b'{"weight_map": {"w": [1]}}', b"7"])
def test_an_index_that_is_none_is_not_followed(download: Download, hub: Hub, index: bytes) -> None:
    """The shards at the top are what there is then."""
    hub.models["acme/tiny"].files["model.safetensors.index.json"] = index
    assert download.run().code == 0
    assert download.files() == NEEDED | {"model.safetensors.index.json": index}


def test_a_disk_without_symbolic_links(download: Download, hub: Hub) -> None:
    """As exFAT: names hold the content itself, also where two files have the same one."""
    twin = "model-00003-of-00003.safetensors"
    index = json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": twin}}).encode()
    files = hub.models["acme/tiny"].files
    files |= {twin: files["model-00001-of-00002.safetensors"], "model.safetensors.index.json": index}
    without = "import pathlib, runpy, sys\ndef no(*_): raise PermissionError(1, 'no links')\n"
    without += "pathlib.Path.symlink_to = no\nsys.argv = sys.argv[1:]\n"
    without += "sys.path.insert(0, sys.argv[0].rpartition('/')[0])\n"
    without += "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    argv = [str(download.python), "-c", without, str(SCRIPT), str(download.profile)]
    done = subprocess.run(
        argv, env=download.environ, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    assert download.files()[twin] == files[twin]
    assert download.files()["model-00001-of-00002.safetensors"] == files[twin]
    assert not any(path.is_symlink() for path in download.home.rglob("*"))


def test_small_files_are_named_as_git_names_them(download: Download) -> None:
    """So does the real hub, and a cache that it filled is used on."""
    assert download.run().code == 0
    name = download.repository() / "snapshots" / COMMIT / "tokenizer.json"
    # As `printf {} | git hash-object --stdin` prints it.
    assert name.resolve().name == "9e26dfeeb6e641a33dae4961196235bdb965b21b"
    shard = download.repository() / "snapshots" / COMMIT / "model-00001-of-00002.safetensors"
    assert shard.resolve().name == digest(NEEDED[shard.name])
