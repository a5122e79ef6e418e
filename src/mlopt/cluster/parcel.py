"""A value on its way to a worker: pickled once, its arrays beside it and never copied.

The scheduler in between need not understand what is inside. Folds, labels and counts are
compressed: Dask's workers hold a parcel as long as what was in it, and cannot spill it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pickle import PickleBuffer
from typing import Any

import cloudpickle
import numpy as np

from mlopt.errors import InputError

_LEAST, _TRIED = 4096, 16_384
"""Bytes of an array below which nothing is saved, and on which compression is tried: 0.1 ms
for a page of floats, which it leaves as they are."""


@dataclass(frozen=True)
class Parcel:
    """A pickled value.

    Attributes
    ----------
    pickled : bytes
        The value without the memory of its arrays.
    arrays : tuple of ndarray of bytes
        That memory.
    compressed : frozenset of int
        Which of the arrays are.
    """

    pickled: bytes
    arrays: tuple[np.ndarray, ...]
    compressed: frozenset[int] = frozenset()

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return len(self.pickled) + sum(array.nbytes for array in self.arrays)


def pack(value: Any) -> Parcel:
    """Pickle ``value``, functions defined in scripts and notebooks too."""
    buffers: list[PickleBuffer] = []
    try:
        pickled = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    except Exception as error:
        name = getattr(value, "__name__", type(value).__name__)
        raise InputError(
            f"What runs on a cluster must be picklable; `{name}` is not: {error}. Leave "
            "locks, open files and connections out of it."
        ) from error
    arrays = [np.frombuffer(buffer.raw(), dtype=np.uint8) for buffer in buffers]
    less = {i: _less(array) for i, array in enumerate(arrays) if _pays(array)}
    return Parcel(
        pickled,
        tuple(less.get(i, array) for i, array in enumerate(arrays)),
        frozenset(less),
    )


def check_packs(what: str, parts: Iterable[tuple[str, Any]]) -> None:
    """Every part must travel to the workers.

    Raises
    ------
    InputError
        Naming the first that cannot, as ``what`` it is.
    """
    for name, part in parts:
        try:
            pack(part)
        except InputError as error:
            raise InputError(f"{what} `{name}` cannot go to workers. {error}") from error


def arrays_of(parcel: Parcel) -> list[np.ndarray]:
    """A parcel as a few arrays, whatever is in it: what a `Mesh` sends."""
    sizes = [(len(array), i in parcel.compressed) for i, array in enumerate(parcel.arrays)]
    return [
        np.frombuffer(parcel.pickled, np.uint8),
        np.array(sizes, np.int64).reshape(-1, 2),
        np.concatenate([*parcel.arrays, np.empty(0, np.uint8)]),
    ]


def parcel_of(arrays: Sequence[np.ndarray]) -> Parcel:
    """The parcel that `arrays_of` was given."""
    pickled, sizes, joined = arrays
    parts = np.split(joined, np.cumsum(sizes[:-1, 0]))[: len(sizes)]
    compressed = frozenset(np.flatnonzero(sizes[:, 1]).tolist())
    return Parcel(pickled.tobytes(), tuple(parts), compressed)


def _pays(array: np.ndarray) -> bool:
    """Whether its first bytes take half as many when they are compressed."""
    tried = array[:_TRIED]
    return len(array) >= _LEAST and 2 * _less(tried).nbytes <= tried.nbytes


def _less(array: np.ndarray) -> np.ndarray:
    # Runs and frequencies of bytes say all there is to say of folds, and quickly.
    work = zlib.compressobj(level=1, strategy=zlib.Z_RLE)
    return np.frombuffer(work.compress(array.data) + work.flush(), dtype=np.uint8)


def unpack(parcel: Parcel) -> Any:
    """The value, on memory of its own."""
    # What came through a socket may begin at an odd address and be read-only.
    memory: list[Any] = [
        bytearray(zlib.decompress(array.data)) if i in parcel.compressed else array.copy()
        for i, array in enumerate(parcel.arrays)
    ]
    return cloudpickle.loads(parcel.pickled, buffers=memory)


def usable(value: Any) -> Any:
    """Arrays aligned and writeable, copied where they are not; looks into containers.

    For a kernel a read-only or unaligned array is another type, to be compiled anew.
    """
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return np.require(value, requirements=("A", "W"))
    if type(value) in (list, tuple):
        return type(value)(usable(item) for item in value)
    if type(value) is dict:
        return {key: usable(item) for key, item in value.items()}
    return value
