"""Inverse document frequencies, from counts in any grouping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.validation import validate_data

from mlopt.pipeline.fits.numbers.blockwise import Blockwise, Columns

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
    columns : Columns
    """

    documents: int
    found: Array
    dtype: np.dtype
    columns: Columns


class InverseFrequencies(Blockwise):
    """`TfidfTransformer`: in how many documents each term stands."""

    name = "count documents"
    kinds = (TfidfTransformer,)

    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> Frequencies:
        """Non-zero entries of each column; stored zeros count, as in scikit-learn."""
        del y, weight
        model._validate_params()
        columns = Columns.of(model, X)
        counts = validate_data(model, X, accept_sparse=("csr", "csc"))
        return Frequencies(counts.shape[0], _stored(counts), counts.dtype, columns)

    def join(self, left: Frequencies, right: Frequencies) -> Frequencies:
        """Add the counts of two neighbours."""
        return Frequencies(
            left.documents + right.documents,
            left.found + right.found,
            np.result_type(left.dtype, right.dtype),
            left.columns,
        )

    def fitted(self, model: Any, statistics: Frequencies) -> Any:
        """With ``idf_``, if it has one."""
        columns = statistics.columns
        model.n_features_in_ = columns.count
        if columns.names is not None:
            model.feature_names_in_ = np.array(columns.names, object)
        if model.use_idf:
            model.idf_ = inverse_frequencies(
                model, statistics.found, statistics.documents, statistics.dtype
            )
        return model


def _stored(counts: Any) -> Array:
    if sp.issparse(counts) and counts.format == "csc":
        found = np.diff(counts.indptr)
    elif sp.issparse(counts):
        found = np.bincount(counts.indices, minlength=counts.shape[1])
    else:
        found = np.count_nonzero(counts, axis=0)
    return np.asarray(found, np.int64)
