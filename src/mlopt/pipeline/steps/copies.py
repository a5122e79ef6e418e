"""Estimators copied with all they hold, and what a copy has learnt handed to the original.

`sklearn.base.clone` forgets what was learnt, and copies parameters deeply. Here a frozen
model stays frozen, a warm start stays warm, and a lock need not be copied.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import MetadataRequest

from mlopt import identity

_MANY = 256
"""Items from which a container is taken for data: a vocabulary, not a list of steps."""

Replace = Callable[[Any, dict[str, Any]], Any]
Known = dict[int, Any]
"""Copies, by the number of the object that they are of."""


def is_estimator(value: Any) -> bool:
    """Whether a value can be fitted; classes and plain values cannot."""
    if isinstance(value, MetadataRequest):  # it has a request called `fit`
        return False
    return hasattr(value, "__dict__") and hasattr(value, "fit") and not _is_class(value)


def parameters(estimator: Any, *, deep: bool = False) -> Mapping[str, Any]:
    """The parameters of the constructor, and if ``deep`` of what is within; none for what
    does not tell, as where attributes have other names than arguments."""
    if hasattr(estimator, "get_params") and not _is_class(estimator):
        with suppress(Exception):
            own = identity.parameters
            return estimator.get_params() if deep else own(estimator)
    return {}


def private_copy(estimator: Any, *, apart: bool = False) -> Any:
    """A copy that can be fitted, or used, without the original noticing.

    Parameters
    ----------
    estimator : estimator, fitted or not
    apart : bool
        Whether random generators and objects of other kinds are copied too, so that those
        of the original stay as they are.
    """
    return _copied(estimator, apart)


def blank_copy(estimator: Any) -> Any:
    """A copy without what a second fit would overwrite; what ``__init__`` makes stays."""
    fresh = private_copy(estimator)
    given = parameters(fresh)
    if is_estimator(fresh) and not keeps_state(fresh) and given:
        names = _learnt(fresh)
        with suppress(Exception):  # where `__init__` refuses, nothing is known of it
            names -= vars(type(fresh)(**given)).keys() if names else set()
        for name in names:
            del fresh.__dict__[name]
    return fresh


def cloned(part: Any) -> Any:
    """What a `ColumnTransformer` fits in the place of a part of its own."""
    return part if part is None or isinstance(part, str) else clone(part)


def rebuilt(estimator: Any, new: Replace) -> Any:
    """A private copy in which ``new(object, its attributes)`` made every estimator."""
    return _copied(estimator, False, new)


def keeps_state(estimator: Any) -> bool:
    """Whether what it holds already matters to a fit: warm, frozen, or fitted within.

    Two such estimators may differ though their parameters are equal.
    """
    if isinstance(estimator, FrozenEstimator):
        return True
    given = parameters(estimator)
    if given.get("warm_start"):
        return True
    return any(is_estimator(part) and _holds(part) for part in _within(given.values()))


def hand_over(mine: Any, fitted: Any) -> None:
    """Put what ``fitted`` learnt into ``mine``, as if ``mine`` itself had been fitted.

    Parameters keep their identity, unless ``fit`` put another value in their place; those
    that are estimators and were fitted in their place are handed over in turn.
    """
    if mine is fitted or isinstance(mine, FrozenEstimator) or not is_estimator(mine):
        return
    given = parameters(mine)
    # What an earlier fit left may be of it alone: results that are remembered.
    hidden = {name for name in vars(mine) if name[0] == "_"}.difference(identity.SETTINGS)
    for name in (_learnt(mine) | hidden) - vars(fitted).keys() - given.keys():
        del mine.__dict__[name]
    for name, value in vars(fitted).items():
        if name in given and not _is_another(given[name], value):
            _hand_over_parts(given[name], value)
        elif name != "_sklearn_output_config":
            mine.__dict__[name] = value
    if isinstance(mine, FeatureUnion):
        # Its fit itself puts a transformer in the place of what passes.
        mine.transformer_list = [
            (name, new if isinstance(old, str) else old)
            for (name, old), (_, new) in zip(
                mine.transformer_list, fitted.transformer_list, strict=True
            )
        ]


def _is_another(mine: Any, fitted: Any) -> bool:
    """Whether ``fit`` has replaced a parameter; it may have come back as an equal copy."""
    if mine is fitted or isinstance(mine, np.random.RandomState | np.random.Generator):
        return False
    if not _is_plain(mine):
        return type(mine) is not type(fitted)
    content = identity.identified(mine)
    return content is not None and content != identity.identified(fitted)


def _hand_over_parts(mine: Any, fitted: Any) -> None:
    if type(mine) is not type(fitted) or mine is fitted:
        return
    if is_estimator(mine):
        hand_over(mine, fitted)
    elif type(mine) in (list, tuple) and len(mine) == len(fitted) <= _MANY:
        for one, other in zip(mine, fitted, strict=True):
            _hand_over_parts(one, other)


def _copied(
    value: Any, apart: bool, new: Replace | None = None, known: Known | None = None
) -> Any:
    known = {} if known is None else known
    if isinstance(value, FrozenEstimator) and new is None:
        return copy.copy(value)  # what it holds stays; who calls it may leave marks on it
    if is_estimator(value) or (new is not None and _holds_estimators(value)):
        if id(value) not in known:  # ensembles name their members twice
            known[id(value)] = _copied_estimator(value, apart, new, known)
        return known[id(value)]
    if type(value) in (list, tuple) and len(value) <= _MANY:
        return type(value)(_copied(item, apart, new, known) for item in value)
    if type(value) in (dict, Bunch) and len(value) <= _MANY:
        inside = {key: _copied(item, apart, new, known) for key, item in value.items()}
        return inside if type(value) is dict else Bunch(**inside)
    if type(value) in (list, dict) or type(value) is np.ndarray or sp.issparse(value):
        return value.copy()
    if apart:
        with suppress(Exception):  # a lock, an open file: there is one of them
            return copy.deepcopy(value)
    return value


def _holds_estimators(value: Any) -> bool:
    """Whether it is an object of scikit-learn's own around some: what calibrates one."""
    own = type(value).__module__.startswith("sklearn.") and not isinstance(value, Bunch)
    inside = vars(value).values() if own and hasattr(value, "__dict__") else ()
    return any(map(is_estimator, _within(inside)))


