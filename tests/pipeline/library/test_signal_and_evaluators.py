"""Signal operators, and evaluators that merge over blocks."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from mlopt.errors import InputError
from mlopt.pipeline.library.evaluators import (
    BinaryMetrics,
    MulticlassMetrics,
    RankingMetrics,
    mean_average_precision,
    vote,
)
from mlopt.pipeline.library.signal import (
    ColumnSampler,
    LinearRectifier,
    NormalizeRows,
    PaddedFFT,
    RandomSign,
    SignedHellinger,
)

X = np.random.default_rng(0).normal(size=(20, 10))


def test_a_padded_transform_has_half_a_power_of_two_columns() -> None:
    found = PaddedFFT().fit_transform(X)

    assert found.shape == (20, 8)
    padded = np.hstack([X, np.zeros((20, 6))])
    assert np.allclose(found, np.fft.fft(padded, axis=1).real[:, :8])


def test_signs_are_drawn_once() -> None:
    signer = RandomSign(random_state=0).fit(X)

    assert set(np.unique(signer.signs_)) == {-1.0, 1.0}
    assert np.array_equal(signer.transform(X), X * signer.signs_)


def test_rectified_normalized_and_rooted_rows() -> None:
    assert np.array_equal(LinearRectifier(alpha=1.0).fit_transform(X), np.maximum(X - 1, 0))
    assert np.allclose(np.linalg.norm(NormalizeRows().fit_transform(X), axis=1), 1.0)
    assert np.array_equal(NormalizeRows().fit_transform(np.zeros((2, 3))), np.zeros((2, 3)))
    rooted = SignedHellinger().fit_transform(np.array([[-4.0, 9.0]]))
    assert rooted.tolist() == [[-2.0, 3.0]]


def test_float32_stays() -> None:
    for step in (PaddedFFT(), RandomSign(0), LinearRectifier(), NormalizeRows()):
        assert step.fit_transform(X.astype(np.float32)).dtype == np.float32


def test_a_sample_of_rows_has_no_repeats() -> None:
    found = ColumnSampler(5, random_state=0).sample(np.arange(20)[:, None])

    assert len(np.unique(found)) == 5
    assert len(ColumnSampler(50).sample(X)) == 20


labels = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@given(labels, st.integers(0, 40))
def test_blocks_add_up_to_the_whole(pairs: list[tuple[int, int]], cut: int) -> None:
    predicted, actual = np.array(pairs).T
    parts = [slice(0, cut), slice(cut, None)]
    blocks = [
        MulticlassMetrics.of(predicted[part], actual[part], classes=[0, 1, 2, 3])
        for part in parts
    ]
    whole = blocks[0] + blocks[1]

    expected = metrics.confusion_matrix(actual, predicted, labels=[0, 1, 2, 3])
    assert (whole.confusion == expected).all()
    assert whole.accuracy == pytest.approx(metrics.accuracy_score(actual, predicted))


@given(labels)
def test_two_classes_are_judged_as_scikit_learn_does(pairs: list[tuple[int, int]]) -> None:
    predicted, actual = np.array(pairs).T > 1
    found = BinaryMetrics.of(predicted, actual)
    theirs = metrics.precision_recall_fscore_support(
        actual, predicted, average="binary", zero_division=0
    )

    assert (found.precision, found.recall, found.f_score()) == pytest.approx(theirs[:3])


def test_classes_that_differ_between_blocks_are_united() -> None:
    left, right = (MulticlassMetrics.of([k], [k]) for k in ("a", "b"))

    assert (left + right).classes.tolist() == ["a", "b"]
    assert (left + right).macro("recall") == 1.0
    assert (left + right).micro_f_score == 1.0


def test_a_label_that_is_no_class_is_refused() -> None:
    with pytest.raises(InputError, match="among `classes`"):
        MulticlassMetrics.of([5], [1], classes=[0, 1])


@pytest.mark.parametrize("labels", [[-1, 1], ["no", "yes"], [np.nan, 1.0], [0.2, 0.9]])
def test_what_is_no_truth_value_is_refused(labels: list[Any]) -> None:
    for one, other in ((labels, [0, 1]), ([0, 1], labels)):
        with pytest.raises(InputError, match="Truth values must be"):
            BinaryMetrics.of(one, other)
    with pytest.raises(InputError, match="Truth values must be"):
        mean_average_precision([[0.1], [0.2]], np.transpose([labels]))


def test_truth_values_are_of_any_type() -> None:
    found = BinaryMetrics.of(np.array([1, 0, True], object), pd.Series([1.0, 1.0, 0.0]))

    assert found == BinaryMetrics(tp=1.0, fp=1.0, tn=0.0, fn=1.0)


def test_other_shapes_are_refused() -> None:
    column, row = np.ones((3, 1)), np.ones(3)

    for of in (BinaryMetrics.of, MulticlassMetrics.of, vote, mean_average_precision):
        for left, right in ((column, np.ones((3, 2))), (np.ones((3, 1, 1)), row)):
            with pytest.raises(InputError, match=r"must have shape"):
                of(left, right)
    with pytest.raises(InputError, match=r"must have shape"):
        BinaryMetrics.of(column, row)


def test_average_precision_of_a_perfect_and_a_reversed_ranking() -> None:
    actual = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], bool)
    scores = np.array([[4.0, 4.0], [3.0, 3.0], [2.0, 2.0], [1.0, 1.0]])
    first, second = mean_average_precision(scores, actual)

    assert first == 1.0
    assert second == pytest.approx(0.5)


@pytest.mark.parametrize("size", [7, 30, 100])
def test_records_of_dask_blocks_add_up(size: int) -> None:
    rng = np.random.default_rng(1)
    scores, y = rng.normal(size=(100, 3)), rng.integers(0, 3, 100)
    predicted, hot = scores.argmax(axis=1), np.eye(3, dtype=bool)[y]

    def merged(of: Any, *columns: Any) -> Any:
        chunks = [
            da.from_array(c, (size, *c.shape[1:])).to_delayed().ravel() for c in columns
        ]
        records = [dask.delayed(of)(*parts) for parts in zip(*chunks, strict=True)]
        return reduce(add, dask.compute(*records))

    binary = merged(BinaryMetrics.of, predicted == 1, y == 1)
    many = merged(MulticlassMetrics.of, predicted, y)
    ranked = merged(RankingMetrics.of, scores, hot)

    assert binary.f_score() == pytest.approx(metrics.f1_score(y == 1, predicted == 1))
    assert (many.confusion == metrics.confusion_matrix(y, predicted)).all()
    whole = mean_average_precision(scores, hot)
    assert np.array_equal(ranked.average_precisions, whole)


def test_votes_of_augmented_examples() -> None:
    scores = [[1.0, 0.0], [0.0, 3.0], [0.0, 1.0]]
    groups, mean = vote(scores, ["a", "a", "b"])
    _, ranks = vote(scores, ["a", "a", "b"], "borda")

    assert groups.tolist() == ["a", "b"]
    assert mean.tolist() == [[0.5, 1.5], [0.0, 1.0]]
    assert ranks.tolist() == [[0.5, 0.5], [0.0, 1.0]]
