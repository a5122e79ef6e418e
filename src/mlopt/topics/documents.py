"""Counts of words as tokens, document by document."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.kernels.grouping import grouped
from mlopt.kernels.permutation import permutation
from mlopt.locking import cached_property
from mlopt.resources.probe import memory_limit

Array = NDArray[Any]

_MOST = 2**31 - 1
"""Tokens: counts of words are int32."""
_OF_A_CELL = 20
"""Bytes of a word and a topic: counts of the sampler, int32, the table of the end, int64,
and `components_`, float64."""
_OF_A_TOKEN = 24
"""Bytes: its word, its topic where it begins, in training and at the end, each int32; and
its cell of the table of counts, int64."""


@dataclass(frozen=True, eq=False)
class Documents:
    """Tokens of documents, side by side.

    Parameters
    ----------
    words : int32 (n,)
    starts : int64 (documents + 1,)
        Where the tokens of each document begin.
    vocabulary : int
        How many words there are.
    """

    words: Array
    starts: Array
    vocabulary: int

    @staticmethod
    def of(X: sp.csr_array) -> Documents:
        """Of checked counts: see `counts_of`.

        Raises
        ------
        InputError
            There are more tokens than memory holds.
        """
        _check_room(float(X.data.sum(dtype=np.float64)))
        times = X.data.astype(np.int64)
        words = np.repeat(X.indices.astype(np.int32), times)
        ends = np.concatenate(([0], np.cumsum(times)))[X.indptr]
        return Documents(words, ends.astype(np.int64), X.shape[1])

    @property
    def count(self) -> int:
        """How many documents there are."""
        return len(self.starts) - 1

    @cached_property
    def by_word(self) -> tuple[Array, Array]:
        """Tokens word by word, and where words begin."""
        return grouped(self.words, self.vocabulary)

    def same(self, other: Documents) -> bool:
        """Whether they have the same tokens in the same order."""
        ours, theirs = (self.starts, self.words), (other.starts, other.words)
        return all(map(np.array_equal, ours, theirs))

    def __reduce__(self) -> Any:  # without what can be found again
        return Documents, (self.words, self.starts, self.vocabulary)

    def shards(self, number: int) -> list[tuple[slice, slice]]:
        """Documents, and their tokens, in parts of about as many tokens each."""
        n = len(self.words)
        cuts = np.searchsorted(self.starts, n * np.arange(1, number) / number)
        edges = np.unique([0, *cuts, self.count])
        return [
            (slice(a, b), slice(int(self.starts[a]), int(self.starts[b])))
            for a, b in pairwise(edges.tolist())
        ]


def in_full(X: Any) -> Any:
    """A sparse matrix of whole numbers in 64 bits, in which what is stored twice is added
    up; arrays of types that none can have as float64. Other data as they are."""
    if isinstance(X, np.ndarray) and (X.dtype == np.float16 or not X.dtype.isnative):
        return X.astype(np.float64)
    if not sp.issparse(X) or X.dtype.kind not in "iu" or X.dtype.itemsize == 8:
        return X
    return X.astype(np.int64)


def counts_of(X: Any) -> sp.csr_array:
    """Counts as a matrix of rows in order, without zeros.

    Parameters
    ----------
    X : array (documents, words) or sparse matrix, of finite numbers

    Raises
    ------
    InputError
        When one is negative or not whole.
    """
    found = sp.csr_array(X, copy=True)
    found.sum_duplicates()
    found.eliminate_zeros()
    for wrong, must, more in (
        # scikit-learn's checks want to hear of negative values so.
        (found.data < 0, "at least 0", " Negative values in data cannot be counts."),
        (found.data != np.floor(found.data), "whole numbers", ""),
    ):
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            row = int(np.searchsorted(found.indptr, at, side="right")) - 1
            raise InputError(
                f"Counts of words must be {must}, got {found.data[at]} in row {row}, "
                f"column {found.indices[at]}. Give counts, as CountVectorizer does, and "
                f"no weights of words, such as TF-IDF.{more}"
            )
    return found


def _check_room(tokens: float) -> None:
    limit = min(_MOST, memory_limit() / _OF_A_TOKEN)
    if tokens > limit:
        raise InputError(
            f"X must have at most {limit:.3g} tokens in all for the memory that there is, "
            f"got {tokens:.3g}: these are numbers of occurrences, each of which is given a "
            "topic. Fit some of the documents, or scale counts down."
        )


def check_topics(documents: Documents, number: int) -> None:
    """Refuse more topics than memory holds counts of.

    Raises
    ------
    InputError
    """
    words = documents.vocabulary
    limit = int(memory_limit() / _OF_A_CELL / words)
    if number > limit:
        raise InputError(
            f"`n_components` must be at most {limit} for {words} words and the memory that "
            f"there is, got {number}."
        )


def halves(X: sp.csr_array) -> tuple[sp.csr_array, sp.csr_array]:
    """All tokens in two parts, drawn at random, always the same way."""
    documents = Documents.of(X)
    n = len(documents.words)
    first = np.zeros(n, bool)
    first[permutation(n, 0)[: (n + 1) // 2]] = True
    rows = np.repeat(np.arange(documents.count), np.diff(documents.starts))
    ones = np.ones(n)

    def part(chosen: Array) -> sp.csr_array:
        entries = ones[chosen], (rows[chosen], documents.words[chosen])
        found = sp.csr_array(entries, shape=X.shape)
        found.sum_duplicates()
        return found

    return part(first), part(~first)
