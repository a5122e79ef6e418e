"""Which terms become columns, and finding the columns of a fitted vocabulary again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress
from numbers import Integral
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.kernels.hashing import power_of_two
from mlopt.kernels.terms import find_keys, recognise_grams
from mlopt.locking import open_in_forks
from mlopt.pipeline.fits.text.documents import Coded, breaks
from mlopt.pipeline.fits.text.terms import (
    Counts,
    Terms,
    alphabetical,
    count_codes,
    numbers,
    spell,
)

Array = NDArray[Any]


def choose_vocabulary(estimator: Any, terms: Terms) -> tuple[dict[Any, int], Array]:
    """The vocabulary that scikit-learn learns.

    Parameters
    ----------
    estimator : CountVectorizer or TfidfVectorizer
    terms : Terms
        Of all documents.

    Returns
    -------
    vocabulary : dict of str to int
        In alphabetical order.
    frequencies : ndarray of int64, shape (d,)
        In how many documents each column's term stands.

    Raises
    ------
    ValueError
        Where scikit-learn raises ValueError: no term is found, or none is left.
    """
    places = alphabetical(terms)
    found = np.empty((sum(int((p >= 0).sum()) for p in places), 2), np.int64)
    for level, place in zip(terms.levels, places, strict=True):
        found[place[place >= 0]] = level.found[place >= 0]
    if not len(found):
        raise ValueError("empty vocabulary; perhaps the documents only contain stop words")
    keep = _kept(estimator, found, terms.documents)
    columns = np.append(np.where(keep, np.cumsum(keep) - 1, -1), -1)
    names = np.empty(int(keep.sum()), object)
    for n, place in enumerate(places, 1):
        which = np.flatnonzero(columns[place] >= 0)
        names[columns[place[which]]] = spell(terms, n, which)
    return dict(zip(names.tolist(), range(len(names)), strict=True)), found[keep, 0]


def _kept(estimator: Any, found: Array, documents: int) -> Array:
    """Which terms stay, as ``CountVectorizer._limit_features`` decides; found as there."""
    highest = _count(estimator.max_df, documents)
    lowest = _count(estimator.min_df, documents)
    if highest < lowest:
        raise ValueError("max_df corresponds to < documents than min_df")
    keep: Array = (found[:, 0] <= highest) & (found[:, 0] >= lowest)
    limit = estimator.max_features
    if limit is not None and keep.sum() > limit:
        total = found[:, 0 if estimator.binary else 1]
        # Which of equal ones are taken depends on the sort, and that on the dtype.
        total = total[keep].astype(_sum_dtype(estimator.dtype))
        most = np.flatnonzero(keep)[(-total).argsort()[:limit]]
        keep = np.zeros(len(found), bool)
        keep[most] = True
    if not keep.any():
        raise ValueError(
            "After pruning, no terms remain. Try a lower min_df or a higher max_df."
        )
    return keep


def _count(limit: Any, documents: int) -> Any:
    return limit if isinstance(limit, Integral) else limit * documents


def _sum_dtype(dtype: Any) -> np.dtype:
    total: Array = sp.csr_array((1, 1), dtype=dtype).sum(axis=0)
    return total.dtype


@dataclass(frozen=True)
class Lookup:
    """A vocabulary as a tree of n-grams, to find terms by number.

    Attributes
    ----------
    tokens : tuple of str
        All that the terms are made of, and the stop words; ascending.
    keys : tuple of ndarray of int64
        As `Level.keys`, a level each.
    columns : ndarray of int32
        Of all n-grams, level after level; -1 for those that are no term.
    vocabulary : mapping of str to int
    made_for : tuple
        The range of n and the stop words.
    """

    tokens: tuple[str, ...]
    keys: tuple[Array, ...]
    columns: Array
    vocabulary: Mapping[Any, int]
    made_for: tuple[Any, ...]

    @classmethod
    def of(cls, estimator: Any) -> Lookup:
        """The lookup of a fitted vectorizer."""
        low, high = estimator.ngram_range
        vocabulary, lengths = _writable(estimator.vocabulary_, low, high)
        # One list of all tokens: a list for each term would keep the collector busy.
        words = " ".join(vocabulary).split(" ") if vocabulary else []
        stop = {w for w in estimator.get_stop_words() or () if _is_writable(w)}
        tokens = sorted({*words} | stop)
        number = dict(zip(tokens, range(len(tokens)), strict=True))
        codes = np.full((len(vocabulary), high), -1, np.int64)
        codes[np.arange(high) < lengths[:, None]] = numbers(words, number)
        column = np.fromiter(vocabulary.values(), np.int64, len(vocabulary))
        keys, columns = _tree(codes, lengths, column, len(tokens))
        return cls(
            tuple(tokens), keys, columns, estimator.vocabulary_, _made_for(estimator)
        )

    def columns_of(self, terms: Terms) -> Array:
        """The column of each term, level after level, or -1."""
        if terms.whole:
            found = [self.vocabulary.get(t, -1) for t in terms.tokens]
            return np.array(found, np.int32)
        number = dict(zip(self.tokens, range(len(self.tokens)), strict=True))
        tails = numbers(terms.tokens, number)
        heads, first, columns = np.zeros(1, np.int32), 0, []
        for keys, level in zip(self.keys, terms.levels, strict=True):
            heads = find_keys(level.keys, keys, heads, tails)
            here = np.append(self.columns[first : first + len(keys)], np.int32(-1))
            columns.append(here[heads])
            first += len(keys)
        return np.concatenate(columns, dtype=np.int32)

    def count(self, coded: Coded) -> Counts:
        """Count n-grams that are known; tokens are numbered as here."""
        codes = [coded.codes]
        for n, keys in enumerate(self.keys[1:], 2):
            slots = power_of_two(2 * len(keys))
            codes.append(
                recognise_grams(codes[-1], coded.codes, coded.bounds, n, keys, slots)
            )
        return count_codes(codes, [len(k) for k in self.keys], coded.bounds)[0]


def _is_writable(term: Any) -> bool:
    return isinstance(term, str) and not breaks(term)


def _writable(
    vocabulary: Mapping[Any, int], low: int, high: int
) -> tuple[Mapping[str, int], Array]:
    """The terms of ``low`` to ``high`` tokens, where none has a space within it.

    And how many tokens each has.
    """
    if {*map(type, vocabulary)} != {str} or breaks("".join(vocabulary).replace(" ", "")):
        vocabulary = {
            term: column
            for term, column in vocabulary.items()
            if isinstance(term, str) and not breaks(term.replace(" ", ""))
        }
    lengths = _lengths(vocabulary)
    fits = (lengths >= low) & (lengths <= high)
    if fits.all():
        return vocabulary, lengths
    return dict(compress(vocabulary.items(), fits)), lengths[fits]


def _lengths(terms: Mapping[str, int]) -> Array:
    """How many tokens each term has; no term has a line's end within it."""
    lines = "\n".join([*terms, ""]).encode("utf-8", "surrogatepass")
    text = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    spaces = np.searchsorted(np.flatnonzero(text == ord(" ")), ends)
    return np.diff(spaces, prepend=0) + 1


