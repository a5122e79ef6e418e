"""Naive Bayes in one pass: counts or moments of each class.

A block may lack classes; the classes of two blocks together are the union of theirs.

Shapes: k classes, d columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.utils.validation import column_or_1d, validate_data

from mlopt.errors import InputError
from mlopt.pipeline.fits.numbers.blockwise import Blockwise, Columns, as_before, filled
from mlopt.pipeline.fits.numbers.classes import united
from mlopt.pipeline.fits.numbers.spread import column_spread, together
from mlopt.pipeline.library.moments import Moments

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Gaussians:
    """What a `GaussianNB` has seen.

    Attributes
    ----------
    columns : Columns
    dtype : dtype
        Float type of the result.
    classes : ndarray of shape (k,)
        In order.
    each : Moments
        Of the classes: weights of shape (k, 1), the rest (k, d).
    every : Moments
        Of all rows, without weights.
    """

    columns: Columns
    dtype: np.dtype
    classes: Any
    each: Moments
    every: Moments


class MergedGaussians(Blockwise):
    """`GaussianNB`."""

    name = "merged moments of classes"
    kinds = (GaussianNB,)
    weighted = True

    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> Gaussians:
        columns = Columns.of(model, X)
        # Classes are known at the end only, and so are priors and the smoothing.
        model.set_params(priors=None, var_smoothing=0.0)
        weight, most = _shares(y, weight)
        share = _fit(model, X, y, weight) * most
        count = (share * model.class_count_.astype(np.float64))[:, None]
        mean = model.theta_.astype(np.float64)
        each = (count, mean, count * model.var_)
        every = column_spread(validate_data(clone(model), X, dtype=np.float64))
        return Gaussians(columns, model.theta_.dtype, model.classes_, each, every)

    def join(self, left: Gaussians, right: Gaussians) -> Gaussians:
        classes, a, b = united(left.classes, left.each, right.classes, right.each)
        return Gaussians(
            left.columns,
            np.promote_types(left.dtype, right.dtype),
            classes,
            together(a, b),
            together(left.every, right.every),
        )

    def fitted(self, model: Any, statistics: Gaussians) -> Any:
        classes, dtype = statistics.classes, statistics.dtype
        model.fit(filled(statistics.columns, len(classes), dtype), classes)
        count, mean, squares = statistics.each
        rows, _, total = statistics.every
        _check_weights(count)
        unseen = np.equal(count, 0)  # a class whose rows weigh nothing
        variance = np.where(unseen, 0.0, squares) / np.where(unseen, 1.0, count)
        model.epsilon_ = model.var_smoothing * np.max(total / rows).astype(dtype)
        model.theta_ = np.where(unseen, 0.0, mean).astype(dtype)
        model.var_ = variance.astype(dtype) + model.epsilon_
        model.class_count_ = np.ravel(count).astype(dtype)
        if model.priors is None:
            model.class_prior_ = model.class_count_ / model.class_count_.sum()
        return model


def _shares(y: Any, weight: Any) -> tuple[Any, Any]:
    """Weights as shares of the largest of their class, and that of each class.

    scikit-learn takes a class of less than 1e-8 in all for one without rows: a block has
    less than all rows have.
    """
    if weight is None:
        return None, 1.0
    classes, codes = np.unique(column_or_1d(y), return_inverse=True)
    most = np.zeros(len(classes))
    np.maximum.at(most, codes, np.abs(np.asarray(weight, np.float64)))
    return weight / np.where(most > 0, most, 1.0)[codes], most


def _fit(model: Any, X: Any, y: Any, weight: Any) -> float:
    """Fit to a block, and by how much its counts are to be multiplied.

    scikit-learn refuses rows that weigh nothing, but their classes count.
    """
    nothing = weight is not None and not np.any(weight)
    # probabilities of a block may be anything, nobody will look at them
    with np.errstate(all="ignore"):
        model.fit(X, y, None if nothing else weight)
    return 0.0 if nothing else 1.0


def _check_weights(count: Any) -> None:
    """Of all rows, as scikit-learn has it of those that it is given."""
    if not np.any(count):
        raise InputError("Sample weights must contain at least one non-zero number.")


@dataclass(frozen=True)
class ClassCounts:
    """What a discrete naive Bayes has seen.

    Attributes
    ----------
    columns : Columns
    classes : ndarray of shape (k,)
        In order.
    rows : ndarray of shape (k,)
        Rows of each class, or the sum of their weights.
    values : ndarray of shape (k, d)
        Sums of values, or of their weights.
    """

    columns: Columns
    classes: Any
    rows: Array
    values: Array


class MergedCounts(Blockwise):
    """`MultinomialNB`, `ComplementNB` and `BernoulliNB`."""

    name = "merged counts of classes"
    kinds = (MultinomialNB, ComplementNB, BernoulliNB)
    weighted = True

    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> ClassCounts:
        columns = Columns.of(model, X)
        # Classes are known at the end only; probabilities of one block mean nothing.
        model.set_params(class_prior=None, alpha=1.0)
        share = _fit(model, X, y, weight)
        rows, values = share * model.class_count_, share * model.feature_count_
        return ClassCounts(columns, model.classes_, rows, values)

    def join(self, left: ClassCounts, right: ClassCounts) -> ClassCounts:
        ours, theirs = (left.rows, left.values), (right.rows, right.values)
        classes, a, b = united(left.classes, ours, right.classes, theirs)
        return ClassCounts(left.columns, classes, a[0] + b[0], a[1] + b[1])

    def fitted(self, model: Any, statistics: ClassCounts) -> Any:
        _check_weights(statistics.rows)
        # scikit-learn finds the same counts in two rows for each class: its sums, and zeros
        # that make up the number of its rows. Powers of two change no digit.
        half = np.ldexp(np.sign(statistics.rows), np.frexp(statistics.rows)[1] - 1)
        sums = statistics.values / np.where(half == 0, 1.0, half)[:, None]
        values = np.concatenate((sums, np.zeros_like(sums)))
        weight = np.concatenate((half, statistics.rows - half))
        X, y = statistics.columns.block(values), np.tile(statistics.classes, 2)
        if not isinstance(model, BernoulliNB):
            return model.fit(X, y, weight)
        given = clone(model)
        return as_before(
            model.set_params(binarize=None).fit(X, y, weight), given, "binarize"
        )


BAYES = (MergedGaussians(), MergedCounts())
