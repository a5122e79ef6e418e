"""Linear models with an L1 penalty: a working set of columns, Newton steps, a dual gap.

Of many columns few have a weight in the end. Each round looks at the gradient of all, takes
those that have a weight and those that violate their optimality most, at most twice as many
as had one, and minimises over these alone (Massias, Gramfort, Salmon, "Celer: a fast solver
for the Lasso with dual extrapolation", ICML 2018). The subproblem is that of a Newton step
(Lee, Sun, Saunders, "Proximal Newton-type methods", SIAM J. Optim. 24, 2014; Yuan, Ho, Lin,
"An improved GLMNET for L1-regularized logistic regression", JMLR 13, 2012), solved by
`mlopt.kernels.shrinkage` and Anderson's extrapolation of its sweeps, or, of more columns
than rows, by steps in the rows' unknowns (`mlopt.gd.subproblem.ByDual`): of least squares a
round then goes no farther than to a minimum nearby, since other columns matter there.

The gap is that of a feasible dual point, so that it is a bound, never an estimate.

Shapes: ``n`` rows, ``d`` columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.columns import SHARP
from mlopt.gd.penalty import Penalty
from mlopt.gd.plans.by_columns import Columns
from mlopt.gd.plans.column_products import STEPS, Products, sweeps_worth_step
from mlopt.gd.plans.stop import Minimum, RelativeGap
from mlopt.gd.quadratic import Quadratic
from mlopt.gd.sizes import ROUNDED, ROUNDINGS, SUFFICIENT
from mlopt.gd.subproblem import NEAR, ByDual, ByGram, ByRows, Model
from mlopt.kernels.one_row import combination
from mlopt.kernels.pointwise import losses_and_slopes
from mlopt.kernels.shrinkage import column_moments, descend_gram
from mlopt.locking import cached_property
from mlopt.prices import count, price

Array = NDArray[np.float64]
Late = Callable[[], bool]
Indices = NDArray[np.int64]
Limits = tuple[float, int]
"""How far columns may stay from their optimum, and sweeps."""

WAY = "working-set"
"""The name of the method, in plans."""
LOSSES = tuple(loss for loss in SHARP if loss != "multinomial")
"""What it can minimise; softmax is in `mlopt.gd.softmax_working_set`."""
_FINER = 0.01
"""Of the tolerance: see `settle`. Steps so short that rows with weights and rows repeated
lead to predictions that agree to 1e-7, as scikit-learn's checks of estimators ask for."""
_FEWEST = count("columns.working-set")
_SWEEPS = count("columns.sweeps")
_CLOSER = price("columns.closer")
_TRIFLE = price("columns.trifle")
FLAT = {"logistic": 1e-10, "multinomial": 1e-10, "squared_hinge": 1e-3}
"""Least curvature of a row's loss: Newton's model needs some, the more where the curvature
jumps to zero at the edge of the margin."""
_HALVINGS = 40
"""Of a step that does not keep its promise: it is nothing then."""
_CENTRED = 1e-13
"""Share of the slopes that need not cancel where the intercept is optimal."""
_TURNS = 20
"""Newton steps along the intercept: each doubles the digits."""

_TINY = float(np.finfo(np.float64).tiny)
_EPSILON = float(np.finfo(np.float64).eps)
_ROUNDING = 2 * ROUNDINGS * _EPSILON
"""Of the objective: a step that promises less cannot be judged by it, and is taken."""
_PATIENCE = 5
"""Rounds without a smaller gap or objective after which rounding keeps it from its
tolerance; and of sweeps that creep, after which rows' unknowns are tried."""


