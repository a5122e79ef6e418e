"""Rows that are one block of this process reach the steps as they were given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from tests.pipeline.peers import assert_same

import mlopt

FORMATS = pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "bsr", "dok"])


class Looks(TransformerMixin, BaseEstimator):
    """Notes what it is fitted to."""

    def fit(self, X: Any, y: Any = None) -> Looks:
        self.seen_ = type(X).__name__, type(y).__name__
        self.n_ = X.shape[0] if hasattr(X, "shape") else len(X)
        return self

    def transform(self, X: Any) -> Any:
        return sp.csr_matrix(X)


def _sparse(form: str, n: int = 400) -> tuple[Any, Any]:
    X = sp.random(n, 4, density=0.3, random_state=0, format="csr")
    return X.asformat(form), np.asarray(X.sum(axis=1)).ravel()


def _both(make: Any, X: Any, y: Any) -> tuple[Any, Any]:
    return Pipeline(make()).fit(X, y), mlopt.Pipeline(make()).fit(X, y)


@FORMATS
@pytest.mark.parametrize("n", [400, 6000])
def test_a_sparse_matrix_keeps_its_format(form: str, n: int) -> None:
    X, y = _sparse(form, n)
    plain, planned = _both(lambda: [("l", Looks()), ("m", Ridge())], X, y)
    assert planned[0].n_ == n
    assert planned[0].seen_ == plain[0].seen_
    assert_same(planned[1].coef_, plain[1].coef_)


@FORMATS
def test_what_a_step_gives_has_its_format(form: str) -> None:
    X, y = _sparse(form)
    theirs = Pipeline([("s", MaxAbsScaler())]).fit_transform(X, y)
    ours = mlopt.Pipeline([("s", MaxAbsScaler())]).fit_transform(X, y)
    assert type(ours) is type(theirs)
    assert_same(ours.toarray(), theirs.toarray())


@FORMATS
def test_parts_of_unions_and_columns(form: str) -> None:
    X, y = _sparse(form)

    def steps() -> Any:
        return [
            ("u", FeatureUnion([("l", Looks()), ("s", MaxAbsScaler())])),
            ("m", Ridge()),
        ]

    plain, planned = _both(steps, X, y)
    seen = [one[0].transformer_list[0][1].seen_ for one in (plain, planned)]
    assert seen[0] == seen[1]
    assert_same(planned.predict(X), plain.predict(X))
    if form in ("coo", "bsr", "dok"):
        return  # of which scikit-learn takes no columns

    def by_columns() -> Any:
        columns = ColumnTransformer([("l", Looks(), [0, 1]), ("s", MaxAbsScaler(), [2, 3])])
        return [("c", columns), ("m", Ridge())]

    plain, planned = _both(by_columns, X, y)
    assert planned[0].named_transformers_["l"].seen_[0].startswith(form)
    assert_same(planned.predict(X), plain.predict(X))


def test_lists_stay_lists() -> None:
    X, y = _sparse("csr")
    rows, targets = X.toarray().tolist(), y.tolist()
    plain, planned = _both(lambda: [("l", Looks()), ("m", Ridge())], rows, targets)
    assert planned[0].seen_ == plain[0].seen_ == ("list", "list")
    assert_same(planned.predict(rows), plain.predict(rows))

    def union() -> Any:
        parts = [("l", Looks()), ("s", StandardScaler()), ("p", "passthrough")]
        return [("u", FeatureUnion(parts)), ("m", Ridge())]

    plain, planned = _both(union, rows, targets)
    assert planned[0].transformer_list[0][1].seen_ == ("list", "list")
    assert_same(planned.predict(rows), plain.predict(rows))


def test_columns_of_lists_are_objects() -> None:
    rows = [["a", 1.5], ["b", 2.5], ["a", 3.5], ["c", 4.5]] * 50
    targets = list(range(len(rows)))

    def steps() -> Any:
        parts = [("o", OneHotEncoder(), [0]), ("l", StandardScaler(), [1])]
        return [("c", ColumnTransformer(parts)), ("m", Ridge())]

    plain, planned = _both(steps, rows, targets)
    encoders = [one[0].named_transformers_["o"] for one in (plain, planned)]
    assert encoders[0].categories_[0].dtype == encoders[1].categories_[0].dtype
    assert_same(planned.predict(rows), plain.predict(rows))


def _with_stems(tokens: Any) -> Any:
    return tokens + [token[:3] for token in tokens]


@pytest.mark.parametrize("n", [300, 6000])
def test_documents_of_as_many_tokens_are_lists_of_them(n: int) -> None:
    words = np.array(["alpha", "beta", "gamma", "delta"])
    codes = np.random.default_rng(0).integers(0, 4, (n, 3))
    documents, y = words[codes].tolist(), (codes == 0).any(axis=1).astype(int)

    def steps() -> Any:
        return [("v", CountVectorizer(analyzer=_with_stems)), ("m", LogisticRegression())]

    plain, planned = _both(steps, documents, y)
    assert planned[0].vocabulary_ == plain[0].vocabulary_
    np.testing.assert_array_equal(planned.predict(documents), plain.predict(documents))
    search = mlopt.ModelSearchCV(
        mlopt.Pipeline(steps()), {"m__C": [1.0]}, sampler="grid", bandit=None, cv=3
    ).fit(documents[:300], y[:300])
    assert search.best_score_ == 1.0
    assert search.best_estimator_.score(documents, y) == 1.0


@pytest.mark.parametrize("kind", [list, tuple, np.array])
@pytest.mark.parametrize("n", [300, 6000])
def test_rows_of_text_are_objects_as_in_scikit_learn(kind: Any, n: int) -> None:
    codes = np.random.default_rng(0).integers(0, 4, (n, 2))
    rows = [kind(row) for row in np.array(["x", "y", "zz", ""])[codes].tolist()]
    imputer = SimpleImputer(strategy="most_frequent", missing_values="")
    table = ColumnTransformer([("o", OneHotEncoder(), [0]), ("p", "passthrough", [1])])
    for first in (imputer, OneHotEncoder(), table):
        plain, planned = (
            make([("f", clone(first))]).fit(rows) for make in (Pipeline, mlopt.Pipeline)
        )
        expected, found = plain.transform(rows), planned.transform(rows)
        assert found.dtype == expected.dtype
        assert_same(found, expected)
        for at in ("categories_", "statistics_"):
            pair = [getattr(one[0], at, [None])[0] for one in (plain, planned)]
            assert type(pair[0]) is type(pair[1])
            assert getattr(pair[0], "dtype", None) == getattr(pair[1], "dtype", None)


def test_a_number_before_text_stays_a_number() -> None:
    rows = [[1, "x"], [2, "y"], [10, "x"]] * 100
    found = mlopt.Pipeline([("o", OneHotEncoder())]).fit(rows)[0].categories_
    assert [one.tolist() for one in found] == [[1, 2, 10], ["x", "y"]]
