"""The loss of least squares by products of all columns: no row is read any more.

With ``g`` and ``L`` the gradient and the mean loss at weights ``v``, and ``Q`` the
products, at ``w = v + s`` they are ``g + Q s`` and ``L + s'g + s'Q s / 2``. The dual point
is the residual, whose products with rows follow: ``r'z = w'g`` and ``r'r = 2 L``.

Shapes: ``d`` columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.penalty import Penalty
from mlopt.gd.sizes import ROUNDED

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The mean loss about some weights, the intercept at its best.

    Parameters
    ----------
    Q : ndarray of shape (d, d)
        Of columns less their means, where there is an intercept.
    mean : ndarray of shape (d,)
        These means; zeros without an intercept.
    w, g : ndarray of shape (d,)
        Weights, and the gradient there.
    loss, b : float
        The mean loss and the intercept there.
    """

    Q: Array
    mean: Array
    w: Array
    g: Array
    loss: float
    b: float

    def at(self, w: Array) -> tuple[Array, float]:
        """The gradient (d,) and the mean loss at other weights."""
        step = w - self.w
        g = self.g + self.Q @ step
        return g, self.loss + 0.5 * float((self.g + g) @ step)

    def intercept(self, w: Array) -> float:
        """The best one beside other weights."""
        return self.b - float(self.mean @ (w - self.w))

    def gap(self, penalty: Penalty, w: Array, g: Array, loss: float) -> float:
        """The duality gap at weights with this gradient and this loss."""
        shares = {penalty.within(-g)} | ({1.0} if penalty.l2 > 0 else set())
        beside = float(w @ g) - 2.0 * loss
        dual = max(
            -share * (share * loss + beside)
            - penalty.conjugate(-share * g * (1.0 - ROUNDED))
            for share in shares
        )
        return max(loss + penalty.value(w) - dual, 0.0)

    def tells(self, gap: float) -> bool:
        """Whether what is lost by taking differences is little beside such a gap."""
        return gap > ROUNDED * self.loss
