"""Messages between members: fixed headers, then arrays as they lie in memory; no pickle.

::

    fixed   magic, kind, number of arrays, bytes of JSON,
            operation, epoch, block, version, client, sequence,
            the first array, zeros where there is none               136 bytes
    arrays  the others: dtype, number of dimensions, shape            64 bytes each
    JSON    what else the header says
    data    the arrays' bytes, one after the other

Numbers are little-endian. All sizes are known, and held to their limits, before memory is
taken for what follows; arrays are received into aligned memory, in place.

A message of one array is two reads. What Python does in between counts: after a copy of
1 MB the processor's caches hold nothing of it.
"""

from __future__ import annotations

import contextlib
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
_FIXED = struct.Struct("<4sBBxxI4x16s5q64s")
_ARRAY = struct.Struct("<8sQ6q")
# Kinds of numpy's numbers, dates and strings of a fixed size: what can do without pickle.
_KINDS = frozenset("biufcmMSU")
_DTYPE = re.compile(r"[<>|][biufcmMSU]\d+(\[\w+\])?")
_WHOLE = getattr(socket, "MSG_WAITALL", 0)
_NOTHING: Mapping[str, Any] = MappingProxyType({})
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
    more: Mapping[str, Any] = _NOTHING


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

    header: Header
    head: bytes
    arrays: Sequence[np.ndarray]
    nbytes: int


class Kind(NamedTuple):
    """What is known of an array before it comes."""

    dtype: np.dtype
    shape: tuple[int, ...]
    nbytes: int


def pack(message: Message, largest: int) -> Packed:
    """Make a message ready; arrays are copied only where they are not in C order.

    Raises
    ------
    InputError
        It cannot be sent: objects or records, too many arrays or dimensions, more than
        ``largest`` bytes, numbers of more than 64 bits, what JSON cannot hold.
    """
    kind, operation, epoch, header, arrays = message
    block, version, client, sequence, more = header
    text = json_of(header) if more else b""
    ordered, described, nbytes = [], [], 0
    for one in arrays:
        array = one if type(one) is np.ndarray else np.asarray(one)
        described.append(_described(array.dtype, array.shape))
        nbytes += array.nbytes
        if nbytes > largest or len(described) > _MOST_ARRAYS:
            raise _too_much(arrays, largest)
        ordered.append(array if array.flags.c_contiguous else np.asarray(array, order="C"))
    first = described[0] if described else b""
    try:
        head = _FIXED.pack(
            _MAGIC, kind, len(ordered), len(text), _code_of(operation), epoch,
            block, version, client, sequence, first,
        )  # fmt: skip
    except struct.error:
        raise InputError(
            f"The numbers of a header must be integers of 64 bits, got {header[:4]}."
        ) from None
    if text or len(described) > 1:
        head = b"".join([head, *described[1:], text])
    return Packed(header, head, ordered, nbytes)


def json_of(header: Header) -> bytes:
    """What ``header.more`` is on the wire.

    Raises
    ------
    InputError
        It is more than JSON can hold, or than a message may.
    """
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
    _, head, arrays, nbytes = packed
    if 0 < nbytes <= _JOINED:
        head = b"".join([head, *map(_memory, arrays)])
    line.sendall(head)
    for array in arrays if nbytes > _JOINED else ():
        if array.nbytes:
            line.sendall(_memory(array))


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
    if not _fill(line, fixed, _FIXED.size):
        return None
    (magic, kind, count, length, operation, epoch,
     block, version, client, sequence, first) = _FIXED.unpack(fixed)  # fmt: skip
    if magic != _MAGIC or kind > REFUSAL or length > _MOST_JSON:
        raise WireError("What came is no message of a mesh: another program, or version.")
    kinds: tuple[Kind, ...] = (_kind_of(first),) if count else ()
    more = _NOTHING
    if count > 1 or length:
        others, more = _rest(line, count - 1, length)
        kinds += others
    nbytes = 0
    for one in kinds:
        nbytes += one.nbytes
    if nbytes > largest:
        raise WireError(
            f"A message of {nbytes} bytes came, and {largest} is the most: send it in "
            "pieces."
        )
    arrays = _room(kinds) if into is None or kind != ANSWER else fitting(into, kinds)
    header = Header(block, version, client, sequence, more)
    message = Message(kind, _name_of(operation), epoch, header, arrays)
    for array, (_, _, nbytes) in zip(arrays, kinds, strict=False):
        if nbytes and not _fill(line, _memory(array), nbytes):
            raise _torn()
    return message


def fitting(into: Sequence[np.ndarray], kinds: Sequence[Kind]) -> Sequence[np.ndarray]:
    """The arrays ``into``, if values of these kinds can be put there as bytes."""
    fit = len(into) == len(kinds)
    for place, (dtype, shape, _) in zip(into, kinds, strict=False):
        flags = place.flags
        fit = fit and place.dtype == dtype and place.shape == shape
        fit = fit and flags.c_contiguous and flags.writeable
    if not fit:
        raise InputError(
            f"`into` must be writeable arrays in C order like those of the answer, "
            f"{_shown(kinds)}; got {_shown(kinds_of(into))}."
        )
    return into


