"""The one table of what is known of classes and functions: ours, and what is registered."""

from __future__ import annotations

from typing import Any

from numpy.random import Generator, RandomState

from mlopt.costs import Cost
from mlopt.identity import class_of
from mlopt.pipeline.fits.base import Fit
from mlopt.pipeline.fits.known import known
from mlopt.pipeline.fits.record import UNKNOWN, Own, Record
from mlopt.stats import Stats

RECORDS: dict[Any, Record] = known()
"""By class or function; `mlopt.register` writes here."""


def record_of(operator: Any) -> Record:
    """What is known of this very class or function; `UNKNOWN` where nothing is."""
    try:
        return RECORDS.get(operator, UNKNOWN)
    except TypeError:  # nothing that cannot be hashed has a record
        return UNKNOWN


def declared(operator: Any) -> Record | None:
    """What its author registered of this very class or function, or None."""
    found = record_of(operator)
    return found if found.by_author else None


def ways_of(estimator: Any) -> tuple[Fit, ...]:
    """The ways of fitting ``estimator`` besides its own ``fit``; maybe none.

    A generator as ``random_state`` must be the user's own, which moves on with a fit: ways
    work on copies.
    """
    if isinstance(getattr(estimator, "random_state", None), RandomState | Generator):
        return ()
    return record_of(class_of(estimator)).ways


def own_cost(estimator: Any, stats: Stats, passes: float | None = None) -> Cost | None:
    """On one thread, of its own ``fit`` on all rows; None where only a trial can tell.

    In so many passes, where they are known.
    """
    own = own_of(estimator)
    return None if own is None else own.cost(estimator, stats, passes)


def by_vectors(estimator: Any) -> tuple[bool, bool]:
    """Whether its own ``fit`` multiplies rows with few columns alone, of dense rows and of
    sparse ones; see `Own`."""
    own = own_of(estimator)
    if own is None:
        return False, False
    return own.vectors(estimator, False), own.vectors(estimator, True)


def own_of(estimator: Any) -> Own | None:
    """What is known of its own ``fit``."""
    return record_of(class_of(estimator)).own
