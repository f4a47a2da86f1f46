"""What a call will use, and what one has used that told nothing: estimates that learn from calls that told.

Arithmetic in memory: no I/O, no clock, nothing waits, nothing here fails for what stands in a body.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from gateway.routes import Route
from gateway.usage import bodies
from gateway.usage.output import Output, cap
from gateway.usage.pace import Events, Pace
from gateway.usage.prompt import SETTLED_CALLS, Habit, Keys, Weights
from gateway.usage.shape import Shape
from gateway.usage.tokens import Usage

MOST_PAIRS = 10_000
MOST_MODELS = 1000
# Of a key on a model each of the first calls teaches, of those after them some, since to learn costs more
# than all else here: every fourth teaches the key's habit and the model's pace, fewer the prompt's weights.
_FIRST_CALLS = 64
_LESSON_CALLS = 4
_MANY_CALLS = 1024
_SURPRISE = 0.15  # of the tokens: what was estimated so badly teaches sooner

_TRUNCATE = "truncate_prompt_tokens"


class Ask(NamedTuple):
    """What one call asks for, in tokens.

    `cap` is that of one choice (None: none); `prompt` and `output` are of all prompts and choices together.
    `stream`: the answer is one that shows what was generated as it comes.
    `shared` is what all keys' weights say of the prompts without their ids.
    """

    model: str
    key_id: str
    route: Route
    choices: int
    stream: bool
    cap: int | None
    prompt: int
    output: int
    shape: Shape
    shared: float

    @property
    def tokens(self) -> int:
        """What is reserved."""
        return self.prompt + self.output

    def within(self, max_model_len: int) -> "Ask":
        """The same of a model that takes so many tokens: an engine refuses what is longer."""
        return self._replace(prompt=min(self.prompt, max(1, round(max_model_len * self.shape.prompts))))


class _Model:
    """What the calls of all keys have taught of one model."""

    __slots__ = ("keys", "pace", "weights")

    def __init__(self) -> None:
        self.keys = Keys()
        self.pace = Pace()
        self.weights = Weights()


class _Pair:
    """What the calls of one key have taught of its use of one model."""

    __slots__ = ("calls", "events", "habit", "output")

    def __init__(self, model: _Model) -> None:
        self.calls = 0
        self.events = Events(model.pace.events)
        self.habit = Habit()
        self.output = Output()


class Estimates:
    """Learns of models and keys. Of more than are kept, those unused for longest are forgotten."""

    def __init__(self, *, most_models: int = MOST_MODELS, most_pairs: int = MOST_PAIRS) -> None:
        self._models: OrderedDict[str, _Model] = OrderedDict()
        self._pairs: OrderedDict[tuple[str, str], _Pair] = OrderedDict()
        self._most_models = most_models
        self._most_pairs = most_pairs

    def ask(self, body: Mapping[str, Any], *, route: Route, model: str, key_id: str, choices: int) -> Ask:
        """What the call with this prepared body asks for; nothing on a route that tells no tokens."""
        if not route.usage:
            return Ask(model, key_id, route, choices, False, None, 0, 0, Shape(), 0.0)
        pair = self._pair(key_id, model)
        shape = bodies.shape(body, route)
        shared = self._model(model).weights.tokens(shape)
        prompt = shape.ids + pair.habit.factor * shared
        truncated = body.get(_TRUNCATE)
        if type(truncated) is int and truncated > 0 and route.dialect == "openai":
            prompt = min(prompt, truncated * shape.prompts)
            shared = 0.0  # nothing is learned of what an engine has cut
        most, choices = cap(body, route), max(1, choices)
        output = choices * pair.output.tokens(most) if route.generates else 0
        # A stream that hides its reasoning is silent while tokens are made: its events tell nothing.
        stream = route.streams and body.get("stream") is True and body.get("include_reasoning", True) is True
        prompt_tokens = max(1, round(prompt))
        return Ask(model, key_id, route, choices, stream, most, prompt_tokens, output, shape, shared)

    def learn(
        self, ask: Ask, usage: Usage, *, data_events: int, first_token_seconds: float, seconds: float
    ) -> None:
        """A call that finished with the engine's own usage.

        `data_events` are those of a stream. `first_token_seconds` (0.0: unknown) and `seconds` are counted
        from when the call was handed to the engine.
        """
        pair = self._pair(ask.key_id, ask.model)
        pair.calls += 1
        generates = ask.route.generates
        if generates:
            pair.output.learn(usage.completion // ask.choices)
        if pair.calls > _FIRST_CALLS and pair.calls % _LESSON_CALLS:
            return
        model = self._model(ask.model)
        self._learn_prompt(ask, usage, model, pair)
        if not generates:
            return
        each = usage.completion / ask.choices
        if ask.stream:
            for events in (pair.events, model.pace.events):
                events.learn(ask.route, usage.completion, ask.choices, data_events)
            model.pace.learn_times(each, first_token_seconds, seconds)
        elif not data_events:
            model.pace.learn_plain(each, seconds)

    def learn_output(self, ask: Ask, completion: int) -> None:
        """A call has used so many tokens by what can be known: calls like it need no more in reserve."""
        if ask.route.generates:
            self._pair(ask.key_id, ask.model).output.learn(completion // ask.choices)

    def cut(
        self, ask: Ask, *, data_events: int, seconds: float, whole: bool = False, answer_bytes: int = 0
    ) -> Usage:
        """What can be known of a call without usage, `seconds` after it was handed to the engine.

        `whole`: its answer is, so that all of its prompt was read. Without events it was a plain one, of
        `answer_bytes`, which are at least as many as its tokens.
        """
        if not ask.route.generates:
            return Usage(prompt=ask.prompt)
        pace = self._model(ask.model).pace
        if ask.stream and (data_events or not whole):
            events = self._pair(ask.key_id, ask.model).events
            tokens = events.tokens(ask.route, data_events, ask.choices)
        else:
            tokens = ask.choices * pace.plain_tokens(seconds)
            if answer_bytes:
                tokens = min(tokens, answer_bytes)
        if ask.cap is not None:
            tokens = min(tokens, ask.choices * ask.cap)
        prompt = ask.prompt
        if not data_events and not whole:
            prompt = max(1, round(prompt * pace.prompt_share(seconds, is_shown=ask.stream)))
        return Usage(prompt=prompt, completion=round(tokens))

    def _learn_prompt(self, ask: Ask, usage: Usage, model: _Model, pair: _Pair) -> None:
        tokens, weights = usage.prompt - ask.shape.ids, model.weights
        if tokens <= 0 or ask.shared <= 0:
            return
        is_odd = model.keys.is_odd(ask.key_id, ask.shared, tokens)
        if weights.calls >= SETTLED_CALLS:
            pair.habit.learn(ask.shared, tokens)
        is_surprise = abs(tokens - pair.habit.factor * ask.shared) > _SURPRISE * tokens
        if pair.calls % _calls_a_lesson(pair.calls, is_surprise) == 0:
            weights.learn(ask.shape, tokens / pair.habit.factor, is_odd=is_odd)

    def _model(self, name: str) -> _Model:
        model = self._models.get(name)
        if model is None:
            model = self._models[name] = _Model()
            if len(self._models) > self._most_models:
                self._models.popitem(last=False)
        else:
            self._models.move_to_end(name)
        return model

    def _pair(self, key_id: str, model: str) -> _Pair:
        name = (key_id, model)
        pair = self._pairs.get(name)
        if pair is None:
            pair = self._pairs[name] = _Pair(self._model(model))
            if len(self._pairs) > self._most_pairs:
                self._pairs.popitem(last=False)
        else:
            self._pairs.move_to_end(name)
        return pair


def _calls_a_lesson(calls: int, is_surprise: bool) -> int:
    """Of so many calls of one key on a model each teaches the weights, or one in so many."""
    if calls <= _FIRST_CALLS:
        return 1
    if calls <= _MANY_CALLS:
        return _LESSON_CALLS if is_surprise else 4 * _LESSON_CALLS
    return 4 * _LESSON_CALLS if is_surprise else 64 * _LESSON_CALLS
