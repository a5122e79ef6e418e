"""Few rows of many columns, seen in their own space: as many columns as there are rows.

With an L2 penalty a minimum is a combination of rows. With ``X X' = L L'`` and
``w = X' inv(L)' v`` the margins ``X w`` are ``L v``, and ``|w| = |v|``: the same problem,
with the rows of L. The length of a gradient is the same, too.

Chapelle, "Training a support vector machine in the primal", Neural Computation 19, 2007.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky

from mlopt.gd.plans.dual_cholesky import row_products
from mlopt.gd.pricing import Shape
from mlopt.gd.sample import local_executor
from mlopt.rows import Rows

Array = NDArray[np.float64]

_LIFT = 4 * float(np.finfo(np.float64).eps)
"""Of each row's product with itself, for each row: what rounding may have made of one that
depends on others (Higham, Accuracy and Stability of Numerical Algorithms, theorem 10.5)."""


def factor_of(rows: Rows) -> Array:
    """L (n, n), lower: rows that depend on others are lifted above their rounding."""
    (X,) = rows.in_one_block(must=True).map(lambda block: block.X)
    products = row_products(X)
    n = len(products)
    own = products.diagonal()
    # A row of zeros has no product to take a part of.
    own = np.where(own > 0, own, _LIFT * (own.mean() or 1.0))
    products.flat[:: n + 1] += _LIFT * n * own
    return np.asarray(cholesky(products, lower=True, overwrite_a=True))


def narrowed(rows: Rows, factor: NDArray[Any]) -> Rows:
    """The rows of ``factor``, in this process; nothing is beside them."""
    return Rows.of(factor, executor=local_executor(rows))


def gradient_bound(rows: Rows, largest: float) -> float:
    """Below which no component of a gradient here may be, for those of all columns.

    None of these is larger than its length.
    """
    return largest / float(np.sqrt(rows.n))


def square_of(shape: Shape) -> Shape:
    """That of the rows of the factor."""
    n = shape.n
    return replace(shape, d=n, nonzero=n * n, sparse=False, itemsize=8, blocks=1)
