"""Weights come whole or not at all, from where they stopped, and what stops them is said in one line."""

import json
import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.images.conftest import BESIDE, HUGE, HUGE_FILES, NEEDED, PIECES, SHARDS
from tests.images.downloading import SECONDS, Download
from tests.images.hub import COMMIT, Hub

FIRST = "model-00001-of-00002.safetensors"
LATER = "fedcba9876543210fedcba9876543210fedcba98"


def test_it_downloads_what_vllm_reads_and_nothing_else(download: Download) -> None:
    """The shards that the index names and what lies beside them; no weights twice, no pictures."""
    done = download.run()
    assert done.code == 0, done.said
    assert download.files() == NEEDED
    assert done.last == f"weights: acme/tiny is there: 0.6 MB in 6 files, commit {COMMIT[:12]}"


def test_vllm_finds_it_offline(download: Download) -> None:
    """By the very call that vLLM makes."""
    assert download.run().code == 0
    assert found_offline(download) == str(download.repository() / "snapshots" / COMMIT)


def test_a_list_of_files_that_vllm_would_miss_some_of_is_dropped(download: Download) -> None:
    """huggingface_hub keeps such lists, and refuses a snapshot without the second copy in original/."""
    assert download.run().code == 0
    listing = download.repository() / "trees" / f"{COMMIT}.json"
    listing.parent.mkdir()
    files = {path: {"size": 1, "blob_id": "0" * 40} for path in [*NEEDED, "original/model.safetensors"]}
    listing.write_text(json.dumps({"format_version": 1, "files": files}))
    with pytest.raises(subprocess.CalledProcessError):
        found_offline(download)
    assert download.run().code == 0
    assert found_offline(download)


def found_offline(download: Download) -> str:
    wanted = f"'acme/tiny', revision='{COMMIT}', allow_patterns='*.safetensors'"
    how = "ignore_patterns=['original/**/*'], local_files_only=True"
    call = f"import huggingface_hub; print(huggingface_hub.snapshot_download({wanted}, {how}))"
    environ = download.environ | {"HF_HUB_OFFLINE": "1"}
    argv = [str(download.python), "-c", call]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_commit_that_is_there_needs_no_hub(download: Download, hub: Hub) -> None:
    """Nothing is asked, so that a box without a network starts as fast as any."""
    assert download.run().code == 0
    hub.asked.clear()
    assert download.run().code == 0
    assert hub.asked == []


def test_a_branch_that_is_there_does_without_the_hub(download: Download, hub: Hub) -> None:
    """It is asked, since branches move, and may be away."""
    download.name("acme/tiny", "main")
    assert download.run().code == 0
    hub.close()
    done = download.run()
    assert done.code == 0
    assert "all is there already" in done.said


def test_a_branch_that_moved_keeps_its_old_commit_until_the_new_one_is_whole(
    download: Download, hub: Hub
) -> None:
    """vLLM finds the commit by the branch's name, and could start at any moment."""
    download.name("acme/tiny", "main")
    assert download.run().code == 0
    reference = download.repository() / "refs" / "main"
    hub.models["acme/tiny"].commit = LATER
    hub.models["acme/tiny"].files |= {FIRST: b"new weights" * 1000}
    hub.paused[FIRST] = 1000
    with download.start() as process:
        assert hub.waiting.wait(SECONDS)
        assert reference.read_text() == COMMIT
        hub.go_on.set()
        assert process.wait(SECONDS) == 0
    assert reference.read_text() == LATER
    assert download.files(commit=LATER) == NEEDED | {FIRST: b"new weights" * 1000}


def test_a_part_is_not_taken_for_the_whole(download: Download, hub: Hub) -> None:
    """Without the hub, a cache that lacks a shard is an error, and the same command mends it."""
    assert download.run().code == 0
    for shard in SHARDS:
        (download.repository() / "snapshots" / COMMIT / shard).unlink()
    hub.close()
    done = download.run()
    assert done.code == 75
    assert "out of reach" in done.last
    assert "`make up` again" in done.last


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_stopped_in_the_middle_it_goes_on_from_there(
    download: Download, hub: Hub, number: signal.Signals
) -> None:
    """At once, with gigabytes on their way; the next run asks for the rest alone."""
    download.name("acme/huge")
    hub.paused[HUGE] = 23_000_000
    with download.start() as process:
        assert hub.waiting.wait(SECONDS)
        wait_for_part(download)
        process.send_signal(number)
        assert process.wait(SECONDS) == (-9 if number == signal.SIGKILL else 128 + number)
    hub.go_on.set()
    assert HUGE not in download.files("acme/huge")
    assert download.run().code == 0
    assert hub.ranges(HUGE) == ["", f"bytes={PIECES}-"]
    assert download.files("acme/huge") == HUGE_FILES


