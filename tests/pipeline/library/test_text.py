"""Text operators: from documents to features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from mlopt.errors import InputError
from mlopt.pipeline.library.text import (
    AllSparseFeatures,
    CommonSparseFeatures,
    HashingTF,
    LowerCase,
    NGrams,
    StupidBackoff,
    TermFrequency,
    Tokenizer,
    Trim,
    WordFrequencyEncoder,
)

DOCUMENTS = ["  The cat sat; the cat slept. ", "A dog -- the dog!", "", "cat, dog & bird"]
WORDS = [["a", "b", "a", "c"], ["a", "b"], ["b"]]


def test_documents_become_words_without_punctuation() -> None:
    words = make_pipeline(Trim(), LowerCase(), Tokenizer()).transform(DOCUMENTS)

    assert words[0] == ["the", "cat", "sat", "the", "cat", "slept"]
    assert words[2] == []


def test_separators_may_be_others() -> None:
    assert Tokenizer(",").transform(["a b,c,,d"]) == [["a b", "c", "d"]]


def test_groups_of_an_expression_are_no_words() -> None:
    assert Tokenizer(r"(\s|(,))+").transform(["a, b c"]) == [["a", "b", "c"]]


def test_ngrams_start_at_each_word_the_short_ones_first() -> None:
    assert NGrams((1, 2)).transform([["x", "y", "z"]]) == [
        [("x",), ("x", "y"), ("y",), ("y", "z"), ("z",)]
    ]


@pytest.mark.parametrize("orders", [(), (0, 1), (1, 3), (2, 2), 2, "12", (1.0, 2.0)])
def test_orders_must_be_neighbours(orders: Any) -> None:
    with pytest.raises(InputError, match="`orders` must be neighbouring"):
        NGrams(orders).transform([["x"]])


def test_frequencies_are_weighed_by_a_function() -> None:
    (plain,) = TermFrequency().transform([["a", "b", "a"]])
    (once,) = TermFrequency(lambda count: 1).transform([["a", "b", "a"]])

    assert plain == {"a": 2.0, "b": 1.0}
    assert once == {"a": 1.0, "b": 1.0}


def test_the_most_frequent_terms_of_scikit_learns_counts() -> None:
    texts = ["b a a", "b c", "c b d", "d"]
    theirs = CountVectorizer(token_pattern=r"\w", ngram_range=(1, 2)).fit(texts)
    pipeline = make_pipeline(
        Tokenizer(), NGrams((1, 2)), TermFrequency(), AllSparseFeatures()
    )
    ours = pipeline.fit_transform(texts)

    assert list(pipeline[-1].get_feature_names_out()) == sorted(theirs.vocabulary_)
    assert (ours.toarray() == theirs.transform(texts).toarray()).all()


def test_common_features_keep_terms_of_most_documents() -> None:
    frequencies = TermFrequency().transform(WORDS)
    kept = CommonSparseFeatures(2).fit(frequencies)

    assert list(kept.vocabulary_) == ["b", "a"]
    assert kept.transform(frequencies).toarray().tolist() == [[1, 2], [1, 1], [1, 0]]


@pytest.mark.parametrize("features", [CommonSparseFeatures(2), AllSparseFeatures()])
def test_words_count_as_their_frequencies(features: Any) -> None:
    found = features.fit(WORDS).transform(WORDS)

    assert (found != features.transform(TermFrequency().transform(WORDS))).nnz == 0


@pytest.mark.parametrize("features", [CommonSparseFeatures(2.5), HashingTF(7.5)])  # type: ignore[arg-type]
def test_a_number_of_features_is_whole(features: Any) -> None:
    with pytest.raises(InputError, match="`n_features` must be an integer"):
        features.fit_transform(WORDS)


def test_no_term_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="must hold a term"):
        CommonSparseFeatures().fit([{}, {}])


def test_hashing_needs_no_vocabulary_and_adds_up() -> None:
    few, many = (HashingTF(size).transform(WORDS) for size in (1, 1 << 16))

    assert few.toarray().ravel().tolist() == [4, 2, 1]
    assert many.sum() == 7
    assert (HashingTF(1 << 16).transform(WORDS) != many).nnz == 0


def test_hashing_counts_ngrams_as_the_two_steps_do() -> None:
    ngrams = NGrams((1, 2)).transform(WORDS)
    counted = TermFrequency().transform(ngrams)

    assert (HashingTF(64).transform(ngrams) != HashingTF(64).transform(counted)).nnz == 0


def test_words_are_numbered_by_frequency_and_unknown_ones_are_minus_one() -> None:
    encoder = WordFrequencyEncoder().fit(WORDS)

    assert encoder.vocabulary_ == {"a": 0, "b": 1, "c": 2}
    assert encoder.counts_.tolist() == [3, 3, 1]
    assert encoder.transform([["c", "x", "a"]])[0].tolist() == [2, -1, 0]


def test_stupid_backoff_by_hand() -> None:
    model = StupidBackoff(order=3, alpha=0.4).fit([["i", "am", "sam"], ["sam", "i", "am"]])

    assert model.score_ngram(("i", "am")) == 1.0
    assert model.score_ngram(("am", "sam")) == 0.5
    assert model.score_ngram(("sam", "am")) == pytest.approx(0.4 * 2 / 6)
    assert model.score_ngram(("x", "i", "am")) == pytest.approx(0.4)
    assert model.score_ngram(("never",)) == 0.0
    assert np.array_equal(model.predict([("i", "am")]), [1.0])


@pytest.mark.parametrize("wrong", [{"order": "3"}, {"order": 1.5}, {"alpha": 0.0}])
def test_a_backoff_of_no_words_or_no_weight_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"`{next(iter(wrong))}` must be"):
        StupidBackoff(**wrong).fit(WORDS)


def test_one_string_is_not_a_list_of_documents() -> None:
    with pytest.raises(InputError, match="got one string"):
        Trim().transform("text")
