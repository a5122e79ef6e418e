"""Fitted encoders on many rows of few categories: what scikit-learn gives, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from mlopt.pipeline.fits.numbers.coded import encoded

RNG = np.random.default_rng(0)
N = 1000
FRAME = pd.DataFrame(
    {
        "word": RNG.choice(["u", "v", "w", "x"], N),
        "number": RNG.integers(0, 5, N),
        "half": RNG.integers(0, 3, N) / 2,
        "truth": RNG.integers(0, 2, N).astype(bool),
    }
)
WORDS = FRAME[["word", "number"]].astype(object)
ROWS = [FRAME, WORDS, WORDS.to_numpy()]
MODELS = [
    OneHotEncoder(),
    OneHotEncoder(drop="first", sparse_output=False, dtype="f4"),
    OneHotEncoder(drop="if_binary"),
    OneHotEncoder(min_frequency=230),
    OneHotEncoder(handle_unknown="ignore"),
    OrdinalEncoder(),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
]


def same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    if issparse(found):
        for part in ("indptr", "indices", "data"):
            a, b = getattr(found, part), getattr(expected, part)
            assert a.dtype == b.dtype
            assert np.array_equal(a, b)
    else:
        assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("rows", ROWS, ids=["frame", "objects", "array"])
def test_codes_are_those_of_scikit_learn(model: Any, rows: Any) -> None:
    calls = []

    class Seen(type(model)):  # type: ignore[misc]
        def transform(self, X: Any) -> Any:
            calls.append(len(X))
            return super().transform(X)

    seen = Seen(**model.get_params()).fit(rows)
    same(encoded(seen, rows), model.fit(rows).transform(rows))
    assert max(calls) < 10  # of the values that differ


@pytest.mark.parametrize("model", [m for m in MODELS if "unknown" in str(m)], ids=str)
def test_unknown_values_are_what_the_encoder_makes_of_them(model: Any) -> None:
    model.fit(WORDS[WORDS.word != "x"])
    same(encoded(model, WORDS), model.transform(WORDS))


def test_unknown_values_are_refused_by_the_encoder() -> None:
    model = OneHotEncoder().fit(WORDS[WORDS.word != "x"])
    with pytest.raises(ValueError, match=r"unknown categories \['x'\] in column 0"):
        encoded(model, WORDS)


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("model", [OneHotEncoder(), OrdinalEncoder()], ids=str)
def test_missing_values_are_left_to_the_encoder(model: Any, missing: Any) -> None:
    rows = WORDS.mask(RNG.uniform(size=WORDS.shape) < 0.1, missing)
    same(encoded(model.fit(rows), rows), model.transform(rows))


def test_equal_values_of_several_types_are_left_to_the_encoder() -> None:
    rows = np.array([[1], [True], [0.0], [1.0]] * 100, dtype=object)
    model = OrdinalEncoder().fit(rows)
    same(encoded(model, rows), model.transform(rows))


def test_rows_that_were_not_fitted_are_refused_by_the_encoder() -> None:
    model = OneHotEncoder().fit(WORDS)
    with pytest.raises(ValueError, match="feature names"):
        encoded(model, WORDS[["number", "word"]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        encoded(model, FRAME)
