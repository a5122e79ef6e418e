"""Anything that improves step by step, and the limits under which it may go on.

A gradient-descent run, a batch of 300 linear models and a scikit-learn estimator with
``partial_fit`` are all `Training`s: bandits, checkpoints and time limits are written once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from mlopt.errors import InputError


@runtime_checkable
class Training(Protocol):
    """Improves by passes over its rows.

    Laws: ``advance(a); advance(b)`` equals ``advance(a + b)``; ``restore(state())`` on a
    training built from the same arguments goes on as if never interrupted.
    """

    @property
    def passes(self) -> int:
        """Passes over the rows so far."""
        ...

    @property
    def done(self) -> bool:
        """Whether another pass would change nothing: converged or at its own limit."""
        ...

    def advance(self, passes: int) -> None:
        """Train for up to ``passes`` more passes."""
        ...

    def quality(self) -> Any:
        """How good it is now; higher is better. One number, or one for each model."""
        ...

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        ...


@dataclass(frozen=True)
class Limits:
    """When to stop a training that is not done.

    Parameters
    ----------
    passes : int, optional
        Passes over the rows, in all.
    seconds : float, optional
        Wall time from `Limits.start`, on the monotonic clock.
    """

    passes: int | None = None
    seconds: float | None = None
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        for name, value in (("passes", self.passes), ("seconds", self.seconds)):
            if value is not None and value <= 0:
                raise InputError(f"`{name}` must be positive, got {value!r}.")

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit; infinite without one."""
        return float("inf") if self.seconds is None else self.seconds - self.elapsed

    def __reduce__(self) -> tuple[Any, ...]:
        return _elsewhere, (self.passes, self.seconds, self.elapsed)

    def reason(self, training: Training) -> str | None:
        """Why ``training`` must stop now, or None."""
        if training.done:
            return "done"
        if self.passes is not None and training.passes >= self.passes:
            return "passes"
        return "seconds" if self.seconds_left <= 0 else None


def _elsewhere(passes: int | None, seconds: float | None, elapsed: float) -> Limits:
    """Limits by the clock of this process, of which as much has passed."""
    return Limits(passes, seconds, time.monotonic() - elapsed)


def run(
    training: Training,
    limits: Limits,
    *,
    step: int = 1,
    checkpoint: Callable[[dict[str, Any]], None] | None = None,
) -> str:
    """Advance ``training`` until it is done or at a limit.

    Parameters
    ----------
    training : Training
    limits : Limits
    step : int, default=1
        Passes between two looks at the limits, and between two checkpoints.
    checkpoint : callable, optional
        Called with ``training.state()`` after every step.

    Returns
    -------
    str
        Why it stopped: "done", "passes" or "seconds".
    """
    while (reason := limits.reason(training)) is None:
        left = step if limits.passes is None else limits.passes - training.passes
        training.advance(min(step, left))
        if checkpoint is not None:
            checkpoint(training.state())
    return reason
