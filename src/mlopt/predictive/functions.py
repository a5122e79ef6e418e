"""A model as a function of DuckDB: from columns to predictions, 2048 rows a call."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.base import is_classifier

from mlopt.plan import Choice

_KINDS = {"b": "BOOLEAN", "i": "BIGINT", "u": "UBIGINT", "f": "DOUBLE"}
"""SQL types of predictions by the kind of their array; all others come as text."""


@dataclass(eq=False)
class Function:
    """The predictions of a model, for DuckDB to call.

    Parameters
    ----------
    name : str
        In SQL.
    target : str
        The column that is predicted.
    model : estimator
        Fitted.
    planned : Choice
        How it came about.
    """

    name: str
    target: str
    model: Any
    planned: Choice
    rows: int = 0
    seconds: float = 0.0
    error: Exception | None = field(default=None, repr=False)

    @property
    def classifies(self) -> bool:
        """Whether predictions are values of the target."""
        return bool(is_classifier(self.model))

    @property
    def kind(self) -> str:
        """The SQL type of what is returned."""
        if not self.classifies:
            return "DOUBLE"
        return _KINDS.get(np.asarray(self.model.classes_).dtype.kind, "VARCHAR")

    def __call__(self, rows: pa.ChunkedArray) -> pa.Array:
        """Predictions of rows, an array of structures."""
        started = time.perf_counter()
        try:
            frame = pa.Table.from_struct_array(rows).to_pandas()
            found = np.asarray(self.model.predict(frame))
        except Exception as error:  # DuckDB says that a function failed, and where in it
            self.error = error
            raise
        self.rows += len(found)
        self.seconds += time.perf_counter() - started
        if self.kind == "VARCHAR":
            return pa.array([str(value) for value in found.tolist()], pa.string())
        return pa.array(found)

    def choice(self) -> Choice:
        """How the model came about, and what it did since."""
        rows = f"{self.rows:,} rows, in DuckDB"
        done = Choice("predict", type(self.model).__name__, rows, measured=self.seconds)
        return replace(self.planned, children=(*self.planned.children, done))


def renamed(columns: Iterable[str], functions: Iterable[Function]) -> pd.Index:
    """Columns without a name of their own are called as the target, not as the function.

    One that is there already gets a number behind it, as DuckDB does: ``tag_1``.
    """
    names = list(columns)
    for at, name in enumerate(names):
        for of in (one for one in functions if f"{one.name}(" in name):
            tried = (f"{of.target}_{n}" if n else of.target for n in count())
            names[at] = next(one for one in tried if one not in names)
            break
    return pd.Index(names)
