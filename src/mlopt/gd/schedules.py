"""Step sizes of stochastic gradient descent, as scikit-learn defines them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlopt.errors import InputError
from mlopt.gd.columns import Layout
from mlopt.kernels.sgd import SCHEDULES, SPARSE_INTERCEPT_DECAY, Steps

ADAPTIVE_DIVISOR = 5.0
ADAPTIVE_LEAST = 1e-6


@dataclass(frozen=True)
class Schedule:
    """How the step size of one model falls; ``t`` counts its steps from 1.

    Parameters
    ----------
    kind : str, default="optimal"
        "constant": ``eta0``; "invscaling": ``eta0 / t**power_t``; "optimal":
        ``1 / (l2 (t0 + t))`` with Bottou's ``t0``; "adaptive": ``eta0``, divided by 5 each
        time that the objective stops falling.
    eta0 : float, default=0.01
        Not used by "optimal".
    power_t : float, default=0.25
    """

    kind: str = "optimal"
    eta0: float = 0.01
    power_t: float = 0.25

    def __post_init__(self) -> None:
        if self.kind not in SCHEDULES:
            raise InputError(f"`kind` must be one of {list(SCHEDULES)}, got {self.kind!r}.")
        if self.kind != "optimal" and not self.eta0 > 0:
            raise InputError(f"`eta0` must be positive, got {self.eta0}.")


def first_steps(plan: Layout, schedules: Sequence[Schedule], *, sparse: bool) -> Steps:
    """The step sizes of all columns before their first step.

    Parameters
    ----------
    plan : Layout
    schedules : sequence of Schedule
        One a model.
    sparse : bool
        Whether rows are sparse; intercepts then take smaller steps, as in scikit-learn.
    """
    for model, schedule in zip(plan.models, schedules, strict=True):
        if schedule.kind == "optimal" and not model.l2 > 0:
            raise InputError(
                'The schedule "optimal" needs a penalty, got `l2` = 0: choose another.'
            )
    decay = SPARSE_INTERCEPT_DECAY if sparse else 1.0
    kinds = np.array([SCHEDULES[s.kind] for s in schedules], np.int64)
    return Steps(
        schedule=kinds[plan.owner],
        alpha=plan.l2.copy(),
        eta0=plan.per_column([s.eta0 for s in schedules]),
        power_t=plan.per_column([s.power_t for s in schedules]),
        t=np.ones(plan.width),
        intercept=np.where(plan.with_intercept, decay, 0.0),
    )
