"""Arrays, sparse matrices and long lists, hashed in pieces that stay in the cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mlopt.identity import graphs

if TYPE_CHECKING:
    from mlopt.identity.walk import Walk

_CHUNK = 1 << 24
"""Bytes that one thread hashes at a time."""
_NAMES = (str, os.PathLike)
"""What files are named by."""
_LONG = 64
"""Items from which a list of one kind is written as a whole."""


def write(walk: Walk, values: list[Any] | tuple[Any, ...]) -> None:
    """The items of a list; those of one plain kind together."""
    kinds = set(map(type, values))
    if walk.tasks is None and kinds and all(issubclass(k, _NAMES) for k in kinds):
        graphs.rows(walk, map(os.fspath, values))
    if len(values) <= _LONG:
        kinds = set()
    if kinds == {str}:
        _strings(walk, values)
        if walk.tasks is not None:
            graphs.files(walk, values)
    elif kinds == {float}:
        _numbers(walk, np.fromiter(values, np.float64, len(values)))
    elif kinds == {int} and max(values) < 2**63 and min(values) >= -(2**63):
        _numbers(walk, np.fromiter(values, np.int64, len(values)))
    else:
        for value in values:
            walk.add(value)


def array(walk: Walk, value: Any) -> bool:
    """Plain arrays: a view, a memory map and a copy are the same."""
    if type(value) not in (np.ndarray, np.memmap):
        return False
    dtype = value.dtype
    names = repr(dtype.descr) if dtype.names else dtype.str
    walk.put("array", f"{value.shape} {names}")
    if dtype.hasobject or dtype.kind == "T":
        write(walk, value.ravel().tolist())
    else:
        _numbers(walk, value)
        if dtype.kind == "U" and walk.tasks is None:
            graphs.rows(walk, map(str, value.flat))
    return True


def sparse(walk: Walk, value: Any) -> bool:
    """Sparse matrices by their rows, with columns in order and each once."""
    if not sp.issparse(value):
        return False
    walk.put("sparse", f"{value.shape}")
    walk.add(type(value))
    rows = value.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    for part in (rows.data, rows.indices, rows.indptr):
        walk.add(part)
    return True


def _strings(walk: Walk, values: Any) -> None:
    walk.put("strings")
    _numbers(walk, np.fromiter(map(len, values), np.int64, len(values)))
    # Pieces that stay in the cache: large ones would be written to fresh memory.
    digest = hashlib.sha1(usedforsecurity=False)
    for start in range(0, len(values), _LONG):
        piece = "".join(values[start : start + _LONG])
        digest.update(piece.encode("utf-8", "surrogatepass"))
    walk.put("text", digest.digest())


def _numbers(walk: Walk, value: np.ndarray) -> None:
    """Digests of pieces of memory, taken in parallel: hashing lets go of the GIL."""
    walk.put("numbers", value.dtype.str)
    pieces = list(_pieces(value))
    if len(pieces) < 2:
        digests: Iterable[bytes] = map(_digest, pieces)
    else:
        with ThreadPoolExecutor() as pool:
            digests = list(pool.map(_digest, pieces))
    walk.put("digests", bytes(chain.from_iterable(digests)))


def _pieces(value: np.ndarray) -> Iterable[np.ndarray]:
    """Runs of rows; no more than these are copied of an array that is not in order."""
    if not value.size:
        return
    rows = value.reshape(1) if value.ndim == 0 else value
    step = max(1, _CHUNK // max(1, rows[:1].nbytes))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _digest(piece: np.ndarray) -> bytes:
    memory = np.ascontiguousarray(piece).reshape(-1).view(np.uint8)
    return hashlib.sha1(memory.data, usedforsecurity=False).digest()
