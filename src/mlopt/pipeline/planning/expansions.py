"""Steps that are several operators: what they do first can be shared, kept, or left out.

A text vectorizer counts terms, which needs no other document, and then learns which terms
there are. Counting is the long part, and with this it happens once for both.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from mlopt.identity import join, token_of
from mlopt.pipeline.fits.base import OnePass
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.fits.text.counting import Counted
from mlopt.pipeline.graph.operators import Apply, Given, Learn, Operator
from mlopt.pipeline.steps.repeating import repeats
from mlopt.stats import Stats

EXPANDED = (CountVectorizer, TfidfVectorizer)


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


def expand(step: str, estimator: Any, x: Operator) -> tuple[Operator, Operator] | None:
    """The rows that ``estimator`` makes of ``x``, and the model it learns.

    None for an estimator that stays in one piece.
    """
    way = _way(estimator)
    if way is None:
        return None
    counts = {name: getattr(estimator, name) for name in _counted_by(estimator)}
    same = repeats(estimator)
    nonce = "" if same else uuid.uuid4().hex
    content = join("counter", token_of(counts), nonce)
    counted = Apply(step, Given(step, Counter(way, estimator), content), x, "count")
    model = Learn(
        step, estimator, counted, repeats=same, nonce=nonce, way=way, gathers=False
    )
    return Apply(step, model, counted, "columns"), model


def _way(estimator: Any) -> OnePass | None:
    if type(estimator) not in EXPANDED:
        return None
    for way in ways_of(estimator):
        if isinstance(way, OnePass) and not way.refuses(estimator, Stats(1, 1)):
            return way
    return None


def _counted_by(estimator: Any) -> list[str]:
    """The parameters on which counting depends: others share its outcome."""
    later = {
        "max_df", "min_df", "max_features", "binary", "dtype", "norm", "use_idf",
        "smooth_idf", "sublinear_tf",
    }  # fmt: skip
    return [name for name in sorted(estimator.get_params(deep=False)) if name not in later]
