"""What fitted scalers and encoders do to rows, in less time than scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
import sklearn
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from mlopt.pipeline.blocks.panels import panel_edges
from mlopt.pipeline.fits.numbers.coded import encoded
from mlopt.pipeline.fits.numbers.scaling import FLOATS


def standardized(model: Any, X: Any) -> Any:
    """`StandardScaler.transform`, to the last bit; errors and warnings are its own."""
    if not _is_plain(model, X):
        return model.transform(X)
    scaled = np.empty_like(X)  # laid out as X: columns taken from rows lie one by one
    total = 0.0
    # scikit-learn lets NaN pass and refuses infinity: it shall say so itself
    with np.errstate(over="ignore", invalid="ignore"):
        for start, stop in pairwise(panel_edges([X])):
            rows, out = X[start:stop], scaled[start:stop]
            if model.with_mean:
                np.subtract(rows, model.mean_, out=out, casting="same_kind")
            else:
                out[...] = rows
            if model.with_std:
                np.divide(out, model.scale_, out=out, casting="same_kind")
            total += float(out.sum())
        return scaled if np.isfinite(total) else model.transform(X)


def _is_plain(model: Any, X: Any) -> bool:
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in FLOATS
        and X.shape[0] > 0
        and X.shape[1] == model.n_features_in_
        and not hasattr(model, "feature_names_in_")
        and not hasattr(model, "_sklearn_output_config")
        and sklearn.get_config()["transform_output"] == "default"
    )


IN_PANELS = frozenset({(StandardScaler, "transform")})
"""What goes through rows panel by panel itself, and needs no more than what it gives."""

APPLY_NUMBERS: Mapping[tuple[type, str], Callable[[Any, Any], Any]] = MappingProxyType({
    (StandardScaler, "transform"): standardized,
    (OneHotEncoder, "transform"): encoded,
    (OrdinalEncoder, "transform"): encoded,
})  # fmt: skip
