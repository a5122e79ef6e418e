"""Some rows of a fit, for all ways that are asked what they would take: seen once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlopt.cluster.threads import threads_here
from mlopt.gd.plans.look import Look
from mlopt.locking import cached_property
from mlopt.rows import Rows


@dataclass(frozen=True, eq=False)
class Few:
    """A sample of rows, and its targets.

    Parameters
    ----------
    X : array-like, sparse or data frame of shape (n, d)
    y : array-like of shape (n,) or (n, T), or None
    """

    X: Any
    y: Any

    @cached_property
    def rows(self) -> Rows:
        """X as one block of numbers."""
        return Rows.of(self.X, executor=threads_here())

    @cached_property
    def look(self) -> Look:
        """What they tell of passes, whatever the targets."""
        return Look.of(self.rows)
