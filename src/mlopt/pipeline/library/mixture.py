"""A mixture of Gaussians with diagonal covariances, of rows or of descriptors."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mlopt.errors import InputError
from mlopt.parameters import check_count, check_positive
from mlopt.pipeline.library.descriptors import _OfDescriptors, as_rows, some_of
from mlopt.pipeline.library.gaussian_em import Mixture, fit_mixture, posteriors
from mlopt.pipeline.library.moments import column_moments, join
from mlopt.rows import Rows

Array = NDArray[Any]

SAMPLE = 100_000
"""Rows from which k-means++ draws; of fewer rows in all it takes all."""


class GaussianMixture(ClassNamePrefixFeaturesOutMixin, _OfDescriptors):
    """Rows as draws from k Gaussians with diagonal covariances; `transform` tells of which.

    The model is that of `sklearn.mixture.GaussianMixture` with ``covariance_type="diag"``,
    with a floor under the variances in place of ``reg_covar``. It is computed in float64.

    Parameters
    ----------
    n_components : int, default=16
    tol : float, default=1e-3
        Done when the mean log density changes by less.
    max_iter : int, default=100
        Each is one pass; two more find means and first components.
    min_variance : float, default=0.01
        Variances are not below this share of the variance of their column in all rows.
    least_variance : float, default=1e-9
        Nor below this.
    means_init : ndarray of shape (k, d), optional
        First means; by default drawn by k-means++ from at most 100,000 rows. Each row
        belongs to the nearest first.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    weights_ : ndarray of shape (k,)
    means_, covariances_ : ndarray of shape (k, d)
    lower_bound_ : float
        Mean log density of the rows, as the last iteration found it.
    n_iter_ : int
    converged_ : bool
        False where ``max_iter`` came first; no warning is given.
    n_features_in_ : int

    References
    ----------
    Sparks et al., "KeystoneML" (ICDE 2017): its ``GaussianMixtureModelEstimator`` has these
    floors.
    """

    def __init__(
        self,
        n_components: int = 16,
        *,
        tol: float = 1e-3,
        max_iter: int = 100,
        min_variance: float = 0.01,
        least_variance: float = 1e-9,
        means_init: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.min_variance = min_variance
        self.least_variance = least_variance
        self.means_init = means_init
        self.random_state = random_state

    def fit_rows(self, rows: Rows) -> Self:
        k, most = (check_count(n, getattr(self, n)) for n in ("n_components", "max_iter"))
        tol, share, least = (
            check_positive(name, getattr(self, name), zero=True)
            for name in ("tol", "min_variance", "least_variance")
        )
        if rows.sparse:
            raise InputError("A mixture needs dense rows: convert X with `toarray()`.")
        if rows.n < k:
            raise InputError(
                f"`n_components` must be at most the number of rows, {rows.n}; got {k}."
            )
        count, mean, squares = rows.map_reduce(column_moments, join)
        floor = np.maximum(share * squares / count, least)
        centres = self._centres(rows, k)
        found = fit_mixture(rows, centres, mean, floor, tol, most)
        self.weights_ = found.mixture.weights
        self.means_, self.covariances_ = found.mixture.means, found.mixture.variances
        self.lower_bound_ = float(found.bound)
        self.n_iter_, self.converged_ = found.iterations, bool(found.converged)
        self.n_features_in_ = rows.d
        return self

    def transform(self, X: Any) -> Array:
        """The share of each component in each row, (n, k), or descriptor, (n, m, k)."""
        return self._posteriors(X)[0]

    def predict_proba(self, X: Any) -> Array:
        """The same as `transform`."""
        return self._posteriors(X)[0]

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The likeliest component of each row or descriptor."""
        return np.asarray(self._posteriors(X)[0].argmax(axis=-1))

    def score_samples(self, X: Any) -> Array:
        """The log density of each row or descriptor."""
        return self._posteriors(X)[1]

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log density."""
        del y
        return float(self.score_samples(X).mean())

    def _posteriors(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self)
        rows, shape = as_rows(self, X, reset=False)
        shares, logs = posteriors(*centred(rows, self))
        return shares.reshape(*shape, -1), logs.reshape(shape)

    def _centres(self, rows: Rows, k: int) -> Array:
        if self.means_init is not None:
            given = np.array(self.means_init, np.float64)
            if given.shape != (k, rows.d):
                raise InputError(
                    f"`means_init` must have shape {(k, rows.d)}, got {given.shape}."
                )
            return given
        random = check_random_state(self.random_state)
        X = rows.take(some_of(rows.n, max(SAMPLE, k), random)).astype(np.float64)
        return np.asarray(kmeans_plusplus(X, k, random_state=random)[0])

    @property
    def _n_features_out(self) -> int:
        return len(self.weights_)


def centred(X: Array, fitted: GaussianMixture) -> tuple[Array, Mixture]:
    """Rows and mixture less the mixture's mean, in the type of X: no digits are lost."""
    middle = fitted.weights_ @ fitted.means_
    mixture = Mixture(fitted.weights_, fitted.means_ - middle, fitted.covariances_)
    return X - middle.astype(X.dtype), mixture.astype(X.dtype)
