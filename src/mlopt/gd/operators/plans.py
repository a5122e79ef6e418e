"""The plan space: one row for each way to run an algorithm (ML4all, Figure 5).

Bernoulli sampling reads everything anyway, so there is no lazy plan with it. Batch
gradient descent uses all rows in every iteration, so it has one plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mlopt.errors import InputError
from mlopt.gd.operators import references
from mlopt.gd.operators.algorithm import Algorithm
from mlopt.gd.operators.references import Settings
from mlopt.gd.operators.samplers import (
    Bernoulli,
    RandomPartition,
    Sampler,
    ShuffledPartition,
)

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
    PlanRow("bgd", "eager", None, references.bgd),
    PlanRow("mgd", "eager", "bernoulli", references.mgd),
    PlanRow("mgd", "eager", "random-partition", references.mgd),
    PlanRow("mgd", "eager", "shuffled-partition", references.mgd),
    PlanRow("mgd", "lazy", "random-partition", references.mgd),
    PlanRow("mgd", "lazy", "shuffled-partition", references.mgd),
    PlanRow("sgd", "eager", "bernoulli", references.sgd, single=True),
    PlanRow("sgd", "eager", "random-partition", references.sgd, single=True),
    PlanRow("sgd", "eager", "shuffled-partition", references.sgd, single=True),
    PlanRow("sgd", "lazy", "random-partition", references.sgd, single=True),
    PlanRow("sgd", "lazy", "shuffled-partition", references.sgd, single=True),
)
"""The paper's eleven plans."""

MORE_PLANS: tuple[PlanRow, ...] = (
    PlanRow("line-search", "eager", None, references.line_search),
    PlanRow("barzilai-borwein", "eager", None, references.barzilai_borwein),
    PlanRow("momentum", "eager", None, references.momentum),
    PlanRow("nesterov", "eager", None, references.nesterov),
    PlanRow("adam", "eager", None, references.adam),
    PlanRow("adam", "eager", "shuffled-partition", references.adam),
    PlanRow("adam", "lazy", "shuffled-partition", references.adam),
)
"""Further algorithms: each is a row, and nothing else. SVRG mixes two kinds of iterations,
which the cost formulas do not know; build it with `references.svrg`."""


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
