"""A stream of chunks reads the same however its bytes are cut, and loses one event at most."""

from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.relay.completions import MAX_HELD_BYTES, Completions, Reasoned, name_twice
from gateway.relay.dialects import reader
from gateway.relay.events import MAX_INSPECTED_BYTES, EventStream
from gateway.routes import BY_TEMPLATE
from gateway.usage import Usage

COUNTS = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
TOLD = {"input_tokens": 7, "output_tokens": 2}


def event(chunk: dict[str, object]) -> bytes:
    return b"data: " + orjson.dumps(chunk) + b"\n\n"


def content(text: str, index: int = 0, finish: str | None = None) -> bytes:
    choice = {"index": index, "delta": {"content": text}, "finish_reason": finish}
    return event({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})


USAGE = event({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": COUNTS})
DONE = b"data: [DONE]\n\n"
BODY = content("Par") + content('is "usage" \n "error": [DONE]') + content("", finish="stop")


def relay(stream: EventStream, data: bytes, cuts: list[int]) -> bytes:
    """What the caller gets of `data` when it is read in pieces that end at `cuts`."""
    ends = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    return b"".join([stream.feed(data[a:b]) for a, b in pairwise(ends) if a < b] + [stream.end()])


def stream(*, include_usage: bool = False, choices: int = 1) -> Completions:
    return Completions(include_usage=include_usage, choices=choices)


LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
CUTS = st.lists(st.integers(0, 2000), max_size=40)


@given(LINE_ENDS, CUTS)
def test_the_usage_event_that_nobody_asked_for_is_the_only_thing_taken_out(
    end: bytes, cuts: list[int]
) -> None:
    """Every chunking and every line end: the caller's bytes are the engine's less that one event."""
    read = stream()
    seen = relay(read, (BODY + USAGE + DONE).replace(b"\n", end), cuts)
    # A lone line feed may stay of a CRLF that was cut in two; it is a blank line more and means nothing.
    assert seen.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n\n\n", b"\n\n") == BODY + DONE
    assert read.usage == Usage(prompt=7, completion=2)
    assert read.done
    assert read.complete


@given(LINE_ENDS, CUTS)
def test_a_caller_who_asked_gets_every_byte(end: bytes, cuts: list[int]) -> None:
    """With include_usage the stream is the engine's to the byte, and its usage is known all the same."""
    data = (BODY + USAGE + DONE).replace(b"\n", end)
    read = stream(include_usage=True)
    assert relay(read, data, cuts) == data
    assert read.usage == Usage(prompt=7, completion=2)
    assert read.at_boundary


def test_content_passes_before_its_event_is_whole() -> None:
    """Only what may be the usage event waits: a content event goes on from where its choices begin."""
    read = stream()
    first = content("Paris")[:80]
    assert read.feed(first) == first
    assert not read.at_boundary


def test_what_may_be_the_usage_event_waits_until_it_is_whole() -> None:
    """Not one byte of the usage event is seen by a caller who did not ask."""
    read = stream()
    assert read.feed(content("x") + USAGE[:60]) == content("x")
    assert read.feed(USAGE[60:-1]) == b""
    assert read.feed(USAGE[-1:]) == b""


def test_holding_ends_at_its_bound() -> None:
    """An event that tells nothing for 64 KiB is passed on rather than held for ever."""
    read = stream()
    assert read.feed(b"data: " + b" " * MAX_HELD_BYTES) != b""


@pytest.mark.parametrize("comment", [b": keep-alive\n\n", b":\n\n", b"retry: 3000\n\n", b"event: ping\n\n"])
def test_comments_pass_and_are_no_data(comment: bytes) -> None:
    """An engine's heartbeat is neither an error nor the first token."""
    read = stream()
    assert read.feed(comment) == comment
    assert read.data_events == 0


def test_usage_on_every_chunk_is_taken_out_of_the_chunks_and_the_last_one_counts() -> None:
    """Cumulative usage is not added up, and a caller who did not ask sees none of it."""
    read = stream()
    chunk: dict[str, object] = {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}]}
    counts = [{"prompt_tokens": 7, "completion_tokens": n} for n in (1, 2, 3)]
    seen = b"".join(read.feed(event({**chunk, "usage": usage})) for usage in counts)
    assert seen == event(chunk) * 3
    assert read.usage == Usage(prompt=7, completion=3)


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": None}, {"prompt_tokens": 7}, {"cost": 1}])
def test_a_usage_event_that_tells_no_counts_is_taken_out_too(usage: dict[str, object]) -> None:
    """It would not be there, had the gateway not asked."""
    last = event({"choices": [], "usage": usage})
    read = stream()
    assert read.feed(content("x") + last + DONE) == content("x") + DONE
    assert (read.usage, read.complete) == (None, True)
    assert stream(include_usage=True).feed(last) == last


