"""What is searched: families of models, each an estimator with its hyperparameters.

A point is a dict of plain values, one for each parameter that applies, as an Optuna study
holds it: ``{"C": 0.1}`` with one family; ``{"family": "svm", "svm:C": 0.1}`` with several,
so that a sampler learns across families.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
)

from mlopt.errors import InputError
from mlopt.locking import cached_property
from mlopt.tuning.space.grid import Grid, count, grid, shares
from mlopt.tuning.space.names import Tunable, bare, fixed_parameters, resolve
from mlopt.tuning.space.parameters import Parameter, parameter
from mlopt.tuning.storage.fingerprint import part, part_of_setting

FAMILY = "family"

Draw = Callable[[str, BaseDistribution], Any]
"""Gives a coordinate for a name and a distribution."""


@dataclass(frozen=True, eq=False)
class Family:
    """One kind of model: an estimator and what is varied of it."""

    name: str
    estimator: Any
    parameters: tuple[Parameter, ...]
    prefix: str = ""

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """Distributions by their names in a study."""
        return {self.prefix + p.label: p.distribution for p in self.parameters}

    @cached_property
    def size(self) -> int | None:
        """The number of different points; None when there is no end of them."""
        counts = [count(one) for one in self.distributions.values()]
        return None if None in counts else math.prod(c for c in counts if c is not None)

    def decode(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """What ``set_params`` gets. Estimators among the values must be cloned first."""
        return {p.name: p.value(point[self.prefix + p.label]) for p in self.parameters}

    def key(self, point: Mapping[str, Any]) -> Hashable:
        """Equal for two points exactly when they mean the same model."""
        marks = (p.mark(point[self.prefix + p.label]) for p in self.parameters)
        return self.name, tuple(marks)


@dataclass(frozen=True, eq=False)
class Space:
    """Families of models to search over; `of` and `of_families` read what users write."""

    families: tuple[Family, ...]
    in_turn: bool = True
    """Whether a grid takes the families in turn, or one after the other."""

    @classmethod
    def of(cls, space: Mapping[str, Any], estimator: Any = None) -> Space:
        """One family.

        Parameters
        ----------
        space : mapping of str to values
            Optuna or scipy distributions, ranges, lists. A name without ``__`` may stand
            for the one nested parameter that ends so.
        estimator : estimator, optional
            Its parameters are checked when given.

        Raises
        ------
        InputError
            An unknown parameter, or values that are none.
        """
        return cls((_family("", estimator, space),))

    @classmethod
    def of_families(cls, families: Mapping[str, Any], *, in_turn: bool = True) -> Space:
        """Several families, ``{"name": (estimator, space), ...}``; errors as in `of`."""
        if not families:
            raise InputError("The families must be at least one, got none.")
        many = len(families) > 1
        found = tuple(
            _family(name, *_pair(name, given), prefix=f"{name}:" if many else "")
            for name, given in families.items()
        )
        for family in found if in_turn else ():
            if any(p.name == FAMILY for p in family.parameters):
                raise InputError(
                    f"`{FAMILY}` in the space of family `{family.name}` would stand for "
                    "the name of the family in `best_params_`: put the estimator into a "
                    f"pipeline, where the parameter is `step__{FAMILY}`."
                )
        return cls(found, in_turn)

    def __getitem__(self, name: str) -> Family:
        return next(family for family in self.families if family.name == name)

    @cached_property
    def chooser(self) -> dict[str, BaseDistribution]:
        """The choice of family; empty when there is none."""
        names = [family.name for family in self.families]
        return {FAMILY: CategoricalDistribution(names)} if len(names) > 1 else {}

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """Every distribution by its name in a study, the choice of family first."""
        return self.chooser | {
            n: d for f in self.families for n, d in f.distributions.items()
        }

    @cached_property
    def size(self) -> int | None:
        """The number of different points; None when there is no end of them."""
        sizes = [family.size for family in self.families]
        return None if None in sizes else sum(filter(None, sizes))

    def grids(self, budget: int | None = None) -> list[Grid]:
        """A grid for each family, of about ``budget`` points together.

        Without a budget, every point there is; the space must be finite then.
        """
        sizes = [family.size or math.inf for family in self.families]
        own = shares(sizes, budget) if budget else [None] * len(sizes)
        return [
            Grid({n: [f.name] for n in self.chooser} | grid(f.distributions, share).axes)
            for f, share in zip(self.families, own, strict=True)
        ]

    def draw(self, draw: Draw) -> dict[str, Any]:
        """A point whose coordinates come from ``draw``, the family first."""
        point = {name: draw(name, d) for name, d in self.chooser.items()}
        rest = self.family(point).distributions
        return point | {name: draw(name, d) for name, d in rest.items()}

    def family(self, point: Mapping[str, Any]) -> Family:
        """The family that ``point`` belongs to."""
        return self[point[FAMILY]] if self.chooser else self.families[0]

    def applicable(self, point: Mapping[str, Any]) -> dict[str, BaseDistribution]:
        """The distributions of the coordinates of ``point``."""
        return self.chooser | self.family(point).distributions

    def decode(self, point: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The name of the family, and what its estimator's ``set_params`` gets."""
        family = self.family(point)
        return family.name, family.decode(point)

    def key(self, point: Mapping[str, Any]) -> Hashable:
        """Equal for two points exactly when they mean the same model."""
        return self.family(point).key(point)

    def fingerprint(self) -> dict[str, str | None]:
        """What must stay the same for a study to go on, by name; None: it cannot be told.

        Estimators count by their code and their fixed parameters, those that change no
        result left out.
        """
        parts: dict[str, str | None] = {}
        for family in self.families:
            front = f"{family.name}: " if family.name else ""
            varied = {p.name for p in family.parameters}
            if family.estimator is not None:
                fixed = fixed_parameters(family.estimator, varied)
                kind = type(family.estimator).__name__
                parts |= {f"{front}{n}": part_of_setting(v) for n, v in fixed.items()}
                steps = bare(family.estimator, varied | fixed.keys())
                parts[f"{front}estimator"] = part(steps, kind)
            for p in family.parameters:
                parts[f"{front}{p.label}"] = part((p.choices, p.quantile), str(p))
        return parts


def _family(name: str, estimator: Any, space: Any, prefix: str = "") -> Family:
    where = f" of family `{name}`" if name else ""
    if not isinstance(space, Mapping):
        raise InputError(
            f"The space{where} must map names of parameters to values, got {space!r}."
        )
    if others := [key for key in space if not isinstance(key, str)]:
        raise InputError(
            f"The space{where} must map names of parameters to values; {others[0]!r} is "
            "no name."
        )
    names = resolve(space, estimator, where)
    order = sorted(space, key=names.__getitem__)  # as scikit-learn's grids
    return Family(
        name, estimator, tuple(parameter(names[n], space[n]) for n in order), prefix
    )


def _pair(name: str, given: Any) -> tuple[Any, Any]:
    """(estimator, space) of a family; an estimator alone has an empty space."""
    if not isinstance(name, str):
        raise InputError(f"Families must be named by text, got {name!r}.")
    estimator, space = (
        given if isinstance(given, (tuple, list)) and len(given) == 2 else (given, {})
    )
    if not isinstance(estimator, Tunable) or isinstance(estimator, type):
        raise InputError(
            f"Family `{name}` must be (estimator, space) with an estimator that has "
            f"`get_params` and `set_params`, got {given!r}."
        )
    return estimator, {} if space is None else space
