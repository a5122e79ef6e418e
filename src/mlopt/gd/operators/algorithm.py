"""An algorithm: seven operators, in three phases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mlopt import training
from mlopt.errors import InputError
from mlopt.gd.operators.calling import bound
from mlopt.gd.operators.compute import Gradient
from mlopt.gd.operators.running import Result, Run
from mlopt.gd.operators.samplers import Sampler
from mlopt.gd.operators.sources import Source
from mlopt.gd.operators.stopping import GradientNorm, Tolerance, ZeroWeights
from mlopt.gd.operators.updates import GradientStep
from mlopt.parameters import check_count
from mlopt.plan import format_seconds

Function = Callable[..., Any]


@dataclass(frozen=True)
class Algorithm:
    """Gradient descent from seven operators, any of them the user's.

    The defaults are batch gradient descent of logistic regression. An operator is a
    callable as `mlopt.gd.operators.interfaces` has them, which may leave out the context.

    Parameters
    ----------
    transform : callable, optional
        Default: what the source does to parse its rows.
    stage : callable
    sample : Sampler or callable, optional
        None: all rows in every iteration.
    compute : callable
    update : callable
    converge : callable
    loop : callable
    lazy : bool, default=False
        Whether only sampled rows are transformed, after Sample; otherwise all rows are,
        once, before the first iteration.
    stage_rows : int or None, default=0
        Rows that Stage sees, as the source parses them: 0, a random sample, or None for
        all rows. A Transform that needs a statistic of all rows is lazy that way.
    max_iter : int, default=1000
    name : str

    References
    ----------
    Kaoudi et al., "A Cost-based Optimizer for Gradient Descent Optimization" (ML4all,
    SIGMOD 2017), sections 4 and 6.

    Examples
    --------
    >>> import numpy as np
    >>> from mlopt.gd.operators import Algorithm, MatrixSource
    >>> X = np.array([[1.0], [2.0], [-1.0], [-2.0]])
    >>> y = np.array([1.0, -1.0, -1.0, 1.0])
    >>> Algorithm().run(MatrixSource(X, y)).n_iter > 0
    True
    """

    transform: Function | None = None
    stage: Function = field(default_factory=ZeroWeights)
    sample: Function | Sampler | None = None
    compute: Function = field(default_factory=Gradient)
    update: Function = field(default_factory=GradientStep)
    converge: Function = field(default_factory=GradientNorm)
    loop: Function = field(default_factory=Tolerance)
    lazy: bool = False
    stage_rows: int | None = 0
    max_iter: int = 1000
    name: str = "custom"

    def __post_init__(self) -> None:
        check_count("max_iter", self.max_iter)
        if self.stage_rows is not None and self.stage_rows < 0:
            raise InputError(f"`stage_rows` must be at least 0, got {self.stage_rows}.")
        for name in ("stage", "compute", "update", "converge", "loop"):
            bound(getattr(self, name))

    @property
    def fit_intercept(self) -> bool:
        """Whether the last weight is an intercept."""
        return isinstance(self.compute, Gradient) and self.compute.fit_intercept

    def start(self, source: Source, *, seed: int = 0, objective_every: int = 0) -> Run:
        """Prepare a run that can be advanced, paused, saved and resumed.

        Parameters
        ----------
        source : Source
        seed : int, default=0
            The same seed gives the same samples, however rows are transformed.
        objective_every : int, default=0
            Record the objective over all rows in every so many iterations; 0: never.
        """
        return Run(self, source, seed, objective_every)

    def run(
        self,
        source: Source,
        *,
        seed: int = 0,
        time_limit: float | None = None,
        objective_every: int = 0,
    ) -> Result:
        """Prepare, and iterate until Loop ends it or a limit is reached.

        Parameters
        ----------
        source, seed, objective_every
            See `start`.
        time_limit : float, optional
            Seconds, preparation included; an iteration that has begun is finished.

        Raises
        ------
        TaskError
            When an operator raises; the message names it.
        InputError
            When an operator returns what cannot be used.
        """
        limits = training.Limits(seconds=time_limit)
        run = self.start(source, seed=seed, objective_every=objective_every)
        reason = training.run(run, limits)
        stopped = f"stopped: the time limit of {format_seconds(time_limit)} is reached"
        return run.result(stopped if reason == "seconds" else "")
