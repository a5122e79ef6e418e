"""What is known of a class, or of a function: its traits, and the ways to fit it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlopt.costs import Cost
from mlopt.pipeline.fits.base import Fit
from mlopt.stats import Stats


@dataclass(frozen=True)
class Own:
    """What a class's own ``fit`` costs.

    Attributes
    ----------
    cost : callable
        From an estimator, `Stats` of all rows, and passes where these are known, to its
        `Cost`, on one thread, on rows in one place; None where only a trial can tell.
    doubt : float
        By which factor passes may be off until a sample tells of them; 1 where none does.
    threaded : bool
        Whether its work is shared by all threads.
    vectors : callable
        From an estimator, and whether rows are sparse, to whether they are multiplied with
        few columns alone, again and again: threads of BLAS have less work of that, or
        none, than they wait for each other.
    """

    cost: Callable[[Any, Stats, float | None], Cost | None]
    doubt: float = 1.0
    threaded: bool = False
    vectors: Callable[[Any, bool], bool] = lambda estimator, sparse: False


@dataclass(frozen=True)
class Record:
    """The one record of a class or a function; see `mlopt.register`.

    Attributes
    ----------
    row_wise : bool
        Whether, once it is fitted, each row depends on its own row alone; and
        ``fit_transform`` is ``fit`` and then ``transform``.
    stateless : bool
        Whether it learns nothing from rows but the names and number of columns.
    seeded_by : str or None
        The parameter that seeds it.
    draws : callable or None
        From an estimator to whether it makes use of its seed; None where it always does.
    reads_y : bool
        Whether ``fit`` looks at the targets.
    ways : tuple of Fit
        Of fitting it, besides its own ``fit`` on gathered rows.
    own : Own or None
        What its own ``fit`` costs; None where only a trial can tell.
    by_author : bool
        Whether it was registered, and is no declaration of mlopt's.
    """

    row_wise: bool = False
    stateless: bool = False
    seeded_by: str | None = None
    draws: Callable[[Any], Any] | None = None
    reads_y: bool = True
    ways: tuple[Fit, ...] = ()
    own: Own | None = None
    by_author: bool = False


UNKNOWN = Record()
"""Of a class of which nobody said anything."""
