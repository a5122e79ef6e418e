"""HashingVectorizer: each distinct term of a block is hashed once, not at each place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from sklearn.utils import _align_api_if_sparse
from sklearn.utils.murmurhash import murmurhash3_32

from mlopt.pipeline.fits.text.documents import code_documents
from mlopt.pipeline.fits.text.terms import count_terms, spell

Array = NDArray[Any]

_LOWEST = np.iinfo(np.int32).min


def apply_hashing(estimator: Any, documents: Iterable[Any]) -> sp.csr_matrix:
    """``estimator.transform(documents)`` of a HashingVectorizer, entry by entry.

    Parameters
    ----------
    estimator : HashingVectorizer
        It learns nothing, and so need not be fitted.
    documents : iterable of str or bytes

    Returns
    -------
    csr_matrix of shape (documents, n_features)
        Columns of a row are sorted; a 0 is stored where terms cancel.
    """
    estimator._validate_ngram_range()
    terms, counts = count_terms(
        code_documents(estimator, documents), *estimator.ngram_range
    )
    if not terms.documents:
        return estimator.transform([])
    names = (
        name
        for n, level in enumerate(terms.levels, 1)
        for name in spell(terms, n, np.arange(len(level.keys)))
    )
    size = sum(len(level.keys) for level in terms.levels)
    hashes = np.fromiter((murmurhash3_32(name, 0) for name in names), np.int64, size)
    values = counts.counts.astype(estimator.dtype)
    if estimator.alternate_sign:
        values *= np.where(hashes < 0, -1, 1).astype(estimator.dtype)[counts.indices]
    indices = _columns(hashes, estimator.n_features)[counts.indices]
    X = sp.csr_matrix(
        (values, indices, counts.indptr), (terms.documents, estimator.n_features)
    )
    X.sum_duplicates()
    if estimator.binary:
        X.data.fill(1)
    X = _align_api_if_sparse(X)
    return X if estimator.norm is None else normalize(X, norm=estimator.norm, copy=False)


def _columns(hashes: Array, n_features: int) -> Array:
    """Columns of signed 32-bit hashes, as ``FeatureHasher`` takes them."""
    # It cannot take the absolute value of the lowest number.
    folded = np.where(hashes == _LOWEST, -_LOWEST - n_features, np.abs(hashes))
    columns: Array = (folded % n_features).astype(np.int32)
    return columns
