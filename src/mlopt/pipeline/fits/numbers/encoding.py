"""Encoders of categories in one pass: the values that differ are merged.

scikit-learn finds the same categories in the values that differ as in all rows, so it is
fitted to these: what it refuses, warns of and sets is its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils.validation import check_array

from mlopt.pipeline.blocks.tables import tabled
from mlopt.pipeline.fits.numbers.blockwise import Blockwise, Columns
from mlopt.stats import Stats


@dataclass(frozen=True)
class Distinct:
    """The values of each column that differ.

    Attributes
    ----------
    columns : Columns
    frame : bool
        Whether blocks are pandas frames, where columns differ in type.
    values : tuple of ndarray or Series of shape (m,)
        One for each column, each of at least one value.
    """

    columns: Columns
    frame: bool
    values: tuple[Any, ...]

    def rows(self) -> Any:
        """A block with the same values: shorter columns repeat their last one."""
        longest = np.arange(max(map(len, self.values)))
        parts = [part.take(np.minimum(longest, len(part) - 1)) for part in self.values]
        if not self.frame:
            return self.columns.block(np.column_stack(parts))
        return pd.concat([part.reset_index(drop=True) for part in parts], axis=1)


class MergedCategories(Blockwise):
    """`OneHotEncoder` and `OrdinalEncoder`.

    Columns of numbers, text and objects, pandas categories, missing values.
    """

    name = "merged categories"
    kinds = (OneHotEncoder, OrdinalEncoder)

    def refuses(self, estimator: Any, stats: Stats) -> str:
        """Why not: scikit-learn can only count rows that it is given."""
        limits = [
            f"`{name}`"
            for name in ("min_frequency", "max_categories")
            if getattr(estimator, name) is not None
        ]
        if not limits:
            return ""
        return f"{' and '.join(limits)} count rows, of which only the distinct are kept"

    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> Distinct:
        columns, frame = Columns.of(model, X), isinstance(X, pd.DataFrame)
        if not frame:
            X = check_array(tabled(X), dtype=None, ensure_all_finite="allow-nan")
        parts = (X.iloc[:, j] if frame else X[:, j] for j in range(columns.count))
        return Distinct(columns, frame, tuple(map(distinct, parts)))

    def join(self, left: Distinct, right: Distinct) -> Distinct:
        pairs = zip(left.values, right.values, strict=True)
        return Distinct(left.columns, left.frame, tuple(distinct(*pair) for pair in pairs))

    def fitted(self, model: Any, statistics: Distinct) -> Any:
        return model.fit(statistics.rows())


def distinct(*parts: Any) -> Any:
    """The values of one column that differ; None and NaN are two.

    Parameters
    ----------
    parts : ndarray or Series of shape (m,)
        All of one kind.
    """
    if isinstance(parts[0], pd.Series):
        return pd.concat(parts, ignore_index=True).drop_duplicates(ignore_index=True)
    values = np.concatenate(parts)
    return pd.unique(values) if values.dtype == object else np.unique(values)


ENCODING = (MergedCategories(),)
