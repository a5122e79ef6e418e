"""What users and items are called, and their numbers 0, 1, ..."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError

_GAPS = 8
"""Times their count: whole numbers that lie in so wide a range are not sorted. The table of
the range has 32 bytes for each then, as much as sorting takes."""


@dataclass(frozen=True)
class Ids:
    """Labels in their order; the place of a label is its number.

    Parameters
    ----------
    labels : ndarray of shape (count,)
        Sorted, each once.
    """

    labels: NDArray[Any]

    @staticmethod
    def of(column: NDArray[Any], what: str) -> tuple[Ids, NDArray[np.int32]]:
        """The labels of a column, and the number of each of its entries."""
        column = checked(column, what)
        if column.dtype.kind == "i" and len(column):
            low, high = int(column.min()), int(column.max())
            if high - low <= _GAPS * len(column):
                return _of_range(column - low, high - low + 1, low)
        labels, numbers = np.unique(column, return_inverse=True)
        return Ids(labels), numbers.astype(np.int32)

    @staticmethod
    def numbers(count: int) -> Ids:
        """The rows, or columns, of a matrix."""
        return Ids(np.arange(count))

    def find(self, column: Any, what: str) -> NDArray[np.int32]:
        """The number of each label, -1 of those that are not known."""
        column = np.asarray(column)
        if column.shape == (0,):  # of no kind
            return np.empty(0, np.int32)
        column = checked(column, what)
        if (column.dtype.kind == "U") != (self.labels.dtype.kind == "U"):
            raise InputError(
                f"{what.capitalize()}s must be of the kind that `fit` has seen, "
                f"{self.labels.dtype}; got {column.dtype}, such as {column[:1].tolist()}."
            )
        places = np.searchsorted(self.labels, column)
        places[places == len(self.labels)] = 0
        found = self.labels[places] == column
        return np.where(found, places, -1).astype(np.int32)


def _of_range(column: NDArray[Any], count: int, low: int) -> tuple[Ids, NDArray[np.int32]]:
    """As by sorting, without it."""
    numbers = np.zeros(count, np.int32)
    numbers[column] = 1
    labels = np.flatnonzero(numbers)
    numbers[labels] = np.arange(len(labels), dtype=np.int32)
    return Ids(labels + low), numbers[column]


def _of_objects(column: NDArray[Any], what: str) -> NDArray[Any]:
    """As numpy would have it, but of one kind: beside texts it makes texts of all."""
    text = np.fromiter((isinstance(one, str) for one in column), bool, len(column))
    if text.any():
        _refuse(
            ~text,
            column,
            what,
            "a text where others are",
            "make all texts, or leave such rows out",
        )
    return np.array(column.tolist())


def _a(what: str) -> str:
    return f"{'An' if what[0] in 'aeio' else 'A'} {what}"


def _refuse(bad: NDArray[Any], column: NDArray[Any], what: str, must: str, do: str) -> None:
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"{_a(what)} must be {must}, got {column[place]} in row {place}: {do}."
        )


def checked(column: NDArray[Any], what: str) -> NDArray[Any]:
    """Labels as whole numbers or as text.

    Raises
    ------
    InputError
        When one is missing, or is neither.
    """
    if column.ndim != 1:
        raise InputError(
            f"The {what}s must be a list of labels, got shape {column.shape}; ratings of "
            "new users must be a sparse matrix."
        )
    if column.dtype.kind == "O":
        column = _of_objects(column, what)
    kind = column.dtype.kind
    if kind == "f":
        whole = np.isfinite(column) & (np.floor(column) == column)
        _refuse(~whole, column, what, "a whole number or a text", "leave such rows out")
        digits = np.finfo(column.dtype).nmant + 1
        lost = np.abs(column) >= 2.0**digits  # may stand for its neighbours too
        _refuse(lost, column, what, f"below 2^{digits} as a float", "give whole numbers")
        return column.astype(np.int64)
    if column.dtype == np.uint64:
        _refuse(column >= 2**63, column, what, "below 2^63", "give texts")
    if kind not in "iuU":
        raise InputError(
            f"{_a(what)} must be a whole number or a text, and all of one kind; got "
            f"{column.dtype} such as {column[:1].tolist()}: leave out rows where it is "
            "missing."
        )
    return column.astype(np.int64) if kind in "iu" else column
