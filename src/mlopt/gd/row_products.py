"""What sums of products of all rows cost: ``X' X``, its triangle, and ``X' (X w)``."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import scipy.sparse as sp

from mlopt.costs import Cost
from mlopt.gd.pricing import (
    PANEL,
    SYMMETRIC_NARROW,
    Shape,
    gradient_pass,
    scan,
    weighted_gram,
)
from mlopt.prices import count, price
from mlopt.resources import Resources

_SYMMETRIC, _SYMMETRIC32 = price("gram.symmetric"), price("gram.symmetric.float32")
SUMS = price("gram.sums")
_QR, _QR_NARROW = price("qr.product"), price("qr.narrow")
PANELS = count("gram.reads")
_WIDE = count("gram.wide")


def normal_pass(shape: Shape, resources: Resources) -> Cost:
    """``X' (X w)`` for each target, each row read once, and a few vectors beside.

    The kernel is that of the squared loss.
    """
    vectors = Cost(memory=10 * 8.0 * (shape.d + 1) * shape.columns)
    return gradient_pass(shape, resources) + vectors


def bordered(shape: Shape) -> int:
    """Columns of ``[1 | X | y]``."""
    return 1 + shape.d + shape.columns


def gram_cost(shape: Shape, resources: Resources) -> Cost:
    """The Gram matrix of ``[1 | X | y]``: one pass, and adding up those of blocks."""
    m, share = bordered(shape), 1.0 / resources.workers
    if not shape.multiplies_sparse:
        return panels_cost(shape, resources, m)
    sums = Cost(memory=SUMS * 8.0 * share * shape.blocks * m**2)
    reading = scan(shape, resources, 8.0 * m**2)
    return reading + Cost(flops=share * weighted_gram(shape, shape.n)) + sums


def panels_cost(
    shape: Shape, resources: Resources, columns: int, *, single: bool = False
) -> Cost:
    """Checking all rows, and Gram matrices of ``columns`` of them, panel by panel."""
    share = 1.0 / resources.workers
    width = 4.0 if single else 8.0
    price = (_SYMMETRIC32 if single else _SYMMETRIC) + SYMMETRIC_NARROW / columns
    products = price * share * shape.n * float(columns) * bordered(shape)
    reading = scan(shape, resources, width * columns**2)
    values = share * shape.n * bordered(shape)
    prepared = Cost(memory=reading.memory, flops=PANEL * values)
    # Every block makes a matrix, which is read and added to another one.
    sums = Cost(memory=3 * width * share * shape.blocks * columns * bordered(shape))
    product = Cost(flops32=products) if single else Cost(flops=products)
    return reading + prepared + product + sums


def triangle_cost(shape: Shape, resources: Resources) -> Cost:
    """The triangle of a QR of ``[1 | X | y]``: one pass."""
    m, share = bordered(shape), 1.0 / resources.workers
    reading = scan(shape, resources, 8.0 * min(shape.n, m) * m, times=PANELS)
    panels = Cost(flops=PANEL * share * shape.n * m)
    return replace(reading, flops=share * qr_flops(shape.n, m)) + panels


def qr_flops(n: int, m: int) -> float:
    """Operations of a matrix product that take as long as the QR of a matrix (n, m)."""
    least = min(n, m)
    return (_QR + _QR_NARROW / least) * 2.0 * n * m * least


def most_held(resources: Resources) -> float:
    """Bytes that one process may hold beside its rows."""
    return resources.memory / resources.workers / 2


def beyond(needed: float, resources: Resources, what: str) -> str | None:
    """Why so many bytes are too many for one process, if they are."""
    most = most_held(resources)
    if needed <= most:
        return None
    return f"needs {needed / 2**30:.3g} of {most / 2**30:.3g} GiB for {what}"


def at_once(shape: Shape, resources: Resources) -> int:
    """Partial results of blocks that a process holds at a time."""
    return summed(min(resources.threads, shape.blocks))


def no_room(size: int, shape: Shape, resources: Resources) -> str | None:
    """Why matrices of so many rows and columns do not fit, if they do not."""
    needed = 8.0 * size**2 * at_once(shape, resources)
    return beyond(needed, resources, f"matrices of {size} x {size}")


def side_by_side(size: int, resources: Resources) -> int:
    """How many threads may each make sums of their own, of matrices of this size."""
    return max(1, int(most_held(resources) // (8.0 * size**2 * summed(1))))


def summed(threads: int) -> int:
    """Matrices in a sum: one partial result a thread, and two on their way up the tree."""
    return threads + 2


def block_rows(X: Any) -> int | None:
    """Rows of a block of dense data in memory with many columns; None for the default.

    Every block makes a matrix of d x d: with fewer than about 2 d rows, adding these up
    would take longer than making them. But eight blocks must be left to share.
    """
    if sp.issparse(X) or X.shape[1] < _WIDE:
        return None
    n, d = X.shape
    return int(max(2**20 // d, min(2 * d, n // 8), math.ceil(n / 64)))
