"""Terms of texts are counted once, and only where that changes nothing."""

from __future__ import annotations

from typing import Any

import dask
import dask.bag as db
import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion
from tests.pipeline.graphs import DATA, scaled, text, union
from tests.pipeline.peers import assert_same, both

import mlopt
from mlopt.pipeline.graph.operators import Apply, Learn, Only, Operator, Source
from mlopt.pipeline.graph.walking import show, walk
from mlopt.pipeline.planning.optimizer import is_same
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.pipeline.rules.count_terms import count_terms
from mlopt.pipeline.rules.fuse_rows import fuse_rows
from mlopt.pipeline.rules.share_work import share_work

CONTEXT = Context(None, 0)
MARKS = Source("split", "marks")
rng = np.random.default_rng(0)
WORDS = [f"w{number}" for number in range(60)]
DOCS = [" ".join(rng.choice(WORDS, 8)) for _ in range(6000)]
Y = rng.normal(size=len(DOCS))


def counted(*sinks: Operator) -> Draft:
    draft = Draft(sinks)
    found = count_terms(draft, CONTEXT)
    assert is_same(draft, found)
    return found


def test_counting_comes_first_and_serves_the_model_and_its_rows() -> None:
    rows = scaled("words", DATA, CountVectorizer())
    draft = counted(rows)
    assert show(draft.sinks) == text(
        """
        #0 Given words count terms for CountVectorizer()
        #1 Source X
        #2 Count words #0 #1
        #3 Learn words CountVectorizer() #2
        #4 Apply words #3 #2
        """
    )
    (sink,) = draft.sinks
    assert isinstance(sink, Apply)
    assert isinstance(rows, Apply)
    assert (sink.token, sink.model.token) == (rows.token, rows.model.token)


def test_a_second_application_changes_nothing() -> None:
    draft = counted(scaled("words", DATA, TfidfVectorizer()))
    assert count_terms(draft, CONTEXT) is draft


@pytest.mark.parametrize(
    "sink",
    [
        scaled("scale", DATA),
        scaled("words", DATA, TfidfVectorizer(dtype=np.float16)),
        scaled("words", DATA, type("Mine", (CountVectorizer,), {})()),
        Learn("words", CountVectorizer(), DATA),
    ],
    ids=["numbers", "refused", "subclass", "only-a-model"],
)
def test_what_is_no_vectorizer_of_rows_stays(sink: Any) -> None:
    draft = Draft((sink,))
    assert count_terms(draft, CONTEXT) is draft


def test_what_differs_later_shares_the_counts_and_other_counts_stay_apart() -> None:
    parts = [
        scaled("a", DATA, CountVectorizer(min_df=2)),
        scaled("b", DATA, TfidfVectorizer(binary=True)),
        scaled("c", DATA, CountVectorizer(ngram_range=(1, 2))),
    ]
    draft = share_work(counted(union(*parts)), CONTEXT)
    assert show(draft.sinks).count("Count ") == 2


def test_counts_of_the_rows_of_a_split_are_told_apart_and_models_are_not() -> None:
    """What two vectorizers count of the same rows are two values."""
    models = [CountVectorizer(), CountVectorizer(lowercase=False)]
    (x, _), (other, _) = (
        (op.x, op) for op in walk(counted(*(scaled("w", DATA, m) for m in models)).sinks)
        if isinstance(op, Learn)
    )  # fmt: skip
    assert Only("w", x, MARKS).token != Only("w", other, MARKS).token
    split, plain = Only("w", x, MARKS), Only("w", DATA, MARKS)
    assert Learn("w", models[0], split).token == Learn("w", models[0], plain).token
    fused = fuse_rows(Draft((scaled("w", x, models[0]),)), CONTEXT)
    assert fused.sinks[0].token == scaled("w", DATA, models[0]).token


STEPS = [
    ("words", FeatureUnion([("a", TfidfVectorizer(min_df=2)), ("b", CountVectorizer())])),
    ("ridge", Ridge(tol=1e-12)),
]


@pytest.mark.parametrize("n", [300, 6000], ids=["one-block", "blocks"])
@pytest.mark.parametrize(
    "optimize", [True, False, {"without": ["count_terms"]}], ids=["all", "none", "without"]
)
def test_results_are_the_same_with_and_without(n: int, optimize: Any) -> None:
    ours, theirs = both(STEPS, optimize=optimize)
    theirs.fit(DOCS[:n], Y[:n])
    with dask.config.set({"mlopt.strict": True}):
        ours.fit(DOCS[:n], Y[:n])
    for own, given in zip(
        ours[0].transformer_list, theirs[0].transformer_list, strict=True
    ):
        assert own[1].vocabulary_ == given[1].vocabulary_
    assert_same(ours.predict(DOCS[:n]), theirs.predict(DOCS[:n]))
    said = "\n".join(ours.plan_.notes)
    assert ("count_terms" in said.split("rules that changed the plan: ")[1]) == (
        optimize is True
    )
    assert ("count terms for" in ours.plan_.explain()) == (optimize is True)


@pytest.mark.parametrize("optimize", [True, False])
def test_documents_of_dask_are_the_same_with_and_without(optimize: bool) -> None:
    ours, theirs = both(STEPS, optimize=optimize)
    ours.fit(db.from_sequence(DOCS, npartitions=4), Y)
    assert_same(ours.predict(DOCS), theirs.fit(DOCS, Y).predict(DOCS))


def test_the_trace_shows_the_rule() -> None:
    plan = mlopt.Pipeline(STEPS).explain(DOCS, Y)
    (turn,) = [one for one in plan.details if one.startswith("rule count_terms")]
    assert "no change" not in turn
