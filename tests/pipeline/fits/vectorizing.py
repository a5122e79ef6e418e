"""What tests of vectorizers share: fitting in blocks, judged by scikit-learn."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from mlopt.pipeline.fits.text.counting import (
    CountTerms,
    CountTfidf,
    apply_counts,
    columns_from,
)

WAYS = {CountVectorizer: CountTerms(), TfidfVectorizer: CountTfidf()}


def grouped(way: Any, parts: list[Any], seed: int) -> Any:
    """The parts merged, neighbours in random order."""
    rng, parts = np.random.default_rng(seed), list(parts)
    while len(parts) > 1:
        at = int(rng.integers(len(parts) - 1))
        parts[at : at + 2] = [way.merge(parts[at], parts[at + 1])]
    return parts[0]


def blocks_of(documents: list[Any], seed: int) -> list[list[Any]]:
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, len(documents) + 1, 3))
    edges = [0, *cuts.tolist(), len(documents)]
    return [documents[a:b] for a, b in pairwise(edges)]


def assert_same(found: Any, wanted: Any) -> None:
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    assert type(found) is type(wanted)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def outcome(act: Any) -> Any:
    """A result, or the text of the ValueError instead of it."""
    try:
        return act()
    except ValueError as error:
        return str(error)


def check(estimator: Any, documents: list[Any], seed: int = 0) -> None:
    """Fitting in blocks gives what scikit-learn gives, and so do both ways to transform."""
    way: Any = WAYS[type(estimator)]
    blocks = blocks_of(documents, seed)
    parts = [way.part(estimator, block, None, None) for block in blocks]
    judge = type(estimator)(**estimator.get_params())
    fitted = outcome(lambda: way.finish(estimator, grouped(way, parts, seed)))
    expected = outcome(lambda: judge.fit(documents))
    if isinstance(expected, str):
        assert fitted == expected
        return
    assert fitted.vocabulary_ == expected.vocabulary_
    assert fitted.fixed_vocabulary_ == expected.fixed_vocabulary_
    np.testing.assert_array_equal(
        fitted.get_feature_names_out(), expected.get_feature_names_out()
    )
    if isinstance(estimator, TfidfVectorizer) and estimator.use_idf:
        assert fitted.idf_.dtype == expected.idf_.dtype
        np.testing.assert_array_equal(fitted.idf_, expected.idf_)
    for part, block in zip(parts, blocks, strict=True):
        if block:
            wanted = expected.transform(block)
            assert_same(columns_from(part, fitted), wanted)
            assert_same(apply_counts(fitted, block), wanted)
    assert_same(fitted.transform(documents), expected.transform(documents))
