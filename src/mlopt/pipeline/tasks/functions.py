"""What each operator does to one block: plain functions, to be run anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn import config_context, get_config
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array
from sklearn.utils._set_output import ADAPTERS_MANAGER

from mlopt.errors import InputError
from mlopt.identity import identified
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.blocks.panels import Chain, InPanels
from mlopt.pipeline.fits.applying import apply_fitted, is_thrifty
from mlopt.pipeline.graph.operators import (
    Apply,
    Convert,
    Fused,
    Join,
    Learn,
    Numbered,
    Only,
    Operator,
    Select,
)
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.steps.copies import private_copy
from mlopt.pipeline.tasks.timing import Timed


def block_function(op: Operator) -> Callable[..., Any]:
    """The function of the values of ``op.inputs``, in their order, for one block."""
    cut = tuple(i.gives_rows for i in op.inputs)
    if isinstance(op, Fused):
        return InPanels(Recipe.of(op.body, op.reads), cut)
    if isinstance(op, Apply) and op.scope == "rows" and not _thrifty(op):
        return InPanels(Timed(op.token, _function(op)), cut)
    return Timed(op.token, _function(op), joins=isinstance(op, Join))


def _thrifty(op: Apply) -> bool:
    learnt = op.model if isinstance(op.model, Learn) else None
    return learnt is not None and is_thrifty(type(learnt.estimator), op.method)


def _function(op: Operator) -> Callable[..., Any]:
    if isinstance(op, Select):
        return partial(_select, op.step, op.columns, op.given)
    if isinstance(op, Apply):
        config = op.settings or settings_of_a_fit()
        return partial(
            _apply, op.step, op.method, op.kind, not op.settings, config, op.writes
        )
    if isinstance(op, Join):
        settings = op.names, op.weights, op.prefix, op.frames
        return partial(_join, op.step, *settings, op.layout, op.sparse_below)
    if isinstance(op, Convert):
        return partial(_convert, op.step, op.layout)
    if isinstance(op, Only):
        return _only
    raise TypeError(f"{type(op).__name__} is no operator on blocks.")


@dataclass(frozen=True)
class Recipe(Chain):
    """Several operators as one function of what they read.

    Attributes
    ----------
    steps : tuple of (function, tuple of int)
        Each function's arguments by number: first the values read, then earlier results.
    """

    steps: tuple[tuple[Callable[..., Any], tuple[int, ...]], ...]

    @classmethod
    def of(cls, body: Operator, reads: Sequence[Operator]) -> Recipe:
        """The operators from ``reads`` to ``body``."""
        numbers = {op.token: number for number, op in enumerate(reads)}
        steps = []
        for op in walk([body], stop=lambda node: node.token in numbers):
            if op.token not in numbers:
                steps.append(
                    (block_function(op), tuple(numbers[i.token] for i in op.inputs))
                )
                numbers[op.token] = len(reads) + len(steps) - 1
        return cls(tuple(steps))

    @property
    def __name__(self) -> str:
        return "row_wise"

    def __call__(self, *values: Any) -> Any:
        return self.traced(*values)[0]

    def traced(self, *values: Any) -> tuple[Any, int]:
        """The last function's result, and the bytes of the largest array on the way."""
        known, largest = list(values), 0
        last = {i: number for number, (_, args) in enumerate(self.steps) for i in args}
        for number, (function, args) in enumerate(self.steps):
            known.append(function(*(known[i] for i in args)))
            largest = max(largest, getattr(known[-1], "nbytes", 0))
            for i in args:
                if last[i] == number:
                    known[i] = None  # let go of what nobody reads any more
        return known[-1], largest


_OF_A_FIT = MappingProxyType({"transform_output": "default"})
"""Which frames a step gives is written in the step itself: the setting of the thread, if
there is one, would reach inner parts that nobody asked about."""


def settings_of_a_fit() -> dict[str, Any]:
    """scikit-learn's, of this thread, for a fit in another."""
    return {**get_config(), **_OF_A_FIT}


@contextmanager
def naming(step: str, settings: Mapping[str, Any] = _OF_A_FIT) -> Iterator[None]:
    """Errors of the block below name the step, and are the same objects."""
    try:
        with config_context(**settings):
            yield
    except Exception as error:
        if f"`{step}`" in str(error) or names_step(error):
            raise
        text, given = f"Step `{step}`: {error}", error.args
        if len(given) == 1 and isinstance(given[0], str):
            error.args = (text,)
        if f"`{step}`" not in str(error):  # it says something else than what it was given
            error.args = given
            error.add_note(text)
        raise