def test_counts_of_a_stream_never_shrink() -> None:
    """A last word of zeros makes nothing free."""
    zeros = event({"choices": [], "usage": dict.fromkeys(COUNTS, 0)})
    read = stream()
    read.feed(content("x", finish="stop") + USAGE + zeros + DONE)
    assert read.usage == Usage(prompt=7, completion=2)
    assert not read.outdated


@pytest.mark.parametrize("cut", [0, 1, 7])
def test_counts_that_more_text_followed_are_outdated(cut: int) -> None:
    """They are not of the whole answer; `[DONE]` and heartbeats are no text."""
    read = stream()
    early = content("x") + USAGE + b": heartbeat\n\n"
    relay(read, early, list(range(0, len(early), cut)) if cut else [])
    assert not read.outdated
    read.feed(content("y", finish="stop"))
    read.feed(DONE)
    assert read.outdated
    read.feed(USAGE)
    assert not read.outdated


def test_usage_null_on_every_chunk_passes_untouched() -> None:
    """The standard's own `usage: null` is nobody's business."""
    read = stream()
    chunk = event({"choices": [{"index": 0, "delta": {}, "finish_reason": None}], "usage": None})
    assert read.feed(chunk) == chunk


def test_a_close_without_done_is_complete_only_if_every_choice_has_finished() -> None:
    """Two choices were wanted: one finish reason is not enough, two are."""
    read = stream(choices=2)
    read.feed(content("a", 0, "stop"))
    assert not read.complete
    read.feed(content("b", 1, "length"))
    assert read.complete
    assert not read.done


def test_the_engines_own_error_event_passes_and_is_noted() -> None:
    """It is the engine's to say; the books know that this was no success."""
    read = stream()
    failed = event({"error": {"message": "boom", "code": 500}})
    assert read.feed(failed) == failed
    assert read.engine_error is not None
    assert not read.complete


def test_a_word_in_the_text_is_no_error() -> None:
    """`"error"` as a content does not end up in the books."""
    read = stream()
    read.feed(event({"choices": [{"index": 0, "delta": {"content": "error"}, "finish_reason": None}]}))
    assert read.engine_error is None


def test_a_json_over_two_data_lines_is_read() -> None:
    """Several data lines are one event, as the standard says."""
    read = stream()
    split = b'data: {"choices": [],\ndata: "usage": {"prompt_tokens": 7, "completion_tokens": 2}}\n\n'
    assert read.feed(split) == b""
    assert read.usage == Usage(prompt=7, completion=2)


def test_a_line_of_megabytes_passes_whole_and_the_usage_after_it_counts() -> None:
    """Length is no reason to lose a byte or a count."""
    read = stream()
    data = content("x" * 5_000_000) + USAGE + DONE
    seen = b"".join(read.feed(data[i : i + 65_536]) for i in range(0, len(data), 65_536))
    assert seen == content("x" * 5_000_000) + DONE
    assert read.usage == Usage(prompt=7, completion=2)


@pytest.mark.parametrize("last", [b"data: [DONE]", content("y", finish="stop").rstrip()])
@pytest.mark.parametrize("changed", [False, True])
def test_what_ends_an_answer_is_seen_without_its_blank_line_too(last: bytes, changed: bool) -> None:
    """An engine that closes right after it said all it had to say; callers drop what no blank line ends."""
    read = stream()
    read.feed(content("x"))
    if changed:
        read.feed(content("x")[:-3] + b',"usage":{"prompt_tokens":1}}\n\n')
    assert read.feed(last) + read.end() == last + b"\n\n"
    assert read.complete
    assert read.end() == b""


