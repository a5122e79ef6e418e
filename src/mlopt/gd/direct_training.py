"""Least squares of many models, each solved rather than descended to.

::

    models (penalty, row set)       row set 0: alphas .1 1 10   ->  one Gram matrix
                                    row set 1: alphas .1 1 10   ->  one Gram matrix

Where Gram matrices are cheapest, row sets share what they have in common of them
(`mlopt.gd.row_kinds`), and the rows that judge a model are such a matrix too. Otherwise
models that share rows, target and intercept are one problem with a penalty for each
output, as `mlopt.Ridge` solves them: by the same solvers, of the same costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.gd.at_once import SolvedAtOnce
from mlopt.gd.columns import Layout, Model
from mlopt.gd.estimator_base import resources_of
from mlopt.gd.least_squares_fit import SOLVERS, exactly, squares_problem
from mlopt.gd.normal_equations import Moments, Solution
from mlopt.gd.passes import Floats
from mlopt.gd.plans import mixed_cholesky
from mlopt.gd.plans.cholesky import CHOLESKY
from mlopt.gd.plans.dual_cholesky import DUAL_CHOLESKY
from mlopt.gd.plans.fitting import choose
from mlopt.gd.plans.forecast import typical
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.mixed_cholesky import MIXED_CHOLESKY
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.sparse_cg import left_out
from mlopt.gd.pricing import Shape, shape_of
from mlopt.gd.ridge_path import (
    Sets,
    of_one_set,
    path_cost,
    sets_at_once,
    sets_of,
    solve_path,
)
from mlopt.gd.row_products import bordered, gram_cost
from mlopt.gd.sample import local_executor
from mlopt.gd.sizes import HALF, LOST
from mlopt.gd.spectrum import Spectrum
from mlopt.resources import Resources
from mlopt.rows import Block, Rows

_MOMENTS = "moments"
_PATHS = (CHOLESKY.name, DUAL_CHOLESKY.name)
"""Solvers whose eigenvectors serve all penalties."""


class DirectLeastSquares(SolvedAtOnce):
    """Exact solutions in the first pass; for models with the squared loss.

    Parameters
    ----------
    rows, models, max_passes
        See `LinearTraining`.
    kept : dict, optional
        What trainings of the same rows, targets and weights leave for each other.
    parts : mapping, optional
        What trainings on parts of these rows and targets have left, which may be no more
        to multiply.
    tol : float
        That conjugate gradients stop at; see `CoefficientError.gradient`.
    """

    def __init__(
        self,
        rows: Rows,
        models: Sequence[Model],
        max_passes: int,
        *,
        tol: float = HALF,
        kept: dict[str, Any] | None = None,
        parts: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(rows, models, max_passes)
        self._kept = {} if kept is None else kept
        self._parts = parts or {}
        self._tol = tol

    def _solve_all(self) -> None:
        together: dict[tuple[int, bool], dict[int, list[int]]] = {}
        for number in np.flatnonzero(~self._solved).tolist():
            model = self.models[number]
            sets = together.setdefault((model.target, model.fit_intercept), {})
            sets.setdefault(model.rowset, []).append(number)
        for (target, intercept), sets in together.items():
            solver, left = CHOLESKY.name, list(sets)
            found = self._known(target, intercept)
            if found is None:
                solver = self._cheapest(sets)
            if solver == CHOLESKY.name:
                left = self._by_gram_matrices(sets, target, intercept, found)
            for rowset in left:
                self._solve(sets[rowset], rowset, target, intercept, solver)

    def _cheapest(self, sets: Mapping[int, Sequence[int]]) -> str:
        here = resources_of(self.rows.executor)
        most, shape = max(map(len, sets.values())), shape_of(self.rows, 1)
        length = self.rows.first(_squared_length) if shape.sparse else 0.0
        penalties = [self.models[number].l2 for own in sets.values() for number in own]
        ways = direct_ways(shape, len(sets), most, penalties, length, self._tol, here)
        return cheapest_of(ways, here)

    def _by_gram_matrices(
        self,
        sets: Mapping[int, Sequence[int]],
        target: int,
        intercept: bool,
        found: Sequence[Moments] | None,
    ) -> list[int]:
        """From those ``found``, or as many at a time as there is room for; what is left."""
        here, columns = resources_of(self.rows.executor), bordered(shape_of(self.rows, 1))
        most = sets_at_once(columns, len(sets), here)
        if found is not None or most == len(sets):
            found = found or self._learn(target, intercept).moments
            return self._solve_paths(sets, {rowset: found[rowset] for rowset in sets})
        left, each = [], list(sets)
        for start in range(0, len(each), most):
            some = each[start : start + most]
            own = {s: of_one_set(self.rows, target, intercept, s) for s in some}
            left += self._solve_paths({s: sets[s] for s in some}, own)
        return left

    def _solve_paths(
        self, sets: Mapping[int, Sequence[int]], found: Mapping[int, Moments]
    ) -> list[int]:
        """Solve from Gram matrices; gives sets for which these have too few digits."""
        paths = [(found[s], self._alphas(own, s)) for s, own in sets.items()]
        solutions = local_executor(self.rows).map(_solved, paths)
        left, d = [], self.rows.d
        for rowset, solution in zip(sets, solutions, strict=True):
            if solution.error > LOST:
                left.append(rowset)
                continue
            mean = found[rowset].mean
            self._take(sets[rowset], solution.coef, mean[d] - mean[:d] @ solution.coef)
            self._converged[list(sets[rowset])] = True
        return left

    def _known(self, target: int, intercept: bool) -> list[Moments] | None:
        """Of each row set, from what other trainings have multiplied."""
        if (own := self._shared(target, intercept)) is not None:
            return own.moments
        parts = self._parts.get(_MOMENTS, {}).get((target, intercept))
        whole = parts and parts.kinds and parts.kinds.whole(self.rows)
        return [whole] if whole else None

    def _shared(self, target: int, intercept: bool) -> Sets | None:
        found: Sets | None = self._kept.get(_MOMENTS, {}).get((target, intercept))
        return found

    def _learn(self, target: int, intercept: bool) -> Sets:
        found = sets_of(self.rows, target, intercept)
        held = sum(one.gram.nbytes for one in found.moments)
        if found.kinds is not None or held <= self.rows.nbytes:
            self._kept.setdefault(_MOMENTS, {})[target, intercept] = found
        return found

    def _marks(self, weights: Floats, plan: Layout) -> NDArray[np.float64]:
        """From Gram matrices of the rows that judge, where these tell enough digits."""
        found = np.full(len(plan.models), np.nan)
        alike: dict[tuple[int, bool, int], list[int]] = {}
        for number, one in enumerate(plan.models):
            kind = one.target, one.fit_intercept, one.rowset
            alike.setdefault(kind, []).append(number)
        for (target, intercept, rowset), numbers in alike.items():
            shared = self._shared(target, intercept)
            if shared is not None and shared.kinds is not None:
                W = weights[:, plan.first[numbers]].astype(np.float64)
                squares = shared.kinds.squares(rowset, W[:-1], W[-1])
                found[numbers] = -squares / self._scored[rowset]
        left = np.flatnonzero(np.isnan(found))
        if len(left):
            others, columns = plan.select(left.tolist())
            own = np.ascontiguousarray(weights[:, columns])
            found[left] = super()._marks(own, others)
        return found

    @property
    def _scored(self) -> NDArray[np.float64]:
        """Weights of the rows that judge each set."""
        assert self._sums.scored is not None
        return self._sums.scored

    def _solve(
        self,
        numbers: Sequence[int],
        rowset: int,
        target: int,
        intercept: bool,
        solver: str,
    ) -> None:
        """Solve for some penalties as for so many targets."""
        rows = self.rows.compute_beside(_as_outputs, rowset, target, len(numbers))
        penalties = [self.models[number].l2 for number in numbers]
        problem = squares_problem(rows, penalties, intercept, positive=False)
        stop = exactly(rows.n, rows.d, LOST, self._tol)
        chosen = choose("least squares", solver, SOLVERS, problem, stop)
        outcome = chosen.run()
        self._converged[list(numbers)] = outcome.converged
        self._take(numbers, outcome.coef.T, outcome.intercept)

    def _alphas(self, numbers: Sequence[int], rowset: int) -> NDArray[np.float64]:
        penalties = np.array([self.models[number].l2 for number in numbers])
        return np.asarray(penalties * self._sums.weights[rowset])

    def _take(
        self, numbers: Sequence[int], coef: NDArray[Any], intercept: NDArray[Any]
    ) -> None:
        """Store the models of some penalties: coefficients (d, A), intercepts (A,)."""
        columns = self._layout.first[list(numbers)]
        held = self._layout.with_intercept[columns]
        self._put(columns, coef.T, np.where(held, intercept, 0.0))


def _solved(path: tuple[Moments, NDArray[np.float64]]) -> Solution:
    return solve_path(*path, LOST)


def _as_outputs(
    block: Block, rowset: int, target: int, outputs: int
) -> dict[str, NDArray[Any]]:
    """One target for each penalty, and the weights of the row set."""
    one = block.extra["targets"][:, [target]]
    return {
        "targets": np.repeat(one, outputs, axis=1),
        "weights": np.ascontiguousarray(block.extra["weights"][:, [rowset]]),
    }


def _squared_length(block: Block) -> float:
    return squared_length(block.X)


def squared_length(X: Any) -> float:
    """The mean squared length of sparse rows (n, d)."""
    return float(np.square(X.data, dtype=np.float64).sum() / max(1, X.shape[0]))


def direct_ways(
    rows: Shape,
    sets: int,
    models: int,
    penalties: Sequence[float],
    length: float,
    tol: float,
    here: Resources,
) -> dict[str, Cost]:
    """By solver what so many models on each of so many row sets take.

    Those of a set share its Gram matrix, of columns or of rows, and that of columns is
    made of what sets have in common. Rows that are not in a set are read all the same.

    Parameters
    ----------
    rows : Shape
        With the columns of one model.
    sets, models : int
    penalties : sequence of float
        Of the mean loss, of all models or of some like them.
    length : float
        The mean squared length of sparse rows; 0 where it is not known.
    tol : float
        Of conjugate gradients.
    here : Resources
    """
    stop, left = exactly(rows.n, rows.d, LOST, tol), left_out(rows.sparse)
    seen = Spectrum.even(length, rows.n, rows.d) if length else None
    first, found = Outline("squared", rows, l2=1.0, stop=stop, spectrum=seen), {}
    alike = [replace(first, l2=l2) for l2 in sorted(set(penalties))] if seen else [first]
    for method in (BY_NAME[name] for name in SOLVERS if name not in left):
        columns = 1 if method.name in _PATHS else models
        outline = replace(first, shape=replace(rows, columns=columns))
        price = method.calibrated(outline, here)
        if isinstance(price, str):
            continue
        passes = np.mean([typical(method, one, stop).expected for one in alike])
        cost = sets * price(float(passes))
        if method is CHOLESKY:
            path = sets * path_cost(rows.d, models)
            one = replace(rows, columns=1)
            reads = 1 if sets_at_once(bordered(one), sets, here) == sets else sets
            cost = reads * gram_cost(one, here) + path
        elif method is DUAL_CHOLESKY:
            cost = cost + sets * path_cost(rows.n, models)
        elif method is MIXED_CHOLESKY:
            cost = cost + sets * (models - 1) * mixed_cholesky.factor_cost(rows.d)
        found[method.name] = rows.columns * cost
    return found


def cheapest_of(ways: Mapping[str, Cost], here: Resources) -> str:
    """The name of the way that takes the fewest seconds."""
    return min(ways, key=lambda name: ways[name].seconds(here, here.threads))
