"""What a few rows tell of the passes that methods take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlopt.gd.sample import SEED
from mlopt.prices import count
from mlopt.rows import Rows
from mlopt.stats import sample_rows

_VALUES, _ROWS = count("look.values"), count("look.rows")


@dataclass(frozen=True)
class Look:
    """Of ``m`` rows.

    Attributes
    ----------
    length : float
        Their mean squared length.
    alike : float
        The mean squared product of two of them, over the square of ``length``: of the Gram
        matrix of all rows, the sum of the squared eigenvalues over the square of their sum.
        It is one over the number of directions in which rows lie, if these are equal.
    least : float
        The least of the ``min(m, d)`` eigenvalues that the Gram matrix of these rows,
        divided by m, may have.
    """

    length: float
    alike: float
    least: float

    @staticmethod
    def of(rows: Rows) -> Look:
        """Look at a few hundred rows at most."""
        size = min(max(_VALUES * rows.n // max(rows.nonzero, 1), 1), _ROWS)
        X = rows.pick(sample_rows(rows.lengths, size, SEED)).astype(np.float64)
        m, d = X.shape
        squares = np.asarray((X.multiply(X) if rows.sparse else X * X).sum(axis=1)).ravel()
        length = float(squares.mean())
        if m < 2 or not 0.0 < length < np.inf:
            return Look(length, 1.0, 0.0)
        # The smaller of the two Gram matrices: they share what is asked of them.
        products = X @ X.T if m <= d else X.T @ X
        gram = np.asarray(products.toarray() if rows.sparse else products) / length
        others = np.square(gram).sum() - np.square(squares / length).sum()
        least = length * float(np.linalg.eigvalsh(gram)[0]) / m
        return Look(length, float(others) / (m * (m - 1)), least)
