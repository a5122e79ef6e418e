"""What is declared and does not hold is refuted, with the rows that refute it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.fits import registry


@pytest.fixture(autouse=True)
def _nothing_registered() -> Iterator[None]:
    before = dict(registry.RECORDS)
    yield
    registry.RECORDS.clear()
    registry.RECORDS.update(before)


class Shift(TransformerMixin, BaseEstimator):
    """Adds what its parameters say; the base of what is declared wrongly below."""

    def __init__(self, seed: Any = None) -> None:
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Shift:
        self.shift_ = self.learnt(X, y)
        return self

    def learnt(self, X: Any, y: Any) -> Any:
        return 1.0

    def transform(self, X: Any) -> Any:
        return X + self.shift_


class ByMean(Shift):
    def learnt(self, X: Any, y: Any) -> Any:
        return X.mean()


class ByTargets(Shift):
    def learnt(self, X: Any, y: Any) -> Any:
        return X[:, 0] @ y


class ByMeanTarget(Shift):
    """Other targets in another order are the same to it."""

    def learnt(self, X: Any, y: Any) -> Any:
        return np.mean(y)


class ByChance(Shift):
    def learnt(self, X: Any, y: Any) -> Any:
        return np.random.default_rng(self.seed).random()


class Ranked(Shift):
    def transform(self, X: Any) -> Any:
        return np.argsort(X, axis=0)


class Shorter(Shift):
    def transform(self, X: Any) -> Any:
        return X[X[:, 0] > 0]


class OtherAtOnce(Shift):
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        return 2.0 * self.fit(X).transform(X)


class Sums(mlopt.OnePass):
    """Of all values, and how many."""

    name = "sums"

    def part(self, estimator: Any, X: Any, y: Any, weight: Any) -> Any:
        return X.sum(), X.size

    def merge(self, left: Any, right: Any) -> Any:
        return left[0] + right[0], left[1] + right[1]

    def finish(self, estimator: Any, statistics: Any) -> Any:
        fitted = ByMean()
        fitted.shift_ = statistics[0] / statistics[1]
        return fitted


class Weighed(ByMean):
    """Its weights are of no concern to `Sums`."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Weighed:
        self.shift_ = np.average(X.mean(axis=1), weights=sample_weight)
        return self


class WeighedSums(Sums):
    def part(self, estimator: Any, X: Any, y: Any, weight: Any) -> Any:
        weight = np.ones(len(X)) if weight is None else weight
        return weight @ X.sum(axis=1), weight.sum() * X.shape[1]


class MeansOfMeans(Sums):
    """Wrong for blocks of unlike length."""

    def merge(self, left: Any, right: Any) -> Any:
        means = left[0] / left[1] + right[0] / right[1]
        return means / 2, 1


@pytest.mark.parametrize(
    ("kind", "declared", "refuted"),
    [
        (Ranked, {"row_wise": True}, "`Ranked` is declared row-wise"),
        (Shorter, {"row_wise": True}, "`Shorter` is declared row-wise"),
        (OtherAtOnce, {"row_wise": True}, "and by `fit_transform`"),
        (ByMean, {"row_wise": True, "stateless": True}, "`ByMean` is declared stateless"),
        (ByTargets, {"reads_y": False}, "`ByTargets` is declared blind to targets"),
        (ByMeanTarget, {"reads_y": False}, "`ByMeanTarget` is declared blind"),
        (Weighed, {"ways": [Sums()]}, "as by `fit` to rows with weights, and is not"),
        (ByChance, {}, "`ByChance` is declared repeatable"),
        (ByMean, {"ways": [MeansOfMeans()]}, "`ByMean` is declared fitted by `sums`"),
    ],
)
def test_what_does_not_hold_is_refuted(kind: Any, declared: Any, refuted: str) -> None:
    mlopt.register(kind, **declared)
    with pytest.raises(InputError, match=refuted):
        mlopt.check_operator(kind)


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        (Shift, {"row_wise": True, "stateless": True, "reads_y": False}),
        (ByMean, {"row_wise": True, "reads_y": False, "ways": [Sums()]}),
        (Weighed, {"row_wise": True, "ways": [WeighedSums()]}),
        (ByTargets, {"row_wise": True}),
        (ByChance, {"row_wise": True, "reads_y": False, "seeded_by": "seed"}),
        (Ranked, {"reads_y": False}),
    ],
)
def test_what_holds_is_left_alone(kind: Any, declared: Any) -> None:
    mlopt.register(kind, **declared)
    estimator = kind()
    mlopt.check_operator(estimator)
    assert not hasattr(estimator, "shift_")
    assert estimator.seed is None


