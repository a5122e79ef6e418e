"""Messages between members: fixed headers, then arrays as they lie in memory; no pickle.

::

    fixed   magic, kind, number of arrays, operation, epoch,
            block, version, client, sequence, bytes of JSON           72 bytes
    arrays  dtype, number of dimensions, shape                        64 bytes each
    JSON    what else the header says
    data    the arrays' bytes, one after the other

Numbers are little-endian. All sizes are known, and held to their limits, before memory is
taken for what follows; arrays are received into aligned memory, in place.
"""

from __future__ import annotations

import functools
import json
import math
import re
import socket
import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mlopt.errors import InputError, WireError

LARGEST = 1 << 28
"""Bytes that the arrays of a message may have together, unless a mesh says otherwise."""

ASK, TELL, ANSWER, REFUSAL = range(4)

_MAGIC = b"mlm1"
_FIXED = struct.Struct("<4sBBH16s5qI4x")
_ARRAY = struct.Struct("<8sQ6q")
# Kinds of numpy's numbers, dates and strings of a fixed size: what can do without pickle.
_KINDS = frozenset("biufcmMSU")
_DTYPE = re.compile(r"[<>|][biufcmMSU]\d+(\[\w+\])?")
# 255 arrays of 6 dimensions, as the formats above have it.
_MOST_ARRAYS, _MOST_DIMENSIONS, _LONGEST_OPERATION = 255, 6, 16
# Bytes: the members of some ten thousand workers.
_MOST_JSON = 1 << 20
# Bytes up to which copying all into one piece is quicker than to send the pieces.
_JOINED = 1 << 16


class Header(NamedTuple):
    """What a message says beside its operation and its arrays.

    Attributes
    ----------
    block, version, client, sequence : int, default=0
        64 bits each, for the service: which block of which version, who asks, how often.
    more : mapping, default={}
        What JSON can hold; small.
    """

    block: int = 0
    version: int = 0
    client: int = 0
    sequence: int = 0
    more: Mapping[str, Any] = MappingProxyType({})


class Message(NamedTuple):
    """What went, or is to go, over a line."""

    kind: int
    operation: str
    epoch: int
    header: Header
    arrays: Sequence[np.ndarray] = ()


Answer = tuple[Header, Sequence[np.ndarray]]


class Packed(NamedTuple):
    """A message that can be sent: all but the data, and arrays in C order."""

    head: bytes
    arrays: list[np.ndarray]


def pack(message: Message, largest: int) -> Packed:
    """Make a message ready; arrays are copied only where they are not in C order.

    Raises
    ------
    InputError
        It cannot be sent: objects or records, too many arrays or dimensions, more than
        ``largest`` bytes, numbers of more than 64 bits, what JSON cannot hold.
    """
    arrays = _in_order(message.arrays, largest)
    text = json_of(message.header)
    operation = message.operation.encode("ascii", "replace")
    if not 0 < len(operation) <= _LONGEST_OPERATION:
        raise InputError(
            f"An operation has 1 to {_LONGEST_OPERATION} letters, got "
            f"{message.operation!r}."
        )
    try:
        fixed = _FIXED.pack(
            _MAGIC, message.kind, len(arrays), 0, operation, message.epoch,
            *message.header[:4], len(text),
        )  # fmt: skip
    except struct.error:
        raise InputError(
            "The numbers of a header must be integers of 64 bits, got "
            f"{message.header[:4]}."
        ) from None
    return Packed(b"".join([fixed, *map(_described, arrays), text]), arrays)


def _in_order(arrays: Sequence[np.ndarray], largest: int) -> list[np.ndarray]:
    if len(arrays) > _MOST_ARRAYS:
        raise InputError(
            f"A message holds at most {_MOST_ARRAYS} arrays, got {len(arrays)}: stack them."
        )
    given = [np.asarray(array) for array in arrays]
    for array in given:
        if not _plain(array.dtype) or array.ndim > _MOST_DIMENSIONS:
            raise InputError(
                "Arrays of a message must hold numbers, dates or strings of a fixed size, "
                f"in at most {_MOST_DIMENSIONS} dimensions; got {array.dtype} in "
                f"{array.ndim}."
            )
    if (nbytes := sum(array.nbytes for array in given)) > largest:
        raise InputError(
            f"The arrays of a message may have {largest} bytes together, got {nbytes}: "
            "send them in pieces, or make the mesh with a larger `largest`."
        )
    return [np.asarray(array, order="C") for array in given]


def json_of(header: Header) -> bytes:
    """What ``header.more`` is on the wire.

    Raises
    ------
    InputError
        It is more than JSON can hold, or than a message may.
    """
    if not header.more:
        return b""
    try:
        text = json.dumps(dict(header.more), separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"`more` of a header must be what JSON can hold: {error}."
        ) from None
    if len(text) > _MOST_JSON:
        raise InputError(
            f"`more` of a header may have {_MOST_JSON} bytes, got {len(text)}: send arrays."
        )
    return text


