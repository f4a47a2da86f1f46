"""Which model a name means, and whether a key may use it."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.errors import InvalidRequest, ModelNotFound, quote
from gateway.keys import Key
from gateway.policy.layers import Layer
from gateway.settings import Model


@dataclass(frozen=True, slots=True)
class Target:
    """A model and, if the name chose one, a variant; with their layers, highest first, made once."""

    model: Model
    variant: str | None
    defaults: tuple[Layer, ...]
    force: tuple[Layer, ...]

    @classmethod
    def of(cls, model: Model, variant: str | None = None) -> "Target":
        """A target with the layers of its model and variant; empty ones are left out."""
        chosen = model.variants[variant].defaults if variant else {}
        defaults = ((chosen, "variant.defaults"), (model.defaults, "model.defaults"))
        return cls(
            model,
            variant,
            tuple(Layer.of(values, source) for values, source in defaults if values),
            (Layer.of(model.force, "model.force"),) if model.force else (),
        )


class Catalogue:
    """The names of all models, looked up on each request. Made anew when the models change."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = tuple(models)
        self._exact: dict[str, Target] = {}
        self._variants: dict[tuple[str, str], Target] = {}
        prefixes: list[tuple[str, Target]] = []
        for model in self._models:
            target = Target.of(model)
            for variant in model.variants:
                self._variants[model.id, variant] = Target.of(model, variant)
            self._exact[model.id] = target
            for alias in model.aliases:
                if alias.endswith("*"):
                    prefixes.append((alias[:-1], target))
                else:
                    self._exact[alias] = target
        self._prefixes = sorted(prefixes, key=lambda pair: len(pair[0]), reverse=True)

    def find(self, name: object, key: Key) -> Target:
        """The target that a body's `model` means; none or null means the only model there is.

        Raises ModelNotFound, also where the key may not use it, and InvalidRequest (`param` "model").
        """
        target = self._exact.get(name) if type(name) is str else self._only(name)
        if target is None:
            target = self._otherwise(str(name))
        if key.models is not None and not allows(key, target.model, target.variant):
            raise ModelNotFound(target.model.id if name is None else name)
        return target

    def visible(self, key: Key) -> list[Model]:
        """The models of which the key may use anything, as it is or by a variant; in the file's order."""
        return [
            model
            for model in self._models
            if allows(key, model, None) or any(allows(key, model, variant) for variant in model.variants)
        ]

    def _only(self, name: object) -> Target:
        if name is not None:
            raise InvalidRequest(f"'model' must be a string; it is {quote(name)}.", param="model")
        if len(self._models) == 1:
            return self._exact[self._models[0].id]
        raise InvalidRequest(
            "'model' is missing, and there are several: GET /v1/models lists those that you can use."
            if self._models
            else "'model' is missing.",
            param="model",
        )

    def _otherwise(self, name: str) -> Target:
        if not name:
            raise InvalidRequest("'model' must not be empty.", param="model")
        base, colon, variant = name.rpartition(":")
        target = self._variant(base, variant) if colon else self._by_prefix(name)
        # A * matches up to the last colon; one that is written behind a colon matches there too.
        target = target or self._by_prefix(name, longer_than=len(base))
        if target is None:
            raise ModelNotFound(name)
        return target

    def _variant(self, base: str, variant: str) -> Target | None:
        target = self._exact.get(base) or self._by_prefix(base)
        return target and self._variants.get((target.model.id, variant))

    def _by_prefix(self, name: str, longer_than: int = -1) -> Target | None:
        return next(
            (
                target
                for prefix, target in self._prefixes
                if len(prefix) > longer_than and name.startswith(prefix)
            ),
            None,
        )


def allows(key: Key, model: Model, variant: str | None) -> bool:
    """Whether a key may use a model as it is (variant None) or by a variant.

    In a key's list an id or an exact alias covers the model by all its names and its variants,
    `id:variant` or `alias:variant` only that variant.
    """
    if key.models is None or model.id in key.models:
        return True
    names = [model.id, *(alias for alias in model.aliases if not alias.endswith("*"))]
    if any(name in key.models for name in names):
        return True
    return variant is not None and any(f"{name}:{variant}" in key.models for name in names)
