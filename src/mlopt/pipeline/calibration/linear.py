"""Experiments with the solvers of least squares: tall, square and sparse problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mlopt.costs import Cost
from mlopt.gd.least_squares import Ridge
from mlopt.gd.least_squares_fit import SOLVERS, outline_of_fit
from mlopt.gd.plans.closed import OPERATOR
from mlopt.gd.plans.fitting import prices
from mlopt.gd.plans.sparse_cg import left_out
from mlopt.hearing import unheard
from mlopt.pipeline.calibration.cases import Case
from mlopt.pipeline.library.choosing import choose
from mlopt.resources import Calibration, Resources

_FACTORS, _LEAST, _STEPS = 20, 5, 30
_DENSE = (
    (20_000, 128, 1), (150_000, 128, 1), (40_000, 400, 20), (8_000, 1000, 1),
    (4_000, 2000, 20), (2_000, 2500, 1), (1_000, 4000, 10),
)  # fmt: skip
_SPARSE = ((40_000, 1000, 1, 0.01), (40_000, 3000, 10, 0.001), (100_000, 20_000, 1, 0.001))
_TINY, _TINY_SPARSE = (
    ((2_000, 30, 1), (500, 100, 2), (60, 200, 1)),
    ((1_000, 100, 1, 0.05),),
)


def cases(resources: Resources, *, tiny: bool = False) -> Iterator[Case]:
    """One problem after the other; data are made when they are asked for."""
    for n, d, k in _TINY if tiny else _DENSE:
        yield case(Ridge(max_iter=_STEPS), *problem(n, d, k), resources)
    for n, d, k, density in _TINY_SPARSE if tiny else _SPARSE:
        yield case(Ridge(max_iter=_STEPS), *problem(n, d, k, density), resources)


def problem(
    n: int, d: int, k: int, density: float = 1.0, seed: int = 0
) -> tuple[Any, NDArray[np.float64]]:
    """Features and noisy targets.

    Parameters
    ----------
    n, d, k : int
        Rows, features and targets.
    density : float, default=1.0
        Share of entries that are not zero; below 1, X is CSR with popular columns, as text,
        and with at least 5 values a row.
        At 1, features have common factors and unit variance.
    seed : int, default=0

    Returns
    -------
    X : ndarray or csr_array of shape (n, d)
    y : ndarray of shape (n, k), or (n,) where k is 1
    """
    rng = np.random.default_rng(seed)
    X = _dense(n, d, rng) if density >= 1 else _sparse(n, d, density, rng)
    signal = X @ (rng.standard_normal((d, k)) / np.sqrt(d))
    y = signal / signal.std() + rng.standard_normal((n, k))
    return X, y[:, 0] if k == 1 else y


def _dense(n: int, d: int, rng: np.random.Generator) -> NDArray[np.float64]:
    X = rng.standard_normal((n, d))
    X += rng.standard_normal((n, _FACTORS)) @ rng.standard_normal((_FACTORS, d))
    X /= np.sqrt(1.0 + _FACTORS)
    return X


def _sparse(n: int, d: int, density: float, rng: np.random.Generator) -> Any:
    each = max(_LEAST, round(density * d))
    columns = np.minimum((d * rng.random((n, each)) ** 1.5).astype(np.int32), d - 1)
    values = 1.0 + rng.random((n, each))
    ends = np.arange(0, n * each + 1, each)
    X = sp.csr_array((values.ravel(), columns.ravel(), ends), shape=(n, d))
    X.sum_duplicates()
    return X


def case(
    estimator: Ridge,
    X: Any,
    y: Any,
    resources: Resources,
    kept: dict[str, Ridge] | None = None,
) -> Case:
    """A problem of `Ridge`; solvers that iterate are charged for the steps they took.

    The last model of each solver is put into ``kept``, if that is given.
    """
    outline = outline_of_fit(estimator, X, y)
    plain = replace(resources, calibration=Calibration())

    def solve(name: str) -> Cost | None:
        model = Ridge(**{**estimator.get_params(), "solver": name})
        with unheard(ConvergenceWarning):  # a step costs the same, converged or not
            model.fit(X, y)
        if kept is not None:
            kept[name] = model
        if model.solver_ != name:  # it gave up, and another one has solved the problem
            return None
        steps = int(np.max(model.n_iter_))
        found = prices([name], outline, plain, steps)[name]
        return found if isinstance(found, Cost) else None

    def chosen(machine: Resources) -> str:
        options, aside = prices(SOLVERS, outline, machine), left_out(sp.issparse(X))
        return choose(OPERATOR, "auto", options, machine, left_out=aside).chosen

    n, d = X.shape
    kind = "sparse" if sp.issparse(X) else "dense"
    label = f"{n} x {d}, {1 if y.ndim == 1 else y.shape[1]} targets, {kind}"
    return Case(OPERATOR, label, prices(SOLVERS, outline, plain), solve, chosen)
