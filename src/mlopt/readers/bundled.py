"""The data sets that come with scikit-learn."""

from __future__ import annotations

from mlopt.errors import InputError, did_you_mean
from mlopt.readers.table import Table, table_of

NAMES = ("iris", "digits", "wine", "breast_cancer", "diabetes")


def read_bundled(name: str, target: str | int | None) -> Table:
    """One of `NAMES`; the target is its own unless another column is named."""
    if name not in NAMES:
        raise InputError(
            f"`sklearn:{name}` names no data set.{did_you_mean(name, NAMES)} Those here: "
            f"{', '.join(NAMES)}."
        )
    from sklearn import datasets

    frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
    return table_of(frame, "target" if target is None else target, f"sklearn:{name}")