def _tree(
    codes: Array, lengths: Array, column: Array, tokens: int
) -> tuple[tuple[Array, ...], Array]:
    """Keys of each level and columns of all, of terms ``codes`` of ``lengths`` tokens."""
    all_keys, all_columns = [], []
    keys, node = np.arange(tokens, dtype=np.int64), codes[:, 0]
    for n in range(1, codes.shape[1] + 1):
        if n > 1:
            long = lengths >= n
            codes, lengths, column = codes[long], lengths[long], column[long]
            keys, node = np.unique(node[long] << 32 | codes[:, n - 1], return_inverse=True)
        columns = np.full(len(keys), -1, np.int32)
        columns[node[lengths == n]] = column[lengths == n]
        all_keys.append(keys)
        all_columns.append(columns)
    return tuple(all_keys), np.concatenate(all_columns)


def _made_for(estimator: Any) -> tuple[Any, ...]:
    return estimator.ngram_range, estimator.stop_words


_lookups: WeakKeyDictionary[Any, Lookup] = WeakKeyDictionary()
_building = open_in_forks(Lock())


def lookup_of(fitted: Any) -> Lookup:
    """`Lookup.of`, made once for each fitted estimator in a process."""
    with _building:
        lookup = _lookups.get(fitted)
        if (
            lookup is None
            or lookup.vocabulary is not fitted.vocabulary_
            or lookup.made_for != _made_for(fitted)
        ):
            lookup = _lookups[fitted] = Lookup.of(fitted)
        return lookup
