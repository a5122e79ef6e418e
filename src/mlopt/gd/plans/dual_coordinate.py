"""Dual coordinate descent of support vector machines: one row at a time.

The method of `mlopt.kernels.dual` is sequential: every step needs the one before. And it
needs its steps in random order over *all* rows: block by block, each block would first undo
the intercept of the one before, and ten times the passes would not do. So rows form one
block, and what runs in parallel are problems, such as one class against the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.columns import Model
from mlopt.gd.plans.method import Method, Price, Solver, Start, at_least, digits
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.sequential import EPOCH, DualGap, without_dual
from mlopt.gd.plans.stop import GradientNorm, Minimum, RelativeGap
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import Shape, alone, pass_cost
from mlopt.gd.sizes import ROUNDED
from mlopt.kernels.dual import DualState, dual_epochs, squared_norms
from mlopt.prices import count, price
from mlopt.resources import Resources
from mlopt.rows import Block, Rows

Array = NDArray[Any]

_EPOCHS_WIDE = price("dual.epochs.wide")
_EPOCHS_TALL = price("dual.epochs.tall")
_EPOCHS_OF_GAP = price("dual.epochs.gap")
_DOUBT = price("dual.doubt")
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
    price = _STEP_SPARSE if shape.sparse else _STEP_DENSE
    each = price * 4.0 * shape.nonzero + _STEP_ROW * shape.n
    steps = epochs * each * shape.columns
    gathered = float(shape.nbytes) if resources.workers > 1 else 0.0
    return alone(steps, resources, busy) + Cost(network=gathered)


@dataclass(frozen=True)
class TwoClasses:
    """One class against the others: ``1/2 ||w||^2 + cost sum_i c_i loss(y_i w.x_i)``.

    Parameters
    ----------
    positive : float
        Code of the class; every other code is negative.
    cost : float
        Of a unit of loss in a row of weight 1.
    target, rowset : int, default=0
        Which columns of "targets" and "weights" are its codes and row weights.
    """

    positive: float
    cost: float
    target: int = 0
    rowset: int = 0


class DualCoordinateDescent:
    """A `mlopt.training.Training` of linear support vector machines.

    A pass visits every row that is not shrunk. A problem has converged when, over all of
    its rows, the greatest violation of optimality minus the least is at most ``tol``: the
    rule, and the tolerance, of LIBLINEAR.

    Parameters
    ----------
    rows : Rows
        In one block, with class codes "targets" (n, T) and "weights" (n, S) beside them.
    problems : sequence of TwoClasses
    squared : bool
        Squared hinge instead of hinge.
    bias : float
        Value of the constant feature whose weight is the intercept; 0 for none.
    tol : float
    seed : int
        Of the order of rows.
    """

    def __init__(
        self,
        rows: Rows,
        problems: Sequence[TwoClasses],
        *,
        squared: bool,
        bias: float,
        tol: float,
        seed: int,
    ) -> None:
        if len(rows.lengths) != 1:
            raise InputError(
                f"`rows` must be one block, got {len(rows.lengths)}: use `in_one_block`."
            )
        self._rows = rows.attach(norms=np.concatenate(rows.map(_norms)))
        self._setting = _Setting(squared, bias, tol)
        self._runs = [
            _Run(problem, DualState.start(rows.n, rows.d, seed)) for problem in problems
        ]

    @property
    def passes(self) -> int:
        """Passes of the problem that took most."""
        return max(run.passes for run in self._runs)

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Which problems are solved to the tolerance."""
        return np.array([run.solved for run in self._runs])

    @property
    def done(self) -> bool:
        """Whether all problems are solved."""
        return bool(self.converged.all())

    def quality(self) -> Array:
        """Minus the range of violations, for each problem."""
        return np.array([-run.state.violation for run in self._runs])

    def advance(self, passes: int) -> None:
        """Up to ``passes`` more passes of every unsolved problem."""
        self._runs = self._rows.fold(_advance, self._runs, self._setting, passes)

    def plane(self, number: int) -> tuple[Array, float]:
        """Weights (d,) and intercept of one problem."""
        w = self._runs[number].state.w
        return w[:-1].copy(), float(w[-1] * self._setting.bias)

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return {
            "arrays": [dict(vars(run.state.copy())) for run in self._runs],
            "passes": [run.passes for run in self._runs],
            "solved": [run.solved for run in self._runs],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same problems on the same rows."""
        kept = zip(state["arrays"], state["passes"], state["solved"], strict=True)
        self._runs = [
            _Run(run.problem, DualState(**arrays).copy(), int(passes), bool(solved))
            for run, (arrays, passes, solved) in zip(self._runs, kept, strict=True)
        ]


@dataclass(frozen=True)
class _Setting:
    squared: bool
    bias: float
    tol: float


@dataclass(frozen=True)
class _Run:
    """One problem on its way."""

    problem: TwoClasses
    state: DualState
    passes: int = 0
    solved: bool = False


def _advance(block: Block, run: _Run, setting: _Setting, passes: int) -> _Run:
    if run.solved:
        return run
    state, one = run.state.copy(), run.problem
    done, solved = dual_epochs(
        block.X,
        block.extra["norms"],
        np.ascontiguousarray(block.extra["targets"][:, one.target]),
        np.ascontiguousarray(block.extra["weights"][:, one.rowset]),
        state,
        positive=one.positive,
        costs=(one.cost, one.cost),
        squared=setting.squared,
        bias=setting.bias,
        tol=setting.tol,
        epochs=passes,
    )
    return replace(run, state=state, passes=run.passes + done, solved=solved)


def _norms(block: Block) -> Array:
    return squared_norms(block.X)


class Violations(DualCoordinateDescent):
    """The dual of all models of a problem, to LIBLINEAR's rule.

    Parameters
    ----------
    problem : Problem
        With the hinge or squared hinge loss, a penalty, and none or a penalised intercept.
    tol : float
    """

    def __init__(self, problem: Problem, tol: float) -> None:
        rows = problem.rows.in_one_block(must=True)
        first, self._models = problem.models[0], problem.models
        super().__init__(
            rows,
            [two for model in problem.models for two in _against_rest(model, problem)],
            squared=first.loss == "squared_hinge",
            bias=float(np.sqrt(first.l2 / first.intercept_l2)) if _constant(first) else 0.0,
            tol=tol,
            seed=problem.seed,
        )

    def coefficients(self, number: int) -> tuple[Array, Array]:
        """Weights (outputs, d) and intercepts (outputs,) of one model."""
        first = sum(model.outputs for model in self._models[:number])
        last = first + self._models[number].outputs
        found = [self.plane(one) for one in range(first, last)]
        return np.array([w for w, _ in found]), np.array([b for _, b in found])


def _constant(model: Model) -> bool:
    """Whether a constant feature has the intercept as its weight."""
    return model.fit_intercept and model.intercept_l2 > 0


def _against_rest(model: Model, problem: Problem) -> list[TwoClasses]:
    """The two-class problems of a model, one an output."""
    cost = 1.0 / (model.l2 * float(problem.sums.weights[model.rowset]))
    positive = [1.0] if model.outputs == 1 else map(float, range(model.outputs))
    return [TwoClasses(code, cost, model.target, model.rowset) for code in positive]


class DualDescent(DualGap):
    """A support vector machine without an intercept: hinge or squared hinge loss.

    See `DualGap` for the parameters.
    """

    def __init__(self, problem: Problem, tolerance: float, max_passes: int) -> None:
        super().__init__(problem, tolerance, max_passes)
        self._squared = problem.task.loss == "squared_hinge"
        self._cost = 1.0 / (problem.task.l2 * problem.weight)
        self._training = Violations(problem, ROUNDED)
        self._row_weights = problem.beside()["weights"][:, 0].astype(np.float64)

    def _visit(self) -> None:
        self._training.advance(1)
        self._stuck = self._training.done  # none of the rows is violated

    def _primal_and_dual(self) -> tuple[float, float]:
        coef, _ = self.coefficients()
        primal = self._problem.objective(coef, np.zeros(1)) / self._problem.task.l2
        alpha = self._training.state()["arrays"][0]["alpha"]
        dual = float(alpha.sum()) - 0.5 * float(np.sum(coef * coef))
        if self._squared:
            used = self._row_weights > 0
            squares = alpha[used] ** 2 / self._row_weights[used]
            dual -= 0.25 * float(np.sum(squares) / self._cost)
        return primal, dual

    def coefficients(self, number: int = 0) -> tuple[Array, Array]:
        """Weights (1, d) and intercept (1,), which is 0."""
        return self._training.coefficients(number)

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return super().state() | {"training": self._training.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same problem."""
        super().restore(state)
        self._training.restore(state["training"])


def _price(outline: Outline, resources: Resources) -> Price | str:
    if why := without_dual(outline):
        return why
    look = Cost()
    if not isinstance(outline.stop, GradientNorm):  # a gap takes a pass over all rows
        look = pass_cost(outline.shape, resources, 0.0) + EPOCH
    return lambda epochs: cost(outline.shape, resources, epochs) + epochs * look


def _begin(problem: Problem, stop: Minimum, max_passes: int, start: Start) -> Solver:
    del start  # weights alone do not tell the dual variables
    if isinstance(stop, RelativeGap):
        return DualDescent(problem, stop.tolerance, max_passes)
    return cast(Solver, Violations(problem, stop.tol))


DUAL_COORDINATE = Method(
    "dual-coordinate-descent", frozenset({"hinge", "squared_hinge"}), passes, _price,
    _begin, stops=(RelativeGap, GradientNorm), least=at_least(6), stride=_LOOK,
    bounds=True,
    usual=lambda outline, tolerance: (_EPOCHS_OF_GAP * digits(tolerance), _DOUBT),
)  # fmt: skip
