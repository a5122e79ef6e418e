"""Inverse document frequencies, from counts in any grouping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.validation import validate_data

from mlopt.errors import InputError
from mlopt.pipeline.fits.base import OnePass

Array = NDArray[Any]


def inverse_frequencies(
    transformer: TfidfTransformer, frequencies: Array, documents: int, dtype: Any
) -> Array:
    """``idf_`` of a transformer, of shape (d,), with the roundings of scikit-learn.

    Parameters
    ----------
    transformer : TfidfTransformer
    frequencies : ndarray of int64, shape (d,)
        In how many documents each term stands.
    documents : int
    dtype : dtype
        Of the counts.
    """
    real = np.dtype(dtype if dtype in (np.float64, np.float32) else np.float64)
    df = frequencies.astype(real)
    df += float(transformer.smooth_idf)
    idf = np.full_like(df, documents + int(transformer.smooth_idf))
    idf /= df
    np.log(idf, out=idf)
    idf += 1.0
    return idf


@dataclass(frozen=True)
class Frequencies:
    """What `InverseFrequencies` adds up.

    Attributes
    ----------
    documents : int
    found : ndarray of int64, shape (d,)
        In how many documents each term stands.
    dtype : dtype
        Of the counts.
    names : ndarray of object, shape (d,), or None
        Of columns.
    """

    documents: int
    found: Array
    dtype: np.dtype
    names: Array | None


class InverseFrequencies(OnePass):
    """`TfidfTransformer`: in how many documents each term stands."""

    name = "count documents"
    kinds = (TfidfTransformer,)

    def part(self, estimator: Any, X: Any, y: Any, weight: Any) -> Frequencies:
        """Non-zero entries of each column; stored zeros count, as in scikit-learn."""
        del y, weight
        probe = clone(estimator)
        probe._validate_params()
        counts = validate_data(probe, X, accept_sparse=("csr", "csc"))
        found = _stored(counts)
        names = getattr(probe, "feature_names_in_", None)
        return Frequencies(counts.shape[0], found, counts.dtype, names)

    def merge(self, left: Frequencies, right: Frequencies) -> Frequencies:
        """Add the counts of two neighbours."""
        if len(left.found) != len(right.found):
            raise InputError(
                "Blocks must have the same columns, got "
                f"{len(left.found)} and {len(right.found)}."
            )
        return Frequencies(
            left.documents + right.documents,
            left.found + right.found,
            np.result_type(left.dtype, right.dtype),
            left.names,
        )

    def finish(self, estimator: Any, statistics: Frequencies) -> Any:
        """A fitted copy of ``estimator``."""
        fitted = clone(estimator)
        fitted.n_features_in_ = len(statistics.found)
        if statistics.names is not None:
            fitted.feature_names_in_ = statistics.names
        if fitted.use_idf:
            fitted.idf_ = inverse_frequencies(
                fitted, statistics.found, statistics.documents, statistics.dtype
            )
        return fitted


def _stored(counts: Any) -> Array:
    if sp.issparse(counts) and counts.format == "csc":
        found = np.diff(counts.indptr)
    elif sp.issparse(counts):
        found = np.bincount(counts.indices, minlength=counts.shape[1])
    else:
        found = np.count_nonzero(counts, axis=0)
    return np.asarray(found, np.int64)
