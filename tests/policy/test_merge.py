"""Merging objects: what fills, what overrides, and that neither shares an object."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.merge import fill, leaves, override

NAMES = st.sampled_from("abc")
SCALARS = st.integers(0, 9) | st.booleans() | st.text(max_size=2)
LISTS = st.lists(SCALARS | st.dictionaries(NAMES, SCALARS, max_size=2), max_size=2)
# A layer that is configured says something wherever it has an object.
LAYERS = st.dictionaries(
    NAMES,
    st.recursive(
        SCALARS | LISTS, lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=3), max_leaves=8
    ),
    max_size=3,
)
BODIES = st.dictionaries(
    NAMES,
    st.recursive(
        st.none() | SCALARS | LISTS, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
    ),
    max_size=3,
)
AGREEING = st.fixed_dictionaries(
    {},
    optional={
        "a": SCALARS,
        "b": LISTS,
        "c": st.fixed_dictionaries({}, optional={"a": SCALARS}).filter(bool),
    },
)


def filled(body: dict[str, Any], *layers: dict[str, Any]) -> dict[str, Any]:
    merged = copy.deepcopy(body)
    for layer in layers:
        fill(merged, layer)
    return merged


def overridden(body: dict[str, Any], layer: dict[str, Any]) -> dict[str, Any]:
    merged = copy.deepcopy(body)
    override(merged, layer)
    return merged


def values(body: dict[str, Any]) -> dict[str, Any]:
    """The leaves with their values."""

    def at(path: str) -> Any:
        value: Any = body
        for name in path.split("."):
            value = value[name]
        return value

    return {path: at(path) for path in leaves(body)}


def is_part(part: dict[str, Any], whole: dict[str, Any]) -> bool:
    return all(path in whole and whole[path] == value for path, value in part.items())


@given(body=BODIES, high=AGREEING, low=AGREEING)
def test_layers_can_be_merged_in_any_grouping(
    body: dict[str, Any], high: dict[str, Any], low: dict[str, Any]
) -> None:
    """One after the other or first among themselves, as long as they agree on which names hold objects."""
    assert filled(body, high, low) == filled(body, filled(high, low))


@given(body=BODIES, layer=LAYERS)
def test_filling_twice_changes_nothing(body: dict[str, Any], layer: dict[str, Any]) -> None:
    """Defaults have then all been applied."""
    assert filled(body, layer, layer) == filled(body, layer)


@given(body=BODIES, layer=LAYERS)
def test_filling_keeps_every_word_of_the_body(body: dict[str, Any], layer: dict[str, Any]) -> None:
    """Only null and what is missing are filled."""
    spoken = {path: value for path, value in values(body).items() if value is not None and value != {}}

    assert is_part(spoken, values(filled(body, layer)))


@given(body=BODIES, layer=LAYERS)
def test_overriding_writes_every_word_of_the_layer(body: dict[str, Any], layer: dict[str, Any]) -> None:
    """Whatever the body says."""
    assert is_part(values(layer), values(overridden(body, layer)))


@given(body=BODIES, layer=LAYERS)
def test_merging_shares_nothing_with_the_layer(body: dict[str, Any], layer: dict[str, Any]) -> None:
    """No object or list of the layer is reachable from the merged body."""
    owned = containers(layer)

    for merge in (fill, override):
        merged = copy.deepcopy(body)
        merge(merged, layer)
        assert not owned & containers(merged)


def containers(value: Any) -> set[int]:
    """The identities of all objects and lists in a value."""
    if isinstance(value, dict):
        return {id(value)}.union(*(containers(item) for item in value.values()))
    if isinstance(value, list):
        return {id(value)}.union(*(containers(item) for item in value))
    return set()


@given(body=BODIES, layer=LAYERS)
def test_the_writers_are_noted_of_exactly_what_was_written(
    body: dict[str, Any], layer: dict[str, Any]
) -> None:
    """Each leaf that changed has the layer's name, and no other leaf has."""
    for merge in (fill, override):
        merged = copy.deepcopy(body)
        written: dict[str, str] = {}
        merge(merged, layer, "layer", written)
        before, after = values(body), values(merged)

        changed = {path for path in after if path not in before or after[path] != before[path]}
        assert changed <= written.keys()
        assert all(after.get(path) == value for path, value in values(layer).items() if path in written)


def test_depth_of_bodies_is_no_danger() -> None:
    """A layer as deep as a body may be is merged."""
    deep: dict[str, Any] = {}
    for _ in range(127):
        deep = {"a": deep or 1}

    assert filled({}, deep) == overridden({}, deep) == deep
    for _ in range(2000):
        deep = {"a": deep}
    assert leaves(deep) == [".".join("a" * 2127)]