def _copied_estimator(value: Any, apart: bool, new: Replace | None, known: Known) -> Any:
    given = {} if apart else parameters(value)
    inside = {
        name: item
        if name in given and _is_plain(item)
        else _copied(item, apart, new, known)
        for name, item in vars(value).items()
    }
    if new is not None:
        return new(value, inside)
    try:
        fresh = copy.copy(value)
    except RecursionError:  # `__getattr__` asks what it wraps, and a new object has nothing
        fresh = object.__new__(type(value))
    fresh.__dict__.clear()
    fresh.__dict__.update(inside)
    return fresh


def _is_plain(value: Any) -> bool:
    """Whether a parameter holds no estimator: it is shared, as scikit-learn would."""
    return not any(map(is_estimator, _within([value])))


def _within(values: Any) -> list[Any]:
    """The values, and those in lists and tuples among them."""
    found, waiting = [], list(values)
    while waiting:
        value = waiting.pop()
        found.append(value)
        if type(value) in (list, tuple) and len(value) <= _MANY:
            waiting += value
    return found


def _holds(estimator: Any) -> bool:
    return (
        isinstance(estimator, FrozenEstimator)
        or bool(_learnt(estimator))
        or keeps_state(estimator)
    )


def _learnt(estimator: Any) -> set[str]:
    """Names of attributes that end as those of a fit do, and are no parameters."""
    ends = {name for name in vars(estimator) if name.endswith("_") and name[0] != "_"}
    return ends and ends - parameters(estimator).keys()


def _is_class(value: Any) -> bool:
    return isinstance(value, type)
