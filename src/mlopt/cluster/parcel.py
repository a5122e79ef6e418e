"""A value on its way to a worker: pickled once, its arrays beside it and never copied.

The scheduler in between need not understand what is inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from pickle import PickleBuffer
from typing import Any

import cloudpickle
import numpy as np

from mlopt.errors import InputError


@dataclass(frozen=True)
class Parcel:
    """A pickled value.

    Attributes
    ----------
    pickled : bytes
        The value without the memory of its arrays.
    arrays : tuple of ndarray of bytes
        That memory.
    """

    pickled: bytes
    arrays: tuple[np.ndarray, ...]

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
    arrays = tuple(np.frombuffer(buffer.raw(), dtype=np.uint8) for buffer in buffers)
    return Parcel(pickled, arrays)


def unpack(parcel: Parcel) -> Any:
    """The value, on memory of its own."""
    # What came through a socket may begin at an odd address and be read-only.
    memory = [array.copy() for array in parcel.arrays]
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
