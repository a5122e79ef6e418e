"""One run of an algorithm over a source: three phases, step by step, resumable."""

from __future__ import annotations

import copy
import math
import operator
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from mlopt.errors import InputError
from mlopt.gd.operators.calling import (
    as_batch,
    as_delta,
    as_flag,
    as_indices,
    as_weights,
    bound,
    call,
)
from mlopt.gd.operators.interfaces import (
    Batch,
    Context,
    Floats,
    Units,
    stacked,
    summed,
)
from mlopt.gd.operators.samplers import STAGE, Sampler, generator_of
from mlopt.gd.operators.sources import MatrixSource, Source
from mlopt.gd.operators.stopping import diverges

if TYPE_CHECKING:
    from mlopt.gd.operators.algorithm import Algorithm


@dataclass(frozen=True)
class Record:
    """One iteration.

    Attributes
    ----------
    iteration : int
        From 1.
    delta : float
        What Converge said; infinite where it said nothing.
    objective : float
        After the iteration, over all rows; NaN unless asked for.
    seconds : float
        Since the start, preparation included.
    bytes_read, rows_parsed : int
        Since the start.
    """

    iteration: int
    delta: float
    objective: float
    seconds: float
    bytes_read: int
    rows_parsed: int


History = tuple[Record, ...]


def as_table(history: Sequence[Record]) -> Floats:
    """Records as rows of numbers, for a checkpoint, (iterations, 6)."""
    return np.array([astuple(record) for record in history], np.float64).reshape(-1, 6)


def from_table(table: Any) -> list[Record]:
    """The inverse of `as_table`."""
    return [
        Record(int(i), delta, objective, seconds, int(read), int(parsed))
        for i, delta, objective, seconds, read, parsed in np.asarray(table).tolist()
    ]


@dataclass(frozen=True)
class Result:
    """The end of a run.

    Attributes
    ----------
    weights : ndarray
        As Update returned them last.
    fit_intercept : bool
        Whether the last weight is an intercept.
    n_iter : int
    history : tuple of Record
    seconds : float
    converged : bool
        Whether Loop ended the run.
    message : str
        Why it ended.
    context : Context
        All globals at the end.
    """

    weights: Any
    fit_intercept: bool
    n_iter: int
    history: History
    seconds: float
    converged: bool
    message: str
    context: Context

    @property
    def diverged(self) -> bool:
        """Whether the objective, or the weights, ran away."""
        return self.message.startswith("diverged")

    @property
    def coef(self) -> Any:
        """Weights of the columns, (d,)."""
        return self.weights[:-1] if self.fit_intercept else self.weights

    @property
    def intercept(self) -> float:
        """The intercept, or 0."""
        return float(self.weights[-1]) if self.fit_intercept else 0.0

    @property
    def errors(self) -> list[tuple[float, int]]:
        """Pairs of delta and iteration wherever Converge said something (Algorithm 1)."""
        return [(r.delta, r.iteration) for r in self.history if math.isfinite(r.delta)]


@runtime_checkable
class HasObjective(Protocol):
    """A Compute that knows the objective which its gradients belong to."""

    def objective(self, batch: Batch, weights: Any, /) -> float:
        """The sum of the objective over the rows."""
        ...


