"""What parameters and ratings must be, and what is said where they are not."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import (
    Interval,
    Options,
    StrOptions,
)

from mlopt.errors import InputError, InputWarning
from mlopt.factors.model import SPREAD
from mlopt.factors.ratings import POLICIES, Ratings, entries_of
from mlopt.parameters import check_parameters

Array = NDArray[Any]

CONSTRAINTS: dict[str, Any] = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "alpha": [Interval(Real, 0, None, closed="neither")],
    "nonnegative": ["boolean"],
    "implicit": ["boolean"],
    "biases": ["boolean", StrOptions({"auto"})],
    "solver": [StrOptions({"auto", "sgd", "als"})],
    "layout": [StrOptions({"auto", "threads", "rotate"})],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "decay": [Interval(Real, 0, 1, closed="right")],
    "confidence": [Interval(Real, 0, None, closed="neither")],
    "duplicates": [Options(str, set(POLICIES))],
    "handle_unknown": [StrOptions({"baseline", "error"})],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), None],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "warm_start": ["boolean"],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}
"""As scikit-learn has them."""
_DIGITS = 1000
"""Of deviations, that the rounding of ratings leaves: three digits."""


def check_settings(model: Any) -> None:
    """Refuse parameters that are out of range, or that exclude each other."""
    check_parameters(model)
    if model.implicit and model.solver == "sgd":
        raise InputError(
            '`solver` must be "als" or "auto" for counts, whose sum is over all pairs; '
            'got "sgd".'
        )
    if model.layout == "rotate" and (model.implicit or model.solver == "als"):
        raise InputError(
            'rotate: is for `solver` "sgd"; least squares of one side need all of the '
            'other: use `layout` "threads".'
        )
    for name in ("nonnegative", "biases"):
        value = getattr(model, name)
        if model.implicit and value and not isinstance(value, str):  # or of numpy
            raise InputError(
                f"`{name}` must be False where `implicit` is True: a model of counts "
                "has factors of either sign and nothing else."
            )


def check_ratings(model: Any, ratings: Ratings) -> None:
    """Refuse ratings that these parameters do not take."""
    if model.n_components > min(ratings.shape):
        users, items = ratings.shape
        raise InputError(
            f"`n_components` must be at most the number of users and of items, {users} "
            f"and {items}; got {model.n_components}."
        )
    if model.warm_start and hasattr(model, "user_factors_"):
        _check_warm(model, ratings)
    check_signs(ratings, model.implicit, model.nonnegative)


def warn_of_small(ratings: Ratings, penalty: float) -> None:
    """Say so where ratings deviate by less than what holds factors back, or than they keep.

    Below the penalty the minimum is at no factors at all; and SGD does not come far from
    where factors begin, `SPREAD`, unless ratings deviate by more.
    """
    deviation = float(ratings.values.std(dtype=np.float64))
    least, level = max(penalty, 2 * SPREAD), float(np.abs(ratings.values).max())
    if 0 < deviation < _DIGITS * np.spacing(np.float32(level)):
        warnings.warn(
            f"ratings deviate by {deviation:.2g} from their mean and go up to {level:.2g}: "
            "in single precision, which they are kept in, less than three digits are left "
            "of what they differ by. Subtract their mean.",
            InputWarning,
            stacklevel=3,
        )
    if 0 < deviation < least:
        warnings.warn(
            f"ratings deviate by {deviation:.2g} from their mean, and below {least:g} next "
            "to nothing is learnt of them: scale the ratings up, until they deviate by "
            f"about 1, or lower `alpha`, which is {penalty:g}.",
            InputWarning,
            stacklevel=3,
        )


def warn_of_others(model: Any, X: Any) -> None:
    """Say so where a sparse matrix to score seems to have rows of other users.

    Held-out ratings have no pair that `fit` has seen, those of `fit` have all; rows that a
    split gives to a test set have some by chance.
    """
    users, items, _ = entries_of(X)
    starts, seen = model._seen
    known = np.repeat(np.arange(len(starts) - 1), np.diff(starts)) * X.shape[1] + seen
    both = int(np.isin(users.astype(np.int64) * X.shape[1] + items, known).sum())
    if 0 < both < min(len(users), len(known)):
        warnings.warn(
            f"{both} of {len(users)} ratings to score are of pairs that `fit` has seen, "
            "others are not: rows of a sparse matrix must be `users_`, and those of a "
            "split are other users. Split rows of (user, item), with the ratings as y.",
            InputWarning,
            stacklevel=3,
        )


def check_signs(ratings: Ratings, counts: bool, nonnegative: bool) -> None:
    """Refuse negative ratings where they cannot be."""
    bad = ratings.values < 0
    if (counts or nonnegative) and bad.any():
        place = int(np.flatnonzero(bad)[0])
        why = "counts (`implicit`)" if counts else "ratings with `nonnegative`"
        user = ratings.user_ids.labels[ratings.users[place]]
        raise InputError(
            f"{why.capitalize()} must be at least 0, got {ratings.values[place]:g} of "
            f"user {user!s}: leave it out, or the parameter."
        )


def _check_warm(model: Any, ratings: Ratings) -> None:
    if model.user_factors_.shape[1] != model.n_components:
        raise InputError(
            f"`n_components` must stay {model.user_factors_.shape[1]} with "
            f"`warm_start`, got {model.n_components}."
        )
    known = model.user_factors_, model.item_factors_
    if model.nonnegative and any((factors < 0).any() for factors in known):
        raise InputError(
            "`nonnegative` must stay False with `warm_start`: the last fit has factors "
            "below 0. Fit anew."
        )
    if model.max_iter < model.n_iter_:
        raise InputError(
            f"`max_iter` must be at least {model.n_iter_} with `warm_start`: it counts "
            f"the passes of earlier fits too; got {model.max_iter}."
        )
    if model.max_iter == model.n_iter_ and not knows(model, ratings):
        raise InputError(
            f"`max_iter` must be above {model.n_iter_} with `warm_start` and other "
            "ratings: it counts the passes of earlier fits too, so none is left to learn "
            "these."
        )


def knows(model: Any, ratings: Ratings) -> bool:
    """Whether the last fit had the same ratings."""
    starts, items = ratings.told(bool(model.implicit))
    pairs = (
        (model._seen[0], starts),
        (model._seen[1], items),
        (model.users_, ratings.user_ids.labels),
        (model.items_, ratings.item_ids.labels),
    )
    same = all(np.array_equal(*pair) for pair in pairs)
    return same and bool(model._given == ratings.digest)


def refuse_unknown(numbers: Array, labels: Array, what: str) -> None:
    """Refuse labels whose number is -1, and name the first."""
    if (numbers < 0).any():
        place = int(np.flatnonzero(numbers < 0)[0])
        raise InputError(
            f"Every {what} must be one that `fit` has seen, got {labels[place]!s} in row "
            f"{place}: leave it out, or fit with its ratings."
        )