def test_a_counterexample_shows_the_row_and_both_outcomes() -> None:
    def centred(X: Any) -> Any:
        return X - X.mean(axis=0)

    mlopt.register(centred, row_wise=True)
    X = np.array([[0.0], [2.0], [4.0], [6.0]])
    said = r"row 0, 0.0, gives -3.0, and by itself 0.0"
    with pytest.raises(InputError, match=said):
        mlopt.check_operator(centred, X)


def test_what_is_not_declared_cannot_be_checked() -> None:
    for operator in (Shift, Shift(), len):
        with pytest.raises(InputError, match="Nothing is declared"):
            mlopt.check_operator(operator)


def test_partial_fit_that_does_not_learn_what_fit_learns_is_refuted() -> None:
    for kind in (MiniBatchKMeans, SGDClassifier):
        mlopt.register(kind, seeded_by="random_state", ways=[mlopt.PartialFit()])
        with pytest.raises(InputError, match="fitted by `partial_fit in turn`"):
            mlopt.check_operator(kind(random_state=0))
    mlopt.register(GaussianNB, ways=[mlopt.PartialFit()])
    mlopt.check_operator(GaussianNB(var_smoothing=0.0))


@pytest.mark.parametrize(
    "estimator",
    [
        StandardScaler(), MinMaxScaler(), Normalizer(), Ridge(), mlopt.Ridge(),
        mlopt.PCA(2), LogisticRegression(tol=1e-10),
        mlopt.LogisticRegression(tol=1e-10), np.exp,
    ],
    ids=str,
)  # fmt: skip
def test_what_mlopt_declares_itself_holds(estimator: Any) -> None:
    mlopt.check_operator(estimator, rtol=1e-4)


def test_rows_and_targets_of_the_author_are_taken() -> None:
    X = sp.csr_array(np.abs(np.random.default_rng(0).normal(size=(30, 5))))
    mlopt.check_operator(SelectKBest(k=2), X, np.arange(30) % 2)


class Codes(Shift):
    """Numbers values as they come."""

    def learnt(self, X: Any, y: Any) -> Any:
        return {value: number for number, value in enumerate(dict.fromkeys(X.ravel()))}

    def transform(self, X: Any) -> Any:
        return np.vectorize(self.shift_.__getitem__)(X)


def test_a_state_that_half_of_the_rows_teach_is_found() -> None:
    mlopt.register(Codes, row_wise=True, stateless=True)
    X = np.tile([[0], [1], [2], [3]], (10, 1))
    with pytest.raises(
        InputError, match="`Codes` is declared stateless, and is not: fitted"
    ):
        mlopt.check_operator(Codes(), X)
    other = np.concatenate([X, X[::-1]])
    with pytest.raises(InputError, match="fitted to the second half of the rows 3"):
        mlopt.check_operator(Codes(), other)


class Calls(Shift):
    """Counts its calls."""

    calls: ClassVar[list[int]] = []

    def transform(self, X: Any) -> Any:
        Calls.calls.append(len(X))
        return X + self.shift_


class ByFirst(Calls):
    def transform(self, X: Any) -> Any:
        return super().transform(X) + (X - X[0])


def test_of_many_rows_some_are_tried_alone_and_all_in_small_blocks() -> None:
    for kind in (Calls, ByFirst):
        mlopt.register(kind, row_wise=True)
    Calls.calls.clear()
    X = np.arange(5000.0)[:, None]
    mlopt.check_operator(Calls(), X)
    assert len(Calls.calls) < 200
    with pytest.raises(InputError, match="`ByFirst` is declared row-wise, and is not"):
        mlopt.check_operator(ByFirst(), X)


class OfText(Shift):
    def learnt(self, X: Any, y: Any) -> Any:
        raise TypeError("No text columns found.")


def test_who_takes_no_numbers_is_asked_for_rows() -> None:
    mlopt.register(OfText, row_wise=True)
    with pytest.raises(
        InputError, match=r"`OfText` is not fitted to .*Give `check_operator`"
    ):
        mlopt.check_operator(OfText)
    with pytest.raises(TypeError, match=r"No text columns found\."):
        mlopt.check_operator(OfText(), np.ones((5, 2)))


class Doubles:
    """Has what a step needs, and no more."""

    def fit(self, X: Any, y: Any = None) -> Doubles:
        return self

    def transform(self, X: Any) -> Any:
        return X * 2


def test_a_class_without_tags_is_checked() -> None:
    mlopt.register(Doubles, row_wise=True, stateless=True)
    mlopt.check_operator(Doubles())


class Places(Shift):
    """Predicts where a row stands, beside a transform that holds."""

    def predict(self, X: Any) -> Any:
        return np.arange(len(X))


def test_all_methods_are_held_not_the_first_alone() -> None:
    mlopt.register(Places, row_wise=True)
    said = r"is declared row-wise, and is not: by `predict`, row 1, .*, gives 1, and"
    with pytest.raises(InputError, match=said):
        mlopt.check_operator(Places())


