"""Newton's method for one logistic model, binary or softmax, with all classes together.

::

    few values   start        the same on an eighth of the rows, where that is enough
                 each step    Hessian of all rows, its factor is the first guess
                              pass: objective and gradient at the point it leads to
    kinked loss  after a step that was too long, the same with a stronger penalty, which is
                 lowered again as soon as its minimum is near
    many rows    each step    L-BFGS corrects the last first guess
                              pass
                 at steps 1, 2, 4, 8 ...    Hessian of a sample, factor; of all rows from
                                            now on, once no more of them are curved

Byrd, Chin, Neveitt, Nocedal, "On the use of stochastic Hessian information in optimization
methods for machine learning", SIAM J. Optim. 21, 2011. Hintermueller, Ito, Kunisch, "The
primal-dual active set strategy as a semismooth Newton method", SIAM J. Optim. 13, 2002: a
full step of a squared hinge solves for the rows that are active now, and where no other row
becomes so it ends at the minimum. Classes that can be separated leave few of them active at
the end; which ones, a weak penalty finds out in thousands of steps, and one that becomes
weaker as the path of minima is followed (Hastie et al., "The entire regularization path for
the support vector machine", JMLR 5, 2004) in some twenty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import single_threaded
from mlopt.costs import Cost
from mlopt.gd import gap
from mlopt.gd.batch import Batch, Pairs
from mlopt.gd.columns import Model, layout
from mlopt.gd.curvature import weight_sums
from mlopt.gd.joint_hessian import Inverse, curved_rows, inverse_of, joint_hessian
from mlopt.gd.passes import Evaluation, Floats, Sums, evaluate
from mlopt.gd.plans.method import Method, Solver, Start, at_least, priced
from mlopt.gd.plans.newton_costs import cost, passes
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import GradientNorm, Minimum, RelativeGap, tolerances
from mlopt.gd.plans.task import Problem
from mlopt.gd.sample import KINKED, draw, hessian_rows, lacking_squares, start_rows
from mlopt.prices import count, price
from mlopt.resources import Resources
from mlopt.rows import Rows

_MEMORY = 10
"""Pairs of steps and gradients beside a sampled Hessian, as in L-BFGS."""
_STEPS = count("newton.start.steps")
_RAISED, _LOWERED = price("newton.raised"), price("newton.lowered")
LOSSES = frozenset({"logistic", "multinomial", "squared_hinge"})
"""What it can minimise."""
_FEW_WEIGHTS = count("small.weights")


def _start(rows: Rows, model: Model) -> tuple[Floats, Floats] | None:
    """The solution on an eighth of the rows, as near to that on all as it can be.

    It is about ``d / (2 m)`` above the minimum for m rows, in units of the loss: to go
    further on the sample would be to no purpose.
    """
    size = start_rows(rows.n, rows.d, model.outputs)
    if not size:
        return None
    near = model.outputs * (rows.d + 1) / size
    sample = draw(rows, size)
    if not (sample.map_reduce(weight_sums, np.add) > 0).all():
        return None
    part = Newton(sample, model, tol=near, max_passes=_STEPS)
    part.advance(_STEPS)
    return part.coefficients()


class Newton:
    """A `mlopt.training.Training` of one model.

    Parameters
    ----------
    rows : Rows
        With "targets" (n, 1) and "weights" (n, 1) beside them.
    model : Model
        "multinomial", "logistic" or "squared_hinge".
    gtol : float
        Converged when no component of the objective's gradient is larger.
    tol : float, default=0.0
        Converged, too, when the objective is within ``tol`` (relative) of the minimum by
        the estimate of `mlopt.gd.gap`.
    max_passes : int
    start : (coef, intercept), optional
        Arrays (outputs, d) and (outputs,); default the solution on a sample, or 0.
    certain : bool, default=False
        With a penalty, ``tol`` counts as reached only where ``||g||^2 / (2 l2)``, which
        bounds the gap, is within it; what is estimated does not count then.
    """

    def __init__(
        self,
        rows: Rows,
        model: Model,
        *,
        gtol: float = 0.0,
        tol: float = 0.0,
        max_passes: int,
        start: tuple[Any, Any] | None = None,
        certain: bool = False,
    ) -> None:
        self._rows, self._model, self._gtol, self._tol = rows, model, gtol, tol
        self._bounded = certain and model.l2 > 0
        self._max_passes, self._passes = max_passes, 0
        self._plan, self._sums = layout([model]), Sums.of(rows)
        stored = rows.nonzero / rows.n if rows.sparse else None
        size = hessian_rows(rows.n, rows.d, model.outputs, stored, loss=model.loss)
        self._sample = draw(rows, size)
        self._lacking = lacking_squares(rows, self._sample)
        # Where the Hessian is that of all rows, there is nothing to correct.
        self._exact = size == rows.n
        if start is None and self._exact:
            start = _start(rows, model)
        weights: Floats = np.zeros((rows.d + 1, model.outputs), rows.dtype)
        if start is not None:
            weights[:-1], weights[-1] = np.asarray(start[0]).T, start[1]
        memory = 0 if self._exact else _MEMORY
        self._batch = Batch.at(weights, self._plan, [0], memory)
        self._due, self._seen = 1, weights
        self._inverse: Inverse | None = None
        self._idle = 0
        # Whether the penalty may be raised yet, by how many times it is, and where that or
        # a step that was too long has led; the objective after such a step.
        self._may_raise = self._exact and self._kinked
        self._times, self._leapt = 1.0, np.inf
        self._raised: Batch | None = None
        self._trace = 0.0

    @property
    def _kinked(self) -> bool:
        return self._model.loss == KINKED and self._model.l2 > 0

    @property
    def passes(self) -> int:
        """Passes over all rows so far."""
        return self._passes

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether the model is at the tolerance, or at all that rounding allows, (1,).

        Where a bound is wanted, what rounding allows is not enough.
        """
        return self._reached if self._bounded else self._reached | self._rounded

    @property
    def _reached(self) -> NDArray[np.bool_]:
        """Whether the model is at the tolerance, (1,)."""
        close = np.abs(self._batch.gradient).max() <= self._gtol
        if self._tol:
            close |= self.gap <= self._tol
        return np.asarray(close & np.isfinite(self._batch.value))

    @property
    def _rounded(self) -> NDArray[np.bool_]:
        """Whether nothing but rounding is left to gain, (1,)."""
        batch = self._batch
        close = _lost(batch)
        # Objectives do not tell steps from here apart, but gradients still shrink.
        close |= self._idle > (gap.SPARE if self._bounded else 0)
        return np.asarray(close & np.isfinite(batch.value))

    def _count_idle(self) -> None:
        """Steps that were accepted when nothing but rounding was left to gain."""
        batch = self._batch
        eps = float(np.finfo(batch.weights.dtype).eps)
        if batch.estimate[0] <= np.abs(batch.value[0]) * eps**1.25:
            self._idle += 1

    @property
    def gap(self) -> float:
        """How far the objective may be above its minimum, relative to it."""
        batch = self._batch
        size = max(abs(float(batch.value[0])), np.finfo(np.float64).tiny)
        if self._bounded:
            g = batch.gradient.astype(np.float64)
            bound = float(gap.strong_convexity_bound(np.sum(g * g), self._model.l2))
            return np.inf if np.isinf(batch.value[0]) else bound / size
        left = gap.safeguarded(batch.value, batch.estimate, batch.values, batch.estimates)
        return float(left[0] / size)

    def ask(self, tolerance: float) -> None:
        """Go on to another ``tol``."""
        self._tol = tolerance

    @property
    def done(self) -> bool:
        """Whether another pass would change nothing."""
        ended = bool(self._reached[0] or self._rounded[0])
        return self._passes >= self._max_passes or ended

    def quality(self) -> NDArray[np.float64]:
        """Minus the objective, (1,)."""
        return -self.objective()

    def objective(self) -> NDArray[np.float64]:
        """The objective at the present weights, (1,)."""
        return self._batch.value

    def advance(self, passes: int) -> None:
        """Evaluate up to ``passes`` trial points; a Hessian is made at every new point."""
        for _ in range(passes):
            if self.done:
                return
            batch = self._batch if self._raised is None else self._raised
            trial = batch.trial()
            found = evaluate(self._rows, trial, batch.plan, self._sums, scored=False)
            self._passes += 1
            moved = batch.settle(trial, found)
            if not moved.any() and self._may_raise:
                self._leap(trial, found)
            elif self._raised is not None:
                self._lower(self._raised, moved)
            elif moved.any() and not self.converged[0]:
                self._aim(moved)
                self._count_idle()

    def _leap(self, trial: Floats, found: Evaluation) -> None:
        """Take a step that was too long all the same, if the last such one was of use."""
        ahead = Batch.at(trial, self._plan, [0], 0)
        ahead.settle(trial, found)
        if ahead.value[0] < self._leapt:
            self._leapt, self._raised = float(ahead.value[0]), ahead
            self._aim_at(ahead)
        else:
            self._raise()

    def _raise(self) -> None:
        """Go on with a stronger penalty, from here."""
        self._may_raise = False
        times = _RAISED * self._trace / self._model.l2
        if times > 1.0:
            self._times, self._raised = times, self._penalised(self._batch, times)
            self._aim_at(self._raised)

    def _lower(self, raised: Batch, moved: NDArray[np.bool_]) -> None:
        """Make the penalty weaker if its minimum is near; what counts is the best point."""
        plain = self._penalised(raised, 1.0)
        if plain.value[0] < self._batch.value[0]:
            self._batch = plain
        if self.converged[0]:
            return
        times = self._times
        while times > 1.0 and _is_near(raised):
            times = max(times / _LOWERED, 1.0)
            raised = self._penalised(raised, times)
        changed, self._times, self._raised = times != self._times, times, raised
        if changed or moved.any():
            self._aim_at(raised)
        if times == 1.0 and raised.value[0] <= self._batch.value[0]:
            self._batch, self._raised = raised, None
        elif times == 1.0 and _lost(raised)[0]:
            self._raised = None
            self._aim_at(self._batch)

    def _penalised(self, batch: Batch, times: float) -> Batch:
        """Where it is, with so many times the model's penalty."""
        model, own, weights = self._model, batch.plan.models[0], batch.weights
        other = replace(model, l2=times * model.l2, intercept_l2=times * model.intercept_l2)
        change = (other.l2 - own.l2) * weights
        change[-1] = (other.intercept_l2 - own.intercept_l2) * weights[-1]
        at = Batch.at(weights, layout([other]), [0], 0)
        at.gradient = batch.gradient + change
        at.value = batch.value + 0.5 * float(np.vdot(change, weights))
        return at

    def _aim_at(self, batch: Batch) -> None:
        """Give it a new direction by the Hessian where it is."""
        self._look(batch.weights, batch.plan.models[0])
        assert self._inverse is not None
        batch.aim(np.array([True]), self._inverse, False)

    def _aim(self, moved: NDArray[np.bool_]) -> None:
        if self._inverse is None or self._exact or self._passes >= self._due:
            self._look(self._batch.weights, self._model)
            self._due = 2 * self._passes
        assert self._inverse is not None
        self._batch.aim(moved, self._inverse, False)

    def _look(self, weights: Floats, model: Model) -> None:
        """Make the first guess from the Hessian at ``weights``."""
        if self._kinked and not self._exact:
            curved = curved_rows(self._sample, weights, model) / self._sample.n
            if curved * self._rows.n <= self._sample.n:
                self._see_all()
        hessian = joint_hessian(self._sample, weights, model, self._lacking)
        self._trace = max(self._trace, float(np.trace(hessian)))
        # Factors are small: a second thread of BLAS would mostly wait.
        with single_threaded():
            self._inverse = inverse_of(hessian)
        self._seen = weights

    def _see_all(self) -> None:
        """Hessians of all rows from now on, with nothing to correct."""
        self._sample, self._lacking = self._rows, np.zeros(self._rows.d)
        self._exact = self._may_raise = True
        self._batch.pairs = Pairs(0)

    def coefficients(self, number: int = 0) -> tuple[Floats, Floats]:
        """Weights (outputs, d) and intercepts (outputs,)."""
        del number
        weights = self._batch.weights
        return np.ascontiguousarray(weights[:-1].T), weights[-1].copy()

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return {
            "passes": self._passes,
            "exact": self._exact,
            "due": self._due,
            "idle": self._idle,
            "seen": self._seen.copy(),
            "batch": self._batch.state(),
            "may_raise": self._may_raise,
            "leapt": self._leapt,
            "times": self._times,
            "trace": self._trace,
            "raised": None if self._raised is None else self._raised.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same model on the same rows."""
        self._passes, self._due = int(state["passes"]), int(state["due"])
        self._idle = int(state["idle"])
        if state["exact"] and not self._exact:
            self._see_all()
        memory = self._batch.pairs.size
        self._batch = Batch.restored(state["batch"], self._plan, memory)
        self._may_raise, self._times = bool(state["may_raise"]), float(state["times"])
        self._trace, self._leapt = float(state["trace"]), float(state["leapt"])
        self._raised = None
        if state["raised"] is not None:
            plan = self._penalised(self._batch, self._times).plan
            self._raised = Batch.restored(state["raised"], plan, 0)
        elif self._passes:
            self._look(np.asarray(state["seen"]), self._model)


def _is_near(batch: Batch) -> bool:
    """Whether the gap is less than the objective, or rounding hides it."""
    squares = float(np.square(batch.gradient).sum())
    bound = gap.strong_convexity_bound(squares, batch.plan.models[0].l2)
    return bool(bound <= batch.value[0] or _lost(batch)[0])


def _lost(batch: Batch) -> NDArray[np.bool_]:
    """Whether steps were refused that promised no more than rounding, (1,)."""
    level = np.abs(batch.value) * float(np.finfo(batch.weights.dtype).eps)
    return np.asarray((batch.estimate <= level) & (batch.refusals > 2))


def _cost(outline: Outline, resources: Resources, passes: float) -> Cost | str:
    if outline.shape.columns > 1 and outline.loss != "multinomial":
        return "its Hessian is that of one column of weights, or of a softmax"
    return cost(outline.shape, resources, passes, outline.loss)


def _begin(problem: Problem, stop: Minimum, max_passes: int, start: Start) -> Solver:
    gtol, tol = tolerances(stop)
    return Newton(
        problem.rows, problem.model, gtol=gtol, tol=tol, max_passes=max_passes,
        start=start, certain=tol > 0,
    )  # fmt: skip


def _small(problem: Problem) -> bool:
    """Few weights: a Hessian and its factor take little beside the calls of a pass."""
    one = problem.outputs == 1 or problem.task.loss == "multinomial"
    return one and problem.outputs * (problem.rows.d + 1) <= _FEW_WEIGHTS


NEWTON_CHOLESKY = Method(
    "newton-cholesky", LOSSES, passes, priced(_cost), _begin,
    stops=(RelativeGap, GradientNorm), continues=True, sudden=True, small=_small,
    least=at_least(3), free=1,
)  # fmt: skip
