"""What a call gives or raises, and where two of them differ."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

FAMILIES = (
    AttributeError, TypeError, KeyError, IndexError, NotImplementedError, ArithmeticError,
    MemoryError, OSError, ValueError, RuntimeError,
)  # fmt: skip


@dataclass(frozen=True)
class Raised:
    """An exception in place of a value."""

    error: BaseException

    @property
    def family(self) -> type[BaseException]:
        """The built-in class that a caller would catch."""
        return next((f for f in FAMILIES if isinstance(self.error, f)), Exception)

    def __str__(self) -> str:
        text = str(self.error).strip().splitlines() or [""]
        return f"{type(self.error).__name__}: {text[0][:150]}"


class Difference(AssertionError):
    """Where two results differ, and how.

    Attributes
    ----------
    where, what : str
    ours, theirs : Raised or None
        What was raised in place of a result.
    off : float or None
        Of numbers, the largest difference relative to the largest of scikit-learn's; of
        anything else in arrays, the share that differs.
    """

    def __init__(
        self,
        where: str,
        what: str,
        *,
        ours: Raised | None = None,
        theirs: Raised | None = None,
        off: float | None = None,
    ) -> None:
        super().__init__(f"{where}: {what}")
        self.where, self.what, self.off = where, what, off
        self.ours, self.theirs = ours, theirs


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, computed if it is lazy, or what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call()
            return found.compute() if hasattr(found, "dask") else found
        except Exception as error:  # as scikit-learn raises, whatever it is
            return Raised(error)
