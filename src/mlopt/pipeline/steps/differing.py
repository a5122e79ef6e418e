"""Where two outputs differ: the first row that does, in as many digits as it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.pipeline.blocks import tables

_DIGITS = (4, 6, 8, 12, 17)
"""Decimals that are shown: the first that tell rows apart."""


def first_difference(whole: Any, other: Any, rtol: float) -> int | None:
    """The number of the first row that differs; -1 for other shapes; None for none."""
    one, two = (np.asarray(_dense(value)) for value in (whole, other))
    if one.shape != two.shape:
        return -1
    if one.dtype.kind in "fciub" and two.dtype.kind in "fciub":
        finite = np.abs(one[np.isfinite(one)])
        scale = rtol * float(finite.max(initial=0.0))
        equal = np.isclose(one, two, rtol=rtol, atol=scale, equal_nan=True)
    else:
        equal = (one == two) | ((one != one) & (two != two))
    rows = np.flatnonzero(~equal.reshape(len(one), -1).all(axis=1))
    return int(rows[0]) if rows.size else None


def _dense(value: Any) -> Any:
    return value.toarray() if sp.issparse(value) else value


def kind_of(values: Any) -> str:
    """The kind of a NumPy type that they have: "f" for real numbers."""
    return str(np.asarray(_dense(values)).dtype.kind)


def _row(values: Any, row: int) -> Any:
    return np.asarray(_dense(tables.row_range(values, row, row + 1))).ravel()


def shown(values: Any, row: int, digits: int = 4) -> str:
    """A row in few words."""
    found = _row(values, row)
    with np.printoptions(precision=digits, threshold=6, edgeitems=3, linewidth=200):
        if found.size != 1:
            return str(found)
        number = found.dtype.kind == "f" and digits < _DIGITS[-1]
        return str(np.round(found[0], digits) if number else found[0])


def told_apart(one: Any, other: Any, row: int) -> tuple[str, str]:
    """A row of each, with as many digits as show the difference."""
    for digits in _DIGITS:
        texts = shown(one, row, digits), shown(other, row, digits)
        if texts[0] != texts[1]:
            return texts
    pairs = zip(_row(one, row), _row(other, row), strict=True)
    column, (a, b) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
    return f"{a} in column {column}", str(b)
