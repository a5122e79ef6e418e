"""What all estimators share: reading their input, and applying what they learnt.

Data in memory go through scikit-learn's own validation. Dask collections do not, for that
would load them: their blocks are checked where they are, and predictions stay lazy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_array, validate_data

from mlopt.cluster import Executor, Threads
from mlopt.cluster.near import NEAR
from mlopt.cluster.threads import threads_here
from mlopt.errors import InputError
from mlopt.kernels.compiling import notes as notes_of_compiling
from mlopt.kernels.compiling import worked
from mlopt.options import plans_always
from mlopt.plan import Choice, Plan
from mlopt.prices import count
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.rows.arriving import came
from mlopt.rows.block import check_unmasked
from mlopt.rows.frames import frame_dtype, frame_names, part_matrix
from mlopt.rows.source import collected_together, held, is_dask, split_with

FLOATS = (np.float64, np.float32)
SMALL = count("small.values")
"""Values up to which a fit is not worth predictions, nor a second thread."""


@dataclass(frozen=True)
class Sample:
    """The rows to learn from.

    Attributes
    ----------
    rows : Rows
    y : ndarray of shape (n,) or (n, T)
    weights : ndarray of shape (n,), float64
        Ones when the caller gave none.
    read_in : float
        Seconds in which a Dask collection was read and posed; 0 of what is in memory.
    told : tuple of str
        What a plan has to say of the rows.
    """

    rows: Rows
    y: NDArray[Any]
    weights: NDArray[np.float64]
    read_in: float = 0.0
    told: tuple[str, ...] = ()


def read(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    executor: Executor,
    numeric: bool,
    block_rows: Callable[[Any], int | None] | None = None,
    by_columns: bool = False,
) -> Sample:
    """Validate what `fit` was given and cut it into blocks.

    Sets ``n_features_in_`` and, if the columns have names, ``feature_names_in_``.

    Parameters
    ----------
    estimator : BaseEstimator
    X : array-like, sparse matrix, data frame, dask array, dask dataframe or Rows, (n, d)
    y : array-like of shape (n,) or (n, T)
    sample_weight : float or array-like of shape (n,), optional
    executor : Executor
    numeric : bool
        Whether y holds numbers, perhaps of several targets; else it holds labels.
    block_rows : callable, optional
        From X in memory to the rows of a block, or None for the default; small X are one.
    by_columns : bool, default=False
        Whether what trains goes by columns: X in memory is one block if it is trained
        here, and columns that are given stay columns.

    Raises
    ------
    ValueError
        When X or y is malformed, not finite, or their lengths differ.
    """
    rows: Any = None
    if is_dask(X):
        check_unmasked(X, "X")
        see_columns(estimator, X)
        source, (y, sample_weight) = split_with(X, (y, sample_weight), executor)
        rows = Rows.on_shelves(source, executor)
    y, sample_weight = collected_together(y, sample_weight)
    for name, given in (("X", X), ("y", y), ("sample_weight", sample_weight)):
        check_unmasked(given, name)
    y = numbers(y) if numeric else y
    if isinstance(X, Rows):
        estimator.n_features_in_, rows = X.d, X
        estimator.__dict__.pop("feature_names_in_", None)
        if X.feature_names is not None:
            estimator.feature_names_in_ = np.asarray(X.feature_names, dtype=object)
        y = _check_y(estimator, y, rows.n, numeric)
    elif rows is not None:
        y = _check_y(estimator, y, rows.n, numeric)
    else:
        # `Rows` looks for NaN and infinity, on all threads: once is enough.
        here = isinstance(executor, Threads)
        X, y = validate_data(
            estimator,
            X,
            y,
            accept_sparse=["csr", "csc"] if here and by_columns else "csr",
            dtype=FLOATS,
            ensure_all_finite=False,
            y_numeric=numeric,
            multi_output=numeric,
        )
        if issparse(X) and X.format == "csc":
            rows = Rows.by_columns(X, executor=executor)
        else:
            size = block_rows(X) if block_rows else None
            small = (X.nnz if issparse(X) else X.size) <= SMALL
            size = len(y) if small or (by_columns and here) else size
            rows = Rows.of(X, executor=executor, block_rows=size)
    return Sample(rows, y, check_weights(sample_weight, rows.n))


def numbers(y: Any) -> Any:
    """Targets of objects as float64; others as they are.

    Raises
    ------
    InputError
        When one of the objects is no finite number: None would become NaN, and be learnt;
        or when targets are sparse.
    """
    if issparse(y):
        raise InputError("y must be dense, got a sparse matrix: give `y.toarray()`.")
    if y is None or getattr(y, "ndim", 1) > 2 or np.asarray(y).dtype.kind != "O":
        return y
    try:
        y = np.asarray(y).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"y must hold numbers: {error}.") from None
    if not np.isfinite(y).all():
        what = "NaN" if np.isnan(y).any() else "infinity"
        raise InputError(f"Input y contains {what}: leave rows without a target out.")
    return y


def check_weights(sample_weight: Any, n: int) -> NDArray[np.float64]:
    """Row weights as float64 of shape (n,).

    Raises
    ------
    InputError
        Unless there is one finite weight for each row, none negative, not all zero.
    """
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    weights = np.full(n, float(weights)) if weights.ndim == 0 else weights
    if weights.shape != (n,):
        raise InputError(
            "Sample weights must be 1D array or scalar: `sample_weight` must hold one for "
            f"each of the {n} rows, got shape {weights.shape}."
        )
    if not (np.isfinite(weights).all() and weights.min() >= 0 and weights.any()):
        raise InputError(
            "`sample_weight` must be finite and not negative, and not all zero; got values "
            f"from {weights.min()} to {weights.max()}."
        )
    return weights


def apply(estimator: Any, X: Any, function: Callable[[Any], NDArray[Any]]) -> Any:
    """``function(X)`` row by row; lazily, as a dask array, for a dask collection.

    Parameters
    ----------
    estimator : fitted BaseEstimator
    X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)
    function : callable
        From rows (n, d) to a result (n,) or (n, k), whose type is theirs or its own.

    Raises
    ------
    ValueError
        As scikit-learn does in memory; for values of a Dask collection once they are read.
    """
    check_unmasked(X, "X")
    if is_dask(X):
        _check_matrix(X)
        few = X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1]))
        validate_data(estimator, few, reset=False, skip_check_array=True)
        return apply_lazily(estimator, X, function)
    return function(
        validate_data(estimator, X, accept_sparse="csr", dtype=FLOATS, reset=False)
    )


def dtype_of(X: Any) -> Any:
    """float32 if all of X is, else float64; a dask collection is not read for it."""
    types = list(X.dtypes) if hasattr(X, "dtypes") else [X.dtype]
    return np.float32 if all(t == np.float32 for t in types) else np.float64


def resources_of(executor: Executor) -> Resources:
    """What the workers behind ``executor`` can do, or its threads in this process."""
    client = getattr(executor, "client", None)
    found = Resources.probe(client)
    if client is not None:
        return found
    return replace(found, threads=min(found.threads, executor.threads))


def brought_if_few(rows: Rows) -> tuple[Rows, tuple[str, ...]]:
    """Rows of workers, in this process where a pass takes less than to ask a worker.

    And what a plan has to say of it. Others stay, and all do where the user wants plans in
    any case (`mlopt.plan`).
    """
    if isinstance(rows.executor, Threads) or plans_always() or rows.nbytes > NEAR:
        return rows, ()
    size = rows.n if rows.nonzero <= SMALL else None
    return rows.moved(threads_here(), size), (came(rows.nbytes),)


def see_columns(estimator: Any, X: Any) -> None:
    """Set ``n_features_in_`` and ``feature_names_in_`` from a dask collection, unread."""
    _check_matrix(X)
    estimator.n_features_in_ = int(X.shape[1])
    estimator.__dict__.pop("feature_names_in_", None)
    names = np.asarray(getattr(X, "columns", ()), dtype=object)
    if len(names) and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = names


def plan_after(choice: Choice, started: float) -> Plan:
    """The plan of a fit that has run since ``started``; kernels' compilation apart."""
    seconds, notes = worked(started), notes_of_compiling(started)
    plan = replace(plan_before(choice), notes=notes)
    total = time.perf_counter() - started
    return plan.with_measured({choice.step: seconds}, total=total)


