"""Tables that the judges draw: columns of every kind, in every container, and new rows.

What mlopt is given and what scikit-learn is given are made from the same frame; only for
Dask they differ, where scikit-learn's is the computed one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
from hypothesis import strategies as st

NUMBERS = (
    "normal",
    "wide",
    "missing",
    "one missing",
    "constant",
    "counts",
    "peak",
    "zeros",
)
WORDS = ("category", "rare category", "missing category")
TEXT = ("documents",)

_VOCABULARY = [
    "red",
    "blue",
    "green",
    "loud",
    "quiet",
    "warm",
    "cold",
    "sweet",
    "old",
    "new",
]


@dataclass(frozen=True)
class Table:
    """What `make` builds; equal tables are built equal.

    Attributes
    ----------
    container : str
        One of `CONTAINERS`.
    columns : tuple of str
        The kind of each column.
    n, seed : int
    labels : str
        "two", "three", "words", "sorted" or "numbers".
    cuts : tuple of float
        Where chunks of a Dask collection end, as shares of the rows; two equal ones leave
        an empty chunk between them.
    """

    container: str
    columns: tuple[str, ...]
    n: int
    labels: str
    seed: int
    cuts: tuple[float, ...] = ()

    @property
    def is_frame(self) -> bool:
        """Whether columns have names."""
        return self.container in FRAMES

    @property
    def is_dask(self) -> bool:
        """Whether rows come in chunks."""
        return self.container in DASK

    @property
    def is_sparse(self) -> bool:
        """Whether rows are sparse."""
        return self.container in SPARSE

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return [f"c{i}" for i in range(len(self.columns))]

    def those(self, *kinds: str) -> list[str]:
        """Names of the columns of some kinds."""
        pairs = zip(self.names, self.columns, strict=True)
        return [name for name, kind in pairs if kind in kinds]


@dataclass(frozen=True)
class Given:
    """The same rows for both: X (n, d), y (n,), and other rows ``new`` without y."""

    ours: tuple[Any, Any, Any]
    theirs: tuple[Any, Any, Any]


def make(table: Table) -> Given:
    """The rows of a table, for mlopt and for scikit-learn."""
    rng = np.random.default_rng(table.seed)
    frame = _frame(table, rng, table.n)
    y = _labels(table, frame, rng)
    if table.labels == "sorted":
        order = np.argsort(y, kind="stable")
        frame, y = frame.iloc[order].reset_index(drop=True), y[order]
    new = _frame(table, rng, 23)
    for name in table.those(*WORDS):
        new.loc[new.index[3], name] = "unseen"
    if table.container in DASK:
        return _dask(table, frame, y, new)
    convert = CONTAINERS[table.container]
    rows, y, others = convert(frame), y, convert(new)
    if table.container == "arrow":  # reaches the steps as a frame, a documented difference
        return Given((rows, y, others), (frame.copy(), y.copy(), new.copy()))
    copied = convert(frame.copy()), y.copy(), convert(new.copy())
    return Given((rows, y, others), copied)


def _frame(table: Table, rng: np.random.Generator, n: int) -> pd.DataFrame:
    kinds = zip(table.names, table.columns, strict=True)
    return pd.DataFrame({name: _column(kind, rng, n) for name, kind in kinds})


def _column(kind: str, rng: np.random.Generator, n: int) -> Any:
    """One column; of sparse ones most are zero."""
    x: Any = rng.normal(size=n)
    if kind == "wide":
        return x * 1000 + 300
    if kind == "missing":
        return np.where(rng.random(n) < 0.2, np.nan, x)
    if kind == "one missing":
        x[rng.integers(n)] = np.nan
        return x
    if kind == "constant":
        return np.full(n, 2.5)
    if kind == "counts":
        return rng.poisson(2.0, n).astype(float)
    if kind == "peak":  # one row that decides a maximum
        x[rng.integers(n)] = 50.0
        return x
    if kind == "zeros":
        return np.where(rng.random(n) < 0.7, 0.0, x)
    if kind == "documents":
        lengths = rng.integers(1, 7, n)
        return [" ".join(rng.choice(_VOCABULARY, size)) for size in lengths]
    if kind in WORDS:
        words = rng.choice(np.array(["a", "b", "c"], dtype=object), n)
        if kind == "rare category":
            words[rng.integers(n)] = "z"
        if kind == "missing category":
            words[rng.random(n) < 0.15] = None
        return pd.Series(words, dtype=object)
    return x


def _labels(table: Table, frame: pd.DataFrame, rng: np.random.Generator) -> Any:
    numbers = frame[table.those("normal", "wide", "counts", "zeros")]
    score = np.zeros(table.n)
    if numbers.shape[1]:
        score = ((numbers - numbers.mean()) / (numbers.std() + 1e-9)).sum(axis=1).to_numpy()
    score = score + rng.normal(size=table.n)
    if table.labels == "numbers":
        return score
    if table.labels == "three":
        return np.digitize(score, np.quantile(score, [0.4, 0.8]))
    classes = (score > np.median(score)).astype(int)
    if table.labels == "words":
        return np.array(["no", "yes"])[classes]
    return classes


def _dask(table: Table, frame: pd.DataFrame, y: Any, new: pd.DataFrame) -> Given:
    edges = [0, *(round(cut * table.n) for cut in sorted(table.cuts)), table.n]
    ours = DASK[table.container](frame, y, edges)
    theirs = (_as_pandas(ours[0].compute()), np.asarray(ours[1].compute()))
    if table.container.startswith("dask array"):
        return Given((*ours, new.to_numpy(float)), (*theirs, new.to_numpy(float)))
    return Given((*ours, new), (*theirs, new.copy()))


def _chunked(rows: Any, edges: list[int]) -> da.Array:
    sizes = tuple(b - a for a, b in pairwise(edges))
    return da.from_array(rows, chunks=(sizes, *((size,) for size in rows.shape[1:])))


def _array(frame: pd.DataFrame, y: Any, edges: list[int]) -> tuple[Any, Any]:
    return _chunked(frame.to_numpy(float), edges), _chunked(y, edges)


def _mapped(frame: pd.DataFrame, y: Any, edges: list[int]) -> tuple[Any, Any]:
    """An array that is a computation on another, as most are."""
    X, target = _array(frame, y, edges)
    return (X + 1.0).map_blocks(lambda block: block * 1.0, dtype=float), target


def _as_pandas(rows: Any) -> Any:
    """With text as pandas has it: scikit-learn takes no missing text of Dask's type."""
    text = [name for name in getattr(rows, "columns", ()) if rows[name].dtype == "string"]
    return rows.astype(dict.fromkeys(text, pd.Series([""]).dtype)) if text else rows


