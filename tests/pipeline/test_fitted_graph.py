"""`predict` and `transform`: the graph of the fit, with models given."""

from __future__ import annotations

import logging
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.pipeline
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import IsolationForest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.fits import applying as fits
from mlopt.pipeline.tasks import functions
from mlopt.plan import format_bytes

RNG = np.random.default_rng(0)
N = 6000
X = RNG.normal(size=(N, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(N)[::-1]).assign(
    kind=RNG.choice(["u", "v", "w"], N),
    words=RNG.choice(["one two", "two three", "four"], N),
)
Y = X[:, 0] + (FRAME.kind == "u")


def by_columns(**settings: Any) -> ColumnTransformer:
    parts = [
        ("numbers", StandardScaler(), ["a", "b"]),
        ("kinds", OneHotEncoder(), ["kind"]),
        ("words", TfidfVectorizer(), "words"),
        ("nothing", "drop", ["c"]),
    ]
    return ColumnTransformer(parts, **settings)


def both(*steps: Any) -> tuple[Any, Any]:
    """One fitted pipeline, as ours and as scikit-learn's."""
    theirs = sklearn.pipeline.make_pipeline(*steps).fit(FRAME, Y)
    return mlopt.Pipeline(theirs.steps), theirs


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_the_parts_of_a_column_transformer_are_operators(threshold: float) -> None:
    ours, theirs = both(by_columns(sparse_threshold=threshold), Ridge())
    assert np.allclose(ours.predict(FRAME), theirs.predict(FRAME), rtol=1e-12)
    found, expected = ours[:1].transform(FRAME), theirs[:1].transform(FRAME)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert abs(found - expected).max() < 1e-12
    steps = {choice.step for choice in ours.explain(FRAME, method="predict").choices}
    assert {"columntransformer/words", "columntransformer/kinds", "ridge"} <= steps


def test_columns_that_moved_or_were_added_are_found_by_name() -> None:
    ours, theirs = both(by_columns(), Ridge())
    moved = FRAME[["words", "c", "kind", "b", "a"]].assign(more=1.0)
    assert np.allclose(ours.predict(moved), theirs.predict(moved), rtol=1e-12)
    with pytest.raises(ValueError, match=r"columns are missing: \{'kind'\}"):
        ours.predict(FRAME.drop(columns="kind"))


def test_rows_with_more_columns_than_were_fitted_are_refused() -> None:
    ours = mlopt.make_pipeline(FunctionTransformer(), Ridge()).fit(X, Y)
    with pytest.raises(ValueError, match="4 features"):
        ours.predict(np.c_[X, X[:, 0]])


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_are_those_of_scikit_learn(kind: str) -> None:
    table = by_columns(sparse_threshold=0.0).set_params(words="drop")
    table.set_params(kinds=OneHotEncoder(sparse_output=False)).set_output(transform=kind)
    ours, theirs = both(table)
    found, expected = ours.transform(FRAME), theirs.transform(FRAME)
    assert type(found) is type(expected)
    assert found.equals(expected)


def test_the_setting_of_the_thread_that_asks_is_that_of_all_blocks() -> None:
    ours = mlopt.make_pipeline(StandardScaler()).fit(FRAME[["a", "b"]])
    with sklearn.config_context(transform_output="pandas"):
        found = ours.transform(FRAME[["a", "b"]])
    assert found.index.equals(FRAME.index)
    assert list(found.columns) == ["a", "b"]


def test_probabilities_of_several_targets_are_a_list_of_all_rows() -> None:
    Y2 = np.c_[X[:, 0] > 0, X[:, 1] > 0].astype(int)
    model = KNeighborsClassifier(3).fit(X[:500], Y2[:500])
    theirs = sklearn.pipeline.make_pipeline(FunctionTransformer(), model)
    ours = mlopt.Pipeline(theirs.fit(X[:500], Y2[:500]).steps)
    for rows in (X, da.from_array(X, chunks=(2000, 3))):
        found = ours.predict_proba(rows)
        assert [part.shape for part in found] == [(N, 2), (N, 2)]
        assert np.array_equal(found, theirs.predict_proba(X))


def test_a_dask_frame_is_predicted_by_layers_named_after_the_steps() -> None:
    ours, theirs = both(by_columns(), Ridge())
    lazy = dd.from_pandas(FRAME, npartitions=3, sort=False)
    found = ours.predict(lazy)
    assert isinstance(found, da.Array)
    assert any("columntransformer.words" in layer for layer in found.dask.layers)
    assert np.allclose(found.compute(), theirs.predict(FRAME), rtol=1e-12)


def test_chunks_without_rows_give_none() -> None:
    ours, theirs = both(by_columns(), Ridge())
    lazy = dd.from_pandas(FRAME, npartitions=3, sort=False)
    lazy = lazy.map_partitions(lambda part: part[part.index < N // 2])
    found = ours.predict(lazy).compute()
    assert np.allclose(found, theirs.predict(FRAME[FRAME.index < N // 2]), rtol=1e-12)


def test_a_refit_does_not_change_what_was_asked_before() -> None:
    pipe = mlopt.make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y)
    lazy, expected = pipe.predict(da.from_array(X, chunks=(2000, 3))), pipe.predict(X)
    pipe.fit(10 * X, -Y)
    assert np.array_equal(lazy.compute(), expected)


def test_scores_of_rows_are_lazy_too() -> None:
    pipe = mlopt.make_pipeline(
        StandardScaler(), IsolationForest(n_estimators=5, random_state=0)
    ).fit(X)
    found = pipe.score_samples(da.from_array(X, chunks=(2000, 3)))
    assert isinstance(found, da.Array)
    assert np.array_equal(found.compute(), pipe.score_samples(X))


def by_maximum(rows: Any) -> Any:
    return rows / np.abs(rows).max(axis=0)


def test_rows_are_not_gathered_without_a_word(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = mlopt.make_pipeline(StandardScaler(), FunctionTransformer(by_maximum), Ridge())
    pipe.fit(X, Y)
    scaled: list[int] = []
    apply_fitted = fits.apply_fitted

    def seen(model: Any, rows: Any, method: str) -> Any:
        if isinstance(model, StandardScaler):
            scaled.append(len(rows))
        return apply_fitted(model, rows, method)

    monkeypatch.setattr(functions, "apply_fitted", seen)
    lazy = da.from_array(X, chunks=(1500, 3))
    plan = pipe.explain(lazy, method="predict")
    (blind,) = [choice for choice in plan.choices if choice.chosen == "on all rows at once"]
    assert blind.step == "functiontransformer"
    assert "by_maximum is not declared row-wise" in blind.notes[0]
    with caplog.at_level(logging.WARNING, "mlopt"):
        found = pipe.predict(lazy)
    assert "`functiontransformer` is not known" in caplog.text
    assert format_bytes(X.nbytes) in caplog.text
    assert np.allclose(found, pipe.predict(X), rtol=1e-12)
    assert scaled == [1500] * 4  # what comes before goes block by block


def test_a_method_that_is_not_there_is_not_explained() -> None:
    pipe = mlopt.make_pipeline(StandardScaler(), Ridge()).fit(X, Y)
    with pytest.raises(InputError, match=r"'fit' or one of \['predict'\]"):
        pipe.explain(X, method="predict_proba")
    assert "few rows" in str(pipe.explain(X[:5], method="predict"))


def test_numbers_kept_as_objects_pass_into_sparse_columns() -> None:
    rows = FRAME[["kind"]].assign(number=np.arange(N).astype(object))
    rows["missing"] = pd.array(np.where(np.arange(N) % 7, np.arange(N), 0), "Int64")
    parts = [
        ("kinds", OneHotEncoder(), ["kind"]),
        ("rest", "passthrough", ["number"]),
        ("missing", "passthrough", ["missing"]),
    ]
    table = ColumnTransformer(parts, sparse_threshold=1.0).fit(rows)
    ours = mlopt.Pipeline([("table", table)])
    found, expected = ours.transform(rows), table.transform(rows)
    assert found.dtype == expected.dtype
    assert np.array_equal(found.toarray(), expected.toarray(), equal_nan=True)
    holes = rows.assign(missing=rows.missing.where(rows.missing > 0))
    for pipe in (ours, sklearn.pipeline.Pipeline(ours.steps)):
        with pytest.raises(ValueError, match=r"'missing' .* pandas\.NA to represent null"):
            pipe.transform(holes)
    rows.iloc[-1, 1] = "many"
    with pytest.raises(ValueError, match="convertible to a numeric"):
        ours.transform(rows)


def test_what_may_look_at_all_rows_is_not_tried_on_a_few() -> None:
    seen: list[int] = []

    def by_all(rows: Any) -> Any:
        seen.append(len(rows))
        return rows

    steps = [FunctionTransformer(by_all), by_columns(), Ridge()]
    ours, theirs = both(*steps)
    seen.clear()
    assert np.array_equal(ours.predict(FRAME), theirs.predict(FRAME))
    assert seen == [N, N]
    found = ours.predict(dd.from_pandas(FRAME, npartitions=3, sort=False))
    assert seen == [N, N, N]
    assert np.allclose(found, theirs.predict(FRAME), rtol=1e-12)
