"""From terms to sparse features; a term is a word or an n-gram, anything with a hash."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mlopt.errors import InputError
from mlopt.parameters import check_count
from mlopt.pipeline.library.text.words import _EachDocument

Terms = Mapping[Hashable, float]
"""Of one document: each term with its weight."""


def _times(count: float) -> float:
    return float(count)


class TermFrequency(_EachDocument):
    """How often each term comes in a document.

    Parameters
    ----------
    function : callable, optional
        From a count to a weight, such as ``numpy.log1p``, or ``lambda count: 1``.
    """

    def __init__(self, function: Callable[[float], float] | None = None) -> None:
        self.function = function

    def _one(self, document: Iterable[Hashable]) -> dict[Hashable, float]:
        weigh = self.function or _times
        return {term: float(weigh(count)) for term, count in Counter(document).items()}


class _Vocabulary(TransformerMixin, BaseEstimator):
    """Columns for terms that stand in some document."""

    def fit(self, X: Iterable[Terms | Iterable[Hashable]], y: Any = None) -> Any:
        """Find the terms.

        Parameters
        ----------
        X : list of mappings of term to weight, or of lists of terms, one a document
        y : ignored
        """
        del y
        return self.finish(count_documents(X))

    def finish(self, found: Counter[Hashable]) -> Any:
        """Set the vocabulary from the number of documents each term stands in."""
        kept = self._kept(found)
        if not kept:
            raise InputError("X must hold a term at least; all documents are empty.")
        self.vocabulary_ = {term: column for column, term in enumerate(kept)}
        return self

    @abstractmethod
    def _kept(self, found: Counter[Hashable]) -> list[Hashable]:
        """The terms that get a column, in the order of these."""

    def transform(self, X: Iterable[Terms | Iterable[Hashable]]) -> sp.csr_array:
        """Weights of the terms that have a column, shape (n, d), float64."""
        check_is_fitted(self)
        number = self.vocabulary_.get
        pairs = [
            [(c, w) for term, w in _weighted(document) if (c := number(term)) is not None]
            for document in X
        ]
        return _rows(pairs, len(self.vocabulary_))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Terms as text, words of n-grams with a space between."""
        del input_features
        check_is_fitted(self)
        return np.array([spelled(term) for term in self.vocabulary_], dtype=object)


class CommonSparseFeatures(_Vocabulary):
    """The terms that most documents have.

    Parameters
    ----------
    n_features : int, default=100_000
        How many; of terms in equally many documents, the first in the alphabet.

    Attributes
    ----------
    vocabulary_ : dict of term to column
        The most frequent first.
    """

    def __init__(self, n_features: int = 100_000) -> None:
        self.n_features = n_features

    def _kept(self, found: Counter[Hashable]) -> list[Hashable]:
        most = check_count("n_features", self.n_features)
        ranked = sorted(found.items(), key=lambda item: (-item[1], spelled(item[0])))
        return [term for term, _ in ranked[:most]]


class AllSparseFeatures(_Vocabulary):
    """Every term, in the order of the alphabet."""

    def _kept(self, found: Counter[Hashable]) -> list[Hashable]:
        return sorted(found, key=spelled)


class HashingTF(_EachDocument):
    """Terms to columns by their hash: no vocabulary, and now and then two terms in one.

    Parameters
    ----------
    n_features : int, default=2**18
    """

    def __init__(self, n_features: int = 2**18) -> None:
        self.n_features = n_features

    def transform(self, X: Iterable[Iterable[Hashable]]) -> Any:
        """Counts of the terms, csr_array of shape (n, n_features)."""
        columns = check_count("n_features", self.n_features)
        return _rows([self._one(document) for document in X], columns)

    def _one(self, document: Iterable[Hashable]) -> list[tuple[int, float]]:
        return [
            (zlib.crc32(spelled(term).encode()) % self.n_features, float(weight))
            for term, weight in _weighted(document)
        ]


class WordFrequencyEncoder(TransformerMixin, BaseEstimator):
    """Words as numbers, the most frequent first; -1 for words that were never seen.

    Attributes
    ----------
    vocabulary_ : dict of str to int
    counts_ : ndarray of shape (words,)
    """

    def fit(self, X: Iterable[Sequence[str]], y: Any = None) -> WordFrequencyEncoder:
        """Count the words of X, a list of lists of words."""
        del y
        counts: Counter[str] = Counter()
        for words in X:
            counts.update(words)
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        self.vocabulary_ = {word: number for number, (word, _) in enumerate(ranked)}
        self.counts_ = np.array([count for _, count in ranked], np.int64)
        return self

    def transform(self, X: Iterable[Sequence[str]]) -> list[np.ndarray]:
        """The numbers of the words of each document, int64."""
        check_is_fitted(self)
        number = self.vocabulary_.get
        return [np.array([number(word, -1) for word in words], np.int64) for words in X]


def count_documents(X: Iterable[Terms | Iterable[Hashable]]) -> Counter[Hashable]:
    """In how many documents each term stands."""
    found: Counter[Hashable] = Counter()
    for document in X:
        found.update(dict.fromkeys(document, 1))
    return found


def spelled(term: Hashable) -> str:
    """A term as text."""
    return " ".join(map(str, term)) if isinstance(term, tuple) else str(term)


def _weighted(document: Terms | Iterable[Hashable]) -> Iterable[tuple[Hashable, float]]:
    """The terms of a document with their weights; of a list how often each comes."""
    weights = document if isinstance(document, Mapping) else Counter(document)
    return weights.items()


def _rows(pairs: Sequence[Sequence[tuple[int, float]]], columns: int) -> sp.csr_array:
    """(column, weight) of each row as a CSR matrix; equal columns add up."""
    ends = np.cumsum([0, *map(len, pairs)])
    flat = [pair for row in pairs for pair in row]
    indices = np.fromiter((column for column, _ in flat), np.int64, len(flat))
    data = np.fromiter((weight for _, weight in flat), np.float64, len(flat))
    rows = sp.csr_array((data, indices, ends), shape=(len(pairs), columns))
    rows.sum_duplicates()
    return rows
