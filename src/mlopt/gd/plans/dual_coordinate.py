"""Dual coordinate descent of support vector machines: one row at a time.

The method of `mlopt.kernels.dual` is sequential: every step needs the one before. And it
needs its steps in random order over *all* rows: block by block, each block would first undo
the intercept of the one before, and ten times the passes would not do. So rows form one
block, and what runs in parallel are problems, such as one class against the others.

A free intercept of hinges is penalised by its distance from where it was, and that moves
after every pass: proximal steps, or multipliers of ``sum_i alpha_i y_i = 0`` (Rockafellar,
Math. Oper. Res. 1, 1976). The gap is then that of a feasible part of the variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.gd.columns import Model
from mlopt.gd.plans.bracket import Bracket, margins
from mlopt.gd.plans.gathered import EPOCH
from mlopt.gd.plans.method import Method, Price, Solver, Start, at_least, digits
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import GradientNorm, Minimum, RelativeGap
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import Shape, alone, gradient_pass
from mlopt.gd.sizes import ROUNDED
from mlopt.kernels.dual import ANEW, DualState, dual_epochs, squared_norms
from mlopt.kernels.pointwise import losses_and_slopes
from mlopt.locking import cached_property
from mlopt.prices import count, price
from mlopt.resources import Resources
from mlopt.rows import Block

Array = NDArray[Any]

_EPOCHS_WIDE = price("dual.epochs.wide")
_EPOCHS_TALL = price("dual.epochs.tall")
_EPOCHS_OF_GAP = price("dual.epochs.gap")
_DOUBT = price("dual.doubt")
_NEAR, _DOUBT_FREE = price("dual.near"), price("dual.doubt.free")
_LOOKS_FREE = price("dual.looks.free")
_EPOCHS_FREE, _POWER_FREE = price("dual.epochs.free"), price("dual.epochs.free.power")
_STEP_DENSE = price("dual.step.dense")
_STEP_SPARSE = price("dual.step.sparse")
_STEP_ROW = price("dual.step.row")
_LOOK = count("dual.look")


def passes(shape: Shape) -> float:
    """Epochs to expect to LIBLINEAR's rule, where nothing is known but the shape."""
    return _EPOCHS_WIDE if shape.d >= shape.n else _EPOCHS_TALL


def cost(shape: Shape, resources: Resources, epochs: float) -> Cost:
    """Epochs of single steps: each problem on one thread, problems in parallel."""
    busy = min(resources.threads, shape.columns)
    steps = epochs * epoch_operations(shape) * shape.columns
    return alone(steps, resources, busy)


def epoch_operations(shape: Shape) -> float:
    """Operations in whose time every row is visited once, of one problem."""
    price = _STEP_SPARSE if shape.sparse else _STEP_DENSE
    return price * 4.0 * shape.nonzero + _STEP_ROW * shape.n


@dataclass(frozen=True)
class _Run:
    """One class against the others: ``1/2 ||w||^2 + cost sum_i c_i loss(y_i w.x_i)``.

    Parameters
    ----------
    positive : float
        Code of the class; every other code is negative.
    cost : float
        Of a unit of loss in a row of weight 1.
    target, rowset : int
        Which columns of "targets" and "weights" are its codes and row weights.
    state : DualState
    """

    positive: float
    cost: float
    target: int
    rowset: int
    state: DualState
    passes: int = 0
    solved: bool = False


