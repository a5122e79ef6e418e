"""Identity by content: two values of one token are interchangeable.

The one place where mlopt tells whether data, parameters or code are the same. A class or a
function of an installed distribution counts by its name and version, any other by its code
and all that this refers to; what cannot be told for certain is like nothing else.
"""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

from mlopt.identity.code import class_of, home_of, is_known
from mlopt.identity.params import parameters
from mlopt.identity.unknown import Unidentified
from mlopt.identity.validity import CONSTANT, is_valid
from mlopt.identity.walk import SETTINGS, Walk

__all__ = [
    "CONSTANT", "SETTINGS", "class_of", "identified", "is_installed", "is_known",
    "is_valid", "join", "parameters", "token_of",
]  # fmt: skip


def token_of(value: Any, *, fitted: bool = False) -> str:
    """A name for the content of ``value``: 32 hexadecimal digits.

    What cannot be identified gets a token that never comes again.

    Parameters
    ----------
    value : any
        Estimators, arrays, sparse matrices, frames, lists of documents, Dask collections,
        classes and functions, random generators (by their state), plain values and objects
        made of these.
    fitted : bool, default=False
        Whether scikit-learn's and mlopt's estimators count with what they have learnt, and
        not by class and parameters alone. Other estimators always count with all they hold.

    Returns
    -------
    str
        The same in every process, for equal content.
    """
    return identified(value, fitted=fitted) or uuid.uuid4().hex


def identified(value: Any, *, fitted: bool = False) -> str | None:
    """`token_of`, or None for a value whose content cannot be told for certain.

    Examples of the latter: locks, open files, generators, functions that look up names at
    run time (``eval``, ``globals``), Dask collections that read from another machine.
    """
    walk = Walk(fitted=fitted)
    try:
        walk.add(value)
    except Unidentified:
        return None
    except Exception:  # whatever the user's own `get_params` or `__reduce__` raises
        return None
    return walk.hexdigest()


def join(*tokens: str) -> str:
    """The token of something made of parts that have tokens."""
    text = "\0".join(tokens).encode()
    return hashlib.sha1(text, usedforsecurity=False).hexdigest()[:32]


def is_installed(value: Any) -> bool:
    """Whether a class or function is that of an installed distribution, under its name."""
    return home_of(value) is not None