def kinds_of(arrays: Sequence[np.ndarray]) -> list[Kind]:
    """Of arrays that are there."""
    return [Kind(array.dtype, array.shape, array.nbytes) for array in arrays]


def _shown(kinds: Sequence[Kind]) -> str:
    return ", ".join(f"{one.dtype}{list(one.shape)}" for one in kinds) or "no arrays"


def _too_much(arrays: Sequence[np.ndarray], largest: int) -> InputError:
    return InputError(
        f"The arrays of a message may be {_MOST_ARRAYS} and have {largest} bytes together; "
        f"got {len(arrays)} of {sum(np.asarray(one).nbytes for one in arrays)} bytes: send "
        "them in pieces, or make the mesh with a larger `largest`."
    )


def may_be_sent(arrays: Sequence[np.ndarray]) -> bool:
    """Whether a message can have these."""
    few = len(arrays) <= _MOST_ARRAYS
    return few and all(_plain(a.dtype) and a.ndim <= _MOST_DIMENSIONS for a in arrays)


def _plain(dtype: np.dtype) -> bool:
    return dtype.kind in _KINDS and dtype.itemsize > 0 and len(dtype.str) <= 8


@functools.lru_cache(maxsize=1024)
def _described(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    if not _plain(dtype) or len(shape) > _MOST_DIMENSIONS:
        raise InputError(
            "Arrays of a message must hold numbers, dates or strings of a fixed size, in "
            f"at most {_MOST_DIMENSIONS} dimensions; got {dtype} in {len(shape)}."
        )
    sides = shape + (0,) * (_MOST_DIMENSIONS - len(shape))
    return _ARRAY.pack(dtype.str.encode(), len(shape), *sides)


@functools.lru_cache(maxsize=1024)
def _kind_of(described: bytes) -> Kind:
    name, ndim, *sides = _ARRAY.unpack(described)
    text, dtype = _name_of(name), np.dtype(object)
    with contextlib.suppress(TypeError):
        dtype = np.dtype(text if _DTYPE.fullmatch(text) else object)
    if not _plain(dtype) or ndim > _MOST_DIMENSIONS or min(sides) < 0:
        raise WireError(f"An array of {text!r}, {ndim}: {sides} cannot be received.")
    shape = tuple(sides[:ndim])
    return Kind(dtype, shape, dtype.itemsize * math.prod(shape))


@functools.lru_cache(maxsize=1024)
def _code_of(operation: str) -> bytes:
    code = operation.encode("ascii", "replace")
    if not 0 < len(code) <= _LONGEST_OPERATION:
        raise InputError(
            f"An operation has 1 to {_LONGEST_OPERATION} letters, got {operation!r}."
        )
    return code


@functools.lru_cache(maxsize=1024)
def _name_of(code: bytes) -> str:
    return code.rstrip(b"\0").decode("ascii", "replace")


def _rest(
    line: socket.socket, count: int, length: int
) -> tuple[tuple[Kind, ...], Mapping[str, Any]]:
    """The kinds of further arrays, and the JSON."""
    described = max(0, count) * _ARRAY.size
    rest = bytearray(described + length)
    if not _fill(line, rest, len(rest)):
        raise _torn()
    places = range(0, described, _ARRAY.size)
    kinds = tuple(_kind_of(bytes(rest[one : one + _ARRAY.size])) for one in places)
    if not length:
        return kinds, _NOTHING
    try:
        more = json.loads(rest[described:])
    except (ValueError, RecursionError):
        more = None
    if not isinstance(more, dict):
        raise WireError("The header of a message must hold a JSON object.")
    return kinds, more


def _room(kinds: Sequence[Kind]) -> list[np.ndarray]:
    try:
        return [np.empty(kind.shape, kind.dtype) for kind in kinds]
    except ValueError:  # nothing in one dimension, and too much in another
        raise WireError(f"Arrays {_shown(kinds)} cannot be received.") from None


def _memory(array: np.ndarray) -> Any:
    """The array, as something whose memory Python may cut; it knows no dates."""
    known = array.dtype.kind in "biuf" and array.dtype.isnative and array.itemsize <= 8
    return array if known else array.reshape(-1).view(np.uint8)


def _torn() -> ConnectionError:
    return ConnectionError("the line was closed within a message")


def _fill(line: socket.socket, memory: Any, size: int) -> bool:
    """Read ``size`` bytes; False when the line was closed before the first."""
    # The system waits for all of them, but for signals; TLS has to be asked again.
    flags = _WHOLE if type(line) is socket.socket else 0
    got = line.recv_into(memory, size, flags)
    if got == size:
        return True
    if not got:
        return False
    view = memoryview(memory).cast("B")
    while got < size:
        count = line.recv_into(view[got:size], 0, flags)
        if not count:
            raise _torn()
        got += count
    return True
