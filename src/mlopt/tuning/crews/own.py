"""Fit parameters of one fit alone: a callback that keeps count is no other fit's.

Fits run side by side, on threads that share all they are given. scikit-learn fits one
after the other, or in processes that get copies.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_MANY = 256
"""Items from which a container is taken for data."""


def own_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, with copies of the objects that a fit may change.

    Data are shared. So is what cannot be copied, such as what holds a lock: it is made to
    be shared.
    """
    return {name: _own(value) for name, value in params.items()}


def _own(value: Any) -> Any:
    if hasattr(value, "shape") or hasattr(value, "__dataframe__"):
        return value
    if type(value) in (list, tuple):
        if len(value) > _MANY:
            return value
        items = [_own(item) for item in value]
        same = all(item is old for item, old in zip(items, value, strict=True))
        return value if same else type(value)(items)
    if type(value) is dict:
        if len(value) > _MANY:
            return value
        found = own_params(value)
        return value if all(found[name] is value[name] for name in value) else found
    with suppress(Exception):
        return copy.deepcopy(value)
    return value