def wait_for_part(download: Download) -> None:
    part = download.part("acme/huge", HUGE_FILES[HUGE])
    deadline = time.monotonic() + SECONDS
    while part.stat().st_size < PIECES:
        assert time.monotonic() < deadline, "nothing is written"
        time.sleep(0.02)


def test_what_an_ended_process_had_is_not_asked_for_again(download: Download, hub: Hub) -> None:
    """Of files of gigabytes, most of one may be there."""
    part = put_part(download, SHARDS[FIRST][:100_000])
    assert download.run().code == 0
    assert hub.ranges(FIRST) == ["bytes=100000-"]
    assert download.files() == NEEDED
    assert not part.exists()


def put_part(download: Download, content: bytes) -> Path:
    part = download.part("acme/tiny", SHARDS[FIRST])
    part.parent.mkdir(parents=True)
    part.write_bytes(content)
    return part


@pytest.mark.parametrize("part", [b"\0" * 100_000, b"\0" * 300_000, b"\0" * 400_000])
def test_a_part_that_a_power_cut_spoiled_is_noticed(download: Download, part: bytes) -> None:
    """Its hash says so, and the file comes anew."""
    put_part(download, part)
    assert download.run().code == 0
    assert download.files() == NEEDED


def test_a_connection_that_breaks_is_resumed(download: Download, hub: Hub) -> None:
    """Within one run, without a word from the operator."""
    download.name("acme/huge")
    hub.cut[HUGE] = 23_000_000
    assert download.run().code == 0
    assert hub.ranges(HUGE) == ["", f"bytes={PIECES}-"]
    assert download.files("acme/huge") == HUGE_FILES


def test_two_runs_do_not_spoil_each_other(download: Download, hub: Hub) -> None:
    """The second says so and leaves; the first ends well."""
    hub.paused[FIRST] = 1000
    with download.start() as first:
        assert hub.waiting.wait(SECONDS)
        second = download.run()
        hub.go_on.set()
        assert first.wait(SECONDS) == 0
    assert second.code == 1
    assert second.last == "weights: acme/tiny is being downloaded by another run: wait for it, or end it"
    assert download.files() == NEEDED


def test_it_says_how_far_it_is(download: Download, hub: Hub) -> None:
    """Off a terminal in lines: done, total, rate, and the time left once that is known."""
    download.settings["WEIGHTS_LINE_SECONDS"] = "0.1"
    put_part(download, SHARDS[FIRST][:150_000])
    hub.paused[FIRST] = 200_000
    with download.start() as process:
        # The other shard is there soon, this one waits.
        said = download.said("  0.5 MB of 0.6 MB, ")
        hub.go_on.set()
        assert process.wait(SECONDS) == 0
    assert said.startswith("weights: acme/tiny: 0.5 MB to download, ")
    assert re.search(r"^  0\.6 MB of 0\.6 MB, \d+\.\d MB/s$", download.said("is there"), re.MULTILINE)


def test_on_a_terminal_one_line_changes(download: Download) -> None:
    """And nothing of huggingface_hub's own bars."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(download.argv, env=download.environ, stdin=subprocess.DEVNULL, stderr=end)
    os.close(end)
    said = b""
    try:
        while piece := os.read(terminal, 4096):
            said += piece
    except OSError:
        pass  # how a terminal ends on Linux
    finally:
        os.close(terminal)
    assert process.wait(SECONDS) == 0
    announced, progress, end_line, nothing = said.decode().split("\r\n")
    assert announced.startswith("weights: acme/tiny: 0.6 MB to download, ")
    assert "\r\x1b[K  0.6 MB of 0.6 MB, " in progress
    assert "\n" not in progress
    assert end_line.startswith("weights: acme/tiny is there: ")
    assert nothing == ""


def test_a_disk_without_room_is_refused_before_the_download(download: Download, hub: Hub) -> None:
    """With both numbers, and none of the weights asked for."""
    download.settings["WEIGHTS_SPARE_BYTES"] = "900000000000000"
    done = download.run()
    assert done.code == 1
    assert (
        "needs 900000.0 GB on the disk of WEIGHTS_DIR (0.6 MB to come, 900000.0 GB to spare), and"
        in done.last
    )
    assert done.last.endswith("make room, or set WEIGHTS_DIR in .env to a folder on a larger disk")
    assert not hub.ranges(FIRST)


@pytest.mark.parametrize("last", ["chat_template.jinja", "tokenizer.json"])
def test_files_beside_the_weights_are_named_before_them(download: Download, hub: Hub, last: str) -> None:
    """So that whole weights mean a whole snapshot, wherever it was stopped."""
    hub.broken.add(last)
    assert download.run().code == 75
    assert set(download.files()) < set(BESIDE)
    hub.broken.clear()
    assert download.run().code == 0
    assert download.files() == NEEDED