def names_step(error: Exception) -> bool:
    """Whether an error came through `naming`."""
    said = [str(error), *getattr(error, "__notes__", ())]
    return any("Step `" in text for text in said)


class Unforeseen(InputError):
    """All rows are not what some rows promised: the plan made for these does not hold."""


class TooLarge(InputError):
    """Rows for which there is no room, whatever other samples say."""


@contextmanager
def lent(step: str, writes: str, x: Any) -> Iterator[Any]:
    """Rows for a step that may change them, as `Learn.writes` says: its own.

    Raises
    ------
    Unforeseen
        When it has changed rows of which other parts of a union should have seen this.
    """
    if writes == "never":
        yield x
        return
    own = tables.copied(x)
    yield own
    if writes == "shared" and identified(own) != (identified(x) or ""):
        raise Unforeseen(
            f"Step `{step}` changes the rows it is given, which other parts of a union "
            "read, too: what they see is for scikit-learn's own order to say."
        )


def _select(step: str, columns: Any, given: Any, x: Any) -> Any:
    x = tables.tabled(x)
    if given is not None and (found := tables.columns_of(x)) != given:
        raise Unforeseen(
            f"Step `{step}` was planned for columns {given}, as a sample has them, and all "
            f"rows have {found}."
        )
    with naming(step):
        return tables.take_columns(x, columns)


def _apply(
    step: str,
    method: str,
    kind: str,
    fresh: bool,
    settings: Mapping[str, Any],
    writes: str,
    model: Any,
    x: Any,
) -> Any:
    if fresh:
        model = _of_these_columns(model, x)
    with lent(step, writes, x) as rows, naming(step, settings):
        result = apply_fitted(model, rows, method)
    got, expected = tables.count_rows(result), tables.count_rows(x)
    if got != expected:
        raise InputError(
            f"Step `{step}` must return one row for each row it is given, got {got} for "
            f"{expected}. Select or drop rows before the pipeline, together with y."
        )
    if kind and tables.kind_of(result) != kind:
        raise InputError(
            f"Step `{step}` must return one type for all rows: one block is {kind}, "
            f"another {tables.kind_of(result)}. Return the same type whatever the rows."
        )
    return result


def _of_these_columns(model: Any, x: Any) -> Any:
    """A stateless step was told of columns by a sample: all rows may have others."""
    known = getattr(model, "n_features_in_", None)
    if known is None or type(model) is FrozenEstimator:
        return model
    names = getattr(model, "feature_names_in_", None)
    if names is not None and hasattr(x, "columns"):
        same = tuple(names) == tables.columns_of(x)
    else:
        same = known == tables.count_columns(x)
    if same:
        return model
    # All that is known of classes: workers, whose memory may be short, need it only here.
    from mlopt.pipeline.steps.kinds import is_stateless

    return private_copy(model).fit(x) if is_stateless(model) else model


def _join(
    step: str,
    names: Sequence[str],
    weights: Sequence[Any],
    prefix: Any,
    frames: str,
    layout: str,
    sparse_below: float,
    *parts: Any,
) -> Any:
    scaled = [p if w is None else p * w for p, w in zip(parts, weights, strict=True)]
    with naming(step):
        if frames != "default" and all(_is_frame(part) for part in scaled):
            return _join_frames(names, prefix, frames, scaled)
        given, pairs = scaled, list(zip(names, scaled, strict=True))
        if sparse_below < float("inf"):  # a `ColumnTransformer`; a union takes them
            _check_missing(pairs)
        scaled = [_two_dimensional(name, part) for name, part in pairs]
        if layout != "sparse" and not any(sp.issparse(part) for part in scaled):
            return np.hstack(scaled)
        if layout == "auto":
            filled = sum(part.nnz if sp.issparse(part) else part.size for part in scaled)
            entries = sum(part.shape[0] * part.shape[1] for part in scaled)
            layout = "dense" if filled / max(1, entries) >= sparse_below else "sparse"
        if layout == "dense":
            return np.hstack([p.toarray() if sp.issparse(p) else p for p in scaled])
        if frames != "default":
            raise ValueError(
                "The transformer outputs a scipy sparse matrix. Try to set the "
                "transformer output to a dense array or disable "
                f"{frames.capitalize()} output with set_output(transform='default')."
            )
        # As scikit-learn: an array where a part is one, else a matrix.
        arrays = any(isinstance(part, sp.sparray) for part in scaled)
        compressed = sp.csr_array if arrays else sp.csr_matrix
        return sp.hstack([compressed(_numbers(p)) for p in given], format="csr")


