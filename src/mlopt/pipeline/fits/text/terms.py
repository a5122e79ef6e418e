"""The terms of a corpus, as arrays: what was found, in how many documents, how often.

n-grams are a tree: level n holds the n-grams, each below its first n - 1 tokens. Tokens are
numbered alphabetically, so that every level is in alphabetical order, two trees merge in
one walk, and walking a tree from its root meets all terms in alphabetical order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.kernels.hashing import power_of_two
from mlopt.kernels.terms import LAST, code_grams, count_rows, merge_keys
from mlopt.pipeline.fits.text.documents import Coded

Array = NDArray[Any]

_ROOT = np.zeros(1, np.int32)
"""What the one node above the tokens is called: 0, in every tree."""


@dataclass(frozen=True)
class Level:
    """The n-grams of one length.

    Attributes
    ----------
    keys : ndarray of int64, shape (m,)
        Ascending; ``prefix << 32 | last``: position of the first n - 1 tokens in the level
        above (0 for tokens themselves), and number of the last token.
    found : ndarray of int64, shape (m, 2)
        Documents that have it, and how often it stands in all of them; 0 where an n-gram
        only leads to longer ones.
    """

    keys: Array
    found: Array


@dataclass(frozen=True)
class Terms:
    """All terms of some documents.

    Attributes
    ----------
    documents : int
    tokens : tuple
        Distinct, ascending.
    levels : tuple of Level
        n-grams of 1, 2, ... tokens.
    whole : bool
        Whether tokens are the terms themselves, and may look like n-grams.
    """

    documents: int
    tokens: tuple[Any, ...]
    levels: tuple[Level, ...]
    whole: bool


@dataclass(frozen=True)
class Counts:
    """Counts of the terms of each document: CSR, each row in order of appearance.

    Attributes
    ----------
    indptr, indices, counts : ndarrays of int64, int32, int32
        Terms are numbered level after level.
    """

    indptr: Array
    indices: Array
    counts: Array


def count_terms(coded: Coded, shortest: int, longest: int) -> tuple[Terms, Counts]:
    """Find and count all n-grams of ``shortest`` to ``longest`` tokens."""
    if coded.whole:
        shortest = longest = 1
    keys, codes = [np.arange(len(coded.tokens), dtype=np.int64)], [coded.codes]
    for n in range(2, longest + 1):
        slots = power_of_two(len(coded.codes) // 4)
        found = code_grams(codes[-1], coded.codes, coded.bounds, n, slots)
        level_keys, level_codes = _sorted(*found)
        keys.append(level_keys)
        codes.append(level_codes)
    sizes = [len(k) for k in keys]
    rows, frequencies = count_codes(
        codes[shortest - 1 :], sizes[shortest - 1 :], coded.bounds
    )
    none = [np.zeros((size, 2), np.int64) for size in sizes[: shortest - 1]]
    counted = np.split(frequencies, np.cumsum(sizes[shortest - 1 : -1]))
    levels = tuple(map(Level, keys, (*none, *counted)))
    terms = Terms(len(coded.bounds) - 1, coded.tokens, levels, coded.whole)
    return terms, Counts(
        rows.indptr, rows.indices + sum(sizes[: shortest - 1]), rows.counts
    )


def choose_documents(terms: Terms, counts: Counts, which: Array) -> tuple[Terms, Counts]:
    """What `count_terms` tells of some of the documents, but that terms of none stay.

    Parameters
    ----------
    terms, counts : of `count_terms`
    which : ndarray of int
        Numbers of documents, each as often as it is wanted.
    """
    sizes = [len(level.keys) for level in terms.levels]
    held = (counts.counts, counts.indices, counts.indptr)
    rows = sp.csr_array(held, shape=(terms.documents, sum(sizes)))[which]
    documents = np.bincount(rows.indices, minlength=sum(sizes))
    times = np.bincount(rows.indices, rows.data, minlength=sum(sizes))
    found = np.column_stack([documents, times]).astype(np.int64)
    parts = np.split(found, np.cumsum(sizes[:-1]))
    levels = tuple(map(Level, (level.keys for level in terms.levels), parts))
    chosen = Terms(len(which), terms.tokens, levels, terms.whole)
    indptr, indices = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
    return chosen, Counts(indptr, indices, rows.data)


def count_codes(
    codes: Sequence[Array], sizes: Sequence[int], bounds: Array
) -> tuple[Counts, Array]:
    """Count numbered n-grams in documents.

    Parameters
    ----------
    codes : sequence of ndarray of int32, shape (N,)
        Of each level: the n-gram that begins at each token, or -1.
    sizes : sequence of int
        How many n-grams each level has.
    bounds : ndarray of int64, shape (documents + 1,)

    Returns
    -------
    counts : Counts
    frequencies : ndarray of int64, shape (sum(sizes), 2)
        As `Level.found`.
    """
    together = np.empty((len(codes), len(codes[0])), np.int32)
    for level, first in enumerate(np.cumsum([0, *sizes[:-1]])):
        np.add(codes[level], first, out=together[level], casting="unsafe")
        together[level][codes[level] < 0] = -1
    *rows, frequencies = count_rows(together, bounds, sum(sizes))
    return Counts(*rows), frequencies.astype(np.int64)


def _sorted(codes: Array, keys: Array) -> tuple[Array, Array]:
    order = np.argsort(keys)
    # The last one is what -1 stays.
    rank = np.full(len(keys) + 1, -1, np.int32)
    rank[order] = np.arange(len(keys), dtype=np.int32)
    return keys[order], rank[codes]


def merge_terms(left: Terms, right: Terms) -> Terms:
    """The terms of two collections of documents together."""
    if left.whole != right.whole:
        left, right = spelled(left), spelled(right)
    # Two ascending runs: sorting is one walk along both.
    tokens = tuple(dict.fromkeys(sorted(left.tokens + right.tokens)))
    number = dict(zip(tokens, range(len(tokens)), strict=True))
    tails = (numbers(left.tokens, number), numbers(right.tokens, number))
    heads, levels = (_ROOT, _ROOT), []
    for a, b in zip(left.levels, right.levels, strict=True):
        keys, found, *heads_below = merge_keys(
            (a.keys, b.keys), (a.found, b.found), heads, tails
        )
        levels.append(Level(keys, found))
        heads = (heads_below[0], heads_below[1])
    return Terms(left.documents + right.documents, tokens, tuple(levels), left.whole)


def numbers(tokens: Sequence[Any], number: Mapping[Any, int]) -> Array:
    """The number of each token, -1 where it has none: ndarray of int32."""
    return np.fromiter(map(number.get, tokens, repeat(-1)), np.int32, len(tokens))


def spelled(terms: Terms) -> Terms:
    """The same terms without a tree: each one a string."""
    if terms.whole:
        return terms
    places = alphabetical(terms)
    count = sum(int((level.found[:, 0] > 0).sum()) for level in terms.levels)
    found, names = np.zeros((count, 2), np.int64), np.empty(count, object)
    for n, (level, place) in enumerate(zip(terms.levels, places, strict=True), 1):
        counted = np.flatnonzero(place >= 0)
        found[place[counted]] = level.found[counted]
        names[place[counted]] = spell(terms, n, counted)
    level = Level(np.arange(count, dtype=np.int64), found)
    return Terms(terms.documents, tuple(names.tolist()), (level,), whole=True)


def spell(terms: Terms, n: int, which: Array) -> list[Any]:
    """The n-grams at some positions of level ``n`` as strings, tokens joined by spaces."""
    columns = []
    for level in reversed(terms.levels[:n]):
        key = level.keys[which]
        columns.append(map(terms.tokens.__getitem__, (key & LAST).tolist()))
        which = key >> 32
    if n == 1:
        return list(columns[0])
    return list(map(" ".join, zip(*reversed(columns), strict=True)))


def alphabetical(terms: Terms) -> list[Array]:
    """Where each counted term stands among all of them in alphabetical order.

    Returns
    -------
    places : list of ndarray of int64
        For each level, of its shape; -1 for n-grams that are not counted.

    Notes
    -----
    A term comes before all that begin with it, as a string too: the space that follows
    lies below every character of a token.
    """
    counted = [level.found[:, 0] > 0 for level in terms.levels]
    sizes = _tree_sizes(terms, counted)
    start, places = np.zeros(1, np.int64), []
    # What an n-gram itself takes before those below it.
    own = np.zeros(1, np.int64)
    for level, size, count in zip(terms.levels, sizes, counted, strict=True):
        ahead = np.cumsum(size) - size
        parent = level.keys >> 32
        eldest = np.searchsorted(parent, np.arange(len(start)))
        before = np.append(ahead, 0)[eldest]
        start = (start + own - before)[parent] + ahead
        own = count.astype(np.int64)
        places.append(np.where(count, start, -1))
    return places


def _tree_sizes(terms: Terms, counted: Sequence[Array]) -> list[Array]:
    """How many counted terms begin with each n-gram, itself among them."""
    sizes = [count.astype(np.int64) for count in counted]
    for n in range(len(sizes) - 1, 0, -1):
        parent = terms.levels[n].keys >> 32
        below = np.bincount(parent, sizes[n], len(sizes[n - 1]))
        sizes[n - 1] += below.astype(np.int64)
    return sizes
