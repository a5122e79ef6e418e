"""Data frames of pandas, Arrow and polars: their types and columns, whatever the chunks."""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from mlopt.identity import graphs

if TYPE_CHECKING:
    from mlopt.identity.walk import Walk


def write(walk: Walk, value: Any) -> bool:
    """Whether ``value`` is a frame, or a part of one."""
    home = type(value).__module__.partition(".")[0]
    if home == "pandas":
        return _pandas(walk, value)
    if home == "pyarrow":
        return _arrow(walk, value)
    if home == "polars":
        return _polars(walk, value)
    return False


def _pandas(walk: Walk, value: Any) -> bool:
    pd = sys.modules["pandas"]
    if type(value) is pd.DataFrame:
        walk.put("frame", str(value.shape))
        walk.add(value.index)
        walk.add(value.columns)
        for number in range(value.shape[1]):
            _values(walk, value.iloc[:, number].array)
        walk.add(value.attrs)
    elif type(value) is pd.Series:
        walk.put("series")
        walk.add(value.name)
        walk.add(value.index)
        _values(walk, value.array)
        walk.add(value.attrs)
    elif isinstance(value, pd.RangeIndex):
        walk.put("range", f"{value.start} {value.stop} {value.step}")
        walk.add(value.name)
    elif isinstance(value, pd.MultiIndex):
        walk.put("levels")
        walk.add([list(value.names), list(value.levels), list(value.codes)])
    elif isinstance(value, pd.Index):
        walk.put("index")
        walk.add([value.name, getattr(value, "freqstr", None)])
        _values(walk, value.array)
    elif isinstance(value, pd.api.extensions.ExtensionArray):
        _values(walk, value)
    else:
        return False
    return True


def _values(walk: Walk, values: Any) -> None:
    """One column; pandas' own array around a plain one is no more than that."""
    dtype = values.dtype
    walk.put("column", f"{type(values).__name__} {dtype!r}")
    if dtype.name in ("str", "string") and walk.tasks is None:
        graphs.rows(walk, (text for text in values if isinstance(text, str)))
    if isinstance(dtype, np.dtype):
        walk.add(np.asarray(values))
    elif hasattr(values, "categories") and hasattr(values, "codes"):
        walk.add([np.asarray(values.codes), bool(values.ordered)])
        walk.add(values.categories)
    elif hasattr(values, "asi8"):  # moments in a time zone, periods
        walk.add(values.asi8)
    elif hasattr(values, "__arrow_array__") and "pyarrow" in sys.modules:
        walk.add(sys.modules["pyarrow"].array(values))
    else:
        walk.add(np.asarray(values, dtype=object))


def _arrow(walk: Walk, value: Any) -> bool:
    import pyarrow as pa

    if isinstance(value, pa.RecordBatch):
        value = pa.Table.from_batches([value])
    elif isinstance(value, pa.ChunkedArray | pa.Array):
        value = pa.table({"": value})
    if type(value) is not pa.Table:
        return False
    walk.put("table", f"{value.shape}")
    sink = _Sink()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), value.schema) as stream:
        for batch in value.combine_chunks().to_batches():
            stream.write_batch(batch)
    walk.put("rows", sink.digest.digest())
    return True


class _Sink:
    """A file of which only the digest is kept."""

    closed = False

    def __init__(self) -> None:
        self.digest = hashlib.sha1(usedforsecurity=False)

    def write(self, data: Any) -> int:
        """Takes note of the bytes."""
        self.digest.update(data)
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is open."""


def _polars(walk: Walk, value: Any) -> bool:
    pl = sys.modules["polars"]
    if isinstance(value, pl.Series):
        value = value.to_frame()
    if type(value) is not pl.DataFrame:
        return False
    walk.put("polars", repr(value.schema))
    return _arrow(walk, value.to_arrow())
