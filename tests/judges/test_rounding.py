"""What rounding decides is measured on scikit-learn, and nothing else is excused by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from tests.judges.compare import ROUNDING, differences
from tests.judges.differential import _decided, judge
from tests.judges.outcomes import Difference
from tests.judges.pipelines import Case
from tests.judges.rounding import FITS, place, rounded_otherwise
from tests.judges.tables import Table

import mlopt
from mlopt.pipeline.library.lloyd import lloyd
from mlopt.pipeline.library.truncated_svd import by_lanczos


def _places(X: Any) -> set[str]:
    """Where k-means differs from itself when it rounds otherwise."""
    fitted = KMeans(2, n_init=1, random_state=0).fit(X)
    found: list[Difference] = []
    for number in range(FITS):
        with rounded_otherwise(number):
            other = KMeans(2, n_init=1, random_state=0).fit(X)
        found += differences("fit", other, fitted, ROUNDING)
    return {difference.where for difference in found}


def test_clusters_of_whole_rows_as_far_from_two_centres_hang_on_rounding() -> None:
    rows = [[*np.eye(3)[i], *np.eye(4)[j]] for i, j in product(range(3), range(4))]
    assert "fit:KMeans.cluster_centers_" in _places(np.repeat(rows, 20, axis=0))


def test_clusters_that_lie_apart_do_not_hang_on_rounding() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 3))
    assert not _places(rows + np.where(np.arange(200) < 90, 0.0, 20.0)[:, None])


def test_predictions_of_one_class_are_all_compared() -> None:
    X = np.arange(12.0)[:, None]
    forest = RandomForestClassifier(2, random_state=0).fit(X, np.zeros(12, dtype=int))
    ours, theirs = np.arange(12), forest.predict(X)
    left, right = _decided(ours, theirs, [forest.predict_proba(X)], ROUNDING)
    assert np.array_equal(left, ours)
    assert np.array_equal(right, theirs)


SINGULAR = Case(
    Table("dask array", ("normal", "wide"), 60, "three", 3, (0.35, 0.5)),
    ("jitter", ("union", "root", "nystroem"), ("union", "scale", "splines")),
    "discriminant",
    "pandas",
)
"""One of the splines is constant; the rounding of its mean gives it a variance."""

REGULAR = Case(
    Table("array", ("normal", "wide"), 60, "three", 3), ("jitter",), "discriminant"
)


def test_words_are_compared_as_a_whole_and_by_share() -> None:
    words = np.array(["no", "no", "yes", "no"], dtype=object)
    (found,) = differences("predict(X)", np.where(words == "yes", "no", words), words, 0.0)
    assert found.off == 0.25


def test_a_place_has_the_numbers_of_steps_and_not_of_values() -> None:
    assert place(Difference("again: predict(X)[18]", "")) == "predict(X)"
    assert place(Difference("fit[1][0]:PCA.mean_[2]", "")) == "fit[1][0]:PCA.mean_"
    assert place(Difference("fit[1]", "")) == "fit[1]"


@pytest.mark.parametrize("container", ["dask array", "dask frame filtered"])
def test_computed_numbers_are_categories_where_scikit_learn_rounds_alike(
    container: str,
) -> None:
    table = Table(container, ("counts", "peak", "constant"), 1100, "words", 7, (0.1,))
    judge(Case(table, ("power", "squares", "pca", "target"), "boosting"))


def test_equal_rows_may_come_out_equal_where_scikit_learn_s_do_not() -> None:
    table = Table("dask array mapped", ("constant", "constant"), 4500, "numbers", 4, (1.0,))
    steps = ("svd", ("union", ("chain", "scale", "scale"), "scale"))
    judge(Case(table, steps, "ridge"))


AXES = ("svd", "ranks", ("union", ("chain", "bins", "svd"), "pass"))
"""Of the columns of a third of the rows each, whose singular values are equal."""


@pytest.mark.parametrize("container", ["array", "dask array", "dask frame[columns]"])
@pytest.mark.parametrize("seed", [1, 9])
def test_axes_of_equal_singular_values_are_nobody_s(container: str, seed: int) -> None:
    table = Table(container, ("wide", "normal"), 4500, "three", seed, (0.8,))
    judge(Case(table, AXES, "ridge"))


LETTERS = Case(
    Table("list of text", ("documents",), 1100, "three", 9),
    ("letters", ("chain", "fourier", "target"), ("chain", "fourier", "target")),
    "svr",
)
"""Sums over letters are categories; scikit-learn adds them up otherwise in `fit`."""


def test_sums_over_words_are_categories_where_scikit_learn_adds_up_by_column() -> None:
    judge(LETTERS)


def test_a_wrong_answer_is_found_where_sums_are_categories() -> None:
    predict = mlopt.Pipeline.predict

    def wrong(self: Any, X: Any) -> Any:
        return predict(self, X) * 1.2

    with (
        mock.patch.object(mlopt.Pipeline, "predict", wrong),
        pytest.raises(Difference, match="predict"),
    ):
        judge(LETTERS)


def _planted(name: str) -> Callable[[Any], Any]:
    """`mlopt.Pipeline.export` of a last step that has learnt something else."""
    export = mlopt.Pipeline.export

    def wrong(self: Any) -> Any:
        plain = export(self)
        setattr(plain[-1], name, getattr(plain[-1], name) * 1.01)
        return plain

    return wrong


def test_what_hangs_on_rounding_behind_chance_is_no_difference() -> None:
    judge(SINGULAR)


@pytest.mark.parametrize(
    ("case", "name"), [(REGULAR, "coef_"), (SINGULAR, "means_"), (SINGULAR, "priors_")]
)
def test_a_defect_behind_chance_is_found(case: Case, name: str) -> None:
    with (
        mock.patch.object(mlopt.Pipeline, "export", _planted(name)),
        pytest.raises(Difference, match=name),
    ):
        judge(case)


def test_the_sign_of_an_axis_of_equal_weights_is_nobody_s() -> None:
    table = Table("dask array mapped", ("peak", "peak"), 1100, "two", 5, (0.0, 0.35))
    judge(Case(table, ("ranks", "pca"), "none"))


def test_a_wrong_axis_is_found() -> None:
    case = Case(Table("array", ("wide", "normal"), 4500, "two", 1), ("svd",), "ridge")

    def wrong(*given: Any) -> Any:
        found = by_lanczos(*given)
        return replace(found, components=found.components * 1.01)

    judge(case)
    with (
        mock.patch("mlopt.pipeline.fits.models.components.by_lanczos", wrong),
        pytest.raises(Difference, match="components_"),
    ):
        judge(case)


def test_a_defect_of_clusters_is_found() -> None:
    table = Table("dask array", ("normal", "wide"), 4500, "two", 1, (0.5,))
    case = Case(table, ("scale",), "clusters")

    def wrong(rows: Any, starts: Any, *rest: Any) -> Any:
        return lloyd(rows, starts[:, ::-1], *rest)

    judge(case)
    with (
        mock.patch("mlopt.pipeline.fits.models.clusters.lloyd", wrong),
        pytest.raises(Difference, match="KMeans"),
    ):
        judge(case)