def _join_frames(names: Sequence[str], prefix: Any, kind: str, parts: Sequence[Any]) -> Any:
    adapter = ADAPTERS_MANAGER.adapters[kind]
    if kind == "pandas":
        parts = _of_one_index(parts)
    renamed: list[Any] = []
    for number, (name, part) in enumerate(zip(names, parts, strict=True)):
        given = list(part.columns)
        if isinstance(prefix, Numbered):
            columns = [prefix.name(number, j) for j in range(len(given))]
        else:
            columns = [_named(prefix, name, column) for column in given]
        renamed.append(adapter.rename_columns(copy(part), columns))
    if prefix is False:
        _check_distinct([column for part in renamed for column in part.columns])
    return adapter.hstack(renamed)


def _check_distinct(columns: list[str]) -> None:
    twice = sorted(name for name, count in Counter(columns).items() if count > 1)
    if twice:
        raise InputError(
            f"Output feature names: {twice[:5]} are not unique. Set "
            "verbose_feature_names_out=True to put the names of the parts before them."
        )


def _of_one_index(parts: Sequence[Any]) -> list[Any]:
    """Frames that count their rows from 0 take the index of one that does not.

    What was made of a block of an array counts from 0 in each block, and what was made of
    all rows and then cut counts on; pandas would align the two by these numbers.
    """
    other = next((part.index for part in parts if not _counts_from_0(part)), None)
    if other is None:
        return list(parts)
    return [
        part.set_axis(other) if _counts_from_0(part) and len(part) == len(other) else part
        for part in parts
    ]


def _counts_from_0(part: Any) -> bool:
    return np.array_equal(part.index, np.arange(len(part)))


def _named(prefix: Any, part: str, column: str) -> str:
    """A column's name in the whole, as scikit-learn's ``verbose_feature_names_out``."""
    if callable(prefix):
        return str(prefix(part, column))
    if isinstance(prefix, str):
        return prefix.format(transformer_name=part, feature_name=column)
    return f"{part}__{column}" if prefix else column


def _is_frame(part: Any) -> bool:
    return hasattr(part, "columns") and hasattr(part, "shape")


def _two_dimensional(name: str, part: Any) -> Any:
    part = part if sp.issparse(part) else np.asarray(part)
    if part.ndim != 2:
        raise InputError(
            f"Transformer `{name}` must return 2 dimensions (rows, columns), got "
            f"{part.ndim}. Its output should be 2D, also where it is one column."
        )
    return part


def _check_missing(parts: Sequence[tuple[str, Any]]) -> None:
    """scikit-learn's own check of what an array cannot hold."""
    for name, part in parts:
        for column, dtype in part.dtypes.items() if isinstance(part, pd.DataFrame) else ():
            if getattr(dtype, "na_value", None) is pd.NA and pd.NA in part[column].values:
                raise ValueError(
                    f"The output of the '{name}' transformer for column '{column}' has "
                    f"dtype {dtype} and uses pandas.NA to represent null values. Set "
                    "set_output(transform='pandas'), or remove pandas.NA, for example by "
                    "pandas.DataFrame.astype."
                )


def _numbers(part: Any) -> Any:
    """What can be compressed: numbers in frames, or kept as objects or text, too."""
    if sp.issparse(part) or getattr(part, "dtype", np.dtype("O")).kind not in "OUS":
        return part
    try:
        return check_array(part, ensure_all_finite=False)
    except ValueError as error:
        raise ValueError(
            "For a sparse output, all columns should be a numeric or convertible to a "
            "numeric."
        ) from error


def _convert(step: str, layout: str, x: Any) -> Any:
    with naming(step):
        if layout == "dense":
            return x.toarray() if sp.issparse(x) else x
        return x if sp.issparse(x) else sp.csr_array(np.asarray(x))


def _only(x: Any, counts: np.ndarray) -> Any:
    if counts.min() == counts.max() == 1:
        return x
    return tables.take_rows(x, np.repeat(np.arange(len(counts)), counts))
