"""Terms of documents, counted block by block: scikit-learn's vectorizers, text read once.

A part keeps the counts of its block, so that `columns_from` gives the rows of the block
when the vocabulary of all blocks is known. What `merge` adds up are the terms only.
"""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.feature_extraction.text import (
    CountVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.utils import _align_api_if_sparse
from sklearn.utils.validation import check_is_fitted

from mlopt.identity import class_of
from mlopt.kernels.terms import choose_columns
from mlopt.pipeline.fits.base import OnePass
from mlopt.pipeline.fits.text.documents import code_documents
from mlopt.pipeline.fits.text.frequencies import inverse_frequencies
from mlopt.pipeline.fits.text.terms import (
    Counts,
    Terms,
    choose_documents,
    count_terms,
    merge_terms,
)
from mlopt.pipeline.fits.text.vocabulary import choose_vocabulary, lookup_of
from mlopt.stats import Stats

Array = NDArray[Any]

_DTYPES = (np.float64, np.float32, np.int64, np.int32)


@dataclass(frozen=True)
class Counted:
    """What is known of some documents.

    Attributes
    ----------
    terms : Terms
    counts_of_block : Counts or None
        Of each document, where this is one block; None after a merge.
    """

    terms: Terms
    counts_of_block: Counts | None = None

    def __len__(self) -> int:
        return int(self.terms.documents)

    @property
    def nbytes(self) -> int:
        """Bytes in memory, the words included."""
        return held_bytes(self.terms) + held_bytes(self.counts_of_block)

    def __sizeof__(self) -> int:
        # Dask asks this when it places tasks and when it decides what to spill.
        return self.nbytes

    def without_counts(self) -> Counted:
        """What `merge` and `finish` need of it: less to send."""
        return Counted(self.terms)

    def take_rows(self, which: Array) -> Counted:
        """The same of the documents with these numbers, each as often as it is there."""
        if self.counts_of_block is None:
            raise ValueError("Merged statistics do not tell one document from another.")
        return Counted(*choose_documents(self.terms, self.counts_of_block, which))


class _Vectorizer(OnePass):
    """What both vectorizers share."""

    def refuses(self, estimator: Any, stats: Stats) -> str:
        """A dtype in which counts may overflow as nowhere else."""
        del stats
        if np.dtype(estimator.dtype) in map(np.dtype, _DTYPES):
            return ""
        names = ", ".join(np.dtype(dtype).name for dtype in _DTYPES)
        return f"`dtype` must be one of {names}, got {estimator.dtype!r}."

    def part(self, estimator: Any, X: Any, y: Any, weight: Any) -> Counted:
        """The terms of one block, and how often each document has them.

        Parameters
        ----------
        estimator : CountVectorizer or TfidfVectorizer
        X : iterable of str or bytes, or Counted
            Documents, or what this returned for them.
        y, weight : ignored

        Raises
        ------
        Exception
            What scikit-learn raises; a note names the document.
        """
        del y, weight
        if isinstance(X, Counted):
            return X.without_counts()
        estimator._validate_params()
        estimator._validate_ngram_range()
        return Counted(*count_terms(code_documents(estimator, X), *estimator.ngram_range))

    def merge(self, left: Counted, right: Counted) -> Counted:
        """The terms of two neighbours."""
        return Counted(merge_terms(left.terms, right.terms))

    def finish(self, estimator: Any, statistics: Counted) -> Any:
        """A fitted copy of ``estimator``; warns as its own ``fit`` does."""
        fitted = clone(estimator)
        fitted._warn_for_unused_params()
        fitted._validate_vocabulary()
        # Warns when stop words do not suit the tokenizer.
        fitted.build_analyzer()
        terms = statistics.terms
        if fitted.fixed_vocabulary_:
            _warn_of_capitals(fitted)
            frequencies = _frequencies(fitted, terms)
        else:
            fitted.vocabulary_, frequencies = choose_vocabulary(fitted, terms)
        self.complete(fitted, frequencies, terms.documents)
        return fitted

    @abstractmethod
    def complete(self, fitted: Any, frequencies: Array, documents: int) -> None:
        """Set what is learnt beyond the vocabulary.

        Parameters
        ----------
        fitted : CountVectorizer or TfidfVectorizer
            It has its vocabulary.
        frequencies : ndarray of int64, shape (d,)
            In how many documents each column's term stands.
        documents : int
        """


class CountTerms(_Vectorizer):
    """`CountVectorizer`: blocks are counted apart, and their vocabularies united."""

    name = "count terms by block"
    kinds = (CountVectorizer,)

    def complete(self, fitted: Any, frequencies: Array, documents: int) -> None:
        """Nothing but the vocabulary is learnt."""


class CountTfidf(_Vectorizer):
    """`TfidfVectorizer`: as `CountTerms`, and weights from the same counts."""

    name = "count terms by block"
    kinds = (TfidfVectorizer,)

    def complete(self, fitted: Any, frequencies: Array, documents: int) -> None:
        """The inverse document frequencies."""
        fitted._check_params()
        weights = TfidfTransformer(
            norm=fitted.norm,
            use_idf=fitted.use_idf,
            smooth_idf=fitted.smooth_idf,
            sublinear_tf=fitted.sublinear_tf,
        )
        weights.n_features_in_ = len(frequencies)
        if fitted.use_idf:
            weights.idf_ = inverse_frequencies(
                weights, frequencies, documents, np.dtype(fitted.dtype)
            )
        fitted._tfidf = weights


_WAYS: dict[type, _Vectorizer] = {
    CountVectorizer: CountTerms(), TfidfVectorizer: CountTfidf(),
}  # fmt: skip


def counts(vectorizer: Any) -> bool:
    """Whether it is a vectorizer whose terms are counted here."""
    return class_of(vectorizer) in _WAYS


def fit_and_count(vectorizer: Any, documents: Any) -> tuple[Any, Any] | None:
    """``vectorizer.fit_transform`` of documents in this process, the text read once.

    Returns
    -------
    (fitted, rows) or None
        A fitted copy, and its columns (documents, d); None of what is no such vectorizer,
        or gives another thing than these would.
    """
    way = _WAYS.get(class_of(vectorizer))
    plain = isinstance(documents, list) or getattr(documents, "ndim", 0) == 1
    # Files are read once: who finds a term that breaks lines would not have them again.
    if way is None or not plain or vectorizer.input == "file":
        return None
    if way.refuses(vectorizer, Stats(1, 1)):
        return None
    counted = way.part(vectorizer, documents, None, None)
    fitted = way.finish(vectorizer, counted)
    return fitted, columns_from(counted, fitted)


def held_bytes(record: Any) -> int:
    """Bytes of the arrays and words that a record of this package holds."""
    if record is None:
        return 0
    if isinstance(record, np.ndarray):
        return int(record.nbytes)
    if isinstance(record, list | tuple):
        if record and isinstance(record[0], str):
            return sum(map(sys.getsizeof, record))
        return sum(map(held_bytes, record))
    if is_dataclass(record):
        return sum(held_bytes(getattr(record, f.name)) for f in fields(record))
    return 0


def columns_from(block: Counted, fitted: Any) -> sp.csr_matrix:
    """``fitted.transform`` of the documents of a block, without reading them again.

    Parameters
    ----------
    block : Counted
        What ``part`` returned for the block.
    fitted : CountVectorizer or TfidfVectorizer
        Fitted, with the parameters that ``part`` was given.

    Returns
    -------
    csr_matrix of shape (documents, d)
        Columns of a row are sorted.
    """
    if block.counts_of_block is None:
        raise ValueError("`block` must be the result of one `part`, got merged statistics.")
    columns = lookup_of(fitted).columns_of(block.terms)
    return _weighted(fitted, block.counts_of_block, columns)


def apply_counts(fitted: Any, documents: Iterable[Any]) -> sp.csr_matrix:
    """``fitted.transform(documents)``, entry by entry.

    Parameters
    ----------
    fitted : CountVectorizer or TfidfVectorizer
        Fitted, or a CountVectorizer with a vocabulary.
    documents : iterable of str or bytes

    Returns
    -------
    csr_matrix of shape (documents, d)
        Columns of a row are sorted.
    """
    if isinstance(fitted, TfidfVectorizer):
        check_is_fitted(fitted, msg="The TF-IDF vectorizer is not fitted")
    fitted._check_vocabulary()
    lookup = lookup_of(fitted)
    coded = code_documents(fitted, documents, lookup.tokens)
    if coded.whole:
        return columns_from(Counted(*count_terms(coded, 1, 1)), fitted)
    return _weighted(fitted, lookup.count(coded), lookup.columns)


def _weighted(fitted: Any, counts: Counts, columns: Array) -> sp.csr_matrix:
    d = len(fitted.vocabulary_)
    indptr, indices, data = choose_columns(
        counts.indptr, counts.indices, counts.counts, columns, d
    )
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    data = np.ones_like(data) if fitted.binary else data
    shape = (len(indptr) - 1, d)
    X = sp.csr_matrix((data.astype(fitted.dtype), indices, indptr), shape=shape)
    X.has_sorted_indices = True
    if isinstance(fitted, TfidfVectorizer):
        return fitted._tfidf.transform(X, copy=False)
    return _align_api_if_sparse(X)


def _warn_of_capitals(fitted: Any) -> None:
    if fitted.lowercase and any(any(map(str.isupper, t)) for t in fitted.vocabulary):
        # In the words of scikit-learn, so that a filter for them goes on working.
        warnings.warn(
            "Upper case characters found in vocabulary while 'lowercase' is True. "
            "These entries will not be matched with any documents",
            stacklevel=3,
        )


def _frequencies(fitted: Any, terms: Terms) -> Array:
    """In how many documents the terms of a given vocabulary stand."""
    columns = lookup_of(fitted).columns_of(terms)
    found = np.concatenate([level.found[:, 0] for level in terms.levels])
    frequencies = np.zeros(len(fitted.vocabulary_), np.int64)
    frequencies[columns[columns >= 0]] = found[columns >= 0]
    return frequencies
