"""Speculation: run an algorithm on a sample, and record its errors (Algorithm 1)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.gd.iterations import Estimate, estimate
from mlopt.gd.operators.algorithm import Algorithm
from mlopt.gd.operators.interfaces import Sums
from mlopt.gd.operators.running import HasObjective, Run
from mlopt.gd.operators.sources import MatrixSource, Source
from mlopt.gd.operators.stopping import always
from mlopt.gd.parameters import check_count, check_positive

_STREAM = 3
"""Of random numbers: those of runs are 0 to 2."""
_EFFORT = {"maxiter": 500}
"""For a minimum beside which errors of a few per cent can be told, in about a second."""
Measure = Callable[[Run], float]
"""How far a run on the sample is from its end."""


@dataclass(frozen=True)
class Speculation:
    """What a run on a sample showed.

    Attributes
    ----------
    pairs : tuple of (error, iteration)
    seconds : float
    rows : int
        Of the sample.
    fidelity : bool
    """

    pairs: tuple[tuple[float, int], ...]
    seconds: float
    rows: int
    fidelity: bool

    def iterations(self, tolerance: float) -> Estimate:
        """The iterations to a tolerance, from the curve through the errors."""
        return estimate(self.pairs, tolerance, fidelity=self.fidelity)


def own_delta(run: Run) -> float:
    """What the algorithm's own Converge says: the paper's measure, with `WeightDelta`."""
    return run.history[-1].delta


@dataclass(frozen=True)
class Excess:
    """How much of the possible decrease of the sample's objective is left, from 1 to 0.

    ``(f(w) - f*) / (f(0) - f*)``. It means the same for all algorithms, so that they can be
    compared at equal quality.

    Parameters
    ----------
    start, least : float
        The objective at the first weights, and at the minimum.
    """

    start: float
    least: float

    def __call__(self, run: Run) -> float:
        return max(0.0, run.objective() - self.least) / (self.start - self.least)

    @staticmethod
    def of(algorithm: Algorithm, sample: MatrixSource) -> Excess:
        """Find the minimum on the sample by L-BFGS.

        Raises
        ------
        InputError
            When Compute knows no objective, or zero weights are its minimum.
        """
        from scipy.optimize import minimize

        compute, run = algorithm.compute, algorithm.start(sample)
        if not isinstance(compute, HasObjective):
            raise InputError(
                "The error by objective needs a `compute` with a method "
                "`objective(batch, weights)`: use `fidelity=True` without one."
            )
        batch = sample.take(np.arange(sample.n))

        def value(w: Any) -> tuple[float, Any]:
            context = run.context.shared()
            context.update(dict.fromkeys(("weights", "trial", "ahead"), w))
            total = algorithm.compute(batch, context)
            gradient = total.gradient if isinstance(total, Sums) else total
            return compute.objective(batch, w) / sample.n, gradient / sample.n

        first = run.context["weights"]
        found = minimize(value, first, jac=True, method="L-BFGS-B", options=_EFFORT)
        start, least = value(first)[0], float(found.fun)
        if not least < start:
            raise InputError("The first weights minimise the objective: nothing to train.")
        return Excess(start, least)


def drawn(
    algorithm: Algorithm, source: Source, rows: int = 1000, seed: int = 0
) -> MatrixSource:
    """A uniform sample of the source's rows, transformed, in this process.

    Drawn without reading everything, with replacement, where the source is larger. The same
    seed and transform give the same sample for all algorithms.

    Parameters
    ----------
    algorithm : Algorithm
        Its Stage and Transform are used.
    source : Source
    rows : int, default=1000
    seed : int, default=0
    """
    check_count("rows", rows)
    run = replace(algorithm, lazy=True).start(source, seed=seed)
    if isinstance(source, MatrixSource) and source.n <= rows:
        batch = run.transformed(source.take(np.arange(source.n)))
    else:
        generator = np.random.default_rng([seed, _STREAM])
        batch = run.transformed(source.random(generator, min(rows, source.about)))
    return MatrixSource(batch.X, batch.y, Threads(1))


def speculate(
    algorithm: Algorithm,
    sample: MatrixSource,
    *,
    tolerance: float = 0.05,
    seconds: float = 60.0,
    max_iter: int = 10_000,
    seed: int = 0,
    fidelity: bool = False,
    measure: Measure | None = None,
) -> Speculation:
    """Run an algorithm on a sample until its error or its time is used up.

    Parameters
    ----------
    algorithm : Algorithm
        Any; stochastic ones draw their rows from the sample.
    sample : MatrixSource
        See `drawn`. The same one for all algorithms that are compared.
    tolerance : float, default=0.05
        Where to stop: the paper's default.
    seconds : float, default=60
        The time budget of the iterations: the paper's default.
    max_iter : int, default=10000
    seed : int, default=0
    fidelity : bool, default=False
        Use the paper's measure, the algorithm's own Converge, and its curve, a / eps.
    measure : callable, optional
        The error of a run. Default: `own_delta` with ``fidelity``, else `Excess.of` the
        algorithm, which is the same for all that minimise the same objective: make it
        once.

    Returns
    -------
    Speculation
    """
    check_positive("seconds", seconds)
    begin = time.monotonic()
    eager = replace(
        algorithm,
        transform=None,
        lazy=False,
        max_iter=max_iter,
        # The measure decides here; Loop would end a run that is to be watched for longer.
        loop=always,
    )
    if measure is None:
        measure = own_delta if fidelity else Excess.of(eager, sample)
    run, first = eager.start(sample, seed=seed), time.monotonic()
    pairs: list[tuple[float, int]] = []
    error, look = math.inf, 1
    while error > tolerance and not run.done and time.monotonic() - first < seconds:
        run.advance(1)
        # Looks get rarer, so that they cost no more than the run itself.
        if measure is own_delta or run.passes >= look:
            look = max(run.passes + 1, math.ceil(run.passes * 1.02))
            error = measure(run)
            pairs.append((error, run.passes))
    return Speculation(tuple(pairs), time.monotonic() - begin, sample.n, fidelity)
