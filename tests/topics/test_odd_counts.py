"""What a stranger gives: odd counts, priors and orders of calls are right, or refused."""

from __future__ import annotations

import doctest
import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numba import config
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.topics.test_lda import TOPICS, WORDS, drawn, model

import mlopt.topics.estimator
from mlopt import LatentDirichletAllocation
from mlopt.errors import InputError
from mlopt.kernels.gibbs import infer

SAMPLERS = "dense", "sparse"
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16, np.float32])
@pytest.mark.parametrize("csr", [True, False])
def test_what_is_stored_twice_is_added_up_whatever_its_type(kind: Any, csr: bool) -> None:
    values, places = np.array([100, 100, 100, 3], kind), ([0, 0, 0, 1], [0, 0, 0, 1])
    X = sp.coo_array((values, places), shape=(2, 2))
    found = model(topic_word_prior=1.0, max_iter=1).fit(_unsummed(values) if csr else X)
    assert found.components_.sum() == 303 + 2 * TOPICS


def _unsummed(values: Any) -> Any:
    return sp.csr_array((values, [0, 0, 0, 1], [0, 3, 4]), shape=(2, 2))


@pytest.mark.parametrize("kind", [np.float16, ">i4", ">f8"])
def test_what_no_sparse_matrix_can_have_is_counted_too(kind: Any) -> None:
    X = drawn(20).toarray()
    one, other = (model(max_iter=3).fit(A) for A in (X, X.astype(kind)))
    np.testing.assert_array_equal(one.components_, other.components_)


@pytest.mark.parametrize("layout", ["threads", "rotate"])
@pytest.mark.parametrize("sampler", ["auto", *SAMPLERS])
def test_numbers_of_numpy_are_numbers(sampler: str, layout: str) -> None:
    """A grid is often an `np.arange`."""
    X, how = drawn(20), {"sampler": sampler, "layout": layout}
    plain = model(**how, max_iter=3, mean_change_tol=0.0).fit(X)
    given = {"n_components": np.int8(TOPICS), "max_iter": np.int64(3)}
    found = clone(plain).set_params(**given, mean_change_tol=0).fit(X)
    np.testing.assert_array_equal(found.components_, plain.components_)
    np.testing.assert_array_equal(found.transform(X), plain.transform(X))


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_no_kind_of_number_has_kernels_compiled_anew() -> None:
    X = drawn(20)
    before = model(max_iter=1).fit(X).transform(X)
    known = len(infer.signatures)
    given = {"mean_change_tol": np.float32(1e-3), "max_doc_update_iter": np.uint16(100)}
    after = model(max_iter=1, **given).fit(X).transform(X)
    assert len(infer.signatures) == known
    np.testing.assert_allclose(after, before, atol=1e-3)


