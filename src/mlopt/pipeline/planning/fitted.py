"""What a fitted pipeline does to rows: the graph of its fit, with models given."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn import get_config
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion

from mlopt.pipeline.blocks import tables
from mlopt.pipeline.blocks.cut import Blocks
from mlopt.pipeline.graph.operators import Apply, Given, Join, Operator, Source
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.planning.build import Builder, Example
from mlopt.pipeline.planning.making import Planned
from mlopt.pipeline.planning.optimizer import optimize
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.pipeline.steps.by_rows import gives_lists, goes_by_rows
from mlopt.pipeline.steps.nested import does_nothing, frames_of, is_pipeline, is_simple


@dataclass
class FittedBuilder(Builder):
    """The operators of steps that have learnt.

    Attributes
    ----------
    settings : mapping
        scikit-learn's, of the thread that asks; blocks are worked on in others.
    run : str
        A model is told from others by its identity, which holds for this graph alone: to
        read all that it has learnt would take longer than to use it.
    """

    settings: Mapping[str, Any] = field(default_factory=get_config)
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    def outcome(
        self, steps: Sequence[tuple[str, Any]], method: str, x: Operator, around: str = ""
    ) -> Operator:
        """``<method>`` of the last step, of what the others make of ``x``."""
        named = [
            (f"{around}{name}", step) for name, step in steps if not does_nothing(step)
        ]
        for path, step in named[:-1]:
            x = self.transformed(path, step, x)
        if not named:
            return x
        path, last = named[-1]
        if method == "transform":
            return self.transformed(path, last, x)
        if is_pipeline(last) and is_simple(last):
            return self.outcome(last.steps, method, x, f"{path}/")
        return self._applied(path, last, x, method)

    def _meet(self, path: str) -> None:
        """Models are told apart by themselves here."""

    def _leaf(self, path: str, transformer: Any, x: Operator) -> Operator:
        return self._applied(path, transformer, x, "transform")

    def _applied(self, path: str, model: Any, x: Operator, method: str) -> Operator:
        given = self.models[path] = Given(path, model, f"{self.run}-{id(model)}")
        alone = goes_by_rows(model, method) and not gives_lists(model, method)
        scope = "rows" if alone else "all"
        writes = self._writes(model, x)
        return Apply(path, given, x, method, scope, settings=self.settings, writes=writes)

    def _union(self, path: str, union: FeatureUnion, x: Operator) -> Operator:
        if frames_of(union) != "default":
            return self._leaf(path, union, x)  # it names what it has learnt to name
        return super()._union(path, union, x)

    def _by_columns(self, path: str, whole: ColumnTransformer, x: Operator) -> Operator:
        # A step that may look at all rows is not tried on a few.
        blind = any(getattr(op, "scope", "") == "all" for op in walk([x]))
        named = frames_of(whole) != "default"
        if blind or named or not _has_columns_of(whole, tables.tabled(self.example(x))):
            return self._leaf(path, whole, x)
        rows = super()._by_columns(path, whole, x)
        if not isinstance(rows, Join):
            return rows
        return replace(rows, layout="sparse" if whole.sparse_output_ else "dense")

    def _parts(
        self, path: str, whole: ColumnTransformer, x: Operator
    ) -> list[tuple[str, Any, Any]]:
        del path, x
        return [
            (name, part, columns)
            for name, part, columns in whole.transformers_
            if part != "drop" and len(whole._transformer_to_input_indices[name])
        ]


def _has_columns_of(whole: ColumnTransformer, rows: Any) -> bool:
    """Whether rows have just the columns that were fitted: scikit-learn takes others too,
    or says what is wrong with them."""
    names = getattr(whole, "feature_names_in_", None)
    if hasattr(rows, "columns"):
        return names is not None and list(rows.columns) == list(names)
    plain = names is None and len(getattr(rows, "shape", ())) == 2
    return plain and tables.count_columns(rows) == whole.n_features_in_


def plan_fitted(
    steps: Sequence[tuple[str, Any]],
    method: str,
    blocks: Blocks | None,
    example: Example,
    without: frozenset[str],
) -> Planned:
    """Plan ``<method>`` of fitted steps.

    Parameters
    ----------
    steps : sequence of (str, fitted estimator)
    method : str
        Of the last step: "predict", "transform", and so on.
    blocks : Blocks, or None
        The rows of a Dask collection; None for rows in memory.
    example : callable
        From an operator to some rows of its value.
    without : frozenset of str
        Names of rules that are left out.
    """
    begin = time.perf_counter()
    built = FittedBuilder(None, example)
    X = Source("X", built.run if blocks is None else blocks.token, lazy=blocks is not None)
    sinks = (built.outcome(steps, method, X),)
    context = Context(None, 0)
    # All rows are read once: there is nothing to keep.
    draft, log = optimize(Draft(sinks), context, without={*without, "keep_results"})
    took = time.perf_counter() - begin
    sources = {} if blocks is None else {X.token: blocks}
    return Planned(draft, built, sources, None, log, context, took)
