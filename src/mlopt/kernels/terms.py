"""n-grams as numbers: found, counted in documents, merged, and chosen as columns.

An n-gram is a pair: the number of its first n - 1 tokens as an (n-1)-gram, and the number
of its last token. As a *key* the pair is ``prefix << 32 | last``. Where tokens are numbered
in alphabetical order and keys are sorted, n-grams are in alphabetical order too, and two
collections of them merge in one walk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel
from mlopt.kernels.hashing import FREE, slot_for, twice

Array = NDArray[Any]

LAST = 0xFFFFFFFF
"""The bits of a key that hold the last token."""


@kernel
def code_grams(
    prefixes: Array, tokens: Array, bounds: Array, n: int, slots: int
) -> tuple[Array, Array]:
    """Number the n-grams of documents.

    Parameters
    ----------
    prefixes : ndarray of int32, shape (N,)
        At each token, the number of the (n-1)-gram that begins there.
    tokens : ndarray of int32, shape (N,)
    bounds : ndarray of int64, shape (documents + 1,)
        First token of each document.
    n : int
        At least 2.
    slots : int
        A power of 2: where the table starts, which grows as needed.

    Returns
    -------
    codes : ndarray of int32, shape (N,)
        At each token, the number of the n-gram that begins there, or -1 where fewer than
        n tokens of the document remain.
    keys : ndarray of int64
        The distinct n-grams in order of their numbers.
    """
    codes, keys = np.full(len(tokens), -1, np.int32), np.empty(len(tokens), np.int64)
    table = np.full((slots, 2), FREE, np.int64)
    distinct = 0
    for row in range(len(bounds) - 1):
        for at in range(bounds[row], bounds[row + 1] - n + 1):
            key = (np.int64(prefixes[at]) << 32) | np.int64(tokens[at + n - 1])
            slot = slot_for(table, key)
            if table[slot, 1] == FREE:
                table[slot, 0], table[slot, 1] = key, distinct
                keys[distinct], codes[at] = key, distinct
                distinct += 1
                if 3 * distinct > 2 * len(table):
                    table = twice(table)
            else:
                codes[at] = table[slot, 1]
    return codes, keys[:distinct].copy()


@kernel
def recognise_grams(
    prefixes: Array, tokens: Array, bounds: Array, n: int, keys: Array, slots: int
) -> Array:
    """Where each n-gram of documents stands in ``keys``, or -1: of shape (N,), int32.

    Parameters are those of `code_grams`; ``keys`` are int64 and distinct, ``slots`` more
    than there are keys. Prefixes and tokens may be -1, which is in no key.
    """
    codes = np.full(len(tokens), -1, np.int32)
    table = np.full((slots, 2), FREE, np.int64)
    for k in range(len(keys)):
        slot = slot_for(table, keys[k])
        table[slot, 0], table[slot, 1] = keys[k], k
    for row in range(len(bounds) - 1):
        for at in range(bounds[row], bounds[row + 1] - n + 1):
            head, tail = prefixes[at], tokens[at + n - 1]
            if head >= 0 and tail >= 0:
                key = (np.int64(head) << 32) | np.int64(tail)
                codes[at] = table[slot_for(table, key), 1]
    return codes


@kernel
def count_rows(
    codes: Array, bounds: Array, terms: int
) -> tuple[Array, Array, Array, Array]:
    """Count the terms of each document.

    Parameters
    ----------
    codes : ndarray of int32, shape (L, N)
        Terms that begin at each token, -1 where there is none.
    bounds : ndarray of int64, shape (documents + 1,)
    terms : int

    Returns
    -------
    indptr, indices, counts : ndarrays of int64, int32, int32
        CSR; the terms of a row are in order of appearance.
    frequencies : ndarray of int32, shape (terms, 2)
        In how many documents a term stands, and how often in all.
    """
    levels, N = codes.shape
    indptr = np.zeros(len(bounds), np.int64)
    indices, counts = np.empty(levels * N, np.int32), np.empty(levels * N, np.int32)
    # Where the last document that has it keeps the term, and its frequencies: one line.
    seen = np.zeros((terms, 4), np.int32)
    seen[:, 0] = -1
    stored = 0
    for row in range(len(bounds) - 1):
        begin = stored
        for level in range(levels):
            for at in range(bounds[row], bounds[row + 1]):
                term = codes[level, at]
                if term < 0:
                    continue
                of = seen[term]
                of[2] += 1
                if of[0] >= begin:
                    counts[of[0]] += 1
                else:
                    indices[stored], counts[stored] = term, 1
                    of[0] = stored
                    of[1] += 1
                    stored += 1
        indptr[row + 1] = stored
    return indptr, indices[:stored].copy(), counts[:stored].copy(), seen[:, 1:3].copy()


@kernel
def merge_keys(
    both: tuple[Array, Array],
    found: tuple[Array, Array],
    heads: tuple[Array, Array],
    tails: tuple[Array, Array],
) -> tuple[Array, Array, Array, Array]:
    """The n-grams of two collections.

    Parameters
    ----------
    both : pair of ndarrays of int64
        Keys of each collection, ascending.
    found : pair of ndarrays of int64, shape (m, 2)
        Two counts of each n-gram.
    heads, tails : pairs of ndarrays of int32
        What prefixes and last tokens are called in the two together, in the same order.

    Returns
    -------
    keys : ndarray of int64, shape (m,)
        Ascending.
    counts : ndarray of int64, shape (m, 2)
        Sums.
    of_left, of_right : ndarrays of int32
        Where each n-gram went.
    """
    left, right = both
    size = len(left) + len(right)
    keys, counts = np.empty(size, np.int64), np.empty((size, 2), np.int64)
    of_left, of_right = np.empty(len(left), np.int32), np.empty(len(right), np.int32)
    i = j = total = 0
    a, b = _renamed(left, 0, heads[0], tails[0]), _renamed(right, 0, heads[1], tails[1])
    while i < len(left) or j < len(right):
        key, documents, times = min(a, b), 0, 0
        if a == key:
            documents, times = found[0][i, 0], found[0][i, 1]
            of_left[i] = total
            i += 1
            a = _renamed(left, i, heads[0], tails[0])
        if b == key:
            documents, times = documents + found[1][j, 0], times + found[1][j, 1]
            of_right[j] = total
            j += 1
            b = _renamed(right, j, heads[1], tails[1])
        keys[total], counts[total, 0], counts[total, 1] = key, documents, times
        total += 1
    return keys[:total].copy(), counts[:total].copy(), of_left, of_right


@inlined
def _renamed(keys: Array, at: Any, heads: Array, tails: Array) -> Any:
    """A key in the numbers of the union; more than any key after the last one."""
    if at >= len(keys):
        return np.int64(0x7FFFFFFFFFFFFFFF)
    head, tail = heads[keys[at] >> 32], tails[keys[at] & LAST]
    return (np.int64(head) << 32) | np.int64(tail)


@kernel
def find_keys(keys: Array, among: Array, heads: Array, tails: Array) -> Array:
    """Where each n-gram of ``keys`` stands in ``among``, or -1.

    Parameters
    ----------
    keys, among : ndarrays of int64
        Both ascending.
    heads, tails : ndarrays of int32
        What prefixes and last tokens of ``keys`` are called in ``among``, in the same
        order, or -1.
    """
    found, j = np.full(len(keys), -1, np.int32), 0
    for i in range(len(keys)):
        head, tail = heads[keys[i] >> 32], tails[keys[i] & LAST]
        if head < 0 or tail < 0:
            continue
        key = (np.int64(head) << 32) | np.int64(tail)
        while j < len(among) and among[j] < key:
            j += 1
        if j < len(among) and among[j] == key:
            found[i] = j
    return found


@kernel
def choose_columns(
    indptr: Array, indices: Array, counts: Array, columns: Array, d: int
) -> tuple[Array, Array, Array]:
    """Counts of the terms that have a column, sorted by column in each row.

    Parameters
    ----------
    indptr, indices, counts : ndarrays, CSR over terms
    columns : ndarray of int32, shape (terms,)
        The column of a term, or -1.
    d : int
        Columns.

    Returns
    -------
    indptr, indices, counts : ndarrays of int64, int32, int32
    """
    n = len(indptr) - 1
    starts, heads = np.zeros(d + 1, np.int64), np.zeros(n + 1, np.int64)
    for row in range(n):
        for p in range(indptr[row], indptr[row + 1]):
            column = columns[indices[p]]
            if column >= 0:
                starts[column + 1] += 1
                heads[row + 1] += 1
    for column in range(d):
        starts[column + 1] += starts[column]
    for row in range(n):
        heads[row + 1] += heads[row]
    # By column, then by row again: two sorts that compare nothing.
    rows, values = np.empty(heads[n], np.int32), np.empty(heads[n], np.int32)
    fill = starts.copy()
    for row in range(n):
        for p in range(indptr[row], indptr[row + 1]):
            column = columns[indices[p]]
            if column >= 0:
                rows[fill[column]], values[fill[column]] = row, counts[p]
                fill[column] += 1
    out, data, at = np.empty(heads[n], np.int32), np.empty(heads[n], np.int32), heads.copy()
    for column in range(d):
        for p in range(starts[column], starts[column + 1]):
            out[at[rows[p]]], data[at[rows[p]]] = column, values[p]
            at[rows[p]] += 1
    return heads, out, data
