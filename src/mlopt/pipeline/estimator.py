"""`Pipeline`: scikit-learn's contract over a graph that is planned as a whole."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import numpy as np
import sklearn.pipeline
from sklearn.base import clone
from sklearn.pipeline import _final_estimator_has
from sklearn.utils.metadata_routing import _routing_enabled
from sklearn.utils.metaestimators import available_if

from mlopt.cluster import executor
from mlopt.errors import InputError
from mlopt.gd.estimator_base import resources_of
from mlopt.pipeline import applying
from mlopt.pipeline.assemble import assemble
from mlopt.pipeline.blocks import is_dask
from mlopt.pipeline.budget import budget_bytes
from mlopt.pipeline.environment import environment
from mlopt.pipeline.execute import Execution
from mlopt.pipeline.explain import to_plan
from mlopt.pipeline.layers import graph_of
from mlopt.pipeline.operators import Given
from mlopt.pipeline.optimizer import left_out
from mlopt.pipeline.planning import Planned, Problem, make_plan
from mlopt.pipeline.tables import stack
from mlopt.plan import Plan

Params = Mapping[str, Mapping[str, Any]]


class Pipeline(sklearn.pipeline.Pipeline):
    """Transformers and a final estimator, planned together and run on blocks of rows.

    The steps are unmodified scikit-learn objects and mean what they mean there. Before
    anything runs, samples of the rows tell what each step costs; then each step gets the
    way of fitting that is cheapest on these data, common work is done once, and the rows
    that are read again are kept in memory as far as the budget goes.

    Parameters
    ----------
    steps : list of (str, estimator)
        As in `sklearn.pipeline.Pipeline`; `ColumnTransformer`, `FeatureUnion` and pipelines
        within are planned too.
    memory_budget : int, str or "auto", default="auto"
        Bytes that intermediate rows may take: a number, or as in "2GiB". "auto" is three
        quarters of the memory that is free.
    optimize : bool, or {"without": names of rules}, default=True
        Which rules rewrite the plan. False: every step in its first way, nothing shared,
        nothing kept: each pass of an iterative fit makes its input anew.
    transform_input, memory, verbose
        As in `sklearn.pipeline.Pipeline`.

    Attributes
    ----------
    plan_ : Plan
        What was run, with predicted and measured seconds.

    Notes
    -----
    Steps that are not known to go row by row are fitted to all rows gathered in one place.
    With metadata routing, `transform_input` or `memory`, steps run as scikit-learn runs
    them.

    References
    ----------
    Sparks et al., "KeystoneML" (ICDE 2017).
    """

    def __init__(
        self,
        steps: Any,
        *,
        memory_budget: Any = "auto",
        optimize: Any = True,
        transform_input: Any = None,
        memory: Any = None,
        verbose: Any = False,
    ) -> None:
        super().__init__(
            steps, transform_input=transform_input, memory=memory, verbose=verbose
        )
        self.memory_budget = memory_budget
        self.optimize = optimize

    def fit(self, X: Any, y: Any = None, **params: Any) -> Pipeline:
        """Plan, then fit every step.

        Parameters
        ----------
        X : array, sparse matrix, data frame, list of documents, or Dask collection
            n rows. Chunks of a Dask collection are streamed, never gathered silently.
        y : array-like of shape (n,) or (n, T), optional
        **params
            ``step__parameter`` for the ``fit`` of a step.

        Returns
        -------
        self

        Raises
        ------
        InputError
            When a step cannot be fitted to these data: it is named, before others run.
        """
        if self._as_scikit_learn():
            super().fit(X, y, **params)
            return self
        self._fit_planned(X, y, self._routed("fit", params))
        return self

    @available_if(lambda self: self._can_fit_transform())
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """`fit`, and the rows after the last step; lazily for a Dask collection."""
        if self._as_scikit_learn():
            return super().fit_transform(X, y, **params)
        routed = self._routed("fit_transform", params)
        if is_dask(X):
            self._fit_planned(X, y, routed)
            return self.transform(X)
        return self._fit_planned(X, y, routed, outcome=True)

    def explain(self, X: Any, y: Any = None, **params: Any) -> Plan:
        """The plan of `fit` for the same arguments; fits nothing but samples.

        Returns
        -------
        Plan
            Every choice with what was rejected, and predicted seconds and bytes.
        """
        with closing(executor()) as where:
            planned = self._plan(X, y, self._routed("fit", params), where)
        return to_plan(self, planned)

    def visualize(self, X: Any, y: Any = None, filename: str | None = None) -> Any:
        """The graph of `fit`, a layer an operator; drawn into ``filename`` if given."""
        with closing(executor()) as where:
            graph = graph_of(self._plan(X, y, self._routed("fit", {}), where))
        return graph if filename is None else graph.visualize(filename=filename)

    def export(self) -> sklearn.pipeline.Pipeline:
        """The same as a plain scikit-learn pipeline, fitted if this one is.

        It loads and predicts without mlopt, if the steps are scikit-learn's.
        """
        return sklearn.pipeline.Pipeline(
            list(self.steps),
            memory=self.memory,
            verbose=self.verbose,
            transform_input=self.transform_input,
        )

    def and_then(self, step: Any, data: Any = None, labels: Any = None) -> Pipeline:
        """A new pipeline with one more step; this one stays as it is.

        Parameters
        ----------
        step : estimator, or (str, estimator)
        data, labels : optional
            Fit the new pipeline to these.
        """
        name, estimator = step if isinstance(step, tuple) else (_name(step), step)
        taken = {name for name, _ in self.steps}
        fresh, number = name, 2
        while fresh in taken:
            fresh, number = f"{name}-{number}", number + 1
        longer: Pipeline = clone(self).set_params(steps=[*self.steps, (fresh, estimator)])
        return longer if data is None else longer.fit(data, labels)

    def __getitem__(self, ind: Any) -> Any:
        part = super().__getitem__(ind)
        if isinstance(ind, slice):
            part.memory_budget, part.optimize = self.memory_budget, self.optimize
        return part

    @available_if(_final_estimator_has("predict"))
    def predict(self, X: Any, **params: Any) -> Any:
        """The last step's predictions; lazily, as a dask array, for a Dask collection."""
        return self._apply("predict", X, params)

    @available_if(_final_estimator_has("predict_proba"))
    def predict_proba(self, X: Any, **params: Any) -> Any:
        """The last step's probabilities of the classes, (n, K)."""
        return self._apply("predict_proba", X, params)

    @available_if(_final_estimator_has("predict_log_proba"))
    def predict_log_proba(self, X: Any, **params: Any) -> Any:
        """Logarithms of `predict_proba`, (n, K)."""
        return self._apply("predict_log_proba", X, params)

    @available_if(_final_estimator_has("decision_function"))
    def decision_function(self, X: Any, **params: Any) -> Any:
        """The last step's decision function, (n,) or (n, K)."""
        return self._apply("decision_function", X, params)

    @available_if(lambda self: self._can_transform())
    def transform(self, X: Any, **params: Any) -> Any:
        """The rows after the last step."""
        return self._apply("transform", X, params)

    def _apply(self, method: str, X: Any, params: Mapping[str, Any]) -> Any:
        if not params and not _routing_enabled():
            result = applying.apply_pipeline(self, method, X)
            if result is not NotImplemented:
                return result
        return getattr(super(), method)(X, **params)

    def _as_scikit_learn(self) -> bool:
        """Whether something is asked for that only scikit-learn's own loop does."""
        return bool(_routing_enabled() or self.transform_input or self.memory is not None)

    def _routed(self, method: str, params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        self.steps = list(self.steps)
        self._validate_steps()
        routed = self._check_method_params(method=method, props=params)
        return {name: dict(routed[name]["fit"]) for name, _ in self.steps}

    def _plan(
        self,
        X: Any,
        y: Any,
        params: Mapping[str, dict[str, Any]],
        where: Any,
        *,
        outcome: bool = False,
    ) -> Planned:
        name, last = self.steps[-1]
        params = {step: dict(values) for step, values in params.items()}
        weight = None
        learns = not outcome and last not in (None, "passthrough")
        if learns and _is_rows(params.get(name, {}).get("sample_weight")):
            weight = params[name].pop("sample_weight")
        steps = tuple((step, self._usable(step, e)) for step, e in self.steps)
        given = {step: values for step, values in params.items() if values}
        problem = Problem(steps, X, y, weight, given, learns)
        return make_plan(
            problem,
            where,
            lambda: resources_of(where),
            environment,
            budget=lambda: budget_bytes(self.memory_budget, where),
            without=left_out(self.optimize),
        )

    def _usable(self, step: str, estimator: Any) -> Any:
        return estimator

    def _fit_planned(
        self, X: Any, y: Any, params: Mapping[str, dict[str, Any]], *, outcome: bool = False
    ) -> Any:
        begin = time.perf_counter()
        with closing(executor()) as where:
            planned = self._plan(X, y, params, where, outcome=outcome)
            run = Execution(planned.draft, planned.sources, where, environment)
            handles = run.run()
            rows = [where.result(handle) for handle in handles]
            self._learn(planned, run)
        self.plan_ = to_plan(self, planned, run, time.perf_counter() - begin)
        return stack(rows, self.steps[-1][0]) if rows else None

    def _learn(self, planned: Planned, run: Execution) -> None:
        """Put what was learnt into the steps, as scikit-learn's `fit` does."""
        models = {
            path: op.model if isinstance(op, Given) else run.models[op.token]
            for path, op in planned.built.models.items()
        }

        def example(path: str) -> Any:
            return planned.built.example(planned.built.inputs[path])

        for name, step in self.steps:
            fitted = assemble(name, step, models, example)
            if fitted is not step and hasattr(step, "__dict__"):
                step.__dict__.update(fitted.__dict__)


def _is_rows(value: Any) -> bool:
    return value is not None and np.ndim(value) == 1


def _name(estimator: Any) -> str:
    return type(estimator).__name__.lower()


def check_names(steps: Any) -> None:
    """Step names must differ."""
    names = [name for name, _ in steps]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"Step names must differ, but these come twice: {twice}.")