class Run:
    """A `mlopt.training.Training`: an algorithm in progress.

    A pass is one iteration of the loop, however few rows it touches. The preparation phase
    is done when the run is made.

    Parameters
    ----------
    algorithm : Algorithm
    source : Source
    seed : int, default=0
    objective_every : int, default=0
        Record the objective over all rows in every so many iterations; each time is a pass
        over the rows. 0: never.
    """

    def __init__(
        self, algorithm: Algorithm, source: Source, seed: int = 0, objective_every: int = 0
    ) -> None:
        self.algorithm, self.source = algorithm, source
        self.objective_every = objective_every
        self.history: list[Record] = []
        self.message = ""
        self.converged = False
        self._seconds = 0.0
        self._base = (source.counts.bytes_read, source.counts.rows_parsed)
        self._compute = bound(algorithm.compute)
        self._transform = bound(algorithm.transform or source.parser)
        self._others = {
            name: bound(getattr(algorithm, name)) for name in ("update", "converge", "loop")
        }
        begin = time.perf_counter()
        self.context = Context(iteration=0, seed=seed, seen=0, full=False)
        self.context.update(n=source.about, columns=source.columns)
        self._stage()
        parsed = isinstance(source, MatrixSource) and algorithm.transform is None
        self.data = source if algorithm.lazy or parsed else self._eager()
        # Whether rows must still be transformed when they are used.
        self._raw = algorithm.lazy and not parsed
        self._seconds = time.perf_counter() - begin

    def _stage(self) -> None:
        stage, rows = bound(self.algorithm.stage), self._staged_rows()
        call("stage", stage, rows, self.context)
        if "weights" not in self.context:
            raise InputError("The operator `stage` must set `weights` in the context.")
        self.context["weights"] = np.asarray(self.context["weights"])
        self.context["previous"] = self.context["weights"]

    def _staged_rows(self) -> Batch | None:
        """What Stage may see: parsed by the source, before any Transform of the user's."""
        wanted = self.algorithm.stage_rows
        if wanted == 0:
            return None
        if wanted is None:
            found = list(self.source.scan())
        else:
            found = [self.source.random(generator_of(self.context, STAGE, 0), wanted)]
        return stacked([self.source.parser(units, self.context) for units in found])

    def _eager(self) -> Source:
        """Transform everything once, and keep it."""
        batches = [self.transformed(units) for units in self.source.scan()]
        executor = None
        if isinstance(self.source, MatrixSource):
            executor = self.source.rows.executor
        return MatrixSource.of_batches(batches, executor)

    def transformed(self, units: Units) -> Batch:
        """Units after Transform, counted."""
        self.source.counts.rows_parsed += len(units)
        return _transformed(self._transform, self.context, units)

    @property
    def passes(self) -> int:
        """Iterations so far."""
        return int(self.context["iteration"])

    @property
    def done(self) -> bool:
        """Whether Loop has ended it, it diverged, or all iterations are used up."""
        return bool(self.message) or self.passes >= self.algorithm.max_iter

    def advance(self, passes: int) -> None:
        """Up to ``passes`` more iterations."""
        for _ in range(passes):
            if self.done:
                return
            self._iterate()

    # Steps may be so long that numbers overflow: that is found, and said, afterwards.
    @np.errstate(over="ignore", invalid="ignore")
    def _iterate(self) -> None:
        begin, context = time.perf_counter(), self.context
        context["iteration"] += 1
        total = self._processed()
        new = call("update", self._others["update"], total, context)
        delta = math.inf if new is None else self._converged(new)
        objective = math.nan
        if self.objective_every and context["iteration"] % self.objective_every == 0:
            objective = self.objective()
        self._seconds += time.perf_counter() - begin
        counts = self.source.counts
        read, parsed = counts.bytes_read - self._base[0], counts.rows_parsed - self._base[1]
        self.history.append(
            Record(context["iteration"], delta, objective, self._seconds, read, parsed)
        )
        if new is not None and not self.message:
            self._loop(delta)

    def _processed(self) -> Any:
        """Sample, Compute, and the sum."""
        context, units = self.context, self._drawn()
        if units is None:
            rows, total = self._over_all(
                partial(call, "compute", self._compute),
                partial(summed, self.algorithm.compute),
            )
        else:
            batch = self.transformed(units) if self._raw else units
            assert isinstance(batch, Batch)
            rows, total = len(batch), call("compute", self._compute, batch, context)
        context["full"], context["rows"] = units is None, rows
        context["seen"] += rows
        context["_total"] = total
        self.message = diverges(total, context)
        return total

    def _drawn(self) -> Units | None:
        sample = self.algorithm.sample
        if sample is None:
            return None
        if isinstance(sample, Sampler):
            return sample.draw(self.data, self.context)
        chosen = call("sample", bound(sample), self.data.n, self.context)
        if chosen is None or isinstance(chosen, Batch):
            return chosen
        return self.data.take(as_indices(chosen, self.data.n))

    def _over_all(self, function: Any, combine: Any) -> tuple[int, Any]:
        if not self._raw:
            return self.data.total(_as_it_is, function, combine, self.context.shared())
        local = not isinstance(self.data, MatrixSource)
        seen = self.context if local else self.context.shared()
        transform = partial(_transformed, self._transform, seen)
        rows, total = self.data.total(transform, function, combine, self.context.shared())
        self.source.counts.rows_parsed += rows
        return rows, total

    def _converged(self, new: Any) -> float:
        context = self.context
        weights = as_weights(new, context)
        context["previous"], context["weights"] = context["weights"], weights
        if not np.isfinite(weights).all():
            self.message = "diverged: weights are not finite; take a smaller step"
            return math.inf
        return as_delta(call("converge", self._others["converge"], weights, context))

    def _loop(self, delta: float) -> None:
        if not as_flag(call("loop", self._others["loop"], delta, self.context)):
            self.message, self.converged = f"converged: delta is {delta:.3g}", True

    def objective(self) -> float:
        """The mean objective over all rows, at the present weights: a pass over the rows.

        Raises
        ------
        InputError
            When Compute has no ``objective``.
        """
        compute = self.algorithm.compute
        if not isinstance(compute, HasObjective):
            raise InputError(
                "The objective is not known: give `compute` a method "
                "`objective(batch, weights)`."
            )
        rows, total = self._over_all(partial(_objective, compute), operator.add)
        return float(total / rows)

    def quality(self) -> float:
        """Minus the objective; minus the last delta where Compute knows no objective."""
        if isinstance(self.algorithm.compute, HasObjective):
            return -self.objective()
        known = [record.delta for record in self.history if math.isfinite(record.delta)]
        return -known[-1] if known else -math.inf

    def state(self) -> dict[str, Any]:
        """A checkpoint: the context without caches, the history, and why it ended."""
        return {
            "context": copy.deepcopy(dict(self.context.shared())),
            "history": as_table(self.history),
            "seconds": self._seconds,
            "message": self.message,
            "converged": self.converged,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same algorithm over the same source."""
        context = copy.deepcopy(dict(state["context"]))
        now, then = np.shape(self.context["weights"]), np.shape(context["weights"])
        if now != then:
            raise InputError(
                f"The checkpoint belongs to another run: its weights have shape {then}, "
                f"those here {now}."
            )
        self.context = Context(context)
        self.history = from_table(state["history"])
        self.message, self.converged = str(state["message"]), bool(state["converged"])
        self._seconds = float(state["seconds"])
        counts = self.source.counts
        self._base = (counts.bytes_read, counts.rows_parsed)
        if self.history:
            last = self.history[-1]
            read, parsed = self._base
            self._base = (read - last.bytes_read, parsed - last.rows_parsed)

    def result(self, reason: str = "") -> Result:
        """What there is so far; ``reason`` says why it stopped, where it was stopped."""
        message = self.message or reason
        if not message and self.passes >= self.algorithm.max_iter:
            message = f"stopped: all {self.algorithm.max_iter} iterations are used up"
        return Result(
            weights=self.context["weights"],
            fit_intercept=self.algorithm.fit_intercept,
            n_iter=self.passes,
            history=tuple(self.history),
            seconds=self._seconds,
            converged=self.converged,
            message=message or "paused",
            context=self.context.shared(),
        )


def _transformed(transform: Any, context: Context, units: Units) -> Batch:
    return as_batch(call("transform", transform, units, context), len(units))


def _as_it_is(units: Units) -> Batch:
    assert isinstance(units, Batch)
    return units


def _objective(compute: HasObjective, batch: Batch, context: Context) -> float:
    return compute.objective(batch, context["weights"])
