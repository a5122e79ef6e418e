"""The quadratic model of a round over its working set, column by column to its minimum.

By rows a visit of a column costs its values twice. By the Gram matrix of the set it costs
as many numbers as the set has columns, and where the weight stays none; the matrix costs
what BLAS takes for it, once.

Shapes: ``n`` rows, ``d`` columns, ``k`` of them chosen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from mlopt.gd.penalty import Penalty
from mlopt.gd.plans.column_products import PRODUCTS
from mlopt.gd.plans.extrapolation import MEMORY, mixture
from mlopt.gd.sizes import HALF, LOST, SUFFICIENT
from mlopt.kernels.shrinkage import shrink, shrink_gram
from mlopt.prices import count, price

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

NEAR = (price("columns.near"), price("columns.near-with-l2"))
"""How far a minimum is looked for at first, without and with an L2 penalty."""
_FARTHER = price("columns.farther")
_MANY = count("columns.near-steps")
_EXACT = 0.1
"""How exact a minimum nearby is, as a share of what being nearby changes."""


@dataclass(frozen=True, eq=False)
class Model:
    """The loss of a Newton step around the present point, an intercept eliminated.

    Attributes
    ----------
    X : ndarray or CSR array of shape (d, n)
        All columns.
    chosen : ndarray of shape (k,)
    h : ndarray of shape (n,) or (1,)
        Curvatures of the rows' losses times their weights; one where all are the same.
    weight : float
        Their sum over all rows.
    mean : ndarray of shape (d,)
        Means of the columns with weights ``h``; zeros without an intercept.
    H : ndarray of shape (d,)
        Curvatures along the columns less their means; 0 for what is left out.
    """

    X: Any
    chosen: Indices
    h: Array
    weight: float
    mean: Array
    H: Array


class Descent(ABC):
    """Sweeps over the chosen columns, and Anderson's extrapolation of them.

    Attributes
    ----------
    w : ndarray of shape (k,)
        Weights of the chosen columns.
    """

    def __init__(self, penalty: Penalty, w: Array) -> None:
        self._penalty = penalty
        self.w = w

    def minimise(self, tolerance: float, most: int) -> tuple[int, bool]:
        """Sweeps until no column is farther from its optimum than ``tolerance``.

        Returns
        -------
        sweeps : int
        done : bool
        """
        past = [self._point()]
        for sweep in range(1, most + 1):
            if self._sweep() <= tolerance:
                return sweep, True
            past.append(self._point())
            if len(past) > MEMORY:
                self._extrapolate(np.array(past))
                past = [self._point()]
        return most, False

    def _extrapolate(self, past: Array) -> None:
        share = mixture(past[:, : len(self.w)])
        if share is None:
            return
        kept = past[-1]
        with np.errstate(over="ignore", invalid="ignore"):  # then refused
            before = self._value()
            self._put(share @ past[1:])
            refused = self._penalty.positive and (self.w < 0).any()
            if refused or not self._value() < before:
                self._put(kept)

    @abstractmethod
    def _sweep(self) -> float:
        """Visit every column; how far one was from its optimum, at most."""

    @abstractmethod
    def _point(self) -> Array:
        """All that a sweep changes: the weights first, the rest affine in them."""

    @abstractmethod
    def _put(self, point: Array) -> None:
        """Go to such a point."""

    @abstractmethod
    def _value(self) -> float:
        """The model and the penalty, up to a constant."""


class ByRows(Descent):
    """Columns as they are; ``slopes`` (n,) and ``shift`` (1,) follow the weights.

    Those of row i are ``slopes[i] + shift[0] h_i``.
    """

    def __init__(self, penalty: Penalty, model: Model, w: Array, slopes: Array) -> None:
        super().__init__(penalty, w[model.chosen])
        self._model, self._all = model, w.copy()
        self._inverse = np.divide(
            1.0, model.h, out=np.zeros_like(model.h), where=model.h > 0
        )
        self.slopes, self.shift = slopes.copy(), np.zeros(1)

    def visit(self, slopes: Array) -> float:
        """One sweep with slopes (n,) that something else has moved."""
        self.slopes[:], self.shift[:] = slopes, 0.0
        return self._sweep()

    def reached(self) -> tuple[Array, Array]:
        """All weights (d,), and slopes (n,)."""
        return self._all, self.slopes + self.shift[0] * self._model.h

    def take(self, w: Array) -> None:
        """Other weights of the chosen columns."""
        self.w = self._all[self._model.chosen] = w

    def _sweep(self) -> float:
        model, penalty = self._model, self._penalty
        worst = shrink(
            model.X, model.chosen, h=model.h, weight=model.weight, mean=model.mean,
            H=model.H, l1=penalty.l1, l2=penalty.l2, positive=penalty.positive,
            slopes=self.slopes, shift=self.shift, w=self._all,
        )  # fmt: skip
        self.w = self._all[model.chosen]
        return worst

    def _point(self) -> Array:
        return np.concatenate((self.w, self.shift, self.slopes))

    def _put(self, point: Array) -> None:
        size = len(self.w)
        self.take(point[:size])
        self.shift[:] = point[size]
        self.slopes[:] = point[size + 1 :]

    def _value(self) -> float:
        slopes = self.slopes + self.shift[0] * self._model.h
        own = self._penalty.value(self.w)
        return 0.5 * float((slopes * self._inverse) @ slopes) + own


class ByClasses(Descent):
    """Softmax: class after class by rows, beside the margins of the others as they are.

    The slopes of class k are ``start + h_k z_k - c p_k (sum_l p_l z_l - p_k z_k)``, where
    ``z`` (K, n) is what margins moved by.

    Parameters
    ----------
    penalty : Penalty
    models : list of Model
        Of each class alone, its own intercept eliminated.
    W : ndarray of shape (K, d)
    slopes, p : ndarray of shape (K, n)
        Slopes to begin with, and probabilities.
    c : ndarray of shape (n,)
    inverse : ndarray of shape (K, K)
        Of the Hessian of the intercepts; zeros without.
    """

    def __init__(
        self, penalty: Penalty, models: list[Model], W: Array, slopes: Array, p: Array,
        c: Array, inverse: Array,
    ) -> None:  # fmt: skip
        chosen = [w[model.chosen] for model, w in zip(models, W, strict=True)]
        super().__init__(penalty, np.concatenate(chosen))
        self._ends = np.cumsum([len(part) for part in chosen])[:-1]
        self._parts = [
            ByRows(penalty, *each) for each in zip(models, W, slopes, strict=True)
        ]
        self._start, self._p, self._cp, self._inverse = slopes, p, c * p, inverse
        self._h = np.array([model.h for model in models])
        self._z, self._mean = np.zeros_like(p), np.zeros_like(c)

    def _slopes(self, k: int) -> Array:
        """Of class k, less those to begin with."""
        others = self._mean - self._p[k] * self._z[k]
        return np.asarray(self._h[k] * self._z[k] - self._cp[k] * others)

    def _sweep(self) -> float:
        worst = 0.0
        for k, part in enumerate(self._parts):
            if len(part.w):
                before = self._start[k] + self._slopes(k)
                # The others have moved since intercepts were the best: its own comes first.
                first = self._first(before, self._h[k])
                before += first * self._h[k]
                self._z[k] += first
                self._mean += first * self._p[k]
                worst = max(worst, part.visit(before))
                along = (part.slopes - before) / self._h[k] + part.shift
                self._z[k] += along
                self._mean += self._p[k] * along
        self.w = np.concatenate([part.w for part in self._parts])
        sums = (self._cp * (self._z - self._mean)).sum(axis=1)
        self._z -= (self._inverse @ sums)[:, None]
        self._mean = (self._p * self._z).sum(axis=0)
        return worst

    def _first(self, slopes: Array, h: Array) -> float:
        """Newton's step along one intercept; none without."""
        return -float(slopes.sum() / h.sum()) if self._inverse.any() else 0.0

    def _point(self) -> Array:
        return np.concatenate((self.w, self._z.ravel()))

    def _put(self, point: Array) -> None:
        self.w = point[: len(self.w)].copy()
        for part, w in zip(self._parts, np.split(self.w, self._ends), strict=True):
            part.take(w)
        self._z = point[len(self.w) :].reshape(self._z.shape).copy()
        self._mean = (self._p * self._z).sum(axis=0)

    def _value(self) -> float:
        moved = sum(float(z @ self._slopes(k)) for k, z in enumerate(self._z))
        linear = float(np.vdot(self._start, self._z))
        return linear + 0.5 * moved + self._penalty.value(self.w)


