"""What a call had generated when it was cut, from how finished calls went."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routes import BY_TEMPLATE, Route
from gateway.usage.pace import Events, Pace, frame

CHAT, TEXT = BY_TEMPLATE["/v1/chat/completions"], BY_TEMPLATE["/v1/completions"]
RESPONSES, MESSAGES = BY_TEMPLATE["/v1/responses"], BY_TEMPLATE["/v1/messages"]
SOUND = BY_TEMPLATE["/v1/audio/transcriptions"]
SECONDS = st.floats(0, 1e6)
COUNTS = st.integers(0, 10**9)


@pytest.mark.parametrize(
    ("route", "events", "tokens"),
    [(CHAT, 11, 10), (TEXT, 10, 10), (SOUND, 10, 10), (RESPONSES, 12, 10), (MESSAGES, 12, 10), (CHAT, 0, 0)],
)
def test_before_anything_is_learned_an_event_is_a_token(route: Route, events: int, tokens: int) -> None:
    """But for those that begin a stream: a role, an item, a block."""
    assert Events().tokens(route, events, 1) == tokens


def test_each_choice_begins_with_an_event_of_its_own() -> None:
    """Three choices of a chat: three roles."""
    assert Events().tokens(CHAT, 13, 3) == 10


def test_a_stream_teaches_how_many_tokens_an_event_carries() -> None:
    """An engine under load, or one that guesses ahead, sends several at once."""
    pace = Pace()
    for _ in range(50):
        pace.events.learn(CHAT, tokens=40, choices=1, data_events=22)
    assert pace.events.tokens(CHAT, 11, 1) == pytest.approx(20, rel=0.05)
    assert pace.events.tokens(TEXT, 10, 1) == 10


def test_a_change_of_pace_is_learned_within_some_calls() -> None:
    """The last calls count."""
    pace = Pace()
    for tokens in [80] * 100 + [20] * 100:
        pace.events.learn(CHAT, tokens, choices=1, data_events=22)
    assert pace.events.tokens(CHAT, 21, 1) == pytest.approx(20, rel=0.1)


def test_streams_teach_when_tokens_come() -> None:
    """First one after 0.5 s, then one each 0.02 s."""
    pace = Pace()
    for _ in range(50):
        pace.learn_times(101, first_token_seconds=0.5, seconds=2.5)
    assert pace.plain_tokens(0.4) == 0
    assert pace.plain_tokens(1.5) == pytest.approx(50, rel=0.02)


def test_first_tokens_that_come_now_soon_now_late_count_as_often_as_they_did() -> None:
    """Half of the calls that are left after 0.4 s had theirs: half of their prompts count."""
    pace = Pace()
    for _ in range(50):
        pace.learn_times(101, first_token_seconds=0.1, seconds=2.1)
        pace.learn_times(101, first_token_seconds=0.9, seconds=2.9)
    assert pace.prompt_share(0.05, is_shown=False) == 0
    assert pace.prompt_share(0.4, is_shown=False) == pytest.approx(0.5, abs=0.02)
    assert pace.plain_tokens(0.4) == pytest.approx(7.5, rel=0.05)
    assert pace.prompt_share(1.0, is_shown=False) == 1
    assert pace.plain_tokens(1.9) == pytest.approx(70, rel=0.02)


def test_a_prompt_whose_first_token_would_have_been_seen_counts_once_it_is_late() -> None:
    """Not before half of the others had theirs, and whole when all had."""
    pace = Pace()
    for number in range(31):
        pace.learn_times(101, first_token_seconds=0.1 * (number + 1), seconds=9.0)
    shares = [pace.prompt_share(0.1 * number + 0.05, is_shown=True) for number in (0, 15, 23, 31)]
    assert shares == [0, 0, pytest.approx(0.5, abs=0.03), 1]


def test_without_streams_a_prompt_counts_the_more_the_longer_a_call_has_run() -> None:
    """Plain answers tell their mean time to the first token alone: half of it is there by then."""
    pace = Pace()
    for tokens in (20, 100, 60, 40, 80) * 10:
        pace.learn_plain(tokens, 0.5 + 0.02 * tokens)
    assert pace.prompt_share(0.0, is_shown=False) == 0
    assert pace.prompt_share(0.501, is_shown=False) == pytest.approx(0.5, abs=0.05)
    assert pace.prompt_share(1.0, is_shown=False) == 1


def test_a_caller_who_reads_slowly_teaches_nobody_his_pace() -> None:
    """Of every three streams one may take an hour."""
    pace = Pace()
    for _ in range(50):
        pace.learn_times(101, first_token_seconds=0.5, seconds=2.5)
        pace.learn_times(101, first_token_seconds=0.5, seconds=3600)
        pace.learn_times(101, first_token_seconds=0.5, seconds=2.5)
    assert pace.plain_tokens(1.5) == pytest.approx(50, rel=0.02)


def test_plain_answers_teach_it_too_where_there_are_no_streams() -> None:
    """By their lengths: what does not grow with them is the time until the first token."""
    pace = Pace()
    for tokens in (20, 100, 60, 40, 80) * 10:
        pace.learn_plain(tokens, 0.5 + 0.02 * tokens)
    assert pace.plain_tokens(1.5) == pytest.approx(50, rel=0.02)


def test_plain_answers_of_one_length_teach_the_whole_of_it() -> None:
    """Nothing tells apart what their time was spent on."""
    pace = Pace()
    for _ in range(50):
        pace.learn_plain(50, 2.0)
    assert pace.plain_tokens(2.0) == pytest.approx(50, rel=0.01)
    assert 15 < pace.plain_tokens(1.0) < 25


@given(calls=st.lists(st.tuples(COUNTS, COUNTS, SECONDS, SECONDS)), events=COUNTS, seconds=SECONDS)
def test_whatever_calls_tell_nothing_breaks(
    calls: list[tuple[int, int, float, float]], events: int, seconds: float
) -> None:
    """Engines count wrongly and clocks are coarse: an estimate stays a number, and not below nothing."""
    pace = Pace()
    for route in (CHAT, TEXT, RESPONSES, MESSAGES, SOUND):
        for tokens, told_events, first, last in calls:
            pace.events.learn(route, tokens, 1, told_events)
            pace.learn_times(tokens, first, last)
            pace.learn_plain(tokens, last)
        assert 0 <= pace.events.tokens(route, events, 1) <= 64 * events
    assert 0 <= pace.plain_tokens(seconds) < float("inf")


@pytest.mark.parametrize("route", [RESPONSES, MESSAGES])
def test_a_last_token_without_an_event_makes_no_event_worth_more(route: Route) -> None:
    """Short answers that end by themselves would else make every one that is cut a tenth dearer."""
    pace = Pace()
    for _ in range(100):
        pace.events.learn(route, tokens=10, choices=1, data_events=9 + frame(route).lead + frame(route).trail)
    assert pace.events.tokens(route, 52, 1) == pytest.approx(50)


def test_one_keys_streams_do_not_change_anothers() -> None:
    """Who has finished some of his own is counted by them; a newcomer begins where others are, in reason."""
    shared = Events()
    own, other = Events(shared), Events(shared)
    for _ in range(20):
        other.learn(CHAT, tokens=22, choices=1, data_events=24)
    for _ in range(50):
        own.learn(CHAT, tokens=640, choices=1, data_events=12)
        shared.learn(CHAT, tokens=640, choices=1, data_events=12)
    assert own.tokens(CHAT, 11, 1) == pytest.approx(640, rel=0.1)
    assert other.tokens(CHAT, 11, 1) == pytest.approx(10, rel=0.1)
    assert Events(shared).tokens(CHAT, 11, 1) == pytest.approx(80, rel=0.1)
