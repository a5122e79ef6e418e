"""The library's operators in planned pipelines, mixed with scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline

import mlopt
from mlopt.pipeline.library.image import (
    Convolver,
    ImageVectorizer,
    Pooler,
    SymmetricRectifier,
)
from mlopt.pipeline.library.signal import LinearRectifier, PaddedFFT, RandomSign
from mlopt.pipeline.library.text import (
    CommonSparseFeatures,
    LowerCase,
    NGrams,
    TermFrequency,
    Tokenizer,
    Trim,
)

RNG = np.random.default_rng(0)
N = 5000
"""Rows enough for several blocks."""


def both(steps: list[Any], X: Any, y: Any) -> tuple[Any, Any]:
    """Fitted by mlopt and by scikit-learn."""
    ours = mlopt.make_pipeline(*map(clone, steps)).fit(X, y)
    return ours, make_pipeline(*map(clone, steps)).fit(X, y)


def reviews() -> tuple[list[str], Any]:
    words = np.array([f"word{number}" for number in range(150)])
    found = [" ".join(words[RNG.integers(0, 150, 10)]) + ".  " for _ in range(N)]
    return found, np.array(["word7" in text for text in found]).astype(int)


@pytest.mark.slow
def test_documents_to_sentiment() -> None:
    X, y = reviews()
    steps = [
        Trim(), LowerCase(), Tokenizer(), NGrams((1, 2)), TermFrequency(),
        CommonSparseFeatures(500), LogisticRegression(C=10, tol=1e-6),
    ]  # fmt: skip
    ours, theirs = both(steps, X, y)

    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.999
    assert ours[-2].vocabulary_ == theirs[-2].vocabulary_


def test_the_same_terms_as_scikit_learns_vectorizer() -> None:
    X, _ = reviews()
    steps = [LowerCase(), Tokenizer(), NGrams((1,)), TermFrequency()]
    counted = mlopt.make_pipeline(*steps, CommonSparseFeatures(150)).fit_transform(X)

    assert counted.sum() == CountVectorizer().fit_transform(X).sum()


@pytest.mark.slow
def test_images_through_a_bank_of_filters() -> None:
    X = RNG.normal(size=(N, 8, 8)).astype(np.float32)
    y = (X[:, 2:5, 2:5].sum(axis=(1, 2)) > 0).astype(int)
    steps = [
        Convolver(RNG.normal(size=(6, 3, 3)).astype(np.float32)), SymmetricRectifier(),
        Pooler(3, 3), ImageVectorizer(), RidgeClassifier(tol=1e-8),
    ]  # fmt: skip
    ours, theirs = both(steps, X, y)

    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.995


def test_signals_by_random_transforms() -> None:
    X = RNG.normal(size=(N, 20))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    steps = [
        RandomSign(random_state=0),
        PaddedFFT(),
        LinearRectifier(),
        LogisticRegression(),
    ]
    ours, theirs = both(steps, X, y)

    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.995


@pytest.mark.slow
@pytest.mark.parametrize("size", [60, N])
def test_few_and_many_rows_alike(size: int) -> None:
    X, _ = reviews()
    y = np.arange(size) % 2
    # The labels are noise, and margins small: only models to the end are the same.
    model = LogisticRegression(tol=1e-8, max_iter=1000)
    steps = [Tokenizer(), TermFrequency(), CommonSparseFeatures(50), model]
    ours, theirs = both(steps, X[:size], y)

    assert (ours.predict(X[:size]) == theirs.predict(X[:size])).mean() > 0.99
