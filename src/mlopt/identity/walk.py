"""A walk through a value, that writes all of its content into one digest.

Every piece is written with its kind and its length, so that no two values run into the
same bytes. Containers being walked are met again as so many levels up; classes and
functions, which are shared by nature, by the number under which they were met first.
"""

from __future__ import annotations

import copyreg
import hashlib
import struct
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from mlopt.identity import code, frames, graphs, sequences
from mlopt.identity.params import parameters
from mlopt.identity.unknown import Unidentified

_PROTOCOL = 4
"""Of `__reduce_ex__`: the oldest that treats slots and keyword arguments."""


class Walk:
    """Writes what tells a value from any other.

    Attributes
    ----------
    fitted : bool
        Whether estimators of known libraries count with what they have learnt.
    tasks : dict of key to digest, or None
        Of the Dask graph being walked; None outside of one.
    files : dict of str to str
        What the files that tasks name are like: all of them name the same folder.
    """

    def __init__(self, *, fitted: bool = False) -> None:
        self.fitted = fitted
        self.tasks: dict[Any, str] | None = None
        self.files: dict[str, str] = {}
        self._digest = _new()
        self._open: dict[int, int] = {}
        # With the objects themselves: a number stands for one only as long as it lives.
        self._met: dict[tuple[Any, ...], tuple[int, Any]] = {}

    def hexdigest(self) -> str:
        """Of everything added so far: 32 hexadecimal digits."""
        return str(self._digest.hexdigest()[:32])

    def put(self, kind: str, payload: Any = b"") -> None:
        """Write one piece: text or bytes."""
        data = payload.encode() if isinstance(payload, str) else payload
        self._digest.update(f"{kind} {len(data)}:".encode())
        self._digest.update(data)

    def add(self, value: Any) -> None:
        """Write a value with all it is made of."""
        write = _PLAIN.get(type(value))
        if write is not None:
            self.put(type(value).__name__, write(value))
            if self.tasks is not None and type(value) is str:
                graphs.file(self, value)
            return
        if id(value) in self._open:
            self.put("above", str(len(self._open) - self._open[id(value)]))
            return
        self._open[id(value)] = len(self._open)
        try:
            self._compound(value)
        finally:
            del self._open[id(value)]

    def first(self, value: Any, *details: Any) -> bool:
        """Whether code, so looked at, is met for the first time; else that is written."""
        key = (id(value), *details)
        if key in self._met:
            self.put("met", str(self._met[key][0]))
            return False
        self._met[key] = (len(self._met), value)
        return True

    def apart(self, *values: Any) -> str:
        """The digest of values by themselves, that changes nothing here."""
        outer, met = self._digest, self._met
        self._digest, self._met = _new(), dict(met)
        try:
            for value in values:
                self.add(value)
            return self.hexdigest()
        finally:
            self._digest, self._met = outer, met

    def pairs(self, kind: str, items: Iterable[tuple[str, Any]]) -> None:
        """Write names and their values, in the order of the names."""
        named = sorted(items, key=lambda item: item[0])
        self.put(kind, str(len(named)))
        for name, value in named:
            self.put("name", name)
            self.add(value)

    def _compound(self, value: Any) -> None:
        kind = type(value)
        if kind is list or kind is tuple:
            self.put(kind.__name__, str(len(value)))
            sequences.write(self, value)
        elif kind is dict:
            self.put("dict", str(len(value)))
            for key, item in value.items():
                self.add(key)
                self.add(item)
        elif kind is set or kind is frozenset:
            self.put(kind.__name__, str(len(value)))
            for digest in sorted(self.apart(item) for item in value):
                self.put("item", digest)
        elif not _estimator(self, value):
            # Only parameters are cloned before a fit: what anything else holds is used.
            before, self.fitted = self.fitted, True
            if not any(write(self, value) for write in _KINDS):
                self.by_parts(value)
            self.fitted = before

    def by_parts(self, value: Any) -> None:
        """An object by what would make it anew, as pickle has it.

        Raises
        ------
        Unidentified
            Where nothing can.
        """
        reducer = copyreg.dispatch_table.get(type(value))
        try:
            found = reducer(value) if reducer else value.__reduce_ex__(_PROTOCOL)
        except Exception as error:
            raise Unidentified(type(value).__name__) from error
        if isinstance(found, str):
            self.put("global", found)
            self.add(type(value))
            return
        make, arguments, state, items, pairs = (*found, None, None, None)[:5]
        self.put("object")
        self.add(make)
        self.add(arguments)
        if type(state) is dict and all(type(name) is str for name in state):
            self.pairs("state", state.items())
        else:
            self.add(state)
        self.add(None if items is None else list(items))
        self.add(None if pairs is None else list(pairs))


def _new() -> Any:
    return hashlib.sha1(usedforsecurity=False)


def _nothing(value: Any) -> bytes:
    del value
    return b""


_PLAIN: dict[type, Any] = {
    type(None): _nothing,
    type(Ellipsis): _nothing,
    type(NotImplemented): _nothing,
    bool: lambda value: b"1" if value else b"0",
    int: lambda value: hex(value).encode(),
    float: lambda value: struct.pack("<d", value),
    complex: lambda value: struct.pack("<dd", value.real, value.imag),
    str: lambda value: value.encode("utf-8", "surrogatepass"),
    bytes: lambda value: value,
    bytearray: bytes,
}


def _estimator(walk: Walk, value: Any) -> bool:
    """Estimators of known libraries by class and parameters, or also by what they learnt.

    What others hold beside their parameters may matter to a fit: they are like any object.
    """
    if not hasattr(value, "get_params") or not code.is_known(code.class_of(value)):
        return False
    frozen = sys.modules.get("sklearn.frozen")
    if walk.fitted or (frozen is not None and type(value) is frozen.FrozenEstimator):
        before, walk.fitted = walk.fitted, True
        walk.by_parts(value)
        walk.fitted = before
        return True
    walk.put("estimator")
    walk.add(type(value))
    walk.pairs("parameters", parameters(value).items())
    # How rows come out, and which metadata are asked for.
    held = getattr(value, "__dict__", {})
    walk.pairs("settings", [(name, held[name]) for name in SETTINGS if name in held])
    return True


SETTINGS = ("_metadata_request", "_sklearn_output_config")
"""Attributes of estimators that methods set, and that `sklearn.base.clone` keeps."""


def _number(walk: Walk, value: Any) -> bool:
    if not isinstance(value, np.generic):
        return False
    walk.put("scalar", value.dtype.str)
    walk.add(value.item() if value.dtype.hasobject else value.tobytes())
    return True


_KINDS = (
    sequences.array, _number, code.write, sequences.sparse, frames.write, graphs.write,
)  # fmt: skip
