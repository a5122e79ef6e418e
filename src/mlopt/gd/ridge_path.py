"""Least squares of one target for many penalties, on many sets of the same rows.

One eigendecomposition of a set's Gram matrix serves all penalties::

    X'X = V L V'    ->    w = V (L + a)^-1 V' X'y    for every penalty a

Shapes: ``S`` row sets, ``A`` penalties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.gd.normal_equations import Moments, Solution, factor_cost, moments, solve
from mlopt.gd.row_kinds import TRAIN, Kinds, row_sets
from mlopt.gd.row_products import most_held, summed
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]

_CUBE, _SQUARE = price("spectrum.cube"), price("spectrum.square")
_MODEST = Resources()
"""By whose rates it is judged what is computed, which must not depend on the machine."""


@dataclass(frozen=True, eq=False)
class Sets:
    """What the normal equations of one target need to know of each row set.

    ``kinds`` are what the sets have in common, where keeping that pays.
    """

    moments: list[Moments]
    kinds: Kinds | None = None


def sets_of(rows: Rows, target: int, intercept: bool) -> Sets:
    """From one pass over ``rows`` where the sets share them.

    Parameters
    ----------
    rows : Rows
        With "targets" (n, T) and "weights" (n, S), perhaps "score_weights", beside them.
    target : int
    intercept : bool
    """
    kinds = Kinds.of(rows, target, intercept)
    if kinds is not None:
        return Sets(kinds.moments(), kinds if kinds.pays else None)
    each = range(rows.first(row_sets))
    return Sets([of_one_set(rows, target, intercept, rowset) for rowset in each])


def of_one_set(rows: Rows, target: int, intercept: bool, rowset: int) -> Moments:
    """The same of one row set, by a pass of its own."""
    own = rows.compute_beside(_of_one_set, target, rowset)
    return moments(own, 1, intercept)


def sets_at_once(columns: int, sets: int, here: Resources) -> int:
    """How many of the ``sets`` there is room for at a time; all, or each by its own pass.

    In a pass for all of them every thread may have a sum for each.
    """
    room = int(most_held(here) // (8.0 * columns**2))
    # Of Gram its own and that of rows it shares, eigenvectors, workspace.
    held, sums = 4, summed(here.threads)
    return sets if sets * (held + sums) <= room else max(1, (room - sums) // held)


def solve_path(moments: Moments, alphas: Array, accuracy: float) -> Solution:
    """Minimise ``||Xw - y||^2 + alpha ||w||^2`` for every penalty, (d, A).

    Penalties for which eigenvalues are too far apart for ``accuracy`` have a factor each,
    for which the units of columns cost no digits.

    Parameters
    ----------
    moments : Moments
        Of one target, or of one for each penalty.
    alphas : ndarray of shape (A,)
    accuracy : float
        Relative error of coefficients that is acceptable.
    """
    targets = moments.targets
    right = moments.gram[:-targets, -targets:]
    coef, errors = np.empty((len(right), len(alphas))), np.full(len(alphas), np.inf)
    if _by_spectrum(len(right), len(np.unique(alphas))):
        values, vectors = moments.spectrum
        with np.errstate(divide="ignore", invalid="ignore"):
            below = np.maximum(values, 0.0)[:, None] + alphas
            coef[:] = vectors @ ((vectors.T @ right) / below)
            errors = np.finfo(np.float64).eps * (below[-1] / below[0])
    elif targets > 1:  # those of one penalty share a factor
        return solve(moments, alphas)
    for i in np.flatnonzero(~(errors <= accuracy)).tolist():
        one = solve(moments.of_target(i if targets > 1 else 0), alphas[[i]])
        coef[:, [i]], errors[i] = one.coef, one.error
    return Solution(coef, float(errors.max()))


def spectrum_cost(d: int) -> Cost:
    """Eigenvalues and eigenvectors of a Gram matrix of so many columns."""
    return Cost(flops=_CUBE * d**3 + _SQUARE * d**2)


def _by_spectrum(d: int, penalties: int) -> bool:
    """Whether eigenvectors for all penalties take less than a factor for each."""
    factors = penalties * factor_cost(d)
    return spectrum_cost(d).seconds(_MODEST) < factors.seconds(_MODEST)


def path_cost(d: int, penalties: int) -> Cost:
    """So many models of a row set whose Gram matrix is known, and their scores by another.

    Coefficients take two products, squares of errors two and their bound two.
    """
    together = _by_spectrum(d, penalties)
    first = spectrum_cost(d) if together else penalties * factor_cost(d)
    return first + Cost(flops=2.0 * 6 * penalties * d**2)


def _of_one_set(block: Block, target: int, rowset: int) -> dict[str, NDArray[Any]]:
    targets, weights = block.extra["targets"], block.extra[TRAIN]
    return {"targets": targets[:, [target]], TRAIN: weights[:, [rowset]]}
