"""A data set in memory: features, and the target beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlopt.errors import InputError, did_you_mean


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
    """

    X: Any
    y: Any
    target: str | None
    path: str
    names: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.X.shape[0])


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


def listed(names: Sequence[str]) -> str:
    """Names for a message: all of them, or the first and the last."""
    shown = [f"`{name}`" for name in names]
    return ", ".join(shown if len(shown) <= 20 else [*shown[:17], "...", *shown[-2:]])
