"""A language model of n-gram counts: stupid backoff.

Brants et al., "Large language models in machine translation", EMNLP 2007:

    S(w | context) = count(context w) / count(context)    where that n-gram was seen
                     alpha * S(w | shorter context)       else
    S(w)           = count(w) / N

Scores are no probabilities: they need not add up to one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mlopt.parameters import check_count, check_positive
from mlopt.pipeline.library.text.words import runs


class StupidBackoff(BaseEstimator):
    """Scores of n-grams, from counts.

    Parameters
    ----------
    order : int, default=3
        Words of the longest n-grams.
    alpha : float, default=0.4
        Factor for each word by which a context is shortened.

    Attributes
    ----------
    counts_ : Counter of tuple of str
    n_words_ : int
    """

    def __init__(self, order: int = 3, alpha: float = 0.4) -> None:
        self.order = order
        self.alpha = alpha

    def fit(self, X: Iterable[Sequence[str]], y: Any = None) -> StupidBackoff:
        """Count the n-grams of X, a list of lists of words."""
        del y
        longest = check_count("order", self.order)
        check_positive("alpha", self.alpha)
        counts: Counter[tuple[str, ...]] = Counter()
        words = 0
        for document in X:
            counts.update(runs(document, 1, longest))
            words += len(document)
        self.counts_, self.n_words_ = counts, words
        return self

    def score_ngram(self, ngram: Sequence[str]) -> float:
        """S of the last word after the others; 0 for a word that was never seen."""
        check_is_fitted(self)
        words, factor = tuple(ngram)[-self.order :], 1.0
        while len(words) > 1:
            if self.counts_[words]:
                return factor * self.counts_[words] / self.counts_[words[:-1]]
            words, factor = words[1:], factor * self.alpha
        return factor * self.counts_[words] / self.n_words_ if self.n_words_ else 0.0

    def predict(self, X: Iterable[Sequence[str]]) -> np.ndarray:
        """The score of each n-gram, shape (n,)."""
        return np.array([self.score_ngram(ngram) for ngram in X])
