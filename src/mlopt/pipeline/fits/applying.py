"""What a fitted model does to one block: as scikit-learn would, or faster and equal."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import sklearn
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from mlopt.identity import class_of
from mlopt.pipeline.blocks.panels import panel_edges
from mlopt.pipeline.fits.numbers.coded import encoded
from mlopt.pipeline.fits.numbers.scaling import FLOATS
from mlopt.pipeline.fits.text.table import APPLIES


def is_thrifty(kind: type, method: str) -> bool:
    """Whether all that it makes of a large block is what it gives: it goes through rows
    panel by panel itself."""
    return kind is StandardScaler and method == "transform"


def apply_fitted(model: Any, x: Any, method: str) -> Any:
    """``model.<method>(x)``."""
    if quick := _QUICK.get((class_of(model), method)):
        return quick(model, x)
    return getattr(model, method)(x)


def standardized(model: Any, X: Any) -> Any:
    """`StandardScaler.transform`, to the last bit; errors and warnings are its own."""
    if not _is_plain(model, X):
        return model.transform(X)
    scaled = np.empty_like(X)  # laid out as X: columns taken from rows lie one by one
    total = 0.0
    # scikit-learn lets NaN pass and refuses infinity: it shall say so itself
    with np.errstate(over="ignore", invalid="ignore"):
        # It rounds them to the type of the rows first.
        mean = model.mean_.astype(X.dtype) if model.with_mean else None
        scale = model.scale_.astype(X.dtype) if model.with_std else None
        for start, stop in pairwise(panel_edges([X])):
            rows, out = X[start:stop], scaled[start:stop]
            if mean is None:
                out[...] = rows
            else:
                np.subtract(rows, mean, out=out)
            if scale is not None:
                np.divide(out, scale, out=out)
            total += float(out.sum())
        return scaled if np.isfinite(total) else model.transform(X)


def _is_plain(model: Any, X: Any) -> bool:
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in FLOATS
        and X.shape[0] > 0
        and X.shape[1] == getattr(model, "n_features_in_", -1)  # not fitted: it says so
        and not hasattr(model, "feature_names_in_")
        and not hasattr(model, "_sklearn_output_config")
        and sklearn.get_config()["transform_output"] == "default"
    )


_QUICK: dict[tuple[type, str], Callable[[Any, Any], Any]] = {
    (StandardScaler, "transform"): standardized,
    (OneHotEncoder, "transform"): encoded,
    (OrdinalEncoder, "transform"): encoded,
    **APPLIES,
}
