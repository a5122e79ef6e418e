"""Hashed terms are in the columns, and have the signs, that scikit-learn gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer

from mlopt.pipeline.fits.text.hashing import _columns, apply_hashing

texts = st.lists(
    st.sampled_from(["red", "Blue", "café", "½", "a", "x-ray", ""]), max_size=9
)
documents = st.one_of(
    texts.map(" ".join), st.text(st.characters(codec="utf-8"), max_size=9)
)


@given(
    st.lists(documents, min_size=1, max_size=6),
    st.fixed_dictionaries(
        {},
        optional={
            "ngram_range": st.sampled_from([(1, 1), (1, 2), (2, 3)]),
            "n_features": st.sampled_from([1, 3, 2**20]),
            "norm": st.sampled_from(["l1", "l2", None]),
            "binary": st.booleans(),
            "alternate_sign": st.booleans(),
            "dtype": st.sampled_from([np.float64, np.float32]),
            "analyzer": st.sampled_from(["word", "char_wb"]),
            "stop_words": st.sampled_from([None, ["red"]]),
        },
    ),
)
def test_any_documents_give_what_scikit_learn_gives(
    rows: list[str], params: dict[str, Any]
) -> None:
    if params.get("analyzer") == "char_wb":
        params.pop("stop_words", None)
    estimator = HashingVectorizer(**params)
    found, wanted = apply_hashing(estimator, rows), estimator.transform(rows)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


@pytest.mark.parametrize("n_features", [1, 7, 2**20])
def test_the_lowest_hash_has_a_column_of_its_own(n_features: int) -> None:
    # FeatureHasher: (2147483647 - (n_features - 1)) % n_features.
    lowest = (2147483647 - (n_features - 1)) % n_features
    found = _columns(np.array([-(2**31), -5, 5]), n_features)
    assert found.tolist() == [lowest, 5 % n_features, 5 % n_features]
