"""Which fits may run in processes of their own, and what these cost to begin with."""

from __future__ import annotations

from mlopt.cluster.processes import are_left
from mlopt.prices import price
from mlopt.tuning.crews.chain import Parts
from mlopt.tuning.crews.plain import is_plain
from mlopt.tuning.crews.problem import Problem


def may_pay(problem: Problem, parts: Parts, seconds: float) -> bool:
    """Whether fits of ``seconds`` in all might be quicker in processes of their own.

    Scorers of the user's own are called here: they may keep what they see.
    """
    threads = problem.executor.threads
    if not problem.executor.apart_at_most() or not problem.metrics.names_only:
        return False
    if not all(map(is_plain, (*(step for _, step in parts.steps), parts.final))):
        return False
    return seconds / threads > begin(threads)


def begin(count: int) -> float:
    """Seconds until so many processes are there."""
    return 0.0 if are_left(count) else price("processes.begin")