def _pieces(frame: pd.DataFrame, y: Any, edges: list[int]) -> Any:
    """A data frame with the target among its columns, in parts that may be empty."""
    whole = frame.assign(target=y)
    parts = [whole.iloc[a:b] for a, b in pairwise(edges)]
    return dd.from_map(lambda number: parts[number], range(len(parts)), meta=whole.iloc[:0])


def _whole(frame: pd.DataFrame, y: Any, edges: list[int]) -> Any:
    parts = max(len(edges) - 1, 1)
    return dd.from_pandas(frame.assign(target=y), npartitions=parts, sort=False)


def _selected(frame: pd.DataFrame, y: Any, edges: list[int]) -> tuple[Any, Any]:
    ddf = _whole(frame, y, edges)
    return ddf[list(frame.columns)], ddf["target"]


def _dropped(frame: pd.DataFrame, y: Any, edges: list[int]) -> tuple[Any, Any]:
    ddf = _whole(frame, y, edges)
    return ddf.drop(columns="target"), ddf["target"]


def _parts(frame: pd.DataFrame, y: Any, edges: list[int]) -> tuple[Any, Any]:
    ddf = _pieces(frame, y, edges)
    return ddf[list(frame.columns)], ddf["target"]


def _filtered(frame: pd.DataFrame, y: Any, edges: list[int]) -> tuple[Any, Any]:
    """Rows of which a condition keeps some: of one part perhaps none."""
    n = len(frame)
    flag = np.ones(n)
    flag[edges[-2] if edges[-2] < n * 0.9 else n - 3 :] = 0.0
    if flag.sum() < n / 2:
        flag[:] = 1.0
    ddf = _pieces(frame.assign(flag=flag), y, edges)
    kept = ddf[ddf["flag"] > 0.5]
    return kept.drop(columns=["flag", "target"]), kept["target"]


