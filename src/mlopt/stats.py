"""What a sample says of data at one point of a pipeline, and the one sampler.

Shapes: data has n rows and d columns, in blocks of whole rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError

Indices = NDArray[np.int64]

CSR_INDEX_BYTES = 4
"""Bytes of one column index of a sparse matrix."""


@dataclass(frozen=True)
class Stats:
    """Size and shape of data, without the data.

    Parameters
    ----------
    rows, columns : int
    outputs : int, default=1
        Target columns, or classes of a multinomial problem.
    density : float, default=1
        Fraction of entries that are not zero, in [0, 1].
    dtype : str, default="float64"
        "mixed" where columns differ.
    bytes : int, optional
        In memory. Computed from the shape when not given.
    partitions : int, default=1
        Blocks of rows.
    sparse : bool, default=False
        Whether zeros are left out of storage (CSR).

    References
    ----------
    Sparks et al., "KeystoneML" (ICDE 2017), IV-A: n, d, k and sparsity everywhere.
    """

    rows: int
    columns: int
    outputs: int = 1
    density: float = 1.0
    dtype: str = "float64"
    bytes: int = -1
    partitions: int = 1
    sparse: bool = False

    def __post_init__(self) -> None:
        if self.rows < 0 or self.columns < 0 or self.outputs < 1 or self.partitions < 1:
            raise InputError(
                "`rows` and `columns` must be at least 0, `outputs` and `partitions` at "
                f"least 1, got {self!r}."
            )
        if not 0 <= self.density <= 1:
            raise InputError(f"`density` must lie in [0, 1], got {self.density!r}.")
        if self.bytes < 0:
            object.__setattr__(self, "bytes", self._shape_bytes())

    def _shape_bytes(self) -> int:
        if not self.sparse:
            return self.rows * self.columns * self.itemsize
        entries = round(self.nonzeros) * (self.itemsize + CSR_INDEX_BYTES)
        return entries + (self.rows + self.partitions) * CSR_INDEX_BYTES

    @property
    def itemsize(self) -> int:
        """Bytes of one number; 8 where columns differ."""
        try:
            return int(np.dtype(self.dtype).itemsize)
        except TypeError:
            return 8

    @property
    def nonzeros(self) -> float:
        """Entries that are not zero, in all."""
        return self.density * self.rows * self.columns


def sample_shares(lengths: Sequence[int], size: int) -> list[int]:
    """Rows that each block gives to a sample of ``size``: each within 1 of its fair share.

    Largest remainders, in integers: the sample keeps the distribution over the blocks.
    """
    total = sum(lengths)
    if size < 0 or any(length < 0 for length in lengths):
        raise InputError(f"`size` and `lengths` must be at least 0, got {size}, {lengths}.")
    if size >= total:
        return list(lengths)
    shares = [size * length // total for length in lengths]
    rest = sorted(range(len(lengths)), key=lambda i: (-(size * lengths[i] % total), i))
    for i in rest[: size - sum(shares)]:
        shares[i] += 1
    return shares


def sample_block(length: int, take: int, seed: int, block: int) -> Indices:
    """``take`` of ``length`` rows of block number ``block``, without repeats, ascending.

    Depends on nothing but its arguments, so that a block can be sampled where it is.
    """
    if take >= length:
        return np.arange(length)
    generator = np.random.default_rng([seed, block])
    return np.sort(generator.choice(length, take, replace=False, shuffle=False))


def sample_rows(lengths: Sequence[int], size: int, seed: int) -> list[Indices]:
    """A uniform sample of ``size`` rows, spread over the blocks as the rows are.

    Parameters
    ----------
    lengths : sequence of int
        Rows of each block.
    size : int
        Rows wanted; all of them if there are not as many.
    seed : int

    Returns
    -------
    list of ndarray of int64
        For each block the rows taken, counted from the block's start, ascending.
    """
    shares = sample_shares(lengths, size)
    pairs = enumerate(zip(lengths, shares, strict=True))
    return [sample_block(length, share, seed, block) for block, (length, share) in pairs]


def stored_share(X: Any) -> float:
    """Places of a sparse matrix that hold something; some may hold several numbers."""
    n, d = X.shape
    return min(1.0, float(X.nnz / max(1, n * d)))
