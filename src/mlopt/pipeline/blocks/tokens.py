"""Content tokens: two values with one token are interchangeable.

Estimators count by class and parameters, not by what they learnt; arrays by their bytes.
What cannot be told apart by content gets a token that never comes again.
"""

from __future__ import annotations

import hashlib
import sys
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

_CHUNK = 1 << 24


def token_of(value: Any) -> str:
    """A name for the content of ``value``: 32 hexadecimal digits.

    Parameters
    ----------
    value : any
        Estimators (fitted or not), arrays, sparse matrices, frames, lists of documents,
        Dask collections, plain values, functions.
    """
    digest = hashlib.sha1(usedforsecurity=False)
    for piece in _pieces(value):
        digest.update(piece)
    return digest.hexdigest()[:32]


def state_token(estimator: Any) -> str:
    """A name for all that an estimator holds, what it learnt included."""
    import cloudpickle

    try:
        content = cloudpickle.dumps(estimator, protocol=5)
    except Exception:
        content = uuid.uuid4().bytes
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()[:32]


def join(*tokens: str) -> str:
    """The token of something made of parts that have tokens."""
    text = "\0".join(tokens).encode()
    return hashlib.sha1(text, usedforsecurity=False).hexdigest()[:32]


def _pieces(value: Any) -> Iterable[bytes]:
    """Bytes that tell ``value`` from any other."""
    if isinstance(value, type):
        yield f"class {value.__module__}.{value.__qualname__}".encode()
    elif isinstance(value, BaseEstimator):
        yield from _estimator(value)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield f"array {value.shape} {value.dtype.str}".encode()
        yield from _hashes(np.ascontiguousarray(value))
    elif sp.issparse(value):
        yield f"{value.format} {value.shape}".encode()
        rows = value if value.format == "csr" else value.tocsr()
        for part in (rows.data, rows.indices, rows.indptr):
            yield from _pieces(part)
    elif isinstance(value, list | tuple):
        yield from _sequence(value)
    elif isinstance(value, dict):
        yield f"dict {len(value)}".encode()
        for key, item in value.items():
            yield from _pieces(key)
            yield from _pieces(item)
    else:
        yield from _other(value)


def _estimator(estimator: BaseEstimator) -> Iterable[bytes]:
    kind = type(estimator)
    version = getattr(sys.modules.get(kind.__module__.split(".")[0]), "__version__", "")
    yield f"estimator {kind.__module__}.{kind.__qualname__} {version}".encode()
    if kind.__module__ == "__main__":
        # A class of a notebook changes under the same name.
        yield from _other(kind)
    for name, value in sorted(estimator.get_params(deep=False).items()):
        yield f"{name}=".encode()
        yield from _pieces(value)


def _sequence(values: list[Any] | tuple[Any, ...]) -> Iterable[bytes]:
    yield f"{type(values).__name__} {len(values)}".encode()
    if len(values) > 64 and all(type(value) is str for value in values):
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        yield from _pieces(lengths)
        # Pieces that stay in the cache: large ones would be written to fresh memory.
        for start in range(0, len(values), 64):
            yield "".join(values[start : start + 64]).encode("utf-8", "surrogatepass")
        return
    for value in values:
        yield from _pieces(value)


def _hashes(array: np.ndarray) -> Iterable[bytes]:
    """Digests of pieces of memory, taken in parallel: hashing lets go of the GIL."""
    memory = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
    pieces = [memory[start : start + _CHUNK] for start in range(0, memory.size, _CHUNK)]
    if len(pieces) < 2:
        return [_digest(piece) for piece in pieces]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(_digest, pieces))


def _digest(piece: np.ndarray) -> bytes:
    return hashlib.sha1(piece.data, usedforsecurity=False).digest()


def _other(value: Any) -> Iterable[bytes]:
    """Frames, functions, plain values: as Dask tells them apart, if it can for certain."""
    import dask
    from dask.tokenize import TokenizationError, tokenize

    try:
        with dask.config.set({"tokenize.ensure-deterministic": True}):
            yield tokenize(value).encode()
    except (TokenizationError, RuntimeError):
        yield uuid.uuid4().bytes