class DualCoordinateDescent:
    """A `mlopt.training.Training` of linear support vector machines.

    A pass visits every row that is not shrunk. At a `GradientNorm` a run has converged
    when, over all of its rows, the greatest violation of optimality minus the least is at
    most ``tol``: the rule, and the tolerance, of LIBLINEAR. Models of several outputs have
    a run each.

    At a `RelativeGap`, for one run without an intercept, the duality gap is looked at after
    every pass. It is a sure bound of the error: the primal, ``1/2 ||w||^2 + sum_i cost_i
    loss_i``, which is a task's objective over ``l2``, is never below the dual, and both
    meet at the solution (Hsieh et al., ICML 2008). With a free intercept, a `Bracket` tells
    it.

    Parameters
    ----------
    problem : Problem
        With the hinge or squared hinge loss, a penalty, and none or a penalised intercept;
        at a gap that of the hinge may be free.
    stop : RelativeGap or GradientNorm
    max_passes : int
    """

    def __init__(self, problem: Problem, stop: Minimum, max_passes: int) -> None:
        rows, first = problem.rows.in_one_block(must=True), problem.models[0]
        norms = np.concatenate(rows.map(_norms))
        self._rows = rows.attach(norms=norms)
        self._problem, self._bias = problem, constant(first)
        self._bracket: Bracket | None = None
        if problem.outline.free_intercept:
            self._bias = float(np.sqrt(_NEAR * norms.mean())) or 1.0
            self._bracket = Bracket(replace(problem, rows=rows))
        self._stop, self._max_passes, self.gap = stop, max_passes, np.inf
        self._rule = {
            "squared": first.loss == "squared_hinge", "bias": self._bias,
            "tol": stop.tol if isinstance(stop, GradientNorm) else ROUNDED,
        }  # fmt: skip
        self._runs: list[_Run] = []
        for model in problem.models:
            cost = 1.0 / (model.l2 * float(problem.sums.weights[model.rowset]))
            for code in range(model.outputs) if model.outputs > 1 else (1,):
                state = DualState.start(rows.n, rows.d, problem.seed)
                run = _Run(float(code), cost, model.target, model.rowset, state)
                self._runs.append(run)

    @property
    def passes(self) -> int:
        """Passes of the run that took most."""
        return max(run.passes for run in self._runs)

    @property
    def _solved(self) -> NDArray[np.bool_]:
        return np.array([run.solved for run in self._runs])

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Which runs are at the tolerance."""
        if isinstance(self._stop, RelativeGap):
            return np.array([self.gap <= self._stop.tolerance])
        return self._solved

    @property
    def done(self) -> bool:
        """Whether all runs are at the tolerance, or another pass would change nothing."""
        ended = self.converged.all() or self._solved.all()
        return bool(ended) or self.passes >= self._max_passes

    def ask(self, tolerance: float) -> None:
        """Go on to another gap."""
        self._stop = RelativeGap(tolerance)

    def quality(self) -> Array:
        """Minus the range of violations, for each run."""
        return np.array([-run.state.violation for run in self._runs])

    def advance(self, passes: int) -> None:
        """Up to ``passes`` more passes of every run."""
        if isinstance(self._stop, GradientNorm):
            self._runs = self._rows.fold(_advance, self._runs, self._rule, passes)
            return
        for _ in range(passes):
            if self.done:
                return
            self._runs = self._rows.fold(_advance, self._runs, self._rule, 1)
            self.gap = self._look() if self._bracket is None else self._move()

    def _move(self) -> float:
        """To where the intercept is now; the gap of what was seen."""
        (run,), bracket = self._runs, self._bracket
        assert bracket is not None
        state = run.state.copy()
        bracket.narrow(state.w[:-1], bracket.margins(state.w[:-1]), state.alpha)
        off = float(state.alpha @ bracket.sign)
        state.w[-1] += self._bias * off
        state.control[:] = len(state.alpha), *ANEW
        self._runs = [replace(run, state=state, solved=run.solved and off == 0.0)]
        return bracket.gap

    def _look(self) -> float:
        """The duality gap, relative to the primal."""
        (run,), problem = self._runs, self._problem
        w, (y, shares) = run.state.w[:-1], self._targets_and_shares
        losses, _ = losses_and_slopes(problem.model.loss, margins(problem.rows, w), y)
        primal = 0.5 * float(w @ w) + float(losses @ shares) / problem.task.l2
        return max(primal - self._dual(w), 0.0) / max(primal, np.finfo(float).tiny)

    def _dual(self, w: Array) -> float:
        (run,) = self._runs
        alpha = run.state.alpha
        dual = float(alpha.sum()) - 0.5 * float(w @ w)
        if not self._rule["squared"]:
            return dual
        _, shares = self._targets_and_shares
        used = shares > 0
        squares = alpha[used] ** 2 / shares[used]
        return dual - 0.25 * float(np.sum(squares)) * self._problem.task.l2

    @cached_property
    def _targets_and_shares(self) -> tuple[Array, Array]:
        return self._problem.targets_and_shares()

    def coefficients(self, number: int = 0) -> tuple[Array, Array]:
        """Weights (outputs, d) and intercepts (outputs,) of one model."""
        if self._bracket is not None:
            return self._bracket.best[None, :-1].copy(), self._bracket.best[-1:].copy()
        models = self._problem.models
        first = sum(model.outputs for model in models[:number])
        own = self._runs[first : first + models[number].outputs]
        planes = np.array([run.state.w for run in own])
        return planes[:, :-1], planes[:, -1] * self._bias

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return {
            "arrays": [dict(vars(run.state.copy())) for run in self._runs],
            "passes": [run.passes for run in self._runs],
            "solved": [run.solved for run in self._runs],
            "gap": self.gap,
            "bracket": None if self._bracket is None else self._bracket.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same models on the same rows."""
        kept = zip(state["arrays"], state["passes"], state["solved"], strict=True)
        self._runs = [
            replace(run, state=DualState(**arrays).copy(), passes=passes, solved=solved)
            for run, (arrays, passes, solved) in zip(self._runs, kept, strict=True)
        ]
        self.gap = float(state["gap"])
        if self._bracket is not None:
            self._bracket.restore(state["bracket"])