class Grows(Shift):
    """Its `partial_fit` goes on for ever, and its `fit` begins anew."""

    def fit(self, X: Any, y: Any = None) -> Grows:
        self.__dict__.pop("_n", None)
        return self.partial_fit(X)

    def partial_fit(self, X: Any, y: Any = None) -> Grows:
        self._n = getattr(self, "_n", 0) + len(X)
        self.shift_ = float(self._n)
        return self


class GoesOn(mlopt.ManyPasses):
    """Begins with what the estimator holds, instead of anew."""

    name = "goes on"
    sampled = True

    def fit(self, estimator: Any, rows: Any, y: Any, weight: Any) -> Any:
        fitted = Grows()
        fitted.__dict__.update(vars(estimator))
        for block in rows.map(lambda block: block.X):
            fitted.partial_fit(block)
        return fitted


def test_ways_are_held_on_models_that_were_fitted_before() -> None:
    mlopt.register(Grows, row_wise=True, ways=[mlopt.PartialFit()])
    mlopt.check_operator(Grows())
    mlopt.check_operator(Grows().fit(np.ones((7, 4))))
    mlopt.register(Grows, row_wise=True, ways=[GoesOn()])
    with pytest.raises(InputError, match="by `goes on` as by `fit` when fitted before"):
        mlopt.check_operator(Grows())


class Asks(Shift):
    def __init__(self, seed: Any) -> None:
        self.seed = seed


@pytest.mark.parametrize(
    ("operator", "X", "y", "said"),
    [
        (None, None, None, "an estimator, a class or a function, got None"),
        (Asks, None, None, r"`Asks` cannot be made without arguments: .*seed.* Give an"),
        (Shift, np.ones((1, 3)), None, r"`X` must have at least 4 rows, got 1\."),
        (Shift, np.ones(100), None, r"`X` must have rows and columns, got shape \(100,\)"),
        (Shift, np.ones((100, 2)), np.ones(5), r"`y` must have 100 .*, got shape \(5,\)"),
        (Shift, da.ones((100, 2)), None, r"`X` must be in memory, got.*`X.compute\(\)`"),
    ],
)
def test_what_cannot_be_tried_is_refused(operator: Any, X: Any, y: Any, said: str) -> None:
    mlopt.register(Shift, row_wise=True)
    mlopt.register(Asks, row_wise=True)
    with pytest.raises(InputError, match=said):
        mlopt.check_operator(operator, X, y)


def test_documents_and_lists_are_rows() -> None:
    mlopt.register(Shift, row_wise=True)
    mlopt.check_operator(Shift(), [[1.0, 2.0]] * 5)
    mlopt.check_operator(HashingVectorizer(n_features=8), ["a b", "b", "c a", "d", "a"])


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(), LogisticRegression(C=100.0), LogisticRegression(tol=1e-2),
        mlopt.LogisticRegression(), LinearSVC(), LinearSVR(), KMeans(2, n_init=1),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_found_by_iterating_is_compared_to_its_tolerance(estimator: Any) -> None:
    mlopt.check_operator(estimator)


class Nearly(Shift):
    def __init__(self, seed: Any = None, tol: float = 1e-6, max_iter: Any = 10) -> None:
        super().__init__(seed)
        self.tol, self.max_iter = tol, max_iter


class NearlySums(mlopt.OnePass):
    """Off in the fifth digit."""

    name = "nearly"

    def part(self, estimator: Any, X: Any, y: Any, weight: Any) -> Any:
        return 0

    def merge(self, left: Any, right: Any) -> Any:
        return 0

    def finish(self, estimator: Any, statistics: Any) -> Any:
        fitted = Nearly(tol=estimator.tol)
        fitted.shift_ = 1.0 + 3e-5
        return fitted


def test_as_many_digits_are_shown_as_tell_the_difference() -> None:
    mlopt.register(Nearly, row_wise=True, ways=[NearlySums()])
    mlopt.check_operator(Nearly(tol=1e-5))
    mlopt.check_operator(Nearly(tol=1e-5), np.zeros((40, 12)))
    X = np.zeros((40, 3))
    with pytest.raises(InputError, match=r"gives \[1\. 1\. 1\.\], and .* \[1\.00003 "):
        mlopt.check_operator(Nearly(), X)
    with pytest.raises(InputError, match=r"gives \[1\. 1\. 1\.\], and .* \[1\.00003 "):
        mlopt.check_operator(Nearly(tol=1e-2, max_iter=None), X)


def test_of_wide_rows_the_column_that_differs_is_shown() -> None:
    def last(X: Any) -> Any:
        return np.column_stack((np.zeros((len(X), 9)), np.full(len(X), len(X)), X * 0))

    mlopt.register(last, row_wise=True)
    with pytest.raises(InputError, match=r"gives 5\.0 in column 9, and by itself 1\.0"):
        mlopt.check_operator(last, np.ones((5, 9)))
