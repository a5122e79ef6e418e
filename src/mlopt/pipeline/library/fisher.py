"""Fisher vectors: in which direction the descriptors of an image would move a mixture.

Shapes: descriptors X (n, m, d); posteriors Q (n, m, k); out come (n, 2 k d), first what
belongs to the means, then what belongs to the variances, each component by component.

With weights w, means u and variances s of the mixture, and q the posteriors of one image,

    means      mean_t q_tk (x_t - u_k) / sqrt(s_k) / sqrt(w_k)
    variances  mean_t q_tk ((x_t - u_k)^2 / s_k - 1) / sqrt(2 w_k)

Perronnin, Sanchez, Mensink, "Improving the Fisher kernel for large-scale image
classification", ECCV 2010. Their signed root and length of 1 are `SignedHellinger` and
`NormalizeRows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from mlopt.costs import Cost
from mlopt.gd.pricing import arithmetic
from mlopt.parameters import check_choice
from mlopt.pipeline.library.descriptors import _OfDescriptors, as_descriptors, sample_rows
from mlopt.pipeline.library.gaussian_em import Mixture, posteriors
from mlopt.pipeline.library.mixture import GaussianMixture, centred
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Rows

Array = NDArray[Any]
Moments = tuple[Array, Array, Array]
"""Mean posteriors (n, k), and of X and its squares times posteriors, (n, k, d)."""

_CALL = price("fisher.call")
_SKINNY = price("fisher.skinny")
_EXPONENTIAL = price("fisher.exponential")
_TRAVELS = price("fisher.travels")
_RESULTS = price("fisher.results")


@dataclass(frozen=True)
class Sizes:
    """Fisher vectors, as far as their cost depends on it.

    Parameters
    ----------
    images, descriptors, columns, components : int
        n, m, d and k.
    itemsize : int, default=4
        Bytes of a value.
    """

    images: int
    descriptors: int
    columns: int
    components: int
    itemsize: int = 4


def costs(sizes: Sizes, resources: Resources) -> dict[str, Cost]:
    """What each way would cost.

    Both do the same products. One image after the other stays in the cache and pays for
    the calls of each image; all at once pays for what travels through memory.
    """
    del resources
    rows = sizes.images * sizes.descriptors
    products = 8.0 * rows * sizes.columns * sizes.components
    operations = _SKINNY * products + _EXPONENTIAL * rows * sizes.components
    results = sizes.images * sizes.columns * sizes.components
    work = arithmetic(sizes, operations) + Cost(memory=_RESULTS * sizes.itemsize * results)
    values = rows * (sizes.columns + sizes.components)
    return {
        "images": work + Cost(fixed=_CALL * sizes.images),
        "batch": work + Cost(memory=_TRAVELS * sizes.itemsize * values),
    }


class FisherVector(ClassNamePrefixFeaturesOutMixin, _OfDescriptors):
    """One row an image, from its descriptors and a mixture of the descriptors of all.

    Parameters
    ----------
    n_components : int, default=16
        Of the mixture.
    n_samples : int, default=100_000
        Descriptors, of all images, that the mixture is learnt from.
    solver : {"auto", "images", "batch"}, default="auto"
        "images": the products of one image after the other. "batch": all images in one
        product each. "auto": the least predicted time for the sizes at hand.
    tol, max_iter, min_variance : float, int, float, default=1e-3, 100, 0.01
        As in `GaussianMixture`.
    random_state : int, RandomState or None, default=None
        For the sample and the mixture.

    Attributes
    ----------
    mixture_ : GaussianMixture
    n_features_in_ : int
        Columns of a descriptor.
    """

    def __init__(
        self,
        n_components: int = 16,
        *,
        n_samples: int = 100_000,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 100,
        min_variance: float = 0.01,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_samples = n_samples
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.min_variance = min_variance
        self.random_state = random_state

    def fit_rows(self, rows: Rows) -> Self:
        check_choice("solver", self.solver, ["auto", *_WAYS])
        few = sample_rows(rows, self.n_samples, self.random_state)
        names = "n_components", "tol", "max_iter", "min_variance", "random_state"
        mixture = GaussianMixture(**{name: getattr(self, name) for name in names})
        self.mixture_ = mixture.fit(few)
        self.n_features_in_ = rows.d
        return self

    def transform(self, X: Any) -> Array:
        """Fisher vectors (n, 2 k d) of descriptors (n, m, d), float32 if they are.

        Raises
        ------
        InputError
            When X does not have three axes.
        """
        check_is_fitted(self)
        found = as_descriptors(self, X, reset=False)
        n, m, d = found.shape
        sizes = Sizes(n, m, d, len(self.mixture_.weights_), found.itemsize)
        descriptors, mixture = centred(found, self.mixture_)
        return _gradients(_WAYS[self.choose(sizes)](descriptors, mixture), mixture)

    def choose(self, sizes: Sizes, resources: Resources | None = None) -> str:
        """The way that is taken for these sizes."""
        if self.solver != "auto":
            return str(check_choice("solver", self.solver, ["auto", *_WAYS]))
        machine = resources or Resources()
        found = costs(sizes, machine)
        return min(found, key=lambda name: found[name].seconds(machine))

    @property
    def _n_features_out(self) -> int:
        return int(2 * self.mixture_.means_.size)


def _each(X: Array, mixture: Mixture) -> Moments:
    """One image after the other."""
    (n, m, d), k = X.shape, len(mixture.weights)
    zeroth = np.empty((n, k), X.dtype)
    first, second = np.empty((n, k, d), X.dtype), np.empty((n, k, d), X.dtype)
    for number, x in enumerate(X):
        shares = posteriors(x, mixture)[0]
        shares /= m
        zeroth[number] = shares.sum(axis=0)
        np.matmul(shares.T, x, out=first[number])
        np.matmul(shares.T, np.square(x), out=second[number])
    return zeroth, first, second


def _batch(X: Array, mixture: Mixture) -> Moments:
    """All images at once."""
    n, m, d = X.shape
    shares = posteriors(X.reshape(n * m, d), mixture)[0].reshape(n, m, -1)
    shares /= m
    turned = shares.transpose(0, 2, 1)
    return shares.sum(axis=1), turned @ X, turned @ np.square(X)


def _gradients(moments: Moments, mixture: Mixture) -> Array:
    zeroth, first, second = moments
    share, means, variances = zeroth[..., None], mixture.means, mixture.variances
    # A component without weight has no part in any descriptor.
    root = np.sqrt(np.maximum(mixture.weights, np.finfo(first.dtype).tiny))[:, None]
    by_means = (first - share * means) / (np.sqrt(variances) * root)
    spread = second - 2 * means * first + share * (np.square(means) - variances)
    by_variances = spread / (variances * root * first.dtype.type(np.sqrt(2)))
    n = len(first)
    both = [by_means.reshape(n, -1), by_variances.reshape(n, -1)]
    return np.concatenate(both, axis=1)


_WAYS = {"images": _each, "batch": _batch}
