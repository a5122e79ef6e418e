"""What a sample says of data at one point of a pipeline, and the one sampler.

Shapes: data has n rows and d columns, in blocks of whole rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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

    @classmethod
    def of(cls, data: Any, *, outputs: int = 1, size: int = 1000, seed: int = 0) -> Stats:
        """Statistics of ``data``.

        Parameters
        ----------
        data : array-like of shape (n, d), sparse matrix, data frame, or list of such blocks
            In memory. Only a list or tuple whose first item is itself an array, a sparse
            matrix or a frame counts as blocks.
        outputs : int, default=1
        size : int, default=1000
            Rows looked at for the density of dense data.
        seed : int, default=0

        Raises
        ------
        InputError
            If the data is not two-dimensional, or blocks differ in columns.
        """
        blocks = [_as_block(block) for block in (data if _is_blocks(data) else [data])]
        columns = {block.shape[1] for block in blocks}
        if len(columns) != 1:
            raise InputError(f"Blocks must have the same columns, got {sorted(columns)}.")
        lengths = [int(block.shape[0]) for block in blocks]
        shape = cls(sum(lengths), columns.pop(), outputs, partitions=len(blocks))
        return replace(
            shape,
            density=_density(blocks, sample_rows(lengths, size, seed)),
            dtype=_common_dtype(blocks),
            bytes=sum(_nbytes(block) for block in blocks),
            sparse=all(_is_sparse(block) for block in blocks),
        )


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


def _is_sparse(block: Any) -> bool:
    from scipy.sparse import issparse

    return bool(issparse(block))


def _is_frame(block: Any) -> bool:
    import narwhals

    return narwhals.dependencies.is_into_dataframe(block)


def _is_blocks(data: Any) -> bool:
    if not isinstance(data, list | tuple) or not data:
        return False
    first = data[0]
    arrays = isinstance(first, np.ndarray) and first.ndim == 2
    return arrays or _is_sparse(first) or _is_frame(first)


def _as_block(data: Any) -> Any:
    if _is_sparse(data):
        return data.tocsr()
    if _is_frame(data):
        import narwhals

        return narwhals.from_native(data, eager_only=True)
    block = np.asarray(data)
    if block.ndim != 2:
        raise InputError(f"Data must have two dimensions, got shape {block.shape}.")
    return block


def stored_share(X: Any) -> float:
    """Places of a sparse matrix that hold something; some may hold several numbers."""
    n, d = X.shape
    return min(1.0, float(X.nnz / max(1, n * d)))


def _density(blocks: Iterable[Any], rows: Sequence[Indices]) -> float:
    """Of the sampled rows; exact for sparse blocks, whose count is at hand."""
    filled, seen = 0.0, 0
    for block, taken in zip(blocks, rows, strict=True):
        if _is_sparse(block):
            size = block.shape[0] * block.shape[1]
            filled, seen = filled + stored_share(block) * size, seen + size
        elif isinstance(block, np.ndarray) and block.dtype != object:
            part = block[taken]
            filled, seen = filled + int(np.count_nonzero(part)), seen + part.size
        else:  # names and categories are neither zero nor not
            size = len(taken) * block.shape[1]
            filled, seen = filled + size, seen + size
    return filled / seen if seen else 1.0


def _common_dtype(blocks: Iterable[Any]) -> str:
    names = {name for block in blocks for name in _dtypes(block)}
    return names.pop() if len(names) == 1 else "mixed"


def _dtypes(block: Any) -> set[str]:
    if isinstance(block, np.ndarray) or _is_sparse(block):
        return {block.dtype.name}
    return {str(dtype).lower() for dtype in block.schema.dtypes()}


def _nbytes(block: Any) -> int:
    if _is_sparse(block):
        return int(block.data.nbytes + block.indices.nbytes + block.indptr.nbytes)
    if isinstance(block, np.ndarray):
        return int(block.nbytes)
    return int(block.estimated_size())
