"""Reference algorithms, each an assembly of the seven operators and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from mlopt.errors import InputError
from mlopt.gd.operators.algorithm import Algorithm
from mlopt.gd.operators.compute import Gradient, UserGradient
from mlopt.gd.operators.samplers import Flattened, RandomPartition, Sampler
from mlopt.gd.operators.stopping import (
    GradientNorm,
    ObjectiveDecrease,
    Tolerance,
    WeightDelta,
    ZeroWeights,
)
from mlopt.gd.operators.updates import (
    Adam,
    Backtracking,
    BarzilaiBorwein,
    GradientStep,
    InverseRoot,
    Momentum,
    Nesterov,
    Step,
    Svrg,
)
from mlopt.gd.parameters import check_count


@dataclass(frozen=True)
class Settings:
    """What all reference algorithms have in common.

    Parameters
    ----------
    compute : Gradient, UserGradient or callable
        The objective.
    step : Step
        ``1 / sqrt(i)`` by default, for all algorithms, as in the paper. No one step size
        suits all data: see `mlopt.gd.operators.updates`.
    batch : int, default=1000
        m of mini-batches.
    every : int, default=100
        Iterations of SVRG between two full gradients.
    tolerance : float, default=1e-3
    max_iter : int, default=1000
    fidelity : bool, default=False
        Stop by the change of the weights, as the paper does. Unsound for stochastic steps.
    transform : callable, optional
    stage_rows : int or None, default=0
    columns : int, optional
        d, where ``transform`` changes it.
    """

    compute: Any = field(default_factory=Gradient)
    step: Step = field(default_factory=InverseRoot)
    batch: int = 1000
    every: int = 100
    tolerance: float = 1e-3
    max_iter: int = 1000
    fidelity: bool = False
    transform: Callable[..., Any] | None = None
    stage_rows: int | None = 0
    columns: int | None = None

    def __post_init__(self) -> None:
        check_count("batch", self.batch)


def assembled(
    settings: Settings,
    update: Callable[..., Any],
    name: str,
    *,
    sample: Sampler | None = None,
    lazy: bool = False,
    at: str | None = None,
    other: str | None = None,
    full: bool | None = None,
) -> Algorithm:
    """An algorithm from its Update and its Sample.

    Parameters
    ----------
    settings : Settings
    update : callable
    name : str
    sample : Sampler, optional
        None: all rows.
    lazy : bool, default=False
    at, other : str, optional
        Where else Compute takes gradients, as for `Gradient`.
    full : bool, optional
        Whether it sees full gradients now and then. Default: if it has no Sample.
    """
    compute = settings.compute
    if at is not None or other is not None:
        if not isinstance(compute, Gradient | UserGradient):
            raise InputError(f"{name} needs a `Gradient` or a `UserGradient` as `compute`.")
        compute = replace(compute, at=at or compute.at, other=other)
    exact = sample is None if full is None else full
    sound = GradientNorm() if exact else ObjectiveDecrease()
    intercept = isinstance(compute, Gradient) and compute.fit_intercept
    return Algorithm(
        name=name,
        transform=settings.transform,
        stage=ZeroWeights(intercept, settings.columns, also=at),
        sample=sample,
        compute=compute,
        update=update,
        converge=WeightDelta() if settings.fidelity else sound,
        loop=Tolerance(settings.tolerance),
        lazy=lazy,
        stage_rows=settings.stage_rows,
        max_iter=settings.max_iter,
    )


def bgd(settings: Settings) -> Algorithm:
    """Batch gradient descent."""
    return assembled(settings, GradientStep(settings.step), "bgd")


def mgd(settings: Settings, sample: Sampler, *, lazy: bool = False) -> Algorithm:
    """Mini-batch gradient descent: ``settings.batch`` rows an iteration."""
    sample = replace(sample, size=settings.batch)
    return assembled(settings, GradientStep(settings.step), "mgd", sample=sample, lazy=lazy)


def sgd(settings: Settings, sample: Sampler, *, lazy: bool = False) -> Algorithm:
    """Stochastic gradient descent: one row an iteration."""
    sample = replace(sample, size=1)
    return assembled(settings, GradientStep(settings.step), "sgd", sample=sample, lazy=lazy)


def svrg(
    settings: Settings, sample: Sampler | None = None, *, lazy: bool = False
) -> Algorithm:
    """Stochastic variance reduced gradient (ML4all, Algorithm 2)."""
    flattened = Flattened(every=settings.every, inner=sample or RandomPartition())
    update = Svrg(settings.step, settings.every)
    return assembled(
        settings, update, "svrg", sample=flattened, lazy=lazy, other="anchor", full=True
    )


def line_search(settings: Settings) -> Algorithm:
    """Batch gradient descent with backtracking line search; has no use for ``step``."""
    if settings.fidelity:
        raise InputError(
            "The line search cannot stop by the change of weights: its first iteration "
            "only evaluates. Use `fidelity=False`."
        )
    return assembled(settings, Backtracking(), "line-search", at="trial")


def barzilai_borwein(settings: Settings) -> Algorithm:
    """Batch gradient descent with Barzilai-Borwein steps; ``step`` is the first one."""
    return assembled(settings, BarzilaiBorwein(settings.step), "barzilai-borwein")


def momentum(settings: Settings, mu: float = 0.9) -> Algorithm:
    """Batch gradient descent with Polyak's momentum."""
    return assembled(settings, Momentum(settings.step, mu), "momentum")


def nesterov(settings: Settings, mu: float = 0.9) -> Algorithm:
    """Batch gradient descent with Nesterov's momentum."""
    return assembled(settings, Nesterov(settings.step, mu), "nesterov", at="ahead")


def adam(
    settings: Settings, sample: Sampler | None = None, *, lazy: bool = False
) -> Algorithm:
    """Adam, on all rows or on mini-batches."""
    if sample is not None:
        sample = replace(sample, size=settings.batch)
    return assembled(settings, Adam(settings.step), "adam", sample=sample, lazy=lazy)