@pytest.mark.parametrize("index", ["{}", "[1]", "null", '"x"', "1.5"])
def test_a_choice_with_an_index_that_is_none_passes(index: str) -> None:
    """Nothing that an engine writes makes reading along fail."""
    read = stream()
    odd = f'data: {{"choices":[{{"index":{index},"delta":{{}},"finish_reason":"stop"}}]}}\n\n'.encode()
    assert read.feed(odd) == odd
    assert read.complete


def test_half_an_event_that_was_held_is_never_shown() -> None:
    """What broke off while held leaves the caller at a clean boundary."""
    read = stream()
    read.feed(content("x"))
    read.feed(b'data: {"id": "c", "cho')
    assert read.end() == b""
    assert read.at_boundary


def test_holding_a_chunk_that_would_be_changed_ends_at_its_bound_too() -> None:
    """An engine that puts usage on every chunk and then never ends one fills no memory."""
    read = stream()
    read.feed(event({"choices": [{"index": 0, "delta": {}}], "usage": COUNTS}))
    assert read.feed(b'data: {"choices": [') == b""
    assert read.feed(b" " * MAX_INSPECTED_BYTES) != b""


THOUGHT = r'He said \"reasoning\": \\ \u00e9 {"reasoning": 1}'


@given(CUTS)
def test_reasoning_is_told_by_its_older_name_too(cuts: list[int]) -> None:
    """However the chunks are cut; nothing else changes, and nothing is lost."""
    data = b"".join(
        event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        for delta in ({"reasoning": THOUGHT}, {"content": THOUGHT}, {"reasoning": None}, {})
    )
    read = Reasoned(include_usage=False, choices=1)
    seen = relay(read, data + DONE, cuts)
    deltas = [orjson.loads(line[6:])["choices"][0]["delta"] for line in seen.split(b"\n\n")[:4]]
    assert deltas == [
        {"reasoning": THOUGHT, "reasoning_content": THOUGHT},
        {"content": THOUGHT},
        {"reasoning": None, "reasoning_content": None},
        {},
    ]
    assert seen.endswith(DONE)
    assert read.data_events == 4


@pytest.mark.parametrize(
    "body", [b'{"reasoning_content":"x","reasoning":"x"}', b'{"text":"reasoning"}', b'{"reasoning":{"a":1}}']
)
def test_what_has_the_older_name_or_no_reasoning_stays(body: bytes) -> None:
    """Other engines use it of their own accord."""
    assert name_twice(body) == body


def test_a_number_that_is_no_json_does_not_keep_reasoning_from_its_second_name() -> None:
    """Bytes are looked at, nothing is parsed."""
    named = name_twice(b'{"message":{"reasoning" : "y"},"logprob":-Infinity}')
    assert named == b'{"message":{"reasoning" : "y","reasoning_content":"y"},"logprob":-Infinity}'


def transcript() -> EventStream:
    route = BY_TEMPLATE["/v1/audio/transcriptions"]
    return reader(route, include_usage=False, choices=1, both_names=False)


def test_a_transcript_in_parts_is_complete_with_done_alone() -> None:
    """Each part of a long recording has its finish reason."""
    read = transcript()
    read.feed(content("one", finish="stop"))
    assert not read.complete
    read.feed(content(" two", finish="stop") + DONE)
    assert read.complete


def test_a_transcripts_usage_event_is_taken_out_as_a_chats_is() -> None:
    """The gateway asks for it there too."""
    read = transcript()
    assert read.feed(content("one", finish="stop") + USAGE + DONE) == content("one", finish="stop") + DONE
    assert read.usage == Usage(prompt=7, completion=2)


def test_a_transcript_in_openais_own_events_is_complete_without_done() -> None:
    """Other servers of that API send them; the counts stand in the last."""
    read = transcript()
    data = event({"type": "transcript.text.delta", "delta": "one"})
    last = event({"type": "transcript.text.done", "text": "one", "usage": TOLD})
    assert read.feed(data) + read.feed(last) == data + last
    assert read.complete
    assert read.usage == Usage(prompt=7, completion=2)
    assert not read.outdated
