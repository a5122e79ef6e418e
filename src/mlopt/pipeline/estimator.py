"""`Pipeline`: scikit-learn's contract over a graph that is planned as a whole."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import sklearn.pipeline
from sklearn.base import _fit_context
from sklearn.pipeline import _final_estimator_has
from sklearn.utils.metadata_routing import _routing_enabled, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mlopt.cluster import executor
from mlopt.cluster.near import are_near
from mlopt.gd.estimator_base import resources_of
from mlopt.kernels import compiling
from mlopt.pipeline.blocks.cut import framed, gathered
from mlopt.pipeline.blocks.tables import stack
from mlopt.pipeline.budget import budget_bytes
from mlopt.pipeline.environment import environment
from mlopt.pipeline.explain import explain_application, plain_plan, to_plan
from mlopt.pipeline.finishing import carry_out
from mlopt.pipeline.planning.making import Planned, Problem, make_plan
from mlopt.pipeline.planning.optimizer import left_out
from mlopt.pipeline.planning.worth import worth
from mlopt.pipeline.running import applying
from mlopt.pipeline.running.drawing import graph_of
from mlopt.pipeline.running.layers import have_labels
from mlopt.pipeline.steps.by_rows import goes_by_rows
from mlopt.pipeline.steps.copies import private_copy
from mlopt.pipeline.steps.exporting import exported
from mlopt.pipeline.steps.nested import PIPELINES, can_transform, does_nothing, row_weights
from mlopt.pipeline.steps.telling import check_picklable, doubt_notes, like_last, report
from mlopt.pipeline.tasks.functions import Unforeseen
from mlopt.plan import Plan
from mlopt.resources import Resources
from mlopt.resources.probe import memory_limit
from mlopt.rows.arriving import brought
from mlopt.rows.source import collected, collected_together, held, is_dask

_TOGETHER = "scikit-learn's own loop runs"


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
    Steps that are not known, or declared with `mlopt.register`, to go row by row are given
    all rows, gathered in one place.
    With metadata that are routed, `transform_input` or `memory`, steps run as scikit-learn
    runs them.

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

    @_fit_context(prefer_skip_nested_validation=False)
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
        if why := self._not_planned(X, params):
            self.__dict__.pop("plan_", None)
            begin = time.perf_counter()
            X, y, params = self._whole(X, y, params, "fit", why)
            super().fit(X, y, **params)
            self.plan_ = plain_plan(self, time.perf_counter() - begin, why)
            return self
        self._fit_planned(X, y, self._routed("fit", params))
        return self

    @available_if(lambda self: self._can_fit_transform())
    @_fit_context(prefer_skip_nested_validation=False)
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """`fit`, and the rows after the last step.

        They come lazily for a Dask collection if each step is known to go row by row; else
        they are those of the steps' own ``fit_transform``, in this process: what
        ``transform`` would make of the same rows may be something else.
        """
        if why := self._not_planned(X, params):
            self.__dict__.pop("plan_", None)
            begin = time.perf_counter()
            X, y, params = self._whole(X, y, params, "fit_transform", why)
            found = super().fit_transform(X, y, **params)
            self.plan_ = plain_plan(self, time.perf_counter() - begin, why)
            return found
        routed = self._routed("fit_transform", params)
        if is_dask(X):
            if (blind := self._blind()) is None:
                self._fit_planned(X, y, routed)
                return self.transform(X)
            applying.check_gathered(X, "fit_transform", blind, memory_limit())
        return self._fit_planned(X, y, routed, outcome=True)

    def explain(self, X: Any, y: Any = None, *, method: str = "fit", **params: Any) -> Plan:
        """The plan of `fit` for the same arguments; fits nothing but samples.

        Parameters
        ----------
        X, y, **params
            As for `fit`.
        method : str, default="fit"
            Another method of a fitted pipeline, such as "predict": what that does to X,
            and which steps gather its rows.

        Returns
        -------
        Plan
            Every choice with what was rejected, and predicted seconds and bytes.
        """
        if why := self._not_planned(X, params):
            return plain_plan(self, None, why, method)
        if method != "fit":
            return explain_application(self, method, framed(X))
        X, y, told = self._brought(X, y)
        with closing(executor(rows=self._light(X, y))) as where:
            try:
                X, y, routed = _held(X, y, self._routed("fit", params))
                planned = self._plan(X, y, routed, where, priced=True)
            except Unforeseen as reason:
                plan = plain_plan(self, None, str(reason), method)
            else:
                plan = to_plan(self, planned)
        return replace(plan, notes=(*plan.notes, *told))

    def visualize(self, X: Any, y: Any = None, filename: str | None = None) -> Any:
        """The graph of `fit`, a layer an operator; drawn into ``filename`` if given."""
        with closing(executor(rows=self._light(X, y))) as where:
            graph = graph_of(self._plan(X, y, self._routed("fit", {}), where))
        return graph if filename is None else graph.visualize(filename=filename)

    def export(self) -> sklearn.pipeline.Pipeline:
        """A plain scikit-learn pipeline, fitted if this one is; a copy.

        It loads and predicts without mlopt, if the steps are scikit-learn's.
        """
        plain: sklearn.pipeline.Pipeline = exported(self)
        return plain

    def and_then(self, step: Any, data: Any = None, labels: Any = None) -> Pipeline:
        """A new pipeline with one more step; this one stays as it is.

        The steps so far are copied, with what they learnt: several pipelines may branch off
        one, and fitting them leaves it alone. What the branches have in common is fitted
        once where `mlopt.reuse-models` lets this process remember it.

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
        longer: Pipeline = private_copy(self)
        longer.__dict__.pop("plan_", None)
        longer.steps = [*longer.steps, (fresh, estimator)]
        return longer if data is None else longer.fit(data, labels)

    def __getitem__(self, ind: Any) -> Any:
        part = super().__getitem__(ind)
        if isinstance(ind, slice):
            part.set_params(memory_budget=self.memory_budget, optimize=self.optimize)
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

    @available_if(_final_estimator_has("score_samples"))
    def score_samples(self, X: Any) -> Any:
        """The last step's score of each row, (n,)."""
        return self._apply("score_samples", X, {})

    @available_if(_final_estimator_has("fit_predict"))
    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """What the last step's ``fit_predict`` says of all rows, in this process."""
        X, y, params = self._whole(X, y, params, "fit_predict", _TOGETHER)
        self.__dict__.pop("plan_", None)
        return super().fit_predict(X, y, **params)

    @available_if(lambda self: self._can_inverse_transform())
    def inverse_transform(self, X: Any, **params: Any) -> Any:
        """All rows back through the steps, in this process."""
        X, _, params = self._whole(X, None, params, "inverse_transform", _TOGETHER)
        return super().inverse_transform(X, **params)

    @available_if(lambda self: self._can_transform())
    def transform(self, X: Any, **params: Any) -> Any:
        """The rows after the last step."""
        return self._apply("transform", X, params)

    @available_if(_final_estimator_has("score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Any:
        """The last step's score of its predictions."""
        if not params and not (_routing_enabled() and sample_weight is not None):
            if _routing_enabled():  # a step may refuse to be asked for weights
                check_is_fitted(self)
                process_routing(self, "score", sample_weight=None)
            X = framed(X)
            found = applying.score(self, X, y, sample_weight)
            if found is not NotImplemented:
                return found
        params = {"sample_weight": sample_weight, **params}
        X, y, params = self._whole(X, y, params, "score", _given(params))
        return super().score(X, y, **params)

    def _apply(self, method: str, X: Any, params: Mapping[str, Any]) -> Any:
        if not params and X is not None:
            X = framed(X)
            result = applying.apply_pipeline(self, method, X)
            if result is not NotImplemented:
                return result
            return getattr(super(), method)(X)
        X, _, params = self._whole(X, None, params, method, _given(params))
        return getattr(super(), method)(X, **params)

    def _whole(
        self, X: Any, y: Any, params: Mapping[str, Any], method: str, why: str
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Data for scikit-learn's own loop, which takes no Dask collection as such."""
        if all(does_nothing(step) for _, step in self.steps) or not is_dask(X):
            return X, collected(y), _collected(params)
        X, y, *values = applying.gathered_rows(X, method, why, y, *params.values())
        return X, y, dict(zip(params, values, strict=True))

    def _blind(self) -> str | None:
        """The first step of which nobody knows that it goes row by row; or None."""
        steps = (name for name, one in self.steps if not goes_by_rows(one, fitted=False))
        return next(steps, None)

    def _not_planned(self, X: Any, params: Mapping[str, Any]) -> str:
        """What is asked for that only scikit-learn's own loop does; or ""."""
        if params and _routing_enabled():
            return f"metadata are routed: {_named(params)}"
        for name in ("transform_input", "memory"):
            if getattr(self, name) is not None:
                return f"`{name}` is given"
        if any(getattr(one, "_skl_callbacks", None) for one in (self, *_estimators(self))):
            return "steps report to callbacks"
        if all(does_nothing(step) for _, step in self.steps):
            return "no step does anything"
        return "X is None" if X is None else ""

    def _validate_steps(self) -> None:
        for name, step in self.steps[:-1]:
            if not does_nothing(step) and not can_transform(step):
                raise TypeError(
                    f"Step `{name}` must have `fit` and `transform`, since steps "
                    "follow it. All intermediate steps should be transformers and "
                    "implement fit and transform or be the string 'passthrough' "
                    f"'{step}' (type {type(step)}) doesn't"
                )
        super()._validate_steps()

    def _brought(self, X: Any, y: Any) -> tuple[Any, Any, tuple[str, ...]]:
        """Few rows of workers here, where little is done to them; and that they came."""
        X, y, told = brought(X, y, lambda *given: any(True for _ in self._light(*given)))
        return X, y, (told,) if told else ()

    def _light(self, X: Any, y: Any) -> Iterator[Any]:
        """The rows, where what is done to them is known to take little a value."""
        if not are_near((X, y)):
            return
        found = worth(self.steps, X, y, {}, Resources())
        if found is not None and found.plainly is not None:
            yield from (X, y)

    def _routed(self, method: str, params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        self.steps: list[tuple[str, Any]] = list(self.steps)
        self._validate_steps()
        routed = self._check_method_params(method=method, props=params)
        return {
            name: {} if step is None else dict(routed[name]["fit"])
            for name, step in self.steps
        }

    def _plan(
        self,
        X: Any,
        y: Any,
        params: Mapping[str, dict[str, Any]],
        where: Any,
        *,
        outcome: bool = False,
        priced: bool = False,
        layouts: Mapping[str, str] | None = None,
    ) -> Planned:
        if getattr(where, "client", None) is not None:
            check_picklable(self.steps)
        steps = list(self.steps)
        while not outcome and steps and does_nothing(steps[-1][1]):
            steps.pop()
        params = {step: dict(values) for step, values in params.items()}
        weight = None if outcome or not steps else row_weights(steps[-1], params)
        # Steps are given them as scikit-learn's would be, whatever becomes of the rows.
        given = {s: _collected(values) for s, values in params.items() if values}
        problem = Problem(tuple(steps), X, y, weight, given, not outcome, layouts or {})
        return make_plan(
            problem,
            where,
            lambda: resources_of(where),
            environment,
            budget=lambda: budget_bytes(self.memory_budget, where),
            without=left_out(self.optimize),
            priced=priced,
        )

    def _fit_planned(
        self, X: Any, y: Any, params: Mapping[str, dict[str, Any]], *, outcome: bool = False
    ) -> Any:
        begin = time.perf_counter()
        X, y, told = self._brought(X, y)
        X, y, params = _held(X, y, params)
        with closing(executor(rows=self._light(X, y))) as where:
            try:
                planned, run, rows, notes = carry_out(
                    lambda layouts: self._plan(
                        X, y, params, where, outcome=outcome, layouts=layouts
                    ),
                    self.steps, where, environment,
                )  # fmt: skip
            except Unforeseen as reason:
                data = gathered({"X": X, "y": y}, memory_limit(), str(reason))
                try:
                    return self._fit_plainly(data, params, str(reason), outcome, told)
                except Exception as error:
                    named = reason.__cause__
                    if named is None or not str(named).endswith(str(error)):
                        raise
                    raise named from None  # it says the same, and of which step
        took = time.perf_counter() - begin
        plan = to_plan(self, planned, run, took, once=compiling.once(begin))
        more = (*told, *notes, *doubt_notes(self.steps), *compiling.notes(begin))
        self.plan_ = replace(plan, notes=(*plan.notes, *more))
        report(self)
        if not rows:
            return None
        labelled = have_labels(planned.draft.sinks[0], planned.sources)
        return like_last(self.steps, stack(rows, self.steps[-1][0], labelled=labelled))

    def _fit_plainly(
        self,
        data: Mapping[str, Any],
        params: Mapping[str, Mapping[str, Any]],
        reason: str,
        outcome: bool,
        told: tuple[str, ...],
    ) -> Any:
        """scikit-learn's own loop on all rows, where no plan holds."""
        begin = time.perf_counter()
        given = {
            f"{step}__{name}": value
            for step, named in params.items()
            for name, value in _collected(named).items()
        }
        own = sklearn.pipeline.Pipeline
        method = own.fit_transform if outcome else own.fit
        result = method(self, data["X"], data["y"], **given)
        took = time.perf_counter() - begin
        plan = plain_plan(self, took, reason)
        self.plan_ = replace(plan, notes=(*plan.notes, *told))
        return result if outcome else None


PIPELINES.add(Pipeline)


def _named(params: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name, value in params.items() if value is not None)


def _given(params: Mapping[str, Any]) -> str:
    """Why scikit-learn's own loop runs, where that is for what a method is given."""
    return f"{named} given: {_TOGETHER}" if (named := _named(params)) else _TOGETHER


def _collected(params: Mapping[str, Any]) -> dict[str, Any]:
    return dict(zip(params, collected_together(*params.values()), strict=True))


def _held(
    X: Any, y: Any, params: Mapping[str, Mapping[str, Any]]
) -> tuple[Any, Any, dict[str, dict[str, Any]]]:
    """See `held`; with what each step is given."""
    each = {(step, name): one for step in params for name, one in params[step].items()}
    found = held({"X": X, "y": y, **each})
    given = {s: {name: found[s, name] for name in own} for s, own in params.items()}
    return found["X"], found["y"], given


def _estimators(pipeline: Pipeline) -> Iterator[Any]:
    return (step for _, step in pipeline.steps)


def _name(estimator: Any) -> str:
    return type(estimator).__name__.lower()
