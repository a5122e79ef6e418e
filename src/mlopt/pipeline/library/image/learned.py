"""Filters learnt from patches of the images themselves, and a convolution by them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted

from mlopt.errors import InputError
from mlopt.parameters import check_choice, check_count
from mlopt.pipeline.library.image.arrays import Images, as_images
from mlopt.pipeline.library.image.drawn import Drawn, draw
from mlopt.pipeline.library.image.normalizing import normalized, normalized_products
from mlopt.pipeline.library.image.patches import ZCAWhitener

_EACH = 8
"""Patches of an image that is drawn."""


class LearnedConvolver(TransformerMixin, BaseEstimator):
    """Patches of the images, normalised and whitened, become filters; then it convolves.

    What comes out at a place is the inner product of the whitened patch there with each
    filter, of length 1.

    Parameters
    ----------
    n_filters : int, default=100
    size : int, default=6
        Side of the patches and filters, in pixels.
    learn : {"kmeans", "patches"}, default="kmeans"
        "kmeans": the centroids of whitened patches (Coates and Ng); "patches": whitened
        patches themselves (KeystoneML's RandomPatchCifar).
    n_patches : int, default=20_000
        At most so many are drawn, a few of each of some images. Which, depends on the
        images and the seed, not on the blocks that the images come in.
    eps : float, default=0.1
        Of the `ZCAWhitener`.
    variance : float, default=10.0
        Added to the variance of a patch before it is divided by: about a hundredth of the
        square of the range of pixels.
    random_state : int, default=0

    Attributes
    ----------
    whitener_ : ZCAWhitener
    dictionary_ : ndarray of shape (n_filters, size, size, channels)
        Whitened patches or centroids, of length 1: what there is to look at.
    filters_ : ndarray of shape (n_filters, size, size, channels)
        With the whitening in them: what images are convolved with.
    offset_ : ndarray of shape (n_filters,)

    References
    ----------
    Coates and Ng, "Learning feature representations with k-means", 2012.
    """

    def __init__(
        self,
        n_filters: int = 100,
        size: int = 6,
        *,
        learn: str = "kmeans",
        n_patches: int = 20_000,
        eps: float = 0.1,
        variance: float = 10.0,
        random_state: int = 0,
    ) -> None:
        self.n_filters = n_filters
        self.size = size
        self.learn = learn
        self.n_patches = n_patches
        self.eps = eps
        self.variance = variance
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> LearnedConvolver:
        """Learn the filters.

        Parameters
        ----------
        X : array of shape (n, height, width) or (n, height, width, channels)
        y : ignored

        Raises
        ------
        InputError
            When patches do not fit in the images, or are fewer than the filters.
        """
        del y
        return self.finish(self.draw(X))

    def draw(self, X: Any) -> Drawn:
        """A block's part of the patches to learn from."""
        check_count("n_filters", self.n_filters)
        check_count("n_patches", self.n_patches)
        images = as_images(X)
        return draw(images, self.size, self.most_images, _EACH, self.random_state)

    @property
    def most_images(self) -> int:
        """Of how many images patches are drawn at most."""
        return -(-self.n_patches // _EACH)

    def finish(self, drawn: Drawn) -> LearnedConvolver:
        """Learn from patches drawn."""
        check_choice("learn", self.learn, ("kmeans", "patches"))
        k, d = self.size, drawn.patches.shape[2]
        patches = drawn.patches.reshape(-1, d)[: self.n_patches]
        if len(patches) < self.n_filters:
            raise InputError(
                f"`n_filters` must be at most the number of patches, {len(patches)} here: "
                f"got {self.n_filters}. Give more images, or draw more (`n_patches`)."
            )
        self.whitener_ = ZCAWhitener(self.eps)
        white = self.whitener_.fit_transform(normalized(patches, self.variance))
        atoms = self._atoms(white)
        atoms /= np.maximum(np.linalg.norm(atoms, axis=1, keepdims=True), 1e-12)
        filters = atoms @ self.whitener_.whitener_  # which is symmetric
        shape = (self.n_filters, k, k, d // k**2)
        self.dictionary_ = atoms.reshape(shape)
        self.filters_ = filters.reshape(shape).astype(patches.dtype)
        self.offset_ = (-filters @ self.whitener_.mean_).astype(patches.dtype)
        return self

    def transform(self, X: Any) -> Images:
        """Images of ``n_filters`` channels, (n, height - size + 1, width - size + 1, b)."""
        check_is_fitted(self)
        images = as_images(X, self.filters_.shape[3])
        found = normalized_products(images, self.filters_, self.variance)
        found += self.offset_.astype(found.dtype)
        return found

    def _atoms(self, white: np.ndarray) -> np.ndarray:
        if self.learn == "patches":
            return white[: self.n_filters].copy()
        seed = self.random_state
        centres = KMeans(self.n_filters, n_init=1, max_iter=50, random_state=seed)
        return np.array(centres.fit(white).cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.no_validation = True
        return tags
