"""Tokens of many documents as numbers: no string is made but one for each distinct token.

A text is UTF-8 bytes; document ``i`` lies at ``text[starts[i]:starts[i + 1]]``. A token is
a run of bytes whose class is not 0, and its bytes are those classes: that is how letters
become small. Distinct tokens are numbered in order of appearance through a hash table
with open addressing, and compared byte by byte, so that a collision is no error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, part

Array = NDArray[Any]

# Fowler, Noll, Vo: FNV-1a of 64 bits.
_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_HIGH = np.uint64(32)
_FIRST_SLOTS = 1 << 14
_END = ord("\n")


@inlined
def _slot(digest: Any, mask: Any) -> Any:
    # FNV stirs low bits less than high ones.
    return np.int64((digest ^ (digest >> _HIGH)) & np.uint64(mask))


@part
def _twice(digests: Array, held: Array) -> tuple[Array, Array]:
    """A table with twice the slots and the same tokens."""
    mask = 2 * len(held) - 1
    larger, codes = np.empty(mask + 1, np.uint64), np.full(mask + 1, -1, np.int32)
    for old in range(len(held)):
        if held[old] >= 0:
            slot = _slot(digests[old], mask)
            while codes[slot] >= 0:
                slot = (slot + 1) & mask
            larger[slot], codes[slot] = digests[old], held[old]
    return larger, codes


@inlined
def _same(text: Array, at: int, length: int, pool: Array, first: int, fold: Array) -> Any:
    i = 0
    while i < length and pool[first + i] == fold[text[at + i]]:
        i += 1
    return i == length


@kernel
def _code(
    text: Array, starts: Array, kinds: Array, folds: Array, least: Array, known: int
) -> tuple[Array, Array, Array]:
    codes, bounds = np.empty(len(text), np.int32), np.zeros(len(starts), np.int64)
    pool, ends = np.empty(2 * len(text), np.uint8), np.zeros(len(text) + 1, np.int64)
    digests, held = np.empty(_FIRST_SLOTS, np.uint64), np.full(_FIRST_SLOTS, -1, np.int32)
    total = distinct = 0
    for row in range(len(starts) - 1):
        kind, p, stop = kinds[row], starts[row], starts[row + 1]
        fold, shortest, grow = folds[kind], least[kind], row < known
        while p < stop:
            digest, q = _BASIS, p
            while q < stop and fold[text[q]] != 0:
                digest = (digest ^ np.uint64(fold[text[q]])) * _PRIME
                q += 1
            if q - p >= shortest:
                mask = len(held) - 1
                slot = _slot(digest, mask)
                code = held[slot]
                while code >= 0 and not (
                    digests[slot] == digest
                    and ends[code + 1] - ends[code] == q - p + 1
                    and _same(text, p, q - p, pool, ends[code], fold)
                ):
                    slot = (slot + 1) & mask
                    code = held[slot]
                if code < 0 and grow:
                    code = distinct
                    digests[slot], held[slot] = digest, code
                    for i in range(q - p):
                        pool[ends[code] + i] = fold[text[p + i]]
                    pool[ends[code] + q - p] = _END
                    distinct += 1
                    ends[distinct] = ends[code] + q - p + 1
                    if 2 * distinct > len(held):
                        digests, held = _twice(digests, held)
                codes[total] = code
                total += 1
            p = q + 1
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
    codes, bounds, pool = _code(text, starts, kinds, folds, least, known)
    return codes, bounds, pool.tobytes()
