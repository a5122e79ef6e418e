"""Which estimators give the same whenever they are fitted to the same: it is declared.

Two equal ones are then fitted once, and what one has learnt may serve another. Whatever is
random without a seed, or holds code that nobody declared, is fitted as often as it occurs.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import feature_selection
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import pairwise

from mlopt.identity import class_of, identified, is_installed, is_known, parameters
from mlopt.pipeline.fits.registry import declared, record_of

_FUNCTIONS = frozenset({
    feature_selection.f_classif, feature_selection.f_regression, feature_selection.chi2,
    feature_selection.r_regression, *pairwise.PAIRWISE_KERNEL_FUNCTIONS.values(),
})  # fmt: skip
"""Functions of scikit-learn that are parameters of steps, and not random."""

_GENERATORS = (np.random.RandomState, np.random.Generator, np.random.BitGenerator)


def repeats(estimator: Any) -> bool:
    """Whether fitting twice to the same data is known to give the same."""
    return doubt(estimator) is None


def doubt(value: Any) -> str | None:
    """Why two fits may differ, in a few words; None where they are known not to."""
    return next(_doubts(value, set()), None)


def is_random(estimator: Any) -> bool:
    """Whether a seed would make an estimator repeat itself."""
    return RANDOM in set(_doubts(estimator, set()))


RANDOM = "random without a seed"


def _doubts(value: Any, seen: set[int]) -> Iterator[str]:
    kind = type(value)
    if kind in _PLAIN or isinstance(value, _HARMLESS) or id(value) in seen:
        return
    seen = seen | {id(value)}
    if (items := _items(value)) is not None:
        for item in items:
            yield from _doubts(item, seen)
    elif isinstance(value, _GENERATORS):
        yield RANDOM  # its state moves on with every use
    elif isinstance(value, type):
        if not is_installed(value):
            yield f"`{value.__name__}` is not declared"
    elif isinstance(value, np.ufunc):
        if declared(value) is None and identified(value) is None:
            yield f"`{value.__name__}` is not declared"
    elif isinstance(value, _CODE):
        if declared(value) is None and value not in _FUNCTIONS:
            yield f"`{getattr(value, '__name__', value)}` is not declared"
    else:
        yield from _of_object(value, seen)


def _items(value: Any) -> Iterable[Any] | None:
    """What a container holds; None of anything else."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return list(value)
    if kind is dict:
        return [*value, *value.values()]
    if kind is np.ndarray:
        return value.ravel().tolist() if value.dtype.hasobject else ()
    return () if sp.issparse(value) else None


def _of_object(value: Any, seen: set[int]) -> Iterator[str]:
    """Estimators, and what has no parameters: splitters, kernels, frames."""
    kind = class_of(value)
    if kind is FrozenEstimator and _is_repeating_transform(value):
        return
    said = declared(kind)
    if said is None and not is_known(kind):
        if not is_installed(kind) or callable(value) or hasattr(value, "fit"):
            yield f"`{type(value).__name__}` is not declared"
        return
    params = getattr(value, "__dict__", {})
    if hasattr(value, "get_params"):
        try:
            params = parameters(value)
        except Exception:  # attributes have other names than arguments
            yield f"`{kind.__name__}` cannot tell its parameters"
            return
    if said is not None:
        if said.seeded_by is not None and params.get(said.seeded_by) is None:
            yield RANDOM
    elif params.get("random_state", 0) is None and _uses_chance(value):
        yield RANDOM
    for item in params.values():
        yield from _doubts(item, seen)


def _uses_chance(value: Any) -> bool:
    draws = record_of(class_of(value)).draws
    return True if draws is None else bool(draws(value))


def _is_repeating_transform(frozen: Any) -> bool:
    """A fit of a frozen estimator changes nothing; what it does must be declared yet."""
    kind = class_of(frozen.estimator)
    return is_known(kind) or declared(kind) is not None


_PLAIN = {
    type(None), type(Ellipsis), bool, int, float, complex, str, bytes, slice, range,
}  # fmt: skip
_HARMLESS = (np.generic, np.dtype)
_CODE = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType,
    types.MethodDescriptorType,
)  # fmt: skip