def _polars(frame: pd.DataFrame) -> Any:
    return pl.from_pandas(frame)


SPARSE: dict[str, Callable[[pd.DataFrame], Any]] = {
    "csr": lambda frame: sp.csr_array(frame.to_numpy(float)),
    "csr matrix": lambda frame: sp.csr_matrix(frame.to_numpy(float)),
    "csc": lambda frame: sp.csc_array(frame.to_numpy(float)),
    "coo": lambda frame: sp.coo_array(frame.to_numpy(float)),
    "bsr": lambda frame: sp.bsr_array(frame.to_numpy(float)),
    "csr float32": lambda frame: sp.csr_array(frame.to_numpy(np.float32)),
}
ARRAYS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "array": lambda frame: frame.to_numpy(float),
    "float32": lambda frame: frame.to_numpy(np.float32),
    "fortran": lambda frame: np.asfortranarray(frame.to_numpy(float)),
    "lists": lambda frame: frame.to_numpy(float).tolist(),
}
MEMORY_FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "pandas categories": lambda frame: frame.astype(
        {name: "category" for name in frame.columns if frame[name].dtype == object}
    ),
    "polars": _polars,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
DASK: dict[str, Callable[[pd.DataFrame, Any, list[int]], tuple[Any, Any]]] = {
    "dask array": _array,
    "dask array mapped": _mapped,
    "dask frame[columns]": _selected,
    "dask frame.drop": _dropped,
    "dask frame parts": _parts,
    "dask frame filtered": _filtered,
}
TEXTS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "list of text": lambda frame: list(frame["c0"]),
    "array of text": lambda frame: frame["c0"].to_numpy(dtype=object),
    "series of text": lambda frame: frame["c0"],
}
CONTAINERS = {**SPARSE, **ARRAYS, **MEMORY_FRAMES, **TEXTS}
FRAMES = {*MEMORY_FRAMES, *(name for name in DASK if "frame" in name)}

_SIZES = st.sampled_from([24, 60, 60, 97, 180, 180, 1100, 4500])
"""Run as scikit-learn does, planned in one block, and in several."""
_LONG = st.sampled_from([60, 97, 180, 1100, 1500, 4500])
"""In chunks, more rows than a sample has, so that a sample cannot tell what all rows do."""
_LABELS = st.sampled_from(["two", "three", "words", "sorted", "numbers"])
_SEEDS = st.integers(0, 9)


@st.composite
def tables(draw: Any, containers: tuple[str, ...], kinds: tuple[str, ...]) -> Table:
    """Tables in one of some containers, with columns of some kinds."""
    container = draw(st.sampled_from(containers))
    columns = tuple(draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=5)))
    if container in TEXTS:
        columns = TEXT
    if container in SPARSE:
        columns = (*columns, "zeros", "zeros")
    lazy = container in DASK
    cuts = ()
    if lazy:
        points = st.sampled_from([0.0, 0.1, 0.35, 0.5, 0.5, 0.8, 1.0])
        cuts = tuple(sorted(draw(st.lists(points, min_size=1, max_size=4))))
    n = draw(_LONG if lazy else _SIZES)
    return Table(container, columns, n, draw(_LABELS), draw(_SEEDS), cuts)
