"""What a sample of the rows tells of the objectives' shape: current preconditioners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.columns import Indices, Layout
from mlopt.gd.curvature import (
    MAX_GROUPS,
    PROBE_ROWS,
    Hessians,
    Probe,
    distance,
    group_columns,
    mean_over,
    shared_hessians,
    weight_sums,
)
from mlopt.gd.passes import Floats, Sums
from mlopt.gd.preconditioner import (
    Diagonal,
    Factors,
    Preconditioner,
    factorise,
    kinds_of,
)
from mlopt.gd.pricing import sparse_gram_operations
from mlopt.gd.sample import Moments, draw, local_executor, sample_size
from mlopt.gd.sizes import WIDEST
from mlopt.prices import price
from mlopt.rows import Rows

DRIFT = 0.2
"""Curvatures that moved so far from those in use ask for new Hessians."""
_SHARE = price("hessian.share")
_FEWEST_FACTORS = 6
"""Factors of a training, whatever they cost: fewer would serve no penalty well."""
MANY = 20
"""Rows a column beyond which curvatures of a sample are those of all rows."""
_OPERATIONS = price("hessian.operations")
_TRIFLE = price("hessian.trifle")


def gram_work(rows: Rows) -> float:
    """Multiplications of passes in whose time a weighted Gram matrix is made."""
    if rows.sparse:
        return sparse_gram_operations(rows.n, rows.nonzero / rows.n) / _OPERATIONS
    return float(rows.nonzero * rows.d)


@dataclass
class SampledCurvature:
    """The sample, and the preconditioner made from it or from all rows.

    Attributes
    ----------
    rows : Rows
        All rows.
    sample : Rows
        Held in this process.
    moments : Moments
        Of all rows.
    probe : Probe
    sums : Sums
        Of all rows.
    full : bool
        Whether to factorise Hessians; otherwise diagonals.
    """

    rows: Rows
    sample: Rows
    moments: Moments
    probe: Probe
    sums: Sums
    full: bool
    seen: Floats | None = None
    hessians: Hessians | None = None
    inverse: Preconditioner | None = None
    work: float = 0.0
    looked: float = 0.0
    exact: bool = False

    @staticmethod
    def of(rows: Rows, sums: Sums, width: int) -> SampledCurvature:
        """Draw the sample for ``width`` columns of weights."""
        full = rows.d < WIDEST
        # Too wide to start on a sample, it is only looked at.
        few = min(rows.n, PROBE_ROWS)
        size = sample_size(rows.n, rows.d, width) if full else few
        sample = draw(rows, size)
        probe = Probe.of(sample, many=rows.n > MANY * rows.d)
        return SampledCurvature(rows, sample, Moments.of(rows), probe, sums, full)

    def afresh(self) -> SampledCurvature:
        """The same rows and sample, for other columns."""
        return SampledCurvature(
            self.rows, self.sample, self.moments, self.probe, self.sums, self.full
        )

    def current(self, weights: Floats, plan: Layout, *, work: float) -> Preconditioner:
        """The preconditioner at ``weights``, renewed when that is due.

        That is when curvatures have drifted, and passes have cost as much since the last
        time; from the sample, unless the last one was from all rows. Diagonals are looked
        at less and less often while they stay.

        Parameters
        ----------
        weights : ndarray of shape (d + 1, B)
        plan : Layout
        work : float
            Multiplications of the passes since the last call.
        """
        self.work += work
        rows = self.rows if self.exact else self.sample
        least = self._cost(rows, plan) if self.full else 2 * self.looked
        if self.inverse is None or _SHARE * self.work >= least:
            now = self.probe.curvatures(weights, plan, self.sums)
            self.looked = self.work
            if self._drifted(now):
                self._renew(now, weights, plan, rows)
        assert self.inverse is not None
        return self.inverse

    def sharper(
        self, weights: Floats, plan: Layout, *, ahead: float
    ) -> Preconditioner | None:
        """One from all rows, where that takes less than the passes it would save.

        Parameters
        ----------
        weights : ndarray of shape (d + 1, B)
        plan : Layout
        ahead : float
            Multiplications of the passes still to come at the present pace, beyond those
            that exact Hessians would need too.
        """
        if not self.full or ahead <= self._cost(self.rows, plan):
            return None
        now = self.probe.curvatures(weights, plan, self.sums)
        if self.exact and not self._drifted(now):
            return None
        self._renew(now, weights, plan, self.rows)
        return self.inverse

    def own_hessians(self, plan: Layout) -> bool:
        """Whether every column has a Hessian to itself, and is a unit by itself."""
        assert self.hessians is not None
        return len(self.hessians.matrices) == plan.width == len(plan.units)

    def covers_row_sets(self) -> bool:
        """Whether the sample has rows of every row set."""
        return bool((self.sample.map_reduce(weight_sums, np.add) > 0).all())

    def along(
        self, weights: Floats, directions: Floats, plan: Layout
    ) -> NDArray[np.float64]:
        """Second derivatives of the units' objectives, about, (U,).

        Parameters
        ----------
        weights, directions : ndarray of shape (d + 1, B)
        plan : Layout
        """
        now = self.probe.curvatures(weights, plan, self.sums)
        loss = self.probe.along(now, directions) * self.rows.n
        squares = np.einsum("ij,ij->j", directions[:-1], directions[:-1], dtype=np.float64)
        held = plan.l2 * squares + plan.intercept_l2 * directions[-1].astype(float) ** 2
        return plan.unit_sum(loss + held)

    def _drifted(self, now: Floats) -> bool:
        return self.seen is None or bool(distance(now, self.seen).max() > DRIFT)

    def _cost(self, rows: Rows, plan: Layout) -> float:
        """Multiplications that new Hessians from ``rows`` take."""
        if self.hessians is None:
            return min(self._groups(plan), len(plan.units)) * gram_work(rows)
        return len(self.hessians.matrices) * gram_work(rows)

    def _renew(self, now: Floats, weights: Floats, plan: Layout, rows: Rows) -> None:
        self.seen, self.work, self.looked = now, 0.0, 0.0
        self.exact = rows.n == self.rows.n
        if not self.full:
            self.inverse = self._diagonal(now, plan)
            return
        group = group_columns(now, self._groups(plan))
        moments = None if self.exact else self.moments
        self.hessians = shared_hessians(rows, moments, weights, plan, group)
        self.inverse = self._factors(plan)

    def _groups(self, plan: Layout) -> int:
        """So many groups at most that their Hessians cost less than a pass, or nothing."""
        one = gram_work(self.sample) or 1.0  # rows without entries take no work
        affordable = 1.4 * self.rows.nonzero * max(plan.width, 8) / one
        return int(max(np.clip(affordable, 1, MAX_GROUPS), min(_TRIFLE / one, 64)))

    def _diagonal(self, now: Floats, plan: Layout) -> Diagonal:
        # Row weights average to the row set's share of the rows.
        mean = mean_over(now) * self.rows.n
        squares = np.append(self.moments.squares, 1.0)
        return Diagonal(squares, mean, plan.l2, plan.intercept_l2)

    def _factors(self, plan: Layout) -> Factors:
        assert self.hessians is not None
        d = self.sample.d + 1
        limit = int(self.rows.n * plan.width / d**2)
        limit = max(limit, int(_TRIFLE / d**3)) // len(self.hessians.matrices)
        kinds = kinds_of(self.hessians.group, plan, max(limit, _FEWEST_FACTORS))
        return factorise(self.hessians, kinds, local_executor(self.sample))

    def take(self, columns: Indices) -> None:
        """Go on with some columns only."""
        if self.inverse is not None:
            self.inverse = self.inverse.take(columns)
            assert self.seen is not None
            self.seen = self.seen[:, columns]
        if self.hessians is not None:
            self.hessians = self.hessians.take(columns)

    def forget(self) -> None:
        """Make a new preconditioner at the next call: the columns are others."""
        self.seen = self.hessians = self.inverse = None
        self.exact = False

    def state(self) -> dict[str, Any]:
        """Plain arrays and numbers."""
        names = "work", "looked", "exact"
        out: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.inverse is not None:
            out["seen"] = self.seen
        if self.hessians is not None:
            assert isinstance(self.inverse, Factors)
            out["matrices"], out["group"] = self.hessians.matrices, self.hessians.group
            out["kinds"] = self.inverse.kinds
        return out

    def restore(self, state: Mapping[str, Any], plan: Layout) -> None:
        """Go on from `state`; factors are made again."""
        self.forget()
        self.work, self.looked = float(state["work"]), float(state["looked"])
        self.exact = bool(state["exact"])
        if "seen" in state:
            self.seen = np.asarray(state["seen"])
        if "matrices" in state:
            self.hessians = Hessians(
                np.asarray(state["matrices"]), np.asarray(state["group"])
            )
            kinds = np.asarray(state["kinds"])
            self.inverse = factorise(self.hessians, kinds, local_executor(self.sample))
        elif self.seen is not None:
            self.inverse = self._diagonal(self.seen, plan)
