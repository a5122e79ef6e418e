"""The leading singular vectors to full accuracy by Lanczos: one vector a pass.

ARPACK asks for ``Xc.T (Xc v)`` until the vectors have converged, so it is exact also
where variances decay too slowly for a random sketch. As there, Xc is never formed.

Lehoucq, Sorensen, Yang, "ARPACK Users' Guide", SIAM, 1998.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from mlopt.cluster import between_passes
from mlopt.pipeline.library.pca_randomized import squared
from mlopt.rows import Rows

Array = NDArray[Any]


def leading_exact(
    rows: Rows, mean: Array, components: int, random: np.random.RandomState
) -> tuple[Array, Array, int]:
    """Singular values (k,), largest first, singular vectors (k, d) of Xc, and passes.

    Parameters
    ----------
    rows : Rows
        Not all of them equal.
    mean : ndarray of shape (d,)
    components : int
        Fewer than ``min(n, d)``.
    random : RandomState
        Gives the first vector; the result hardly depends on it.
    """
    passes = 0

    def product(vector: Array) -> Array:
        nonlocal passes
        passes += 1
        return squared(rows, vector.reshape(-1, 1), mean)[:, 0]

    gram = LinearOperator((rows.d, rows.d), matvec=product, dtype=np.float64)
    start = random.uniform(-1.0, 1.0, rows.d)
    kept = krylov(components, rows.d)
    with between_passes():
        values, vectors = eigsh(gram, components, ncv=kept, v0=start)
    order = np.argsort(values)[::-1]
    return np.sqrt(np.maximum(values[order], 0.0)), vectors.T[order], passes


def krylov(components: int, d: int) -> int:
    """Vectors that ARPACK keeps: scipy's rule."""
    return min(d, max(2 * components + 1, 20))