def plan_before(choice: Choice) -> Plan:
    """The plan of a fit that has not run."""
    return Plan(f"fit {choice.operator}", (choice,), choice.predicted)


def _check_y(estimator: Any, y: Any, n: int, numeric: bool) -> NDArray[Any]:
    if y is None:
        name = type(estimator).__name__
        raise InputError(f"{name} requires y to be passed, but the target y is None.")
    kind = "numeric" if numeric else None
    y = check_array(y, ensure_2d=False, dtype=kind, input_name="y")
    if len(y) != n:
        raise InputError(f"X and y must have the same length, got {n} and {len(y)} rows.")
    return np.asarray(y)


def apply_lazily(estimator: Any, X: Any, function: Callable[[Any], NDArray[Any]]) -> Any:
    """``function`` of the blocks of a dask collection, whose values are checked there."""
    array = X
    if hasattr(X, "columns"):
        names, dtype = frame_names(X._meta), frame_dtype(X._meta)
        few = np.empty((0, len(names)), dtype)
        array = X.map_partitions(part_matrix, dtype, names, meta=few)
    array = array.rechunk({1: -1})
    # What comes out of one row tells its type and width.
    meta = function(np.zeros((1, array.shape[1]), dtype_of(array)))[:0]
    checked = partial(_of_block, function=function, name=type(estimator).__name__)
    if meta.ndim == 1:
        return array.map_blocks(checked, drop_axis=1, dtype=meta.dtype, meta=meta)
    chunks = (array.chunks[0], meta.shape[1:])
    return array.map_blocks(checked, chunks=chunks, dtype=meta.dtype, meta=meta)


def _of_block(X: Any, function: Callable[[Any], NDArray[Any]], name: str) -> NDArray[Any]:
    settings = {"accept_sparse": "csr", "dtype": FLOATS, "ensure_min_samples": 0}
    check_unmasked(X, "X")
    return function(check_array(X, estimator=name, input_name="X", **settings))


def _check_matrix(X: Any) -> None:
    shape = getattr(X, "shape", ())
    if len(shape) != 2:
        raise InputError(f"X must be 2-D (rows, columns), got shape {shape}.")


def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """The accuracy of what is predicted, or R^2 of numbers, as scikit-learn's ``score``.

    Of a Dask collection the predictions are computed, and nothing else of it gathered.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)
    y : array-like or dask collection of shape (n,) or (n, T)
    sample_weight : array-like or dask collection of shape (n,), optional
    """
    metric = r2_score if is_regressor(self) else accuracy_score
    return scored(self, metric, X, y, sample_weight)


def scored(model: Any, metric: Any, X: Any, y: Any, weight: Any) -> float:
    """``metric`` of what a model predicts; see `score`."""
    given = held({"X": X, "y": y, "weight": weight})
    answers = model.predict(given["X"])
    found, y, weight = collected_together(answers, given["y"], given["weight"])
    return float(metric(y, found, sample_weight=weight))
