"""What every one-pass fit in the table owes: scikit-learn's result, however blocks lie."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from sklearn.base import clone
from tests.pipeline.fits.cases import CASES, Data, N
from tests.pipeline.fits.same import (
    assert_same_fit,
    assert_same_use,
    finished,
    learnt,
    merged,
    parts,
    reference,
    rows_of,
)

from mlopt.errors import InputError
from mlopt.pipeline.fits.base import OnePass
from mlopt.pipeline.fits.numbers.table import FITS
from mlopt.pipeline.fits.registry import ways_of
from mlopt.stats import Stats

cases = pytest.mark.parametrize(
    ("estimator", "data"), [pytest.param(*rest, id=name) for name, *rest in CASES]
)
cuts = st.lists(st.integers(0, N), max_size=6)
orders = st.lists(st.integers(0, 5), max_size=6)


def way_of(estimator: Any) -> OnePass:
    (way,) = ways_of(estimator)
    assert isinstance(way, OnePass)
    return way


def test_every_kind_of_the_table_has_cases() -> None:
    kinds = {kind for way in FITS for kind in way.kinds}
    assert {type(estimator) for _, estimator, _ in CASES} == kinds


@cases
@settings(max_examples=min(4, settings().max_examples // 4))
@given(cuts, orders)
def test_any_blocks_in_any_grouping_give_what_scikit_learn_fits(
    estimator: Any, data: Data, cuts: list[int], order: list[int]
) -> None:
    way = way_of(estimator)
    theirs = reference(estimator, data)
    ours = finished(way, estimator, merged(way, parts(way, estimator, data, cuts), order))
    assert_same_fit(ours, theirs, data.tolerance)
    assert_same_use(ours, theirs, data.X, data.tolerance)


@cases
def test_single_rows_and_empty_blocks_are_blocks(estimator: Any, data: Data) -> None:
    way = way_of(estimator)
    found = parts(way, estimator, data, [0, 0, 1, 2, 3, 4, 5, N - 1, N, N])
    ours = finished(way, estimator, merged(way, found))
    assert_same_fit(ours, reference(estimator, data), data.tolerance)


@cases
def test_statistics_stay_as_they_are_and_travel(estimator: Any, data: Data) -> None:
    way = way_of(estimator)
    found = parts(way, estimator, data, [9, 20])
    before = pickle.dumps(found)
    together = merged(way, pickle.loads(before))
    ours = finished(way, estimator, pickle.loads(pickle.dumps(together)))
    assert_same_fit(finished(way, estimator, merged(way, found)), ours, 0.0)
    assert pickle.dumps(found) == before
    back = pickle.loads(pickle.dumps(ours))
    assert_same_use(back, reference(estimator, data), data.X, data.tolerance)


@cases
def test_the_estimator_given_is_left_alone(estimator: Any, data: Data) -> None:
    way, given = way_of(estimator), clone(estimator)
    finished(way, given, merged(way, parts(way, given, data, [9])))
    assert not learnt(given)
    assert repr(given.get_params()) == repr(estimator.get_params())


@cases
def test_cases_are_not_refused(estimator: Any, data: Data) -> None:
    assert way_of(estimator).refuses(estimator, Stats(*data.X.shape)) == ""


@cases
def test_no_rows_at_all_are_an_error(estimator: Any, data: Data) -> None:
    way, none = way_of(estimator), rows_of(data, 0, 0)
    part = way.part(estimator, none.X, none.y, none.weight)
    with pytest.raises(InputError, match="at least one row"):
        way.finish(estimator, way.merge(part, part))


@cases
def test_blocks_with_other_columns_are_an_error(estimator: Any, data: Data) -> None:
    way = way_of(estimator)
    (left,) = parts(way, estimator, data, [])
    (right,) = parts(way, estimator, replace(data, X=_twice(data.X)), [])
    with pytest.raises(InputError, match="same columns"):
        way.merge(left, right)


def _twice(X: Any) -> Any:
    """Each column again."""
    if sp.issparse(X):
        return sp.hstack((X, X), format="csr")
    if isinstance(X, pd.DataFrame):
        return pd.concat((X, X.add_suffix(" again")), axis=1)
    return np.concatenate((X, X), axis=1)
