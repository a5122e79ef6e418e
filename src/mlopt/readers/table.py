"""A data set in memory: features, and the target beside them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError, did_you_mean


@dataclass(frozen=True)
class Known:
    """What is known of a text before it is read: it is to be read as that of a training.

    Attributes
    ----------
    names : collection of str
        Columns that it must have, by which a header is known.
    texts : collection of str
        Columns whose cells stay as they are written: ``007`` is no number.
    decimal : str or None
        "," where numbers had a decimal comma there; "." where one surely had a point.
    """

    names: Collection[str] = ()
    texts: Collection[str] = ()
    decimal: str | None = None


UNKNOWN = Known()

WHOLE = 2.0**53
"""Up to which every whole number is a float of 64 bits."""


@dataclass(frozen=True)
class Table:
    """What was read.

    Attributes
    ----------
    X : DataFrame, ndarray or csr_array of shape (n, d)
        Without the target.
    y : Series or ndarray of shape (n,), or None
        The target, when one was named or the format sets it apart.
    target : str or None
        Its name.
    path : str
        Where it came from.
    names : tuple of str
        The columns of ``X``.
    numbers : tuple of int
        Their numbers in the file, from 0, where it has others that say nothing; else empty.
    remarks : tuple of str
        What a reader decided that another might not have, as sentences.
    doubts : tuple of str
        Those of them for which nothing speaks: numbers that may mean another.
    numbered_from : int or None
        The number of the first column in a LIBSVM file, 0 or 1.
    decimal : str or None
        "," where numbers of a text have a decimal comma; "." where one surely has a point.
    written : callable or None
        Of a text: a column, by its name, with its cells as they are written.
    """

    X: Any
    y: Any
    target: str | None
    path: str
    names: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    numbered_from: int | None = None
    decimal: str | None = None
    written: Callable[[str], Any] | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.X.shape[0])

    def labels(self, values: Any) -> Any:
        """A column as labels: its texts, where 007 or true have come to be 7 and True.

        Texts that tell more apart than numbers do, as of 7 and 07, are no names of classes;
        but where whole numbers are more than floats have digits for.
        """
        known = values.dropna()
        truths = {True, False}.issuperset(known.unique()) and known.dtype.kind not in "iuf"
        if self.written is None or not (truths or known.dtype.kind in "iuf"):
            return values
        texts = self.written(values.name)
        odd = ~texts.isin(["True", "False"]) if truths else texts.str.match(r"0\d")
        alike = texts.nunique() == known.nunique()
        renamed = odd[texts.notna()].any() and alike
        if known.dtype.kind == "f" and known.abs().max() > WHOLE:
            renamed = not alike
        return texts.set_axis(values.index) if renamed else values


def table_of(frame: Any, target: str | int | None, path: str) -> Table:
    """A table of a data frame, its target set apart."""
    if frame.shape[0] == 0:
        raise InputError(f"`{path}` must have rows, but has a header only: add some data.")
    if target is None:
        return Table(frame, None, None, path, tuple(frame.columns))
    name = column(list(frame.columns), target, path)
    X = frame.drop(columns=name)
    if X.shape[1] == 0:
        raise InputError(
            f"`{path}` must have a column beside the target `{name}`, but has no other: is "
            "it separated by commas, semicolons, tabs or blanks?"
        )
    return Table(X, frame[name], name, path, tuple(X.columns))


def column(names: Sequence[str], wanted: str | int, path: str) -> str:
    """The column that ``wanted`` means: a name, a number, or "last"."""
    if wanted in names:
        return str(wanted)
    if wanted == "last":
        return names[-1]
    try:
        return names[int(wanted)]
    except (ValueError, IndexError):
        raise InputError(
            f"The target must be a column of `{path}`, but there is none named `{wanted}`."
            f"{did_you_mean(str(wanted), names)} Columns: {listed(names)}."
        ) from None


def as_integers(whole: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers as int64, or as uint64 where these are too large for that."""
    large = whole.dtype.kind == "u" and int(whole.max(initial=0)) > np.iinfo(np.int64).max
    return whole if large else whole.astype(np.int64)


def listed(names: Sequence[str]) -> str:
    """Names for a message: all of them, or the first and the last."""
    shown = [f"`{name}`" for name in names]
    return ", ".join(shown if len(shown) <= 20 else [*shown[:17], "...", *shown[-2:]])
