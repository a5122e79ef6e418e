"""A scikit-learn pipeline as a graph, and the fitted models put back into its shape."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from mlopt.errors import InputError
from mlopt.pipeline import tables
from mlopt.pipeline.expansions import expand
from mlopt.pipeline.kinds import ignores_targets, is_row_wise, is_seeded, is_stateless
from mlopt.pipeline.operators import (
    Apply,
    Given,
    Join,
    Learn,
    Operator,
    Outcome,
    Select,
)
from mlopt.pipeline.tokens import token_of

Example = Callable[[Operator], Any]
"""Gives some rows of an operator's value."""


@dataclass
class Builder:
    """Turns estimators into operators; remembers which model belongs to which step.

    Attributes
    ----------
    y, weight : Operator or None
        Targets, and the weights of the rows for the last step.
    example : callable
        From an operator to some rows of its value: to find out which columns there are.
    params : mapping of step to mapping
        Further arguments of ``fit`` of the outermost steps.
    models : dict of path to Operator
        Filled while building.
    inputs : dict of path to Operator
        What each `ColumnTransformer` is given; filled while building.
    """

    y: Operator | None
    example: Example
    weight: Operator | None = None
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    models: dict[str, Operator] = field(default_factory=dict)
    inputs: dict[str, Operator] = field(default_factory=dict)

    def transformed(self, path: str, transformer: Any, x: Operator) -> Operator:
        """The rows that ``transformer``, fitted to ``x``, makes of ``x``."""
        if transformer is None or transformer == "passthrough":
            return x
        plain = not self.params.get(path)
        if type(transformer) is Pipeline and plain and _simple(transformer):
            for name, step in transformer.steps:
                x = self.transformed(f"{path}/{name}", step, x)
            return x
        if type(transformer) is FeatureUnion and plain:
            return self._union(path, transformer, x)
        if type(transformer) is ColumnTransformer and plain:
            return self._by_columns(path, transformer, x)
        if plain and (expanded := expand(path, transformer, x)) is not None:
            rows, self.models[path] = expanded
            return rows
        return self._leaf(path, transformer, x)

    def last(self, path: str, estimator: Any, x: Operator) -> Operator:
        """The model that the last step learns from ``x``."""
        self.models[path] = self._learn(path, estimator, x, self.y, self.weight)
        return self.models[path]

    def _leaf(self, path: str, transformer: Any, x: Operator) -> Operator:
        if not hasattr(transformer, "transform"):
            raise InputError(
                f"Step `{path}` must have `transform`, since steps follow it; "
                f"{type(transformer).__name__} has none."
            )
        if is_stateless(transformer) and not self.params.get(path):
            self.models[path] = Given(path, transformer, token_of(transformer))
            scope = "rows" if is_row_wise(transformer) else "unknown"
            return Apply(path, self.models[path], x, scope=scope)
        y = None if ignores_targets(transformer) else self.y
        model = self.models[path] = self._learn(path, transformer, x, y, None)
        if is_row_wise(transformer):
            return Apply(path, model, x)
        model = self.models[path] = replace(model, transforms=True)
        return Outcome(path, model, x)

    def _learn(
        self,
        path: str,
        estimator: Any,
        x: Operator,
        y: Operator | None,
        weight: Operator | None,
    ) -> Learn:
        seeded = is_seeded(estimator)
        return Learn(
            path,
            estimator,
            x,
            y,
            weight,
            dict(self.params.get(path, {})),
            seeded,
            nonce="" if seeded else uuid.uuid4().hex,
        )

    def _union(self, path: str, union: FeatureUnion, x: Operator) -> Operator:
        weights = union.transformer_weights or {}
        parts = {
            name: self.transformed(f"{path}/{name}", part, x)
            for name, part in union.transformer_list
            if part != "drop"
        }
        if not parts:
            raise InputError(f"Step `{path}` must keep a part: all of them are dropped.")
        factors = tuple(float(weights.get(name, 1.0)) for name in parts)
        prefix = bool(union.verbose_feature_names_out)
        return Join(path, tuple(parts.values()), tuple(parts), factors, prefix)

    def _by_columns(self, path: str, whole: ColumnTransformer, x: Operator) -> Operator:
        self.inputs[path] = x
        parts = split_columns(path, whole, self.example(x))
        weights = whole.transformer_weights or {}
        branches = {
            name: self.transformed(f"{path}/{name}", part, Select(path, x, columns))
            for name, part, columns in parts
        }
        if not branches:
            raise InputError(f"Step `{path}` must keep a column: all of them are dropped.")
        factors = tuple(float(weights.get(name, 1.0)) for name in branches)
        prefix = bool(whole.verbose_feature_names_out)
        below = float(whole.sparse_threshold)
        return Join(path, tuple(branches.values()), tuple(branches), factors, prefix, below)


def split_columns(
    path: str, whole: ColumnTransformer, example: Any
) -> list[tuple[str, Any, Any]]:
    """(name, transformer, columns) of the parts that read a column, the rest's included."""
    found, used = [], np.zeros(tables.count_columns(example), bool)
    for name, part, columns in whole.transformers:
        wanted = columns(example) if callable(columns) else columns
        numbers = _column_numbers(path, name, example, wanted)
        used[numbers] = True
        if part != "drop" and len(numbers):
            found.append((name, part, _plain(wanted)))
    rest = np.flatnonzero(~used)
    if whole.remainder != "drop" and rest.size:
        names = getattr(example, "columns", None)
        columns = rest.tolist() if names is None else [names[number] for number in rest]
        found.append(("remainder", whole.remainder, columns))
    return found


def _column_numbers(path: str, name: str, example: Any, columns: Any) -> list[int]:
    from sklearn.utils._indexing import _get_column_indices

    try:
        return list(_get_column_indices(example, columns))
    except (ValueError, KeyError, IndexError) as error:
        raise InputError(f"Step `{path}/{name}` names columns: {error}") from error


def _plain(columns: Any) -> Any:
    return columns.tolist() if isinstance(columns, np.ndarray) else columns


def _simple(pipeline: Pipeline) -> bool:
    """Whether a pipeline is no more than its steps."""
    return pipeline.memory is None and not getattr(pipeline, "transform_input", None)