def send(line: socket.socket, packed: Packed) -> None:
    """Write a message; raises OSError when the line breaks."""
    data = [_bytes_of(array) for array in packed.arrays if array.nbytes]
    if sum(map(len, data)) <= _JOINED:
        line.sendall(b"".join([packed.head, *data]))
        return
    line.sendall(packed.head)
    for view in data:
        line.sendall(view)


def receive(
    line: socket.socket, largest: int, into: Sequence[np.ndarray] | None = None
) -> Message | None:
    """Read a message; None when the line was closed before one began.

    Parameters
    ----------
    line : socket
        Blocking.
    largest : int
        Bytes that its arrays may have together.
    into : sequence of ndarray, optional
        Where an answer's arrays are put, if it is no refusal: C order, writeable.

    Raises
    ------
    WireError
        What came is no message, or a larger one.
    InputError
        ``into`` is not like the arrays that came.
    OSError
        The line broke within the message.

    After any of these the line is of no use.
    """
    fixed = bytearray(_FIXED.size)
    if not _fill(line, memoryview(fixed)):
        return None
    magic, kind, count, _, operation, epoch, *numbers, length = _FIXED.unpack(fixed)
    if magic != _MAGIC or kind > REFUSAL or length > _MOST_JSON:
        raise WireError("What came is no message of a mesh: another program, or version.")
    rest = bytearray(count * _ARRAY.size + length)
    _require(line, memoryview(rest))
    kinds = [_kind_of(rest, place) for place in range(count)]
    nbytes = sum(dtype.itemsize * math.prod(shape) for dtype, shape in kinds)
    if nbytes > largest:
        raise WireError(
            f"A message of {nbytes} bytes came, and {largest} is the most: send it in "
            "pieces."
        )
    block, version, client, sequence = numbers
    more = _more(rest[count * _ARRAY.size :])
    header = Header(block, version, client, sequence, more)
    arrays = _room(kinds) if into is None or kind != ANSWER else fitting(into, kinds)
    for array in arrays:
        if array.nbytes:
            _require(line, _bytes_of(array))
    return Message(kind, _name_of(operation), epoch, header, arrays)


def fitting(
    into: Sequence[np.ndarray], kinds: Sequence[tuple[np.dtype, tuple[int, ...]]]
) -> list[np.ndarray]:
    """The arrays ``into``, if values of these kinds can be put there as bytes."""
    given = [(array.dtype, array.shape) for array in into]
    ready = all(array.flags.c_contiguous and array.flags.writeable for array in into)
    if given != list(kinds) or not ready:
        raise InputError(
            f"`into` must be writeable arrays in C order like those of the answer, "
            f"{_shown(kinds)}; got {_shown(given)}{'' if ready else ', not all so'}."
        )
    return list(into)


def _shown(kinds: Sequence[tuple[np.dtype, tuple[int, ...]]]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for dtype, shape in kinds) or "no arrays"


def _plain(dtype: np.dtype) -> bool:
    return dtype.kind in _KINDS and dtype.itemsize > 0 and len(dtype.str) <= 8


def _described(array: np.ndarray) -> bytes:
    shape = array.shape + (0,) * (_MOST_DIMENSIONS - array.ndim)
    return _ARRAY.pack(array.dtype.str.encode(), array.ndim, *shape)


def _kind_of(rest: bytearray, place: int) -> tuple[np.dtype, tuple[int, ...]]:
    name, ndim, *shape = _ARRAY.unpack_from(rest, place * _ARRAY.size)
    if ndim > _MOST_DIMENSIONS or min(shape) < 0:
        raise WireError(f"An array of {ndim} dimensions, {shape}, cannot be received.")
    return _dtype(name), tuple(shape[:ndim])


@functools.lru_cache(maxsize=256)
def _dtype(name: bytes) -> np.dtype:
    text = _name_of(name)
    try:
        dtype = np.dtype(text if _DTYPE.fullmatch(text) else object)
    except TypeError:
        dtype = np.dtype(object)
    if not _plain(dtype):
        raise WireError(f"An array of {text!r} cannot be received.")
    return dtype


def _room(kinds: Sequence[tuple[np.dtype, tuple[int, ...]]]) -> list[np.ndarray]:
    try:
        return [np.empty(shape, dtype) for dtype, shape in kinds]
    except ValueError:  # nothing in one dimension, and too much in another
        raise WireError(f"Arrays {_shown(kinds)} cannot be received.") from None


def _more(text: bytearray) -> Mapping[str, Any]:
    if not text:
        return MappingProxyType({})
    try:
        more = json.loads(text)
    except (ValueError, RecursionError):
        more = None
    if not isinstance(more, dict):
        raise WireError("The header of a message must hold a JSON object.")
    return more


def _name_of(operation: bytes) -> str:
    return operation.rstrip(b"\0").decode("ascii", "replace")


def _bytes_of(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _require(line: socket.socket, view: memoryview) -> None:
    if len(view) and not _fill(line, view):
        raise ConnectionError("the line was closed within a message")


def _fill(line: socket.socket, view: memoryview) -> bool:
    """Read until ``view`` is full; False when the line was closed before its first byte."""
    got, size = 0, len(view)
    while got < size:
        count = line.recv_into(view[got:])
        if not count:
            if got:
                raise ConnectionError("the line was closed within a message")
            return False
        got += count
    return True
