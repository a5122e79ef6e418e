"""A small world in which everything that a run may depend on can be changed, one at a time.

A world is rows, weights, groups, a module of the user's (written to a file and loaded from
there), and settings. A change is a function that changes one of them in place.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

CODE = """
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import KFold

FACTOR = 1.5


class Shift(TransformerMixin, BaseEstimator):
    amount = 1.0

    def fit(self, X, y=None, extra=None):
        self.mean_ = np.asarray(X).mean(axis=0) * {learns} + (0 if extra is None else extra)
        return self

    def transform(self, X):
        return np.tanh((np.asarray(X) - self.mean_) * self.amount)


def helper(X):
    return X + {helps}


def scale(X, by=2.0):
    return np.tanh(helper(np.asarray(X)) * FACTOR) + by * np.asarray(X) ** 2


def closure(k):
    def power(X):
        return np.sign(X) * np.abs(X) ** k

    return power


def score(estimator, X, y):
    return -{scores} * float(np.mean((estimator.predict(X) - y) ** 2))


class Folds(KFold):
    def split(self, X, y=None, groups=None):
        for train, test in super().split(X, y, groups):
            yield train[{skips}:], test
"""

_TEXT = {"learns": "1.0", "helps": "0.25", "scores": "1.0", "skips": "0"}


@dataclass
class World:
    """Everything that a run may depend on.

    Attributes
    ----------
    X : ndarray of shape (n, 3)
    y, weight, groups : ndarray of shape (n,)
    extra : float
        An argument of a step's ``fit``.
    module : module
        The user's own code.
    """

    folder: Path
    n: int = 60
    X: Any = None
    y: Any = None
    weight: Any = None
    groups: Any = None
    extra: float = 0.1
    alpha: float = 0.5
    power: float = 1.2
    seed: int = 0
    splits: int = 3
    scoring: str = "neg_mean_squared_error"
    module: ModuleType = field(default_factory=lambda: ModuleType("none"))

    def __post_init__(self) -> None:
        rng = np.random.default_rng(5)
        self.X = rng.normal(size=(self.n, 3))
        self.y = self.X @ [1.0, -2.0, 0.5] + rng.normal(size=self.n)
        self.weight = rng.uniform(0.5, 2.0, size=self.n)
        self.groups = rng.integers(0, 8, size=self.n)
        self.write()
        sys.path.insert(0, str(self.folder))
        sys.dont_write_bytecode = True
        self.module = importlib.import_module("the_user_s")

    def write(self, **text: str) -> None:
        """The user's module, with some of its code changed."""
        (self.folder / "the_user_s.py").write_text(CODE.format(**_TEXT | text))

    def edit(self, **text: str) -> None:
        """The module changed and loaded again, as in a notebook."""
        self.write(**text)
        importlib.invalidate_caches()
        importlib.reload(self.module)


def _one_value(name: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        changed = np.array(getattr(world, name))
        changed[(7,) + (0,) * (changed.ndim - 1)] += 1
        setattr(world, name, changed)

    return change


def _in_place(world: World) -> None:
    world.X[11, 1] += 1.0


def _setting(name: str, value: Any) -> Callable[[World], None]:
    return lambda world: setattr(world, name, value)


def _of_module(path: str, value: Any) -> Callable[[World], None]:
    def change(world: World) -> None:
        *parents, name = path.split(".")
        owner: Any = world.module
        for parent in parents:
            owner = getattr(owner, parent)
        setattr(owner, name, value)

    return change


CHANGES: dict[str, Callable[[World], None]] = {
    "nothing": lambda world: None,
    "one value of X": _one_value("X"),
    "one value of X in place": _in_place,
    "one value of y": _one_value("y"),
    "one weight": _one_value("weight"),
    "one group": _one_value("groups"),
    "a fit parameter": _setting("extra", 0.7),
    "code of a class": lambda world: world.edit(learns="3.0"),
    "code of a helper": lambda world: world.edit(helps="0.75"),
    "a global": _of_module("FACTOR", 0.5),
    "a class attribute": _of_module("Shift.amount", 0.4),
    "a default argument": _of_module("scale.__defaults__", (0.7,)),
    "a closure": _setting("power", 2.0),
    "an estimator's parameter": _setting("alpha", 5.0),
    "a seed": _setting("seed", 1),
    "a scorer": _setting("scoring", "neg_mean_absolute_error"),
    "code of a scorer": lambda world: world.edit(scores="2.0"),
    "a splitter's parameter": _setting("splits", 4),
    "code of a splitter": lambda world: world.edit(skips="3"),
}
