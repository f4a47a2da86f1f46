"""Which model a name means, and who may use it."""

from typing import Any

import pytest

from gateway.errors import InvalidRequest, ModelNotFound
from gateway.policy import Catalogue, Target
from tests.policy.calls import key, model

THINKING = {"thinking": {"defaults": {"chat_template_kwargs": {"enable_thinking": True}}}}
MODELS = (
    model("qwen", aliases=("default", "claude-*", "claude-opus-*"), variants=THINKING),
    model("llama3:8b", aliases=("llama3:*", "claude-opus-4*"), variants=THINKING),
    model("Org/Other", aliases=("qwen:exact",)),
)


def chosen(target: Target) -> tuple[str, str | None]:
    return target.model.id, target.variant


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("qwen", ("qwen", None)),
        ("default", ("qwen", None)),
        ("qwen:thinking", ("qwen", "thinking")),
        ("default:thinking", ("qwen", "thinking")),
        ("Org/Other", ("Org/Other", None)),
        # An exact name wins over a variant, colon or not.
        ("llama3:8b", ("llama3:8b", None)),
        ("llama3:8b:thinking", ("llama3:8b", "thinking")),
        ("qwen:exact", ("Org/Other", None)),
        # A trailing * matches, the longest prefix first, also before a variant.
        ("claude-", ("qwen", None)),
        ("claude-sonnet", ("qwen", None)),
        ("claude-sonnet:thinking", ("qwen", "thinking")),
        ("claude-opus-3", ("qwen", None)),
        ("claude-opus-4-5", ("llama3:8b", None)),
        ("claude-opus-4-5:thinking", ("llama3:8b", "thinking")),
        # A * behind a colon matches what stands there.
        ("llama3:70b", ("llama3:8b", None)),
    ],
)
def test_names(name: str, expected: tuple[str, str | None]) -> None:
    """An exact id or alias, a variant of one, or the longest alias that ends in a *."""
    assert chosen(Catalogue(MODELS).find(name, key())) == expected


@pytest.mark.parametrize(
    "name",
    [
        "nope",
        " qwen",
        "Qwen",
        "claude",
        "qwen:",
        ":thinking",
        ":",
        "qwen:nope",
        "qwen:thinking:thinking",
        "Org/Other:thinking",
        "claude-sonnet:nope",
        "x" * 200_000,
    ],
)
def test_unknown_names_are_not_found(name: str) -> None:
    """404 `model_not_found`, also for an unknown variant of a known model; the name is cut in the message."""
    with pytest.raises(ModelNotFound) as refused:
        Catalogue(MODELS).find(name, key())

    assert (refused.value.status, refused.value.code, refused.value.param) == (
        404,
        "model_not_found",
        "model",
    )
    assert len(refused.value.message) < 400


@pytest.mark.parametrize("name", [5, 5.0, True, ["qwen"], {"id": "qwen"}, ""])
def test_what_is_no_name_is_an_invalid_request(name: Any) -> None:
    """400 with `param` "model"."""
    with pytest.raises(InvalidRequest) as refused:
        Catalogue(MODELS).find(name, key())

    assert (refused.value.status, refused.value.param) == (400, "model")


def test_without_a_name_the_only_model_is_meant() -> None:
    """Where there are several, or none, the caller must say which."""
    assert chosen(Catalogue(MODELS[:1]).find(None, key())) == ("qwen", None)
    for models in ((), MODELS):
        with pytest.raises(InvalidRequest) as refused:
            Catalogue(models).find(None, key())
        assert refused.value.param == "model"


@pytest.mark.parametrize(
    ("allowed", "name", "may"),
    [
        (("qwen",), "qwen", True),
        (("qwen",), "claude-x", True),
        (("qwen",), "default:thinking", True),
        (("qwen:thinking",), "qwen:thinking", True),
        (("qwen:thinking",), "default:thinking", True),
        (("qwen:thinking",), "qwen", False),
        (("qwen",), "llama3:8b", False),
        (("llama3:8b",), "llama3:8b", True),
        (("default",), "qwen", True),
        (("default",), "default", True),
        (("default",), "claude-x", True),
        (("default",), "qwen:thinking", True),
        (("default",), "llama3:8b", False),
        (("default:thinking",), "qwen:thinking", True),
        (("default:thinking",), "default", False),
        (("claude-*",), "claude-x", False),
        (("claude-",), "claude-", False),
        (("qwen:nope",), "qwen", False),
        ((), "qwen", False),
    ],
)
def test_a_key_may_use_what_it_lists(allowed: tuple[str, ...], name: str, may: bool) -> None:
    """An id covers its aliases and variants, `id:variant` only that one; an exact alias is like the id."""
    catalogue = Catalogue(MODELS)

    if may:
        assert catalogue.find(name, key(models=allowed))
    else:
        with pytest.raises(ModelNotFound):
            catalogue.find(name, key(models=allowed))


def test_the_only_model_is_refused_by_name_to_a_key_without_it() -> None:
    """A body without a model is no way round the list."""
    with pytest.raises(ModelNotFound, match="qwen"):
        Catalogue(MODELS[:1]).find(None, key(models=("other",)))


@pytest.mark.parametrize(
    ("allowed", "visible"),
    [
        (None, ["qwen", "llama3:8b", "Org/Other"]),
        (("Org/Other", "qwen"), ["qwen", "Org/Other"]),
        (("qwen:thinking",), ["qwen"]),
        (("default",), ["qwen"]),
        (("default:thinking",), ["qwen"]),
        (("claude-*", "qwen:nope"), []),
    ],
)
def test_a_key_sees_what_it_may_use(allowed: tuple[str, ...] | None, visible: list[str]) -> None:
    """In the file's order; a model of which only a variant is allowed is seen."""
    assert [each.id for each in Catalogue(MODELS).visible(key(models=allowed))] == visible
