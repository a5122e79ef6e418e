"""Rows, columns and labels arranged: alone, in pipelines, and block by block."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import top_k_accuracy_score
from sklearn.preprocessing import LabelBinarizer, MultiLabelBinarizer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.library.util import (
    Cacher,
    ClassLabelIndicators,
    Densify,
    FloatToDouble,
    Identity,
    MatrixVectorizer,
    MaxClassifier,
    Shuffler,
    Sparsify,
    TopK,
    VectorCombiner,
    VectorSplitter,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 7))
TABLES = [X, sp.csr_array(X * (X > 0)), pd.DataFrame(X, columns=list("abcdefg"))]


def plain(table: Any) -> Any:
    return table.toarray() if sp.issparse(table) else np.asarray(table)


@parametrize_with_checks([MaxClassifier(), TopK(k=1)])
def test_scores_pass_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_layouts_types_and_shapes() -> None:
    sparse = Sparsify().transform(X * (X > 0))

    assert sparse.nnz == (X > 0).sum()
    assert np.array_equal(Densify().transform(sparse), X * (X > 0))
    for rows in (X.astype(np.float32), sp.csr_array(X.astype(np.float32))):
        assert FloatToDouble().transform(rows).dtype == np.float64
    assert Identity().fit_transform(["a", "b"]) == ["a", "b"]


def test_a_matrix_a_row_becomes_a_vector_a_row() -> None:
    cube = np.arange(24).reshape(2, 3, 4)

    assert MatrixVectorizer().transform(cube)[1].tolist() == list(range(12, 24))
    assert MatrixVectorizer().transform(cube[:0]).shape == (0, 12)
    with pytest.raises(InputError, match="beside that of its rows"):
        MatrixVectorizer().transform([1.0, 2.0])


@pytest.mark.parametrize("table", TABLES, ids=["array", "sparse", "frame"])
@pytest.mark.parametrize("size", [1, 3, 7, 9])
def test_blocks_of_columns_combine_to_what_was_split(table: Any, size: int) -> None:
    blocks = VectorSplitter(size).split(table)
    again = VectorCombiner().combine(blocks)

    assert type(again) is type(table)
    assert np.array_equal(plain(again), plain(table))
    assert [block.shape[1] for block in blocks[:-1]] == [size] * (len(blocks) - 1)


def test_frames_are_combined_row_by_row_whatever_their_index() -> None:
    left = pd.DataFrame({"a": [1, 2]}, index=[7, 7])
    found = VectorCombiner().combine([left, pd.DataFrame({"b": [3, 4]}, index=[1, 0])])

    assert found.to_numpy().tolist() == [[1, 3], [2, 4]]
    assert found.index.tolist() == [7, 7]


def test_what_cannot_be_split_or_combined_is_refused() -> None:
    with pytest.raises(InputError, match="`block_size` must be at least 1"):
        VectorSplitter(0)
    with pytest.raises(InputError, match=r"must have shape \(n, d\)"):
        VectorSplitter(2).split(np.zeros(3))
    with pytest.raises(InputError, match=r"got \[2, 3\] rows"):
        VectorCombiner().combine([np.zeros((2, 1)), np.zeros((3, 1))])


def test_indicators_are_those_of_a_binarizer() -> None:
    y = RNG.choice(["no", "perhaps", "yes"], 50)
    found = ClassLabelIndicators().fit(y)

    assert np.array_equal(found.transform(y), LabelBinarizer(neg_label=-1).fit_transform(y))
    assert np.array_equal(found.inverse_transform(found.transform(y)), y)


def test_two_classes_have_two_columns() -> None:
    assert ClassLabelIndicators().fit_transform([0, 1, 0]).tolist() == [
        [1, -1], [-1, 1], [1, -1],
    ]  # fmt: skip


def test_several_classes_a_row_or_none() -> None:
    y = [["cat", "dog"], [], ["dog"]]
    found = ClassLabelIndicators(["dog", "cat"]).fit_transform(y)
    theirs = MultiLabelBinarizer(classes=["dog", "cat"]).fit_transform(y)

    assert np.array_equal(found, 2 * theirs - 1)


def test_a_label_that_is_no_class_is_named() -> None:
    encoder = ClassLabelIndicators().fit(["a", "b"])
    with pytest.raises(InputError, match=r"among \['a', 'b'\], got \['z'\]"):
        encoder.transform(["a", "z"])
    with pytest.raises(InputError, match="`classes` must differ"):
        ClassLabelIndicators([1, 1]).fit([1])


@given(st.integers(0, 50))
def test_blocks_of_labels_give_what_all_labels_give(cut: int) -> None:
    y = np.arange(50) % 3
    encoder = ClassLabelIndicators([2, 0, 1]).fit(y[:1])
    parts = [encoder.transform(part) for part in (y[:cut], y[cut:])]

    assert np.array_equal(np.concatenate(parts), encoder.transform(y))


def test_least_squares_on_indicators_classifies_by_the_largest_score() -> None:
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    encoder = ClassLabelIndicators().fit(y)
    scores = Ridge().fit(X, encoder.transform(y)).predict(X)
    found = MaxClassifier(encoder.classes_).transform(scores)

    assert (found == y).mean() > 0.85
    assert np.array_equal(TopK(3, encoder.classes_).transform(scores)[:, 0], found)


@settings(deadline=None)
@given(st.integers(1, 3))
def test_the_best_k_hold_the_truth_as_often_as_scikit_learn_says(k: int) -> None:
    scores, y = RNG.normal(size=(80, 4)), RNG.integers(0, 4, 80)
    best = TopK(k).transform(scores)
    share = np.mean([label in row for label, row in zip(y, best, strict=True)])

    assert share == pytest.approx(top_k_accuracy_score(y, scores, k=k))
    assert (np.diff(np.take_along_axis(scores, best, 1)) <= 0).all()


def test_of_equal_scores_the_first_wins() -> None:
    assert MaxClassifier().transform([[1.0, 1.0]]).tolist() == [0]
    assert TopK(2).transform([[0.0, 1.0, 1.0]]).tolist() == [[1, 2]]


@pytest.mark.parametrize("dtype", [np.uint8, bool, np.int64])
def test_the_best_k_of_scores_of_any_type(dtype: Any) -> None:
    scores = np.array([[0, 1, 0], [1, 1, 0]], dtype)

    assert TopK(3).transform(scores).tolist() == [[1, 0, 2], [0, 1, 2]]
    with pytest.raises(InputError, match="`k` must be an integer"):
        TopK(2.0).transform(scores)  # type: ignore[arg-type]


def test_scores_of_other_classes_are_refused() -> None:
    with pytest.raises(InputError, match="each of 2 `classes`, got 3"):
        MaxClassifier(["a", "b"]).transform([[1.0, 2.0, 3.0]])
    with pytest.raises(InputError, match=r"`k` must lie in 1 \.\.\. 3, got 4"):
        TopK(4).transform([[1.0, 2.0, 3.0]])


def test_rows_and_targets_move_together() -> None:
    y = X[:, 0] > 0
    shuffled, targets = Shuffler(0).shuffle(X, y)

    assert np.array_equal(shuffled[:, 0] > 0, targets)
    assert not np.array_equal(shuffled, X)
    assert np.array_equal(np.sort(shuffled[:, 0]), np.sort(X[:, 0]))


@pytest.mark.parametrize("table", TABLES, ids=["array", "sparse", "frame"])
def test_a_seed_gives_one_order_for_any_type(table: Any) -> None:
    expected = Shuffler(3).shuffle(plain(table))
    assert np.array_equal(plain(Shuffler(3).shuffle(table)), expected)


@pytest.mark.parametrize("rows", [60, 25, (50, 10), 1])
def test_chunks_are_shuffled_as_one_block(rows: Any) -> None:
    chunks = (rows, 7)
    lazy, targets = Shuffler(3).shuffle(da.from_array(X, chunks), np.arange(60))

    assert lazy.chunks == da.from_array(X, chunks).chunks
    assert np.array_equal(lazy.compute(), X[targets])
    assert np.array_equal(lazy.compute(), Shuffler(3).shuffle(X))


def test_what_cannot_be_shuffled_together_is_refused() -> None:
    with pytest.raises(InputError, match="as many rows"):
        Shuffler(0).shuffle(X, [1, 2])
    unknown = da.from_array(X, 20)[da.from_array(X, 20)[:, 0] > 0]
    with pytest.raises(InputError, match="compute_chunk_sizes"):
        Shuffler(0).shuffle(unknown)


def test_a_shuffler_is_no_step() -> None:
    with pytest.raises(TypeError, match="shuffler"):
        mlopt.make_pipeline(Shuffler(0), LogisticRegression()).fit(X, X[:, 0] > 0)


LAZY = da.from_array(RNG.normal(size=(6000, 7)), (1500, 7))
PIXELS = RNG.normal(size=(6000, 3, 2))


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler(), Cacher(), MaxClassifier(list("abcdefg"))],
        [StandardScaler(), Identity(), TopK(2)],
        [Sparsify(), Densify(), FloatToDouble()],
    ],
    ids=["max", "top", "layouts"],
)
def test_several_blocks_give_what_one_gives(steps: list[Any]) -> None:
    whole = LAZY.compute()
    ours = mlopt.make_pipeline(*map(clone, steps))
    single = mlopt.make_pipeline(*map(clone, steps)).fit(whole[:4000])
    found = ours.fit(LAZY[:4000].rechunk((900, 7))).transform(LAZY)

    expected = single.transform(whole)
    assert found.shape == expected.shape
    agree = found.compute() == expected
    if expected.dtype.kind == "f":
        agree = np.isclose(found.compute(), expected)
    assert agree.all()


def test_matrices_in_blocks() -> None:
    pipe = mlopt.make_pipeline(MatrixVectorizer(), StandardScaler())
    found = pipe.fit_transform(PIXELS)
    assert np.allclose(found, StandardScaler().fit_transform(PIXELS.reshape(6000, 6)))
