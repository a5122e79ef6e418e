"""The memory of L-BFGS for many columns at once.

Shapes: ``d + 1`` rows (the last one holds intercepts), ``B`` columns, ``U`` units (a unit
is a column, or the columns of one softmax), ``m`` remembered steps. Every unit has its own
curvature pairs; a unit whose trial step was refused remembers nothing of that pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.columns import Layout

Floats = NDArray[np.floating[Any]]


def dots(a: Floats, b: Floats, plan: Layout) -> NDArray[np.float64]:
    """Inner products of the units: (d + 1, B) and (d + 1, B) -> (U,)."""
    return plan.unit_sum(np.einsum("ij,ij->j", a, b).astype(np.float64))


@dataclass
class Pairs:
    """Steps ``s``, changes of the gradient ``y`` and ``1 / s'y``, oldest first.

    Parameters
    ----------
    size : int
        How many pairs are kept.
    """

    size: int
    steps: list[Floats] = field(default_factory=list)
    changes: list[Floats] = field(default_factory=list)
    inverses: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, step: Floats, change: Floats, plan: Layout) -> None:
        """Remember one step; units with no positive curvature along it sit it out.

        Both arrays are kept as they are: they must not be changed afterwards.
        """
        curvature = dots(step, change, plan)
        # Below rounding of the gradient the curvature is noise.
        floor = np.finfo(step.dtype).eps * dots(change, change, plan)
        good = curvature > np.maximum(floor * 1e-2, np.finfo(np.float64).tiny)
        self.steps.append(step)
        self.changes.append(change)
        self.inverses.append(np.where(good, 1.0 / np.where(good, curvature, 1.0), 0.0))
        if len(self.steps) > self.size:
            del self.steps[0], self.changes[0], self.inverses[0]

    def direction(
        self,
        gradient: Floats,
        inverse: Callable[[Floats], Floats],
        plan: Layout,
        rescaled: bool = False,
    ) -> Floats:
        """``-H gradient`` by the two-loop recursion (Nocedal, 1980).

        Parameters
        ----------
        gradient : ndarray of shape (d + 1, B)
        inverse : callable
            The first guess of the inverse Hessian, times its argument.
        plan : Layout
        rescaled : bool
            Whether the newest pair sets the overall scale of ``inverse``.
        """
        q = gradient.copy()
        factors: list[NDArray[np.float64]] = []
        known = list(zip(self.steps, self.changes, self.inverses, strict=True))
        for step, change, rho in reversed(known):
            a = rho * dots(step, q, plan)
            factors.append(a)
            q -= plan.spread(a).astype(q.dtype) * change
        z = inverse(q)
        if rescaled and known:
            z *= plan.spread(self._scale(inverse, plan)).astype(z.dtype)
        for (step, change, rho), a in zip(known, reversed(factors), strict=True):
            b = rho * dots(change, z, plan)
            z += plan.spread(a - b).astype(z.dtype) * step
        return np.negative(z, out=z)

    def _scale(self, inverse: Callable[[Floats], Floats], plan: Layout) -> Floats:
        """``s'y / y'Hy`` of the newest pair, where there is one."""
        change, rho = self.changes[-1], self.inverses[-1]
        length = dots(change, inverse(change), plan)
        good = (rho > 0) & (length > 0)
        return np.where(good, 1.0 / np.where(good, rho * length, 1.0), 1.0)

    def forget(self, units: NDArray[np.bool_]) -> None:
        """Empty the memory of some units."""
        self.inverses = [np.where(units, 0.0, rho) for rho in self.inverses]

    def take(self, columns: NDArray[np.int64], units: NDArray[np.int64]) -> Pairs:
        """The memory of some columns and units."""
        return Pairs(
            self.size,
            [np.ascontiguousarray(step[:, columns]) for step in self.steps],
            [np.ascontiguousarray(change[:, columns]) for change in self.changes],
            [rho[units] for rho in self.inverses],
        )

    def state(self) -> dict[str, Any]:
        """Plain arrays."""
        return {
            "steps": list(self.steps),
            "changes": list(self.changes),
            "inverses": list(self.inverses),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`."""
        self.steps = list(state["steps"])
        self.changes = list(state["changes"])
        self.inverses = list(state["inverses"])
