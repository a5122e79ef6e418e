"""Text is read once: terms are counted first, for the model and for its rows.

A vectorizer counts terms, which needs no other document, and then learns which terms there
are. Counting is the long part, and several vectorizers may share it.

::

    #0 Source X                 #0 Source X
    #1 Learn words tfidf #0     #1 Count words #0
    #2 Apply words #1 #0    ->  #2 Learn words tfidf #1
                                #3 Apply words #2 #1
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from mlopt.identity import join, token_of
from mlopt.pipeline.fits.base import OnePass
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.fits.text.counting import Counted
from mlopt.pipeline.graph.operators import Apply, Count, Given, Learn, Operator
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.stats import Stats

_COUNT = (CountVectorizer, TfidfVectorizer)
_LATER = {
    "max_df", "min_df", "max_features", "binary", "dtype", "norm", "use_idf",
    "smooth_idf", "sublinear_tf",
}  # fmt: skip
"""Parameters on which counting does not depend."""


@dataclass(frozen=True, eq=False)
class Counter:
    """Counts the terms of documents as one vectorizer would."""

    way: OnePass
    vectorizer: Any

    def count(self, documents: Iterable[Any]) -> Counted:
        """Terms of a block, and how often each document has them."""
        counted: Counted = self.way.part(self.vectorizer, documents, None, None)
        return counted

    def __repr__(self) -> str:
        return f"count terms for {self.vectorizer}"


def count_terms(draft: Draft, context: Context) -> Draft:
    """Vectorizers whose rows are wanted learn from counts, and make their rows of them."""
    del context
    applied = {op.model.token for op in walk(draft.sinks) if isinstance(op, Apply)}

    def counted(op: Operator) -> Operator:
        if isinstance(op, Learn) and op.token in applied:
            return _learnt_of_counts(op)
        model = op.model if isinstance(op, Apply) else None
        if isinstance(op, Apply) and isinstance(model, Learn):
            counts = model.x
            if isinstance(counts, Count) and counts.x.token == op.x.token:
                return replace(op, x=counts, writes="never")
        return op

    return draft.rebuilt(counted)


def _learnt_of_counts(op: Learn) -> Learn:
    if type(op.estimator) not in _COUNT or isinstance(op.x, Count):
        return op
    alone = op.y is None and op.weight is None
    if op.params or op.transforms or not alone or (way := _way(op.estimator)) is None:
        return op
    counter = Given(op.step, Counter(way, op.estimator), _content(op))
    counts = Count(op.step, counter, op.x, "count")
    return replace(op, x=counts, way=way, gathers=False)


def _way(estimator: Any) -> OnePass | None:
    for way in ways_of(estimator):
        if isinstance(way, OnePass) and not way.refuses(estimator, Stats(1, 1)):
            return way
    return None


def _content(op: Learn) -> str:
    """Of what counts: as many vectorizers share it as are equal up to what comes later."""
    if not op.repeats:
        return join("counter", op.nonce)
    given = op.estimator.get_params(deep=False)
    return join("counter", token_of({n: v for n, v in given.items() if n not in _LATER}))
