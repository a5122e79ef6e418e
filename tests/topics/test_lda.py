"""Topics of documents: what is found, by which rules, and what is refused."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation as Variational
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import mlopt
import mlopt.topics.training
from mlopt import LatentDirichletAllocation
from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.topics.counting import Priors
from mlopt.topics.documents import Documents, halves
from mlopt.topics.training import GibbsTraining, first_topics

Array = NDArray[Any]
TOPICS, WORDS = 4, 60


def drawn(documents: int = 200, length: int = 40, seed: int = 0) -> sp.csr_array:
    """Counts by topics that have fifteen words each."""
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.full(TOPICS, 0.2), size=documents)
    X = np.zeros((documents, WORDS), int)
    for row, share in zip(X, shares, strict=True):
        topics = random.choice(TOPICS, size=length, p=share)
        np.add.at(row, topics * 15 + random.integers(15, size=length), 1)
    return sp.csr_array(X)


def model(**given: Any) -> LatentDirichletAllocation:
    settings = {"doc_topic_prior": 0.1, "topic_word_prior": 0.01, "random_state": 0}
    return LatentDirichletAllocation(TOPICS, **(settings | given))


@pytest.mark.parametrize("sampler", ["dense", "sparse"])
def test_the_topics_that_documents_were_drawn_from_are_found(sampler: str) -> None:
    found = model(sampler=sampler).fit(drawn())
    words = sorted(sorted(row) for row in found.top_words(15))
    assert words == [list(range(15 * k, 15 * k + 15)) for k in range(TOPICS)]
    assert found.components_.sum() == pytest.approx(200 * 40 + 0.01 * TOPICS * WORDS)
    held = drawn(seed=1)
    shares = found.transform(held)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    own = np.asarray(held.todense()).reshape(200, TOPICS, 15).sum(axis=2) / 40
    order = [int(row[0]) // 15 for row in found.top_words(1)]
    np.testing.assert_allclose(shares, (own[:, order] * 40 + 0.1) / 40.4, atol=0.05)
    assert found.perplexity(held) < 30
    assert found.score(held) == pytest.approx(-np.log(found.perplexity(held)))


def test_held_out_words_are_predicted_no_worse_than_by_variational_bayes() -> None:
    train, held = drawn(300, 25), drawn(100, 25, seed=1)
    ours = model(max_iter=60).fit(train)
    theirs = Variational(
        TOPICS, doc_topic_prior=0.1, topic_word_prior=0.01, max_iter=30, random_state=0
    ).fit(train)
    judge = clone(ours).fit(train)
    judge.components_ = theirs.components_
    assert ours.perplexity(held) < 1.02 * judge.perplexity(held)


def test_more_sweeps_after_a_fit_are_those_of_one_fit() -> None:
    X = drawn()
    whole = model(max_iter=12).fit(X)
    parts = model(max_iter=5, warm_start=True).fit(X).set_params(max_iter=12).fit(X)
    np.testing.assert_array_equal(whole.components_, parts.components_)
    assert parts.n_iter_ == 12
    other = drawn(seed=1)
    before = parts.perplexity(other)
    parts.set_params(max_iter=14).fit(other)
    assert parts.components_.sum() == pytest.approx(other.sum() + 0.01 * TOPICS * WORDS)
    assert parts.perplexity(other) < 1.1 * before


@pytest.mark.parametrize("sampler", ["dense", "sparse"])
def test_threads_and_stops_on_the_way_change_nothing(
    sampler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlopt.topics.training, "SHARD", 1000)
    documents = Documents.of(drawn())
    first = first_topics(len(documents.words), TOPICS, 0)

    def training(threads: int) -> GibbsTraining:
        return GibbsTraining(
            documents, first, TOPICS, Priors(0.1, 0.01), sampler=sampler, seed=0,
            executor=Threads(threads),
        )  # fmt: skip

    one, three = training(1), training(3)
    one.advance(9)
    three.advance(4)
    state = three.state()
    three.advance(1)
    three.restore(state)
    three.advance(5)
    assert len(one.shards) == 8
    np.testing.assert_array_equal(one.topics, three.topics)
    assert one.quality() == three.quality() > training(1).quality()
    one.executor.close()
    three.executor.close()


def test_shards_come_to_what_one_after_the_other_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    train, held = drawn(400), drawn(100, seed=1)
    whole = model(max_iter=60).fit(train).perplexity(held)
    monkeypatch.setattr(mlopt.topics.training, "SHARD", 2000)
    shards = model(max_iter=60, layout="threads").fit(train)
    assert shards.perplexity(held) < 1.02 * whole


def test_arrays_matrices_frames_and_dask_are_the_same_counts() -> None:
    X = drawn(50)
    whole = model(max_iter=5).fit(X)
    dense = X.todense()
    frame = pd.DataFrame(dense, columns=[f"word {i}" for i in range(WORDS)])
    unordered = sp.coo_array(X).tocsc()
    for given in (dense, dense.astype(float), frame, unordered, da.from_array(dense, 20)):
        again = model(max_iter=5).fit(given)
        np.testing.assert_array_equal(again.components_, whole.components_)
    assert model(max_iter=50).fit(frame).top_words(1)[0][0].startswith("word ")


def test_halves_are_all_tokens_and_the_same_each_time() -> None:
    X = drawn(30)
    one, other = halves(X)
    np.testing.assert_array_equal((one + other).todense(), X.todense())
    assert abs(one.sum() - other.sum()) <= 1
    np.testing.assert_array_equal(one.todense(), halves(X)[0].todense())


@pytest.mark.parametrize(
    ("X", "told"),
    [
        ([[1, -2]], "at least 0, got -2 in row 0, column 1"),
        ([[1, 2], [0.5, 1]], "whole numbers, got 0.5 in row 1, column 0"),
        ([[1, np.nan]], "NaN"),
        ([[0, 0], [0, 0]], "a word in some document"),
    ],
)
def test_what_are_no_counts_is_refused(X: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        model().fit(X)


def test_bad_parameters_are_named() -> None:
    X = drawn(20)
    with pytest.raises(InputError, match="n_components"):
        LatentDirichletAllocation(0).fit(X)
    warm = model(max_iter=3, warm_start=True).fit(X)
    with pytest.raises(InputError, match="must stay 4"):
        warm.set_params(n_components=5).fit(X)
    with pytest.raises(InputError, match="at least 3"):
        warm.set_params(n_components=4, max_iter=2).fit(X)
    with pytest.raises(InputError, match="name the 60 words"):
        warm.top_words(2, ["one"])
    with pytest.raises(InputError, match="two words in all"):
        warm.score(sp.csr_array((3, WORDS)))


def test_a_pipeline_and_a_search_take_it_and_halving_prunes() -> None:
    X = drawn(120)
    space = {"n_components": [1, 2, 4, 8], "topic_word_prior": [0.01, 1.0]}
    search = mlopt.ModelSearchCV(
        LatentDirichletAllocation(max_iter=40, doc_topic_prior=0.1, random_state=0), space,
        cv=3, sampler="grid", n_trials=None, bandit="successive-halving",
    ).fit(X)  # fmt: skip
    assert search.best_params_["n_components"] in (4, 8)
    assert search.n_pruned_ > 2
    alone = clone(search.best_estimator_).fit(X)
    np.testing.assert_array_equal(search.best_estimator_.components_, alone.components_)
    texts = ["tea and milk", "milk and tea", "rum or ale", "ale or rum"] * 5
    both = make_pipeline(CountVectorizer(), LatentDirichletAllocation(2, random_state=0))
    assert mlopt.optimize(both).fit_transform(texts).shape == (20, 2)


class Rounded(LatentDirichletAllocation):
    """Of what the checks give it, which is not whole."""

    def _counts(self, X: Any, *, reset: bool) -> sp.csr_array:
        from sklearn.utils.validation import validate_data

        from mlopt.topics.documents import counts_of

        X = validate_data(self, X, accept_sparse="csr", reset=reset)
        return counts_of(X.ceil() if sp.issparse(X) else np.ceil(X))


def test_it_is_an_estimator_of_scikit_learn() -> None:
    found = check_estimator(Rounded(2, max_iter=5), on_skip=None, on_fail=None)
    failed = {
        str(one["check_name"]): one["exception"]
        for one in found
        if one["status"] == "failed"
    }
    assert not failed
