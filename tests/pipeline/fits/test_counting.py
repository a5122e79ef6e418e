"""Vectorizers fitted block by block equal scikit-learn's, for any blocks and any text."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from tests.pipeline.fits.vectorizing import WAYS, assert_same, check, outcome

from mlopt.pipeline.fits.text.counting import (
    Counted,
    CountTerms,
    CountTfidf,
    apply_counts,
    columns_from,
)
from mlopt.stats import Stats

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


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(corpora, parameters, st.sampled_from([*WAYS]), st.integers(0, 99))
def test_any_documents_in_any_blocks_give_what_scikit_learn_gives(
    documents: list[str], params: dict[str, Any], kind: Any, seed: int
) -> None:
    check(kind(**params), documents, seed)


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(corpora, parameters, st.sampled_from([*WAYS]), st.data())
def test_some_documents_of_a_part_are_as_if_they_alone_had_been_counted(
    documents: list[str], params: dict[str, Any], kind: Any, data: Any
) -> None:
    numbers = st.integers(0, len(documents) - 1)
    which = data.draw(st.lists(numbers, min_size=1, max_size=9))
    own, way = [documents[number] for number in which], WAYS[kind]
    part = way.part(kind(**params), documents, None, None).take_rows(np.array(which))
    fitted = outcome(lambda: way.finish(kind(**params), part))
    wanted = outcome(lambda: kind(**params).fit(own))
    if isinstance(wanted, str):
        assert fitted == wanted
        return
    assert fitted.vocabulary_ == wanted.vocabulary_
    assert_same(columns_from(part, fitted), wanted.transform(own))


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


@pytest.mark.slow
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
    # Norms are sums in another order.
    assert abs(found - wanted).max() < 1e-13
