"""Inverse document frequencies of counts in blocks equal scikit-learn's of all counts."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfTransformer

from mlopt.errors import InputError
from mlopt.pipeline.fits.text.frequencies import InverseFrequencies

WAY = InverseFrequencies()


def fit(estimator: Any, blocks: list[Any]) -> Any:
    parts = [WAY.part(estimator, block, None, None) for block in blocks]
    return WAY.finish(estimator, reduce(WAY.merge, parts))


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=2, max_size=9),
    st.fixed_dictionaries(
        {}, optional={"smooth_idf": st.booleans(), "use_idf": st.booleans()}
    ),
    st.sampled_from([np.asarray, sp.csr_matrix, sp.csr_array, sp.csc_matrix]),
    st.sampled_from([np.float32, np.float64, np.int64]),
    st.data(),
)
def test_blocks_of_any_layout_give_what_all_rows_give(
    rows: list[list[int]], params: dict[str, Any], layout: Any, dtype: Any, data: Any
) -> None:
    X = np.array(rows, dtype)
    # Without smoothing a term of no document has no finite weight.
    X[0] = 1
    cut = data.draw(st.integers(1, len(X) - 1))
    found = fit(TfidfTransformer(**params), [layout(X[:cut]), layout(X[cut:])])
    wanted = TfidfTransformer(**params).fit(layout(X))
    assert found.n_features_in_ == 3
    if found.use_idf:
        assert found.idf_.dtype == wanted.idf_.dtype
        np.testing.assert_array_equal(found.idf_, wanted.idf_)
    assert abs(found.transform(X) - wanted.transform(X)).max() == 0


def test_stored_zeros_count_as_in_scikit_learn() -> None:
    X = sp.csr_matrix((np.array([0.0, 2.0]), np.array([0, 1]), np.array([0, 2])), (1, 2))
    wanted = TfidfTransformer().fit(X)
    np.testing.assert_array_equal(fit(TfidfTransformer(), [X]).idf_, wanted.idf_)


def test_names_of_columns_are_kept() -> None:
    frame = pd.DataFrame({"red": [1.0, 0.0], "blue": [2.0, 1.0]})
    fitted = fit(TfidfTransformer(), [frame[:1], frame[1:]])
    assert fitted.feature_names_in_.tolist() == ["red", "blue"]


def test_blocks_with_other_columns_are_refused() -> None:
    with pytest.raises(InputError, match="got 2 and 3"):
        fit(TfidfTransformer(), [np.ones((1, 2)), np.ones((1, 3))])
    frames = [pd.DataFrame(np.ones((1, 2)), columns=[*names]) for names in ("ab", "ba")]
    with pytest.raises(InputError, match=r"same columns, got .*'a', 'b'.* and .*'b', 'a'"):
        fit(TfidfTransformer(), frames)


def test_counts_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        WAY.part(TfidfTransformer(), np.array([[np.nan]]), None, None)
