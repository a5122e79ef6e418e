"""Dual coordinate descent for several two-class problems on the same rows, in parallel.

The method of `mlopt.kernels.dual` is sequential: every step needs the one before. And it
needs its steps in random order over *all* rows: block by block, each block would first undo
the intercept of the one before, and ten times the passes would not do. So rows form one
block, and what runs in parallel are problems, such as one class against the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import Executor
from mlopt.errors import InputError
from mlopt.kernels.dual import DualState, dual_epochs, squared_norms
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]


def one_block(rows: Rows, executor: Executor) -> Rows:
    """The same matrix in one block; gathers it unless it is in one already."""
    if len(rows.lengths) == 1:
        return rows
    return Rows.of(rows.collect(), executor=executor, block_rows=rows.n)


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
                f"`rows` must be one block, got {len(rows.lengths)}: use `one_block(rows)`."
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
