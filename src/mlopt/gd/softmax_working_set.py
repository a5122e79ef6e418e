"""Softmax with an L1 penalty, by the working sets of `mlopt.gd.working_set`.

A weight of a class at a column is an entry of its own: some are in the working set, others
of the same column are not. Newton's model has the exact Hessian, in which classes meet
through their probabilities ``p``: ``sum_i c_i p_ik (1[k = l] - p_il) x_ij x_im`` for the
entries (k, j) and (l, m); the intercepts of all classes are eliminated together. Its dual
point is ``p - 1[y]``, whose conjugate is an entropy.

Shapes: ``n`` rows, ``d`` columns, ``K`` classes. Weights are (K d,), class after class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from mlopt.gd.penalty import Penalty
from mlopt.gd.plans.by_columns import Columns
from mlopt.gd.plans.column_products import gram, stacked, sweeps_worth
from mlopt.gd.sizes import ROUNDED
from mlopt.gd.subproblem import ByClasses, ByGram, Model
from mlopt.gd.working_set import FLAT, Indices, Limits, WorkingSet
from mlopt.kernels.one_row import combination

Array = NDArray[np.float64]

_FARTHEST = 10.0
"""Of a step along intercepts, beside the margins: probabilities of 1e-4 change places."""


class SoftmaxWorkingSet(WorkingSet):
    """One model of K classes, and its way along a path of penalties.

    Parameters
    ----------
    columns : Columns
        ``y`` are classes, 0 to K - 1.
    classes : int
        K.
    intercept : bool
    start : (W, b), optional
        Weights (K, d) and intercepts (K,); zeros otherwise.
    """

    def __init__(
        self,
        columns: Columns,
        classes: int,
        *,
        intercept: bool,
        start: tuple[Array, Any] | None = None,
    ) -> None:
        self._classes, self._own = classes, columns.y.astype(np.intp)
        self._every = np.arange(len(self._own))
        super().__init__(columns, "multinomial", intercept=intercept, start=start)

    def _begun(self, start: tuple[Array, Any] | None) -> tuple[Array, Any]:
        shape = self._classes, self._columns.X.shape[0]
        if start is None:
            return np.zeros(shape).ravel(), np.zeros((shape[0], 1))
        W = np.array(start[0], np.float64).reshape(shape)
        mean, idle = self._idle
        b = np.asarray(start[1]) + W @ self._columns.centre + W[:, idle] @ mean
        W[:, idle] = 0.0
        return W.ravel(), b[:, None] if self._intercept else np.zeros((shape[0], 1))

    def _by_class(self, w: Array) -> Array:
        return w.reshape(self._classes, -1)

    @property
    def intercept(self) -> Array:
        """The intercepts (K,) for rows as they were given."""
        off = self._by_class(self.w) @ self._columns.centre
        return np.asarray(self._b[:, 0] - off)

    def _margins(self, w: Array) -> Array:
        X, W = self._columns.X, self._by_class(w)
        used = np.flatnonzero(W.any(axis=0))
        if isinstance(X, np.ndarray) and X.dtype == W.dtype:
            few = len(used) < len(X)
            return np.asarray(W[:, used] @ X[used] if few else W @ X)
        return np.stack([combination(X, one) for one in W])

    def _tidy(self, penalty: Penalty) -> None:
        """What all classes share softmax does not see: around a median L1 is least.

        Around the lower one of two, so that the minimum is one point, with a zero in it.
        """
        W = self._by_class(self.w)
        full = np.flatnonzero(W.all(axis=0))
        if penalty.l2 == 0 and len(full):
            middle = 0 if penalty.positive else (self._classes - 1) // 2
            self.w = self.w.copy()
            shared = np.partition(W[:, full], middle, axis=0)[middle]
            self._by_class(self.w)[:, full] -= shared

    def _gradient(self) -> Array:
        X = self._columns.X
        if isinstance(X, np.ndarray) and X.dtype == self._slopes.dtype:
            return np.asarray(self._slopes @ X.T).ravel()
        return np.concatenate([self._columns.times(one) for one in self._slopes])

    def _refresh(self) -> None:
        at_own = self._own, self._every
        top = self._z.max(axis=0)
        self._p = np.exp(self._z - top)
        total = self._p.sum(axis=0)
        self._p /= total
        self._values = top - self._z[at_own] + np.log(total)
        self._raw = self._p.copy()
        self._raw[at_own] = 0.0
        self._raw[at_own] = -self._raw.sum(axis=0)  # p - 1, without its rounding
        self._slopes = self._raw * self._columns.c

    def _curvatures(self) -> Array:
        p = self._p
        return np.asarray(np.maximum(p * (1.0 - p), FLAT[self._loss]) * self._columns.c)

    def _best_shift(self, total: Array) -> Array:
        step = -self._inverse() @ total[:, None]
        # Where every row is certain of a class, the Hessian says nothing.
        most = _FARTHEST + float(np.ptp(self._z, axis=0).max())
        size = float(np.abs(step).max())
        return step * (most / size) if size > most else step

    def _inverse(self, own: Array | None = None) -> Array:
        """Of the Hessian of the intercepts, where these sum to 0: elsewhere it is flat.

        ``own`` (K,) are other curvatures along each.
        """
        S = -(self._p * self._columns.c) @ self._p.T
        S[np.diag_indices_from(S)] = 0.0
        S[np.diag_indices_from(S)] = -S.sum(axis=1) if own is None else own
        flat = float(S.trace()) / len(S) ** 2
        return np.asarray(np.linalg.pinv(S + flat, hermitian=True))

    def _newton(
        self, penalty: Penalty, gradient: Array, chosen: Indices, limits: Limits
    ) -> tuple[Array, Array, Array]:
        step, before = np.zeros_like(self.w), self.sweeps
        h, eliminated = self._curvatures(), np.zeros((self._classes,) * 2)
        if self._intercept:
            eliminated = self._inverse(h.sum(axis=1))
        found = self._entries(penalty, gradient, chosen, limits, h, eliminated)
        step[chosen] = found - self.w[chosen]
        self._round = self.sweeps - before
        along = self._margins(step)
        p = self._p
        sums = (p * (along - (p * along).sum(axis=0))) @ self._columns.c
        shift = -eliminated @ sums[:, None]
        return step, along + shift, shift

    def _entries(
        self, penalty: Penalty, gradient: Array, chosen: Indices, limits: Limits, h: Array,
        eliminated: Array,
    ) -> Array:  # fmt: skip
        """The chosen weights: by rows until products would have paid."""
        (tolerance, most), w, X = limits, self.w[chosen], self._columns.X
        d = X.shape[0]
        ends = np.searchsorted(chosen, d * np.arange(1, self._classes))
        parts = [part % d for part in np.split(chosen, ends)]
        price = sweeps_worth(X, chosen % d, len(chosen), 0)
        if price > self._round:
            rows = ByClasses(
                penalty, [self._model(*each) for each in zip(parts, h, strict=True)],
                self._by_class(self.w), self._slopes, self._p, self._columns.c,
                eliminated,
            )  # fmt: skip
            sweeps, done = rows.minimise(tolerance, int(np.ceil(min(most, price))))
            self.sweeps, w, most = self.sweeps + sweeps, rows.w, most - sweeps
            if done or not most:
                return w
        Q = self._products(parts, h, eliminated)
        g = gradient[chosen] + Q @ (w - self.w[chosen])
        by_gram = ByGram(penalty, Q, w, g)
        self.sweeps += by_gram.minimise(tolerance, most)[0]
        return by_gram.w

    def _model(self, columns: Indices, h: Array) -> Model:
        """Of one class, beside the others as they are."""
        weight = self._weight(h)
        mean, H = self._about_means(*self._moments(columns, h), weight)
        return Model(self._columns.X, columns, h, weight, mean, H)

    def _weight(self, h: Array) -> float:
        return float(h.sum())

    def _products(self, parts: list[Indices], h: Array, eliminated: Array) -> Array:
        """The Hessian along chosen entries, the intercepts eliminated."""
        X, roots = self._columns.X, np.sqrt(self._columns.c) * self._p
        Q, M = (-found for found in stacked(X, parts, roots))
        ends = np.cumsum([0, *map(len, parts)])
        for k, one in enumerate(parts):
            mine = slice(ends[k], ends[k + 1])
            if len(one):
                Q[mine, mine] = gram(X, one, one, h[k])
                M[mine, k] = self._moments(one, h[k])[0][one]
        if self._intercept:
            alone = Q.diagonal().copy()
            Q -= M @ eliminated @ M.T
            left = Q.diagonal()
            Q[np.diag_indices_from(Q)] = np.where(left > ROUNDED * alone, left, 0.0)
        return Q

    def _conjugate(self, share: float) -> float:
        q = share * self._raw
        q[self._own, self._every] += 1.0
        q = np.maximum(q, 0.0)
        return float(xlogy(q, q).sum(axis=0) @ self._columns.c)
