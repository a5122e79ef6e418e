"""Fits that may run in processes of their own, and what these cost to begin with."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlopt.cluster.processes import are_left
from mlopt.prices import price
from mlopt.tuning.crews.chain import Parts
from mlopt.tuning.crews.problem import Problem

_VALUES = ("builtins", "numpy", "pandas", "scipy")
"""Whose objects are values, where they are no functions."""


def is_plain(thing: Any) -> bool:
    """Whether it is scikit-learn's and holds nothing that is not.

    What such an estimator is given is all that it reads, and what it returns all that it
    does, but for what it prints where it is verbose: that is read here. Functions and
    classes of anybody else may count their calls, or read what is in this process alone.
    """
    return _is_plain(thing, set())


def _is_plain(thing: Any, met: set[int]) -> bool:
    if isinstance(thing, type | np.ufunc) or id(thing) in met:
        return True
    met.add(id(thing))
    if isinstance(thing, list | tuple):
        return all(_is_plain(one, met) for one in thing)
    if isinstance(thing, dict):
        return all(_is_plain(one, met) for one in thing.values())
    home = type(thing).__module__.partition(".")[0]
    if home == "sklearn":
        held = getattr(thing, "__dict__", {})
        return not held.get("verbose") and _is_plain(held, met)
    return home in _VALUES and not callable(thing)


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
