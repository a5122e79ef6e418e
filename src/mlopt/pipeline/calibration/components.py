"""Experiments with the solvers of principal component analysis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mlopt.pipeline.calibration.cases import Case
from mlopt.pipeline.library.pca import PCA, shape_of_fit
from mlopt.pipeline.library.pca_fit import NAMES
from mlopt.pipeline.library.pca_plan import OPERATOR, choose_solver, solver_costs
from mlopt.resources import Calibration, Resources

_SIZES = (
    (50_000, 64, 8), (4_000, 256, 16), (40_000, 256, 64), (2_000, 1000, 16),
    (6_000, 1000, 200), (1_000, 3000, 16),
)  # fmt: skip
_TINY = ((2_000, 20, 4), (300, 100, 5))
_FALLS = -0.7
"""Standard deviations along the components fall as this power of their number."""


def cases(resources: Resources, *, tiny: bool = False) -> Iterator[Case]:
    """One problem after the other; data are made when they are asked for."""
    for n, d, k in _TINY if tiny else _SIZES:
        yield case(PCA(k, random_state=0), problem(n, d), resources)


def problem(n: int, d: int, seed: int = 0) -> NDArray[np.float64]:
    """Rows (n, d) whose variances fall by a power law, in directions of no meaning."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.arange(1.0, d + 1) ** _FALLS
    for _ in range(2):  # two reflections turn every axis: a QR of d x d would take longer
        v = rng.standard_normal(d)
        X -= np.outer(X @ (2.0 / (v @ v) * v), v)
    return X


def case(
    estimator: PCA,
    X: NDArray[np.float64],
    resources: Resources,
    kept: dict[str, PCA] | None = None,
) -> Case:
    """A problem of `PCA`; the last model of each solver is put into ``kept``, if given."""
    plain = replace(resources, calibration=Calibration())
    shape = shape_of_fit(estimator, X)

    def solve(name: str) -> None:
        model = PCA(**{**estimator.get_params(), "svd_solver": NAMES[name]}).fit(X)
        if kept is not None:
            kept[name] = model

    def choose(machine: Resources) -> str:
        return choose_solver(OPERATOR, "auto", shape, machine).chosen

    n, d = X.shape
    label = f"{n} x {d}, {estimator.n_components} components"
    return Case(OPERATOR, label, solver_costs(shape, plain), solve, choose)
