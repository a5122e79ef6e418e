"""Vectorizers fitted block by block equal scikit-learn's, for any blocks and any text."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import warnings
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from mlopt.pipeline.fits.counting import (
    Counted,
    CountTerms,
    CountTfidf,
    apply_counts,
    columns_from,
)
from mlopt.stats import Stats

WAYS = {CountVectorizer: CountTerms(), TfidfVectorizer: CountTfidf()}

LATIN = "a an the The THE it's don't data Data naïve naive café Ünder straße e\u0301te"
OTHER = (
    "2 22 2nd _x a_b x-ray ½ ™abc ﬁne İstanbul 日本 日本語 ab abc abd ab1 AB ǅungla \ud800z"
)
words = st.sampled_from([*LATIN.split(), *OTHER.split()])
gaps = st.sampled_from([" ", "  ", ", ", "-", "\n", "\t", "\0", "\x1f", "\u00a0", "!", ""])
texts = st.lists(st.tuples(words, gaps), max_size=12).map(
    lambda pairs: "".join(word + gap for word, gap in pairs)
)
corpora = st.lists(st.one_of(texts, st.text(max_size=8)), min_size=1, max_size=9)
parameters = st.fixed_dictionaries(
    {},
    optional={
        "ngram_range": st.sampled_from([(1, 1), (1, 2), (2, 2), (1, 3), (2, 4), (3, 3)]),
        "lowercase": st.booleans(),
        "strip_accents": st.sampled_from([None, "ascii", "unicode", str.swapcase]),
        "stop_words": st.sampled_from([None, "english", ["ab", "data", "naïve"]]),
        "token_pattern": st.sampled_from(
            [r"(?u)\b\w+\b", r"\w*", r"[a-z]{2,}", r"(\w)\w*", r"\S+", r"[^,]+", r"(?s)..."]
        ),
        "binary": st.booleans(),
        "min_df": st.sampled_from([1, 2, 0.3]),
        "max_df": st.sampled_from([1.0, 0.5, 3]),
        "max_features": st.sampled_from([None, 1, 3, 10]),
        "dtype": st.sampled_from([np.float64, np.float32]),
        "preprocessor": st.sampled_from([None, str.title]),
        "tokenizer": st.sampled_from([None, str.split]),
        "analyzer": st.sampled_from(["word", "char", "char_wb", str.split]),
    },
)


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


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(corpora, parameters, st.sampled_from([*WAYS]), st.integers(0, 99))
def test_any_documents_in_any_blocks_give_what_scikit_learn_gives(
    documents: list[str], params: dict[str, Any], kind: Any, seed: int
) -> None:
    check(kind(**params), documents, seed)


@given(corpora, st.sampled_from([(1, 1), (1, 2), (2, 3)]), st.integers(0, 99))
def test_default_tokens_of_any_documents(
    documents: list[str], ngram_range: tuple[int, int], seed: int
) -> None:
    check(TfidfVectorizer(ngram_range=ngram_range), documents, seed)


@pytest.mark.parametrize(
    "params",
    [
        {"norm": None, "use_idf": False},
        {"norm": "l1", "smooth_idf": False},
        {"sublinear_tf": True, "binary": True, "dtype": np.float32},
    ],
)
def test_weights_follow_the_parameters(params: dict[str, Any]) -> None:
    documents = ["red red green", "green blue blue blue", "", "red", "blue grey"]
    check(TfidfVectorizer(ngram_range=(1, 2), **params), documents)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
def test_counts_have_the_dtype_asked_for(dtype: Any) -> None:
    check(CountVectorizer(dtype=dtype), ["one two two", "two three"])


@pytest.mark.parametrize("limit", [1, 7, 50, 333, 999])
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_of_equally_frequent_terms_the_same_ones_stay(limit: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    documents = [
        " ".join(f"w{i}" for i in rng.zipf(1.3, 30).clip(max=5000)) for _ in range(200)
    ]
    check(CountVectorizer(ngram_range=(1, 2), max_features=limit, dtype=dtype), documents)


@pytest.mark.parametrize("kind", [*WAYS])
@pytest.mark.parametrize(
    "vocabulary",
    [
        {"blue": 1, "red green": 0, "never": 2},
        ["red", "blue", "green blue", "three words here", "", "tab\ttab"],
        ["a  b", "\n"],
    ],
)
def test_a_given_vocabulary_keeps_its_columns(kind: Any, vocabulary: Any) -> None:
    documents = ["red green blue", "green blue blue", "nothing of it"]
    check(kind(vocabulary=vocabulary, ngram_range=(1, 2)), documents)
    check(kind(vocabulary=vocabulary, analyzer=str.split), documents)


def test_a_space_within_a_token_in_one_block_only() -> None:
    # "a b" and "c" make the same string as "a" and "b c".
    estimator = CountVectorizer(token_pattern=r"[^,]+", ngram_range=(1, 2))
    check(estimator, ["a,b,c", "a b,c", "a,b c", "b,a"], seed=1)
    check(estimator, ["a-c,a,b", "a!,a", "a b,c"], seed=2)


def test_stop_words_go_before_ngrams_are_made() -> None:
    estimator = CountVectorizer(ngram_range=(2, 2), stop_words=["not"])
    way = CountTerms()
    fitted = way.finish(estimator, way.part(estimator, ["good not bad"], None, None))
    assert fitted.vocabulary_ == {"good bad": 0}
    assert apply_counts(fitted, ["good not bad", "good new bad"]).sum() == 1


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


def test_unusual_dtypes_are_refused_with_a_reason() -> None:
    stats = Stats(rows=2, columns=1)
    assert "uint8" in CountTerms().refuses(CountVectorizer(dtype=np.uint8), stats)
    assert CountTerms().refuses(CountVectorizer(), stats) == ""


def test_an_estimator_and_its_statistics_are_left_as_they_were() -> None:
    estimator, way = TfidfVectorizer(ngram_range=(1, 2)), CountTfidf()
    left = way.part(estimator, ["one two", "two three"], None, None)
    right = way.part(estimator, ["four two"], None, None)
    before = pickle.dumps((left, right))
    way.finish(estimator, way.merge(left, right))
    assert pickle.dumps((left, right)) == before
    assert vars(estimator) == vars(TfidfVectorizer(ngram_range=(1, 2)))


def test_a_part_survives_pickling() -> None:
    estimator, way = TfidfVectorizer(ngram_range=(1, 2)), CountTfidf()
    part = way.part(estimator, ["one two", "two three"], None, None)
    sent: Counted = pickle.loads(pickle.dumps(part))
    fitted = pickle.loads(pickle.dumps(way.finish(estimator, sent.without_counts())))
    assert_same(columns_from(sent, fitted), fitted.transform(["one two", "two three"]))


def test_merged_statistics_have_no_rows() -> None:
    estimator, way = CountVectorizer(), CountTerms()
    part = way.part(estimator, ["some text"], None, None)
    both = way.merge(part, part)
    with pytest.raises(ValueError, match="one `part`"):
        columns_from(both, way.finish(estimator, both))


def test_a_changed_vocabulary_is_noticed() -> None:
    estimator = CountVectorizer().fit(["one two"])
    assert apply_counts(estimator, ["one two two"]).toarray().tolist() == [[1, 2]]
    estimator.fit(["two six"])
    assert apply_counts(estimator, ["one two two"]).toarray().tolist() == [[0, 2]]


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2)])
def test_reviews(data: Path, ngram_range: tuple[int, int]) -> None:
    with gzip.open(data / "imdb/imdb_test.jsonl.gz") as lines:
        documents = [
            json.loads(line)["text"] for line, _ in zip(lines, range(600), strict=False)
        ]
    check(TfidfVectorizer(ngram_range=ngram_range, max_features=5000), documents)
    check(CountVectorizer(ngram_range=ngram_range, min_df=3), documents)
    way = CountTfidf()
    estimator = TfidfVectorizer(ngram_range=ngram_range)
    part = way.part(estimator, documents, None, None)
    found = columns_from(part, way.finish(estimator, part))
    wanted = estimator.fit_transform(documents)
    assert isinstance(found, sp.csr_matrix)
    assert abs(found - wanted).max() < 1e-15