def _advance(block: Block, run: _Run, rule: dict[str, Any], passes: int) -> _Run:
    if run.solved:
        return run
    state, extra = run.state.copy(), block.extra
    done, solved = dual_epochs(
        block.X, extra["norms"], np.ascontiguousarray(extra["targets"][:, run.target]),
        np.ascontiguousarray(extra["weights"][:, run.rowset]), state,
        positive=run.positive, costs=(run.cost, run.cost), epochs=passes, **rule,
    )  # fmt: skip
    return replace(run, state=state, passes=run.passes + done, solved=solved)


def _norms(block: Block) -> Array:
    return squared_norms(block.X)


def constant(model: Model) -> float:
    """The value of a constant feature whose weight is the intercept; 0 for none."""
    penalised = model.fit_intercept and model.intercept_l2 > 0
    return float(np.sqrt(model.l2 / model.intercept_l2)) if penalised else 0.0


def _without_dual(outline: Outline) -> str:
    """Why there is no dual to descend on; "" if there is one."""
    able = outline.loss == "hinge" and isinstance(outline.stop, RelativeGap)
    if outline.free_intercept and not able:
        return "it would penalise the intercept: `fit_intercept` must be False"
    if outline.l2 == 0:
        return "there is no dual without a penalty: `l2` must be positive"
    return ""


def _price(outline: Outline, resources: Resources) -> Price | str:
    if why := _without_dual(outline):
        return why
    look = Cost()
    if not isinstance(outline.stop, GradientNorm):  # a gap takes a pass over all rows
        looks = _LOOKS_FREE if outline.free_intercept else 1.0
        look = looks * gradient_pass(outline.shape, resources) + EPOCH
    return lambda epochs: cost(outline.shape, resources, epochs) + epochs * look


def _usual(outline: Outline, tolerance: float) -> tuple[float, float]:
    shape, epochs = outline.shape, _EPOCHS_OF_GAP
    if not outline.free_intercept:
        return epochs * digits(tolerance), _DOUBT
    if outline.look is not None and shape.d < shape.n:
        epochs = _EPOCHS_FREE * (outline.look().length / outline.l2) ** _POWER_FREE
    return max(1.0, epochs * digits(tolerance)), _DOUBT_FREE


def _begin(problem: Problem, stop: Minimum, max_passes: int, start: Start) -> Solver:
    del start  # weights alone do not tell the dual variables
    return DualCoordinateDescent(problem, stop, max_passes)


DUAL_COORDINATE = Method(
    "dual-coordinate-descent", frozenset({"hinge", "squared_hinge"}), passes, _price,
    _begin, stops=(RelativeGap, GradientNorm), least=at_least(6), stride=_LOOK,
    bounds=True, usual=_usual, in_one_piece=True,
)  # fmt: skip