@pytest.mark.parametrize(
    ("X", "told"),
    [
        (np.ma.masked_greater(np.ones((2, 2)), 3), "must not be a masked array"),
        ([[1e300, 1]], "tokens in all"),
        ([[4 + 1e-12, 1]], r"whole numbers, got 4\.000000000001 in row 0.*TF-IDF\.$"),
        ([[2**40, 1]], "tokens in all"),
    ],
)
def test_what_cannot_be_counted_is_refused(X: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        model().fit(X)


def test_counts_of_topics_that_no_memory_holds_are_refused() -> None:
    with pytest.raises(InputError, match="`n_components` must be at most"):
        LatentDirichletAllocation(10**9).fit(drawn(20))


def test_a_fit_that_is_refused_leaves_the_words_of_the_last_one() -> None:
    wide = sp.csr_array((3, 5 * WORDS), dtype=int)
    found = model(max_iter=3).fit(drawn(20))
    before = found.transform(drawn(20))
    with pytest.raises(InputError, match="a word in some document"):
        found.fit(wide)
    wide = sp.csr_array(([1], ([0], [0])), shape=wide.shape)
    with pytest.raises(InputError, match="the 60 words"):
        found.set_params(warm_start=True, max_iter=5).fit(wide)
    with pytest.raises(ValueError, match="60 features"):
        found.transform(wide)
    np.testing.assert_array_equal(found.transform(drawn(20)), before)
    found.components_ = found.components_[:, :5]
    with pytest.raises(InputError, match="`components_` has 5"):
        found.transform(drawn(20))


def test_other_documents_need_a_sweep_to_be_learnt() -> None:
    found = model(max_iter=3, warm_start=True).fit(drawn(20))
    same = found.components_.copy()
    np.testing.assert_array_equal(found.fit(drawn(20)).components_, same)
    with pytest.raises(InputError, match="`max_iter` must be above 3"):
        found.fit(drawn(20, seed=1))
    np.testing.assert_array_equal(found.components_, same)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("priors", [(1e-200, 1e-200), (1e308, 0.1), (0.1, 1e308)])
def test_priors_beyond_all_numbers_are_refused(sampler: str, priors: Any) -> None:
    alpha, beta = priors
    asked = model(sampler=sampler, doc_topic_prior=alpha, topic_word_prior=beta)
    with pytest.raises(InputError, match="`doc_topic_prior` and `topic_word_prior`"):
        asked.fit(drawn(20))


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("prior", [1e-15, 1e-30, 1e15, 1e30])
def test_a_word_that_is_there_once_may_be_of_any_topic(sampler: str, prior: float) -> None:
    asked = LatentDirichletAllocation(
        3, doc_topic_prior=prior, topic_word_prior=prior, sampler=sampler, max_iter=9,
        random_state=0,
    )  # fmt: skip
    try:
        found = asked.fit(np.eye(90, dtype=int))
    except InputError:
        assert sampler == "dense"  # whose numbers are of single precision
        assert prior in (1e-30, 1e30)
        return
    topics = found._trained[1]["topics"]
    assert np.bincount(topics, minlength=3).min() > 15


@pytest.mark.parametrize("number", [0, -1, 2.5, None])
def test_a_number_of_words_is_one(number: Any) -> None:
    with pytest.raises(InputError, match="`n_words` must be"):
        model(max_iter=1).fit(drawn(20)).top_words(number)


def test_a_pickle_has_tokens_once() -> None:
    X = drawn(100)
    sizes = [len(pickle.dumps(model(sampler=one, max_iter=2).fit(X))) for one in SAMPLERS]
    lists = 4 * WORDS * (2 * TOPICS + 1)  # bytes: of each word two of its topics, and one
    assert sizes[1] < sizes[0] + lists + 500
    assert TOPICS * X.sum() < sizes[0] < 12 * X.sum()


def test_topics_of_documents_are_found_block_by_block() -> None:
    X = drawn(60).toarray()
    whole = make_pipeline(model(max_iter=5), FunctionTransformer()).fit(X)
    rows = da.from_array(X, chunks=(20, WORDS))
    found = mlopt.optimize(clone(whole)).fit(X).transform(rows)
    assert isinstance(found, da.Array)
    np.testing.assert_allclose(found.compute(), whole.transform(X))


def test_the_examples_run() -> None:
    page = Path(__file__).parents[2] / "docs/topics.md"
    told = doctest.testfile(str(page), module_relative=False)
    assert told.attempted
    assert not told.failed


def test_a_frame_of_dask_has_names_of_words() -> None:
    counts = RANDOM.integers(0, 4, (12, 4))
    frame = pd.DataFrame(counts, columns=["tea", "milk", "rum", "ale"])
    model = LatentDirichletAllocation(2, max_iter=3, random_state=0)
    model.fit(dd.from_pandas(frame, npartitions=2))
    assert model.feature_names_in_.tolist() == list(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(dd.from_pandas(frame[["rum", "ale", "tea", "milk"]], npartitions=2))


def test_names_that_cannot_be_are_refused_before_anything_is_trained() -> None:
    model = LatentDirichletAllocation(2, max_iter=3, random_state=0)
    frame = pd.DataFrame(RANDOM.integers(0, 4, (12, 2)), columns=["a", "b"])
    before = vars(model.fit(frame)).copy()
    with pytest.raises(TypeError, match="names"):
        model.fit(frame.set_axis(["a", 1], axis=1))
    assert vars(model) == before
