"""Tokens of many documents as numbers: no string is made but one for each distinct token.

A text is UTF-8 bytes; document ``i`` lies at ``text[starts[i]:starts[i + 1]]``. A token is
a run of bytes whose class is not 0, and its bytes are those classes: that is how letters
become small. Distinct tokens are numbered in order of appearance through a hash table
with open addressing. A token of up to 7 bytes is its own digest; longer ones are compared
byte by byte, so that a collision is no error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, part
from mlopt.kernels.hashing import FREE, slot_of, times, twice
from mlopt.kernels.simd import number_at

Array = NDArray[Any]

_BYTE = np.uint64(8)
_WHOLE = 7
"""Bytes that fit into a digest, one being left for the mark of a longer token."""
_LONG = np.uint64(1 << 63)
# Fowler, Noll, Vo: the prime of FNV-1a with 64 bits.
_PRIME = np.uint64(0x100000001B3)
_FIRST_SLOTS = 1 << 12
_END = ord("\n")


@inlined
def _scan(text: Array, p: int, stop: int, folds: Array, base: int) -> tuple[Any, Any]:
    """Digest and end of the token at ``p``, which is empty between tokens."""
    digest, q, near = np.uint64(0), p, min(stop, p + _WHOLE)
    byte = np.uint64(1)
    while q < near:
        byte = np.uint64(number_at(folds, base + number_at(text, q)))
        if byte == 0:
            return digest, q
        digest = (digest << _BYTE) | byte
        q += 1
    while q < stop:
        byte = np.uint64(number_at(folds, base + number_at(text, q)))
        if byte == 0:
            break
        digest = times(digest ^ byte, _PRIME)
        q += 1
    return (digest | _LONG if q - p > _WHOLE else digest), q


@inlined
def _differ(
    text: Array, p: int, q: int, folds: Array, base: int, pool: Array, first: int
) -> Any:
    """Whether ``text[p:q]`` is another token than the one that begins ``pool[first:]``."""
    at = p
    while at < q and number_at(pool, first + at - p) == number_at(
        folds, base + number_at(text, at)
    ):
        at += 1
    return at < q or number_at(pool, first + q - p) != _END


@part
def _most_tokens(text: Array, p: int, stop: int, folds: Array, base: int) -> int:
    """How many tokens there may be in ``text[p:stop]``."""
    most = 1
    for at in range(p, stop):
        most += folds[base + text[at]] == 0
    return most


@part
def _code_row(
    text: Array,
    p: int,
    stop: int,
    folds: Array,
    base: int,
    shortest: int,
    grow: bool,
    table: Array,
    pool: Array,
    ends: Array,
    codes: Array,
    total: int,
    distinct: int,
) -> tuple[int, int]:
    """Number the tokens of ``text[p:stop]``; how many there are, and distinct ones."""
    mask = len(table) - 1
    while p < stop:
        digest, q = _scan(text, p, stop, folds, base)
        if q - p >= shortest:
            slot, mark = slot_of(digest, mask), np.int64(digest)
            while table[slot, 1] != FREE and (
                table[slot, 0] != mark
                or (
                    q - p > _WHOLE
                    and _differ(text, p, q, folds, base, pool, ends[table[slot, 1]])
                )
            ):
                slot = (slot + 1) & mask
            if table[slot, 1] == FREE and grow:
                table[slot, 0], table[slot, 1] = mark, distinct
                end = ends[distinct] + q - p
                for i in range(q - p):
                    pool[ends[distinct] + i] = folds[base + text[p + i]]
                pool[end] = _END
                distinct += 1
                ends[distinct] = end + 1
            codes[total] = table[slot, 1]
            total += 1
        p = q + 1
    return total, distinct


@kernel
def _code(
    text: Array, starts: Array, kinds: Array, folds: Array, least: Array, known: int
) -> tuple[Array, Array, Array]:
    codes, bounds = np.empty(len(text), np.int32), np.zeros(len(starts), np.int64)
    pool, ends = np.empty(2 * len(text), np.uint8), np.empty(len(text) + 1, np.int64)
    ends[0] = 0
    table = np.full((_FIRST_SLOTS, 2), FREE, np.int64)
    total = distinct = 0
    for row in range(len(starts) - 1):
        p, stop, kind = starts[row], starts[row + 1], np.int64(kinds[row])
        if 2 * (distinct + stop - p) > len(table):  # as if each byte were a token
            most = distinct + _most_tokens(text, p, stop, folds, 256 * kind)
            while 2 * most > len(table):
                table = twice(table)
        total, distinct = _code_row(
            text, p, stop, folds, 256 * kind, least[kind], row < known,
            table, pool, ends, codes, total, distinct,
        )  # fmt: skip
        bounds[row + 1] = total
    return codes[:total].copy(), bounds, pool[: ends[distinct]]


def code_tokens(
    text: Array, starts: Array, kinds: Array, folds: Array, least: Array, known: int = 0
) -> tuple[Array, Array, bytes]:
    """Number the tokens of documents.

    Parameters
    ----------
    text : ndarray of uint8
    starts : ndarray of int64, shape (documents + 1,)
    kinds : ndarray of uint8, shape (documents,)
        Which row of ``folds`` and ``least`` a document goes by.
    folds : ndarray of uint8, shape (kinds, 256)
        Class of each byte: 0 between tokens, else the byte that stands in the token.
    least : ndarray of int64, shape (kinds,)
        Bytes of the shortest token.
    known : int, default=0
        How many of the first documents name new tokens, or 0 for all of them. Tokens that
        are new in a later document get the number -1.

    Returns
    -------
    codes : ndarray of int32
        The tokens of all documents, in order.
    bounds : ndarray of int64, shape (documents + 1,)
        ``codes[bounds[i]:bounds[i + 1]]`` are the tokens of document ``i``.
    pool : bytes
        The distinct tokens in order of their numbers, each followed by a line feed.
    """
    known = known or len(kinds)
    codes, bounds, pool = _code(text, starts, kinds, folds.reshape(-1), least, known)
    return codes, bounds, pool.tobytes()