class WorkingSet:
    """One model, and its way along a path of penalties.

    Parameters
    ----------
    columns : Columns
    loss : str
        One of `LOSSES`.
    intercept : bool
    start : (w, b), optional
        Weights (d,) and an intercept; zeros otherwise.

    Attributes
    ----------
    w : ndarray of shape (d,)
    gap : float
        A bound of how far the objective is above its minimum.
    sweeps, rounds : int
        Sweeps over working sets, and gradients of all columns, so far.
    """

    def __init__(
        self,
        columns: Columns,
        loss: str,
        *,
        intercept: bool,
        start: tuple[Array, float] | None = None,
    ) -> None:
        self._columns, self._loss, self._intercept = columns, loss, intercept
        self.w, self._b = self._begun(start)
        self.gap, self.sweeps, self.rounds, self._round = np.inf, 0, 0, 0
        self._work, self._started = 0.0, bool(self.w.any())
        self._known: Quadratic | None = None
        self._look()

    def _begun(self, start: tuple[Array, Any] | None) -> tuple[Array, Any]:
        """Weights and the intercept of the columns as they are here."""
        if start is None:
            return np.zeros(self._columns.X.shape[0]), 0.0
        w = np.array(start[0], np.float64)
        at_means = start[1] + float(self._columns.centre @ w) - self._columns.about
        mean, idle = self._idle
        at_means, w[idle] = at_means + float(mean @ w[idle]), 0.0
        return w, at_means if self._intercept else 0.0

    @property
    def _idle(self) -> tuple[Array, Indices]:
        """Columns that never vary beside the intercept, and their means: sweeps pass them
        by, and their best weights are 0.
        """
        mean, H = self._about_means(*self._columns.moments, 1.0)
        idle = np.flatnonzero(H == 0)
        return mean[idle], idle

    def _look(self) -> None:
        """Margins of the present weights, and the intercept that is best beside them."""
        self._stale = False
        self._z = self._margins(self.w) + self._b
        self._refresh()
        self._centre()

    def _margins(self, w: Array) -> Array:
        """What weights make of the rows, without an intercept."""
        return combination(self._columns.X, w)

    def _tidy(self, penalty: Penalty) -> None:
        """Weights that mean the same and cost no more."""

    def _gradient(self) -> Array:
        """Of the loss, along all weights."""
        return self._columns.times(self._slopes)

    @property
    def intercept(self) -> Any:
        """The intercept for rows as they were given."""
        return self._b + self._columns.about - float(self._columns.centre @ self.w)

    @property
    def loss(self) -> float:
        """The mean loss."""
        return float(self._values @ self._columns.c)

    @property
    def steps(self) -> int:
        """What limits count, as scikit-learn's: of least squares sweeps over all columns, a
        working set's as its share of them and a round as one at least, for its gradient;
        LIBLINEAR's Newton steps of classes, each of as many sweeps as it needs."""
        return int(np.ceil(self._work)) if self._loss == "squared" else self.rounds

    def solve(
        self, penalty: Penalty, gap: float, steps: int, *, relative: bool = False,
        still: float = np.inf, late: Late | None = None,
    ) -> bool:  # fmt: skip
        """Minimise from where it is until the gap is at most ``gap``.

        Parameters
        ----------
        penalty : Penalty
        gap : float
            Of the objective, the mean loss plus the penalty.
        steps : int
            At most so many more.
        relative : bool, default=False
            Whether ``gap`` is a share of the objective.
        still : float, optional
            And until no step along one column is longer than so many times the largest
            weight: a small gap alone leaves small weights anywhere.
        late : callable, optional
            Whether time is up: no other round is begun then.

        Returns
        -------
        bool
            Whether it got there.
        """
        if penalty.positive and (self.w < 0).any():
            self.w = np.maximum(self.w, 0.0)
            self._look()
        if self._loss in FLAT and not self.rounds and self.w.any():
            self._leave_bad_start(penalty)
        self._work, self._creeps = float(self.steps), 0
        self._far = NEAR[int(penalty.l2 > 0)]
        end, last, least, lowest = self.steps + steps, self.rounds, np.inf, np.inf
        if late is None or not late():
            known = self._quadratic()
            if known and self._by_products(known, penalty, gap, relative, still, steps):
                return True
        if self._stale:
            self._look()
        while True:
            self._tidy(penalty)
            gradient = self._gradient()
            violations = penalty.violations(self.w, gradient)
            self.gap = self._dual_gap(penalty, gradient)
            value = self.loss + penalty.value(self.w)
            wanted = gap * value if relative else gap
            fell = lowest - value > max(_ROUNDING * value, _TRIFLE**2 * self.gap)
            if fell or self.gap < (1.0 - _TRIFLE) * least:
                last = self.rounds
            least, lowest = min(least, self.gap), min(lowest, value)
            if self.gap <= wanted and self._is_still(violations, still):
                return True
            stuck = self.rounds - last >= _PATIENCE
            if stuck or self.steps >= end or (late is not None and late()):
                return bool(self.gap <= max(wanted, ROUNDED * value))
            chosen = _working(self.w, violations)
            self.rounds += 1
            share, before = len(chosen) / len(self.w), self.sweeps
            left = (end - self._work) / share if self._loss == "squared" else _SWEEPS
            limits = _CLOSER * float(violations.max()), int(np.ceil(left))
            improved = self._improve(penalty, gradient, chosen, limits)
            took = max((self.sweeps - before) * share, 1.0)
            self._work = min(self._work + took, end)
            if not improved:
                return False

    def settle(
        self, penalty: Penalty, stop: Minimum, steps: int, late: Late | None = None
    ) -> bool:
        """As `solve`, to a relative gap, or to what an estimator's ``tol`` asks for.

        Least squares: a gap of ``tol`` times the spread of y, and no step along a column
        longer than ``tol / 100`` times the largest weight. Classes: a gap of ``tol / 100``
        of the objective, 1e-6 as a rule, which leaves some 1e-3 of a coefficient.
        """
        if isinstance(stop, RelativeGap):
            asked = stop.tolerance
            return self.solve(penalty, asked, steps, relative=True, late=late)
        tol = stop.tol
        if self._loss == "squared":
            wanted = tol * self._columns.spread(self._intercept)
            finer = _FINER * tol
            return self.solve(penalty, wanted, steps, still=finer, late=late)
        return self.solve(penalty, _FINER * tol, steps, relative=True, late=late)

    def _leave_bad_start(self, penalty: Penalty) -> None:
        """For zeros if these are better: where rows are far off, curvature says nothing."""
        start, value = (self.w, self._b), self.loss + penalty.value(self.w)
        self.w, self._b = self._begun(None)
        self._look()
        if self.loss > value:
            self.w, self._b = start
            self._look()

    def _quadratic(self) -> Quadratic | None:
        """The loss by products of all columns: least squares, where these are known."""
        whole = self._columns.products.whole if self._loss == "squared" else None
        if whole is not None and self._known is None:
            weight = self._weight(self._columns.uniform)
            mean, H = self._about_means(*self._columns.moments, weight)
            Q = self._centred(whole.copy(), weight, mean, H)
            now = self.w, self._gradient(), self.loss, self._b
            self._known = Quadratic(Q, mean, *now)
        return self._known

    def _centred(self, Q: Array, weight: float, mean: Array, H: Array) -> Array:
        """Products of columns less their means, with curvatures along them, in the place
        of those of columns."""
        if self._intercept:
            Q -= weight * np.outer(mean, mean)
        Q[np.diag_indices_from(Q)] = H
        return Q

    def _by_products(
        self, known: Quadratic, penalty: Penalty, gap: float, relative: bool, still: float,
        most: int,
    ) -> bool:  # fmt: skip
        """Along all columns by their products as far as sweeps get; whether that is there.
        If not, rounds see the rest.
        """
        g, loss = known.at(self.w)
        w, before = self.w.copy(), loss + penalty.value(self.w)
        # Where sweeps creep, half of the steps are for rounds, which extrapolate.
        visits = descend_gram(
            known.Q, l1=penalty.l1, l2=penalty.l2, positive=penalty.positive, g=g, w=w,
            gap=gap * (before if relative else 1.0), still=still,
            most=min(most // 2, _SWEEPS),
        )  # fmt: skip
        self.sweeps += int(np.ceil(visits / len(w)))
        self._work += visits / len(w)
        self._stale = True
        g, loss = known.at(w)
        value = loss + penalty.value(w)
        if not value <= before * (1.0 + _ROUNDING):
            return False  # products had lost their digits
        self.w, self._b, self.gap = w, known.intercept(w), known.gap(penalty, w, g, loss)
        wanted = gap * value if relative else gap
        there = known.tells(wanted) and self.gap <= wanted
        return there and self._is_still(penalty.violations(w, g), still)

    def _is_still(self, violations: Array, most: float) -> bool:
        if np.isinf(most):
            return True
        H = self._lengths
        steps = np.divide(violations, H, out=np.zeros_like(H), where=H > 0)
        return bool(steps.max() <= most * np.abs(self.w).max())

    @cached_property
    def _lengths(self) -> Array:
        """Squared lengths of columns, less their means."""
        return self._about_means(*self._columns.moments, 1.0)[1]

    def _refresh(self) -> None:
        values, slopes = losses_and_slopes(self._loss, self._z, self._columns.y)
        self._values, self._raw = values, slopes
        self._slopes = slopes * self._columns.c

    def _curvatures(self) -> Array:
        """Second derivatives times weights, (n,), or (1,) where all are one."""
        c, raw = self._columns.c, self._raw
        if self._loss == "squared":
            return self._columns.uniform
        if self._loss == "logistic":
            h = np.asarray(np.abs(raw) * (1.0 - np.abs(raw)))
        else:
            h = 2.0 * (raw != 0)
        return np.asarray(np.maximum(h, FLAT[self._loss]) * c)

    def _weight(self, h: Array) -> float:
        """The sum of all rows' curvatures."""
        return float(np.broadcast_to(h, self._z.shape).sum())

    def _about_means(
        self, sums: Array, squares: Array, weight: float
    ) -> tuple[Array, Array]:
        """Means of columns, and curvatures along the columns less these."""
        mean = sums / weight if self._intercept else np.zeros_like(sums)
        H = np.maximum(squares - weight * mean**2, 0.0)
        H[_EPSILON * squares >= H] = 0.0  # constant: the intercept's
        return mean, H

    def _centre(self) -> None:
        """Newton steps along the intercept until slopes cancel."""
        for _ in range(_TURNS if self._intercept else 0):
            total = self._slopes.sum(axis=-1)
            before = float(np.abs(total).max())
            if before <= _CENTRED * float(np.abs(self._slopes).sum()):
                return
            if not self._shift(self._best_shift(total), before):
                return

    def _best_shift(self, total: Any) -> Any:
        """Newton's step along the intercept, from the sum of the slopes."""
        return -total / self._weight(self._curvatures())

    def _shift(self, step: Any, before: float) -> bool:
        """Move the intercept; whether slopes cancel better: too far may lead anywhere."""
        z, b = self._z, self._b
        for _ in range(_HALVINGS):
            self._z, self._b = z + step, b + step
            self._refresh()
            if float(np.abs(self._slopes.sum(axis=-1)).max()) < before:
                return True
            step *= 0.5
        self._z, self._b = z, b
        self._refresh()
        return False

    def _improve(
        self, penalty: Penalty, gradient: Array, chosen: Indices, limits: Limits
    ) -> bool:
        """A Newton step over the chosen columns; whether the objective fell."""
        old, before = self.w, self.loss + penalty.value(self.w)
        step, along, shift = self._newton(penalty, gradient, chosen, limits)
        promised = float(gradient @ step)
        promised += float(np.vdot(self._slopes.sum(axis=-1), shift))
        promised += penalty.value(old + step) - penalty.value(old)
        rounding = _ROUNDING * abs(before)
        before += rounding
        z, b, share = self._z, self._b, 1.0
        for _ in range(_HALVINGS):
            self.w, self._z = old + share * step, z + share * along
            self._b = b + share * shift
            self._refresh()
            now = self.loss + penalty.value(self.w)
            fell = now <= before + SUFFICIENT * share * min(promised, 0.0)
            if fell or abs(promised) <= rounding:
                self._centre()
                return True
            share *= 0.5
        self.w, self._z, self._b = old, z, b
        self._refresh()
        return False

    def _newton(
        self, penalty: Penalty, gradient: Array, chosen: Indices, limits: Limits
    ) -> tuple[Array, Array, Any]:
        """What the quadratic model adds to weights, margins, and the intercept."""
        h = self._curvatures()
        weight = self._weight(h)
        mean, H = self._about_means(*self._moments(chosen, h), weight)
        model = Model(self._columns.X, chosen, h, weight, mean, H)
        step, before = np.zeros_like(self.w), self.sweeps
        step[chosen] = self._minimised(penalty, gradient, model, limits) - self.w[chosen]
        self._round = self.sweeps - before
        shift = -float(mean @ step)
        return step, self._margins(step) + shift, shift

    def _minimised(
        self, penalty: Penalty, gradient: Array, model: Model, limits: Limits
    ) -> Array:
        """Weights of the chosen columns: by rows until products would have paid."""
        (tolerance, most), chosen, w = limits, model.chosen, self.w[model.chosen]
        once = self._loss == "squared"
        products = self._columns.products if once else Products(model.X, model.h)
        price, step = products.sweeps_worth(chosen), sweeps_worth_step(model.X, chosen)
        by_dual = step < np.inf and (self._creeps >= _PATIENCE or STEPS * step <= price)
        price = min(price, STEPS * step)
        start = self.w, self._slopes
        told = by_dual and self._started  # which columns have a weight
        if price > (self.sweeps if once else self._round) and not told:
            rows = ByRows(penalty, model, *start)
            sweeps, done = rows.minimise(tolerance, int(np.ceil(min(most, price))))
            self.sweeps, w, most = self.sweeps + sweeps, rows.w, most - sweeps
            if done or not most:
                return w
            start = rows.reached()
        if by_dual:
            dual = ByDual(penalty, model, *start, self._far)
            most = int(np.ceil(most / step))
            steps, _ = dual.minimise(tolerance, most, nearby=once)
            self.sweeps, self._far = self.sweeps + int(np.ceil(steps * step)), dual.far
            return dual.w
        Q = products.of(chosen)
        Q = self._centred(Q, model.weight, model.mean[chosen], model.H[chosen])
        g = gradient[chosen] + Q @ (w - self.w[chosen])
        by_gram = ByGram(penalty, Q, w, g)
        sweeps, done = by_gram.minimise(tolerance, min(most, _SWEEPS))
        self.sweeps, self._creeps = self.sweeps + sweeps, (self._creeps + 1) * (not done)
        return by_gram.w

    def _moments(self, chosen: Indices, h: Array) -> tuple[Array, Array]:
        """Sums of columns and of their squares, weighted by ``h``."""
        if self._loss != "squared":
            return column_moments(self._columns.X, chosen, h)
        return self._columns.moments

    def _dual_gap(self, penalty: Penalty, gradient: Array) -> float:
        primal = self.loss + penalty.value(self.w)
        shares = {penalty.within(-gradient)}
        if penalty.l2 > 0:
            shares.add(1.0)
        dual = max(
            -self._conjugate(share) - penalty.conjugate(-share * gradient * (1.0 - ROUNDED))
            for share in shares
        )
        return max(primal - dual, 0.0)

    def _conjugate(self, share: float) -> float:
        """The mean of the losses' conjugates at ``share`` of the slopes."""
        s, y = share * self._raw, self._columns.y
        if self._loss == "logistic":
            p = np.abs(s)
            p, q = np.maximum(p, _TINY), np.maximum(1.0 - p, _TINY)
            found = p * np.log(p) + q * np.log(q)
        elif self._loss == "squared_hinge":
            found = 0.25 * s**2 - np.abs(s)
        else:
            found = 0.5 * s**2 + s * y
        return float(found @ self._columns.c)


def _working(w: Array, violations: Array) -> Indices:
    """Columns with a weight, and those that violate most; in order."""
    support = w != 0
    size = min(max(_FEWEST, 2 * int(support.sum())), len(w))
    rank = np.where(support, np.inf, violations)
    chosen = np.argpartition(-rank, size - 1)[:size] if size < len(w) else np.arange(size)
    return np.sort(chosen[rank[chosen] > 0])
