"""A problem as far as its price depends on it: known before any row is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlopt.gd.plans.look import Look
from mlopt.gd.plans.stop import Stop
from mlopt.gd.pricing import Shape, shape_of_stats
from mlopt.gd.spectrum import Spectrum
from mlopt.stats import Stats


@dataclass(frozen=True)
class Outline:
    """What prices and passes to expect are made of.

    Parameters
    ----------
    loss : str
        Its name; "user" for a gradient of the user's.
    shape : Shape
        With a column of weights for each output of each model.
    l2 : float, default=0.0
        Of the mean loss.
    free_intercept : bool, default=True
        Whether there is an intercept without a penalty.
    sharp : bool, default=False
        Whether the penalty has kinks, as L1, or edges, as for positive weights.
    even : bool, default=True
        Whether all rows weigh the same.
    blind : bool, default=False
        Whether there is a gradient without the objective that it belongs to.
    spectrum : Spectrum, optional
        Of wide rows, where some were looked at.
    look : callable, optional
        What some rows tell of the passes; looks at them when it is called.
    stop : Stop, optional
        When a solution is good enough, where it is known.
    """

    loss: str
    shape: Shape
    l2: float = 0.0
    free_intercept: bool = True
    sharp: bool = False
    even: bool = True
    blind: bool = False
    spectrum: Spectrum | None = None
    look: Callable[[], Look] | None = None
    stop: Stop | None = None

    @staticmethod
    def of_stats(loss: str, stats: Stats) -> Outline:
        """Of data of which nothing but the size is known."""
        return Outline(loss, shape_of_stats(stats))
