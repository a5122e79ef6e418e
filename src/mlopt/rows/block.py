"""One block of rows: features, and per-row arrays beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.cluster import usable


@dataclass(frozen=True)
class Block:
    """Rows ``start`` to ``start + rows`` of the whole.

    Attributes
    ----------
    X : ndarray or csr_array of shape (rows, d)
        Float32 or float64; an ndarray is C-contiguous. It may be read-only.
    extra : mapping of name to ndarray of shape (rows, ...)
        Per-row arrays: targets, weights.
    index : int
        Number of this block.
    start : int
        Number of its first row.
    """

    X: Any
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)
    index: int = 0
    start: int = 0

    @property
    def rows(self) -> int:
        """How many rows this block has."""
        return int(self.X.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes of all its arrays."""
        return array_bytes(self.X) + sum(array.nbytes for array in self.extra.values())

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, usable(value))
        if sp.issparse(self.X):
            for name in ("data", "indices", "indptr"):
                setattr(self.X, name, usable(getattr(self.X, name)))

    def __sizeof__(self) -> int:
        # Dask asks this when it places tasks and when it decides what to spill.
        return 200 + self.nbytes


def array_bytes(X: Any) -> int:
    """Bytes of an ndarray or of a CSR array with its indices."""
    if sp.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def row_slice(X: Any, start: int, stop: int) -> Any:
    """Rows ``start`` to ``stop`` as a view, of canonical CSR too."""
    if not sp.issparse(X):
        return X[start:stop]
    first, last = int(X.indptr[start]), int(X.indptr[stop])
    part = sp.csr_array((stop - start, X.shape[1]), dtype=X.dtype)
    # Given to the constructor, views of less than half an array would be copied.
    part.data, part.indices = X.data[first:last], X.indices[first:last]
    part.indptr = X.indptr[start : stop + 1] - X.indptr[start]
    part.has_canonical_format = True
    return part


def beside(block: Block, arrays: Mapping[str, np.ndarray]) -> Block:
    """The same rows with further per-row arrays."""
    return replace(block, extra={**block.extra, **arrays})


MEGABYTE = 1 << 20
_TARGET, _LARGEST = 8 * MEGABYTE, 256 * MEGABYTE
_MANY, _PARALLEL, _WORTH = 64, 8, 2048


def block_count(n: int, nbytes: int) -> int:
    """How many blocks ``n`` rows of ``nbytes`` in all are cut into: a power of two.

    4 to 8 MB each, at most 64 of them until a block would pass 256 MB; and up to eight
    smaller ones, for threads to share, as long as each has 2048 rows. This must depend on
    the data alone: with it depends the order of every sum.
    """
    wanted = max(
        min(_power(nbytes / _TARGET), _MANY),
        _power(nbytes / _LARGEST),
        min(_PARALLEL, _power(n / _WORTH / 2 + 0.5)),
    )
    while wanted > n:
        wanted //= 2
    return max(wanted, 1)


def _power(least: float) -> int:
    """The smallest power of two that is not below ``least``."""
    return 1 << max(0, int(np.ceil(np.log2(max(least, 1.0)))))


def boundaries(n: int, nbytes: int, block_rows: int | None = None) -> list[int]:
    """Where blocks begin, and ``n`` at the end; lengths differ by at most one."""
    count = -(-n // block_rows) if block_rows else block_count(n, nbytes)
    return [number * n // count for number in range(count + 1)]
