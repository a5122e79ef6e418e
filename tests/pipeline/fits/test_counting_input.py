"""Documents and parameters that cannot work are refused as scikit-learn refuses them."""

from __future__ import annotations

import re
import warnings
from functools import reduce
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from tests.pipeline.fits.vectorizing import check

from mlopt.pipeline.fits.text.counting import CountTerms


def test_bytes_are_decoded_as_the_estimator_says() -> None:
    documents = ["café naïve".encode("latin-1"), b"cafe", "café"]
    check(CountVectorizer(encoding="latin-1"), documents)
    check(CountVectorizer(decode_error="ignore"), documents)
    with pytest.raises(UnicodeDecodeError) as caught:
        CountTerms().part(CountVectorizer(), ["fine", documents[0]], None, None)
    assert "document 1 of its block" in caught.value.__notes__[0]


@pytest.mark.parametrize("document", [7, None, ["a list"], np.nan])
@pytest.mark.parametrize("params", [{}, {"analyzer": "char"}])
def test_what_is_no_document_raises_as_in_scikit_learn(
    document: Any, params: dict[str, Any]
) -> None:
    estimator = CountVectorizer(**params)
    with pytest.raises((AttributeError, ValueError)) as expected:
        estimator.fit(["fine", document])
    with pytest.raises(type(expected.value)) as caught:
        CountTerms().part(estimator, ["fine", document], None, None)
    assert str(caught.value) == str(expected.value)
    assert "document 1 of its block" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("documents", "params"),
    [
        ([""], {}),
        (["the of"], {"stop_words": "english"}),
        (["one", "two"], {"min_df": 2}),
        (["one", "two"], {"min_df": 2, "max_df": 1}),
        (["one"], {"vocabulary": []}),
    ],
)
def test_nothing_to_learn_is_said_as_in_scikit_learn(
    documents: list[str], params: dict[str, Any]
) -> None:
    check(CountVectorizer(**params), documents)


@pytest.mark.parametrize(
    ("X", "params"),
    [
        ("one string", {}),
        (["text"], {"ngram_range": (2, 1)}),
        (["text"], {"min_df": -1}),
        (["text"], {"token_pattern": r"(a)(b)"}),
        (["text"], {"stop_words": "klingon"}),
    ],
)
def test_parameters_and_input_are_refused_as_in_scikit_learn(
    X: Any, params: dict[str, Any]
) -> None:
    estimator = CountVectorizer(**params)
    with pytest.raises((ValueError, TypeError)) as expected:
        estimator.fit(X)
    with pytest.raises(ValueError, match=f"^{re.escape(str(expected.value))}$"):
        CountTerms().part(estimator, X, None, None)


@pytest.mark.parametrize(
    "params",
    [
        {"stop_words": ["it's"]},
        {"tokenizer": str.split},
        {"vocabulary": ["Upper"]},
        {"analyzer": "char", "stop_words": "english"},
    ],
)
def test_warnings_come_once_as_in_scikit_learn(params: dict[str, Any]) -> None:
    estimator, documents = CountVectorizer(**params), ["it is upper text", "more of it"]
    way, said = CountTerms(), []

    def in_blocks() -> Any:
        parts = [way.part(estimator, [text], None, None) for text in documents]
        return way.finish(estimator, reduce(way.merge, parts))

    judge: Any = CountVectorizer(**params)
    fits: list[Any] = [lambda: judge.fit(documents), in_blocks]
    for fit in fits:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit()
        said.append([str(w.message) for w in caught])
    assert said[0] == said[1] != []
