"""Principal component analysis, by the solver that is cheapest for these data."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import decomposition
from sklearn.base import clone
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from mlopt.cluster import executor
from mlopt.errors import InputError
from mlopt.gd.as_scikit_learn import fit_as_scikit_learn, plan_as_scikit_learn
from mlopt.gd.estimator_base import (
    FLOATS,
    apply,
    apply_lazily,
    plan_before,
)
from mlopt.parameters import check_parameters
from mlopt.pipeline.library.framing import framed_lazily
from mlopt.pipeline.library.pca_fit import NAMES, WAYS, fit_pca, prepare
from mlopt.pipeline.library.pca_leading import centred_panels
from mlopt.pipeline.library.pca_plan import Shape
from mlopt.plan import Plan
from mlopt.rows.source import is_dask

Array = NDArray[Any]


@framed_lazily
class PCA(decomposition.PCA):
    """Project on the directions in which centred data vary most.

    The problem, the parameters and the attributes are those of
    `sklearn.decomposition.PCA`, and `get_covariance`, `score` and the like are inherited;
    in each component, the entry of largest magnitude is positive. Sparse data stay sparse.

    Parameters
    ----------
    n_components : int, float, "mle" or None, default=None
        How many to keep. A float between 0 and 1 keeps as many as explain that share of
        the variance; None keeps ``min(n, d)``. "mle", 0, and None with "arpack" or
        "randomized" are fitted by scikit-learn, in memory, and the plan says so.
    copy : bool, default=True
        Without effect: X is never written to.
    whiten : bool, default=False
        Whether `transform` scales each component to unit variance.
    svd_solver : str, default="auto"
        "full": all rows are gathered here; not for sparse X.
        "covariance_eigh": one pass for the covariance matrix, then its eigenvectors;
        variances below 1e-16 of the largest are lost.
        "tsqr": a tall-skinny QR, one pass, then the SVD of its triangle; loses none.
        "randomized": a random sketch and power iterations, one pass each; approximate
        where variances decay slowly.
        "arpack": Lanczos, one pass for each product with a vector; exact, for an integer
        `n_components` below ``min(n, d)``.
        "auto": the one with the least predicted time. "randomized" is among them only for
        an integer `n_components` below 80% of ``min(n, d)``, when X is dense, has more than
        500 rows or columns and is not tall (at most 1000 columns and ten times as many
        rows); and where no other has the memory it needs.
    tol : float, default=0.0
        Without effect: "arpack" goes as far as rounding allows.
    iterated_power : int or "auto", default="auto"
        Power iterations of "randomized". "auto" is 7 for fewer components than a tenth of
        ``min(n, d)``, else 4.
    n_oversamples : int, default=10
        Further columns of the sketch of "randomized".
    power_iteration_normalizer : {"auto", "QR", "LU", "none"}, default="auto"
        Without effect: always by QR.
    random_state : int, RandomState or None, default=None
        Used by "randomized", and for the first vector of "arpack".

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Orthonormal rows, by decreasing variance.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (k,)
        With ``n - 1`` degrees of freedom; as a share of the variance of all columns.
    singular_values_ : ndarray of shape (k,)
        Of the centred X.
    mean_ : ndarray of shape (d,)
    n_components_, n_samples_ : int
    noise_variance_ : float
        Mean variance of the ``min(n, d) - k`` components that are not kept.
    plan_ : Plan
        What was chosen and rejected, with predicted and measured seconds.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Sparks et al., "KeystoneML" (ICDE 2017), Table II. Halko, Martinsson, Tropp, "Finding
    structure with randomness", SIAM Review 53, 2011.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **decomposition.PCA._parameter_constraints,
        "svd_solver": [StrOptions({"auto", *WAYS})],
    }

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        copy: bool = True,
        whiten: bool = False,
        svd_solver: str = "auto",
        tol: float = 0.0,
        iterated_power: int | str = "auto",
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components,
            copy=copy,
            whiten=whiten,
            svd_solver=svd_solver,
            tol=tol,
            iterated_power=iterated_power,
            n_oversamples=n_oversamples,
            power_iteration_normalizer=power_iteration_normalizer,
            random_state=random_state,
        )

    def fit(self, X: Any, y: Any = None) -> PCA:
        """Find the components of X.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)
            At least 2 rows.
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        InputError
            When X is malformed or not finite, a parameter is out of range, or a solver
            needs more memory than there is.
        """
        check_parameters(self)
        if why := self._not_ours():
            fit_as_scikit_learn(self, decomposition.PCA, why, X)
        else:
            fit_pca(self, X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """`fit`, and the coordinates of the same rows; see `transform`."""
        return self.fit(X).transform(X)

    def explain(self, X: Any, y: Any = None) -> Plan:
        """The plan of `fit` for the same arguments; fits nothing.

        Returns
        -------
        Plan
            What would be chosen and rejected, with predicted seconds.
        """
        check_parameters(self)
        if why := self._not_ours():
            return plan_as_scikit_learn(self, why, X)
        with closing(executor(rows=(X,))) as where:
            choice = prepare(clone(self), X, where)[-1]
        return plan_before(choice)

    def transform(self, X: Any) -> Any:
        """Coordinates of rows along the components.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)

        Returns
        -------
        ndarray or lazy dask array of shape (n, k)
            In float32 if X is, else in float64.
        """
        check_is_fitted(self)
        loadings = self.components_.T / self._scale()
        function = partial(project, mean=self.mean_, loadings=loadings)
        return apply(self, X, function)

    def inverse_transform(self, X: Any) -> Any:
        """Rows from their coordinates: what the components that were kept say of them.

        Parameters
        ----------
        X : array-like or dask array of shape (n, k)

        Returns
        -------
        ndarray or lazy dask array of shape (n, d)
        """
        check_is_fitted(self)
        lazy = is_dask(X)
        X = X if lazy else check_array(X, dtype=FLOATS)
        if X.ndim != 2 or X.shape[1] != self.n_components_:
            raise InputError(
                f"X must have one column for each of the {self.n_components_} components, "
                f"got shape {X.shape}: give what `transform` returned."
            )
        directions = self.components_ * self._scale()[:, None]
        function = partial(reconstruct, mean=self.mean_, directions=directions)
        return apply_lazily(self, X, function) if lazy else function(X)

    def score_samples(self, X: Any) -> Any:
        """The logarithm of how likely each row is, by Tipping and Bishop's model.

        Parameters
        ----------
        X : array-like, dask array or dask dataframe of shape (n, d)

        Returns
        -------
        ndarray or lazy dask array of shape (n,)
        """
        check_is_fitted(self)
        if not is_dask(X):
            return super().score_samples(X)
        theirs = decomposition.PCA()
        theirs.__dict__.update(vars(self))
        theirs.__dict__.pop("feature_names_in_", None)  # blocks are arrays
        return apply(self, X, partial(_likelihoods, model=theirs))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`; ``y`` is ignored."""
        if not is_dask(X):
            return float(super().score(X, y))
        return float(self.score_samples(X).mean().compute())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.svd_solver != "full"
        tags.array_api_support = False
        return tags

    def _scale(self) -> Array:
        """What a coordinate is divided by; as in scikit-learn, never quite zero."""
        if not self.whiten:
            return np.ones_like(self.explained_variance_)
        scale = np.sqrt(self.explained_variance_)
        return np.asarray(np.maximum(scale, np.finfo(scale.dtype).eps))

    def _not_ours(self) -> str:
        """Which parameters ask for what only scikit-learn has; or ""."""
        wanted = self.n_components
        if self.svd_solver in ("arpack", "randomized"):
            odd = isinstance(wanted, str) or wanted is None
            how = f" with `svd_solver`={self.svd_solver!r}"
        else:
            odd, how = wanted == "mle" or (wanted == 0 and isinstance(wanted, Integral)), ""
        return f"`n_components`={wanted!r}{how}" if odd else ""

    def _methods(self) -> tuple[str, ...]:
        """Names of the ways to find components; see `WAYS`."""
        return tuple(NAMES)


def project(X: Any, mean: Array, loadings: Array) -> Array:
    """``(X - mean) @ loadings`` for dense or CSR rows, in float32 if X is."""
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    loadings = loadings.astype(dtype, copy=False)
    if sp.issparse(X):
        return np.asarray(X @ loadings - (mean @ loadings).astype(dtype))
    X = np.asarray(X, dtype)
    if not len(X):  # a dask collection may have empty chunks
        return np.empty((0, loadings.shape[1]), dtype)
    return np.concatenate([panel @ loadings for panel in centred_panels(X, mean)])


def _likelihoods(X: Array, model: decomposition.PCA) -> Array:
    return np.asarray(model.score_samples(X)) if len(X) else np.empty(0, X.dtype)


def reconstruct(X: Array, mean: Array, directions: Array) -> Array:
    """``X @ directions + mean``, in float32 if X is."""
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    return np.asarray(X @ directions.astype(dtype) + mean.astype(dtype), dtype)


def shape_of_fit(estimator: PCA, X: Any) -> Shape:
    """What the costs of ``estimator.fit(X)`` depend on; finds no component."""
    with closing(executor(rows=(X,))) as where:
        return prepare(clone(estimator), X, where)[1]
