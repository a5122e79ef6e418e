"""Sizes as users give them."""

from __future__ import annotations

from numbers import Real
from typing import Any

from mlopt.errors import InputError


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
        found = int(given if isinstance(given, Real) else parse_bytes(given))
    except (ValueError, TypeError, AttributeError, OverflowError):
        found = least - 1
    if found < least or isinstance(given, bool):
        other = f"{instead} or " if instead else ""
        raise InputError(
            f'{name} must be {other}bytes, as in "8MiB" or 2**23, at least {least}; '
            f"got {given!r}."
        )
    return found
