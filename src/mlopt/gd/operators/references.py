"""Reference algorithms, each an assembly of the seven operators, and their plan space.

The space has one row for each way to run an algorithm (ML4all, Figure 5). Bernoulli
sampling reads everything anyway, so there is no lazy plan with it. Batch gradient descent
uses all rows in every iteration, so it has one plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from mlopt.errors import InputError
from mlopt.gd.operators.algorithm import Algorithm
from mlopt.gd.operators.compute import Gradient, UserGradient
from mlopt.gd.operators.samplers import (
    Bernoulli,
    Flattened,
    RandomPartition,
    Sampler,
    ShuffledPartition,
)
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
    Step,
    Svrg,
)
from mlopt.parameters import check_count


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
        m of mini-batches: as in the paper's experiments.
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


def adam(
    settings: Settings, sample: Sampler | None = None, *, lazy: bool = False
) -> Algorithm:
    """Adam, on all rows or on mini-batches."""
    if sample is not None:
        sample = replace(sample, size=settings.batch)
    return assembled(settings, Adam(settings.step), "adam", sample=sample, lazy=lazy)


SAMPLINGS: dict[str, Sampler] = {
    "bernoulli": Bernoulli(),
    "random-partition": RandomPartition(),
    "shuffled-partition": ShuffledPartition(),
}


@dataclass(frozen=True)
class PlanRow:
    """One row of the plan space.

    Attributes
    ----------
    algorithm : str
        What costs and iterations depend on: "bgd", "mgd", "sgd".
    transform : {"eager", "lazy"}
    sampling : str or None
        One of `SAMPLINGS`; None for all rows.
    make : callable
        From settings, and for a sampling one also from a Sampler and ``lazy``, to the
        algorithm.
    single : bool, default=False
        Whether a sample is one row, whatever the settings.
    """

    algorithm: str
    transform: str
    sampling: str | None
    make: Callable[..., Algorithm]
    single: bool = False

    @property
    def name(self) -> str:
        """Such as "mgd/lazy/shuffled-partition"."""
        parts = (self.algorithm, self.transform, self.sampling)
        return "/".join(part for part in parts if part is not None)

    @property
    def lazy(self) -> bool:
        """Whether only sampled rows are transformed."""
        return self.transform == "lazy"

    def rows(self, settings: Settings, n: int) -> int:
        """How many rows an iteration computes on."""
        if self.sampling is None:
            return n
        return min(1 if self.single else settings.batch, n)

    def build(self, settings: Settings) -> Algorithm:
        """The algorithm, ready to run over a source."""
        if self.sampling is None:
            return replace(self.make(settings), name=self.name)
        sampler = SAMPLINGS[self.sampling]
        return replace(self.make(settings, sampler, lazy=self.lazy), name=self.name)


PLANS: tuple[PlanRow, ...] = (
    PlanRow("bgd", "eager", None, bgd),
    PlanRow("mgd", "eager", "bernoulli", mgd),
    PlanRow("mgd", "eager", "random-partition", mgd),
    PlanRow("mgd", "eager", "shuffled-partition", mgd),
    PlanRow("mgd", "lazy", "random-partition", mgd),
    PlanRow("mgd", "lazy", "shuffled-partition", mgd),
    PlanRow("sgd", "eager", "bernoulli", sgd, single=True),
    PlanRow("sgd", "eager", "random-partition", sgd, single=True),
    PlanRow("sgd", "eager", "shuffled-partition", sgd, single=True),
    PlanRow("sgd", "lazy", "random-partition", sgd, single=True),
    PlanRow("sgd", "lazy", "shuffled-partition", sgd, single=True),
)
"""The paper's eleven plans."""

MORE_PLANS: tuple[PlanRow, ...] = (
    PlanRow("line-search", "eager", None, line_search),
    PlanRow("barzilai-borwein", "eager", None, barzilai_borwein),
    PlanRow("adam", "eager", None, adam),
    PlanRow("adam", "eager", "shuffled-partition", adam),
    PlanRow("adam", "lazy", "shuffled-partition", adam),
)
"""Further algorithms: each is a row, and nothing else. SVRG mixes two kinds of iterations,
which the cost formulas do not know; build it with `svrg`."""


def plan_row(name: str) -> PlanRow:
    """The row of a name.

    Raises
    ------
    InputError
        When there is none.
    """
    rows = {row.name: row for row in (*PLANS, *MORE_PLANS)}
    if name not in rows:
        raise InputError(f"`plan` must be one of {sorted(rows)}, got {name!r}.")
    return rows[name]
