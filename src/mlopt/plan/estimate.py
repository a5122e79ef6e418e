"""Seconds that are foreseen, how far off they may be, and how that is known."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from mlopt.errors import InputError
from mlopt.plan.units import format_seconds


@dataclass(frozen=True)
class Estimate:
    """What a run will take.

    Parameters
    ----------
    seconds : float
    low, high : float
        ``0 <= low <= seconds <= high``: four runs of five are within.
    source : str
        How it is known: "price list", "3 fits to samples of the rows".

    Examples
    --------
    >>> from mlopt.plan import Estimate
    >>> print(Estimate.about(2.0, 1.5, "price list"))
    2.0 s, 1.3 s to 3.0 s (price list)
    """

    seconds: float
    low: float
    high: float
    source: str

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.seconds <= self.high:
            raise InputError(
                "An estimate must hold `0 <= low <= seconds <= high`, got "
                f"{self.low!r}, {self.seconds!r} and {self.high!r}."
            )

    @classmethod
    def about(cls, seconds: float, doubt: float, source: str) -> Estimate:
        """``seconds``, give or take a factor of ``doubt``."""
        return cls(seconds, seconds / doubt, seconds * doubt, source)

    def __str__(self) -> str:
        seconds, low, high = map(format_seconds, (self.seconds, self.low, self.high))
        return f"{seconds}, {low} to {high} ({self.source})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)