class ByDual:
    """Where chosen columns are more than rows: an unknown for each row.

        min_u ||u||^2 / 2 - t'u + penalty*(B u)        w = argmax_w  w'B u - penalty(w)

    by Newton's steps, of which a few find out which weights are not 0; ``B`` (k, n) are the
    columns less their means times the roots of ``h``. ``penalty*`` is smooth as long as
    there is an L2 penalty; where it is weak, a minimum nearby is found first, with
    ``sum_j H_j (w_j - w0_j)^2 / (2 far)`` more of a penalty, then another near that one
    (Li, Sun, Toh, "A highly efficient semismooth Newton augmented Lagrangian method for
    solving Lasso problems", SIAM J. Optim. 28, 2018).

    Attributes
    ----------
    w : ndarray of shape (k,)
    far : float
        How far minima are looked for: see `NEAR`.
    """

    def __init__(
        self, penalty: Penalty, model: Model, w: Array, slopes: Array, far: float = NEAR[0]
    ) -> None:
        self._penalty, self.w, self.far = penalty, w[model.chosen], far
        root = np.sqrt(np.broadcast_to(model.h, slopes.shape))
        self._B = (model.X[model.chosen] - model.mean[model.chosen, None]) * root
        self._u = -np.divide(slopes, root, out=np.zeros_like(slopes), where=root > 0)
        self._t = self._u + self._B.T @ self.w
        H = model.H[model.chosen]
        self._H = np.where(H > 0, H, 1.0)
        self._longest = float(np.sqrt(H.max(initial=0.0)))
        self._v, self._least = self._B @ self._u, self._value(self.w, self._u)

    def minimise(
        self, tolerance: float, most: int, *, nearby: bool = False
    ) -> tuple[int, bool]:
        """As of a `Descent`, in steps; the first minimum ``nearby`` may be enough."""
        left = most
        while True:
            steps, done, exact = self._nearest(tolerance, left)
            left -= steps
            if steps > _MANY:
                self.far = max(self.far / _FARTHER, NEAR[0])
            elif steps <= _MANY // 2:
                self.far = min(self.far * _FARTHER, NEAR[0] / HALF)
            if nearby or done or not left or not exact:
                return most - left, done

    def _nearest(self, tolerance: float, most: int) -> tuple[int, bool, bool]:
        """Go to the minimum near ``w``: steps, whether that is one anywhere, or here."""
        u, v, l2, steps = self._u, self._v, self._penalty.l2, 0
        curve = np.maximum(l2, self._H / self.far)
        pull, near = curve - l2, self.w
        known = pull * near
        while True:
            w = self._penalty.maximiser(v + known, curve)
            used = np.flatnonzero(w)
            active = self._B[used]
            slopes = u - self._t + w[used] @ active
            off = self._longest * float(np.linalg.norm(slopes))
            moved = float((pull * np.abs(w - near)).max(initial=0.0))
            done, exact = off + moved <= tolerance, off <= _EXACT * moved
            if done or exact or steps == most:
                break
            step = self._newton(active / np.sqrt(curve[used])[:, None], slopes)
            along = self._B @ step
            share = self._share(step, along, slopes, v + known, curve)
            if not share:
                break
            u, v, steps = u + share * step, v + share * along, steps + 1
            self._u, self._v = u, v
        value = self._value(w, u - slopes)
        if value <= self._least:
            self.w, self._least = w, value
        return steps, done, exact

    def _share(
        self, step: Array, along: Array, slopes: Array, v: Array, curve: Array
    ) -> float:
        """Of a step, so that it brings what it promises; 0 where none does."""
        u, value, share = self._u, self._dual(self._u, v, curve), 1.0
        while share > LOST:
            wanted = value + SUFFICIENT * share * float(slopes @ step)
            if self._dual(u + share * step, v + share * along, curve) < wanted:
                return share
            share *= 0.5
        return 0.0

    def _newton(self, active: Array, slopes: Array) -> Array:
        """A step in ``u``: by the columns that have a weight, or by the rows if fewer."""
        if not len(active):
            return -slopes
        by_rows = len(active) > len(slopes)
        H = active.T @ active if by_rows else active @ active.T
        H[np.diag_indices_from(H)] += 1.0
        _, found, failed = lapack.dposv(H, slopes if by_rows else active @ slopes)
        if failed or not np.isfinite(found).all():
            return -slopes
        return np.asarray(-found if by_rows else found @ active - slopes)

    def _value(self, w: Array, residuals: Array) -> float:
        return 0.5 * float(residuals @ residuals) + self._penalty.value(w)

    def _dual(self, u: Array, v: Array, curve: Array) -> float:
        w = self._penalty.maximiser(v, curve)
        return float(0.5 * u @ u - self._t @ u + 0.5 * (curve * w) @ w)


