"""ML4all's Algorithm 1: run an algorithm on a sample, and fit a curve to its errors.

Kept as the paper has it. `mlopt.gd.plan` asks `mlopt.gd.plans.speculation` instead.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from mlopt.cluster import Threads
from mlopt.gd.iterations import Estimate, estimate
from mlopt.gd.operators.algorithm import Algorithm
from mlopt.gd.operators.samplers import SPECULATION
from mlopt.gd.operators.sources import MatrixSource, Source
from mlopt.gd.operators.stopping import always
from mlopt.parameters import check_count, check_positive


@dataclass(frozen=True)
class Speculation:
    """What a run on a sample showed.

    Attributes
    ----------
    pairs : tuple of (error, iteration)
    seconds : float
    rows : int
        Of the sample.
    """

    pairs: tuple[tuple[float, int], ...]
    seconds: float
    rows: int

    def iterations(self, tolerance: float) -> Estimate:
        """The iterations to a tolerance, from the curve ``a / eps`` through the errors."""
        return estimate(self.pairs, tolerance, fidelity=True)


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
        generator = np.random.default_rng([seed, SPECULATION])
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
) -> Speculation:
    """Run an algorithm on a sample until its error or its time is used up.

    The error is what the algorithm's own Converge says: the paper's measure, with
    `mlopt.gd.operators.stopping.WeightDelta`, as ``Settings(fidelity=True)`` has it.

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

    Returns
    -------
    Speculation
    """
    check_positive("seconds", seconds)
    begin = time.monotonic()
    # The tolerance here decides; Loop would end a run that is to be watched for longer.
    watched = replace(algorithm, transform=None, lazy=False, max_iter=max_iter, loop=always)
    run, first = watched.start(sample, seed=seed), time.monotonic()
    pairs: list[tuple[float, int]] = []
    error = math.inf
    while error > tolerance and not run.done and time.monotonic() - first < seconds:
        run.advance(1)
        error = run.history[-1].delta
        pairs.append((error, run.passes))
    return Speculation(tuple(pairs), time.monotonic() - begin, sample.n)
