"""Checks of what users give: what must hold, what was given, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np

from mlopt.errors import InputError

_SEEDS = 2**31 - 1
"""Seeds are drawn below this, as scikit-learn's are."""


def check_positive(
    name: str, value: Any, *, zero: bool = False, infinite: bool = False
) -> float:
    """A number above 0, or from 0 if ``zero``; finite unless ``infinite``."""
    real = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    if real and (value > 0 or (zero and value == 0)) and (infinite or np.isfinite(value)):
        return float(value)
    what = "at least 0" if zero else "positive"
    raise InputError(f"`{name}` must be a finite number, {what}; got {value!r}.")


def is_count(value: Any, least: int = 1) -> TypeGuard[int]:
    """Whether it is an integer of at least so much."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and int(value) >= least


def check_count(name: str, value: Any, *, least: int = 1) -> int:
    """An integer of at least so much."""
    if is_count(value, least):
        return int(value)
    raise InputError(f"`{name}` must be an integer of at least {least}, got {value!r}.")


def check_client(client: Any) -> None:
    """A `distributed.Client`, or what acts as one: known without an import of Dask.

    It must be synchronous, as all is here.
    """
    if not hasattr(client, "scheduler"):
        raise InputError(
            f"`client` must be a distributed.Client, got {client!r:.100}: "
            "distributed.Client(address) connects to a scheduler."
        )
    if getattr(client, "asynchronous", False):
        raise InputError(
            "The client must be synchronous: make it with `Client(asynchronous=False)`."
        )


def check_choice(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    """One of the values that are implemented."""
    if any(value is one or (type(value) is type(one) and value == one) for one in allowed):
        return value
    known = ", ".join(repr(one) for one in allowed)
    raise InputError(f"`{name}` must be one of {known}; got {value!r}.")


def check_parameters(estimator: Any) -> None:
    """Refuse parameters as scikit-learn does, with its own words."""
    from sklearn.utils._param_validation import InvalidParameterError

    try:
        estimator._validate_params()
    except InvalidParameterError as error:
        raise InputError(str(error)) from None


def seed_of(random_state: Any) -> int:
    """An integer as it is; from generators, those of NumPy for None, one is drawn."""
    if isinstance(random_state, Integral):
        return int(random_state)
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(_SEEDS))


def bytes_of(name: str, given: Any, *, least: int = 0, instead: str = "") -> int:
    """The bytes that a number, or a text such as "2GiB", means.

    Parameters
    ----------
    name : str
        What is given, as the user knows it.
    given : int, float or str
    least : int, default=0
    instead : str, optional
        What may be given in place of bytes, in words.

    Raises
    ------
    InputError
        When it is no number of bytes, or fewer than ``least``.
    """
    from dask.utils import parse_bytes

    try:
        found = int(
            given
            if isinstance(given, Integral | float)
            else parse_bytes(given.strip() or "?")
        )
    except (ValueError, TypeError, AttributeError, OverflowError):
        found = least - 1
    if found < least or isinstance(given, bool):
        other = f"{instead} or " if instead else ""
        raise InputError(
            f'{name} must be {other}bytes, as in "8MiB" or 2**23, at least {least}, '
            f"got {given!r}."
        )
    return found