class ByGram(Descent):
    """By second derivatives of the model, Q (k, k), and slopes along columns, g (k,).

    In place of an extrapolation, Newton's step over the weights that are not 0: sweeps find
    the signs, and columns that are nearly dependent do not make them creep.
    """

    def __init__(self, penalty: Penalty, Q: Array, w: Array, g: Array) -> None:
        super().__init__(penalty, w.copy())
        self._Q, self._g = Q, g.copy()
        self._w0, self._g0, self._rested = w.copy(), g.copy(), 0

    def _sweep(self) -> float:
        penalty = self._penalty
        return shrink_gram(
            self._Q, l1=penalty.l1, l2=penalty.l2, positive=penalty.positive, g=self._g,
            w=self.w,
        )  # fmt: skip

    def _extrapolate(self, past: Array) -> None:
        # A factor of k^3 / 3 by BLAS, against sweeps of k^2; where weights turned to 0,
        # those that are left have another minimum.
        self._rested += MEMORY
        solved, size, left = False, -1, self._rested * 3.0 * PRODUCTS
        while left >= len(support := np.flatnonzero(self.w)) != size:
            size, left = len(support), left - len(support)
            if not self._solve(support):
                break
            solved, self._rested = True, 0
        if not solved:
            super()._extrapolate(past)

    def _solve(self, support: Indices) -> bool:
        """To the minimum with these signs, weights 0 whose signs would change; or, where
        that is no better, to where the first of them would."""
        if not len(support) or not np.isfinite(self.w[support]).all():
            return False
        w, l2 = self.w[support], self._penalty.l2
        Q = self._Q[np.ix_(support, support)]
        Q[np.diag_indices_from(Q)] += l2 + LOST * Q.diagonal()
        slopes = self._g[support] + l2 * w + self._penalty.l1 * np.sign(w)
        _, step, failed = lapack.dposv(Q, -slopes)
        if failed or not np.isfinite(step).all():
            return False
        crosses = w * (w + step) < 0
        if self._falls(support, np.where(crosses, 0.0, w + step)):
            return True
        if not crosses.any():
            return False
        share = np.divide(-w, step, out=np.full_like(w, np.inf), where=crosses)
        found = w + share.min() * step
        found[share.argmin()] = 0.0
        return self._falls(support, found)

    def _falls(self, support: Indices, found: Array) -> bool:
        """Take weights if the model is less there."""
        before, kept = self._value(), self._point()
        self._g += self._Q[:, support] @ (found - self.w[support])
        self.w[support] = found
        if self._value() < before:
            return True
        self._put(kept)
        return False

    def _point(self) -> Array:
        return np.concatenate((self.w, self._g))

    def _put(self, point: Array) -> None:
        size = len(self.w)
        self.w, self._g = point[:size].copy(), point[size:].copy()

    def _value(self) -> float:
        model = 0.5 * float((self._g0 + self._g) @ (self.w - self._w0))
        return model + self._penalty.value(self.w)
