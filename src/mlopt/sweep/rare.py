"""Classes with too few rows for every part of the data: left out, or made one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError

OTHER = "other"


@dataclass(frozen=True)
class Rare:
    """What becomes of the classes of few rows.

    Parameters
    ----------
    counts : dict of label to int
        The rare classes, and their rows in the training data.
    merge : bool
        Call all of them "other"; else their rows are left out.
    """

    counts: dict[Any, int]
    merge: bool

    def describe(self) -> str:
        """A sentence."""
        listed = ", ".join(f"{label!r} ({n})" for label, n in self.counts.items())
        rows = sum(self.counts.values())
        done = (
            f"merged into {OTHER!r}" if self.merge else f"left out with their {rows} rows"
        )
        return f"rare classes are {done}: {listed}"

    def apply(self, labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """(labels, whether each row stays)."""
        rare = np.isin(labels, list(self.counts))
        if self.merge:
            return np.where(rare, OTHER, labels), np.ones(len(labels), dtype=bool)
        return labels, ~rare


def rare_classes(labels: NDArray[Any], choice: str, least: int) -> Rare | None:
    """The classes of fewer than ``least`` rows, or None where there are none or ``choice``
    is to keep them.

    Raises
    ------
    InputError
        Labels that are no texts are to be merged.
    """
    values, counts = np.unique(labels, return_counts=True)
    pairs = zip(values.tolist(), counts.tolist(), strict=True)
    found = {label: n for label, n in pairs if n < least}
    if choice == "keep" or not found:
        return None
    if choice == "merge" and labels.dtype.kind != "U":
        raise InputError(
            f"`rare_classes` can only merge labels that are texts, into {OTHER!r}; those "
            f"here are {labels.dtype}. Drop them, or write the labels as texts."
        )
    return Rare(found, choice == "merge")


def least_rows(folds: int, holdout: float | None) -> int:
    """Rows that a class needs, so that each of ``folds`` has one, and the part that is set
    aside too.
    """
    if holdout is None:
        return max(2, folds)
    rows = 5
    while rows - int(np.ceil(rows * holdout)) < max(2, folds):
        rows += 1
    return rows
