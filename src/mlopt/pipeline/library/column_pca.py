"""Principal components of descriptors: fewer numbers for each of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mlopt.pipeline.library.descriptors import _OfDescriptors, as_descriptors, sample_rows
from mlopt.pipeline.library.pca import PCA
from mlopt.rows import Rows

Array = NDArray[Any]


class ColumnPCA(_OfDescriptors):
    """`PCA` learnt from some descriptors of all images, applied to each descriptor.

    (KeystoneML stores descriptors as columns of a matrix for each image; here they are
    rows.)

    Parameters
    ----------
    n_components : int, float or None, default=None
        As in `PCA`.
    n_samples : int, default=100_000
        Descriptors that it is learnt from.
    whiten : bool, default=False
    solver : str, default="auto"
        As in `PCA`.
    random_state : int, RandomState or None, default=None
        For the sample and the solver.

    Attributes
    ----------
    pca_ : PCA
    n_features_in_ : int
        Columns of a descriptor.
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        n_samples: int = 100_000,
        whiten: bool = False,
        solver: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_samples = n_samples
        self.whiten = whiten
        self.solver = solver
        self.random_state = random_state

    def fit_rows(self, rows: Rows) -> Self:
        few = sample_rows(rows, self.n_samples, self.random_state)
        names = "n_components", "whiten", "random_state"
        given = {name: getattr(self, name) for name in names}
        inner = PCA(svd_solver=self.solver, **given).set_output(transform="default")
        self.pca_ = inner.fit(few)
        self.n_features_in_ = rows.d
        return self

    def transform(self, X: Any) -> Array:
        """Descriptors of fewer columns, (n, m, k), float32 if X is.

        Raises
        ------
        InputError
            When X does not have three axes.
        """
        check_is_fitted(self)
        found = as_descriptors(self, X, reset=False)
        n, m, d = found.shape
        return np.asarray(self.pca_.transform(found.reshape(n * m, d)).reshape(n, m, -1))
