"""From measurements on small samples to seconds and bytes at full size.

Source: KeystoneML, section V-D: profile at two sizes (512 and 1024 rows) and extrapolate
time and memory linearly, each by its own line ``a * n + b`` with ``a, b >= 0``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlopt.costs import Fit


@dataclass(frozen=True)
class Measured:
    """One execution of one node on a sample.

    Parameters
    ----------
    rows : int
        Of the sample.
    seconds : float
    bytes : float
        Of the output.
    """

    rows: int
    seconds: float
    bytes: float


@dataclass(frozen=True)
class Profile:
    """The lines of one node.

    Parameters
    ----------
    seconds, bytes : Fit
    """

    seconds: Fit
    bytes: Fit

    @classmethod
    def of(cls, measured: Sequence[Measured]) -> Profile:
        """Both lines by least squares; repeated measurements of one size count alike.

        Raises
        ------
        InputError
            When there is no measurement, a number of rows is not positive, or a time or a
            size is negative or not finite.
        """
        rows = [m.rows for m in measured]
        seconds = Fit.of(rows, [m.seconds for m in measured])
        return cls(seconds, Fit.of(rows, [m.bytes for m in measured]))

    def at(self, rows: int) -> Measured:
        """One execution on ``rows`` rows, as predicted."""
        return Measured(rows, self.seconds.at(rows), self.bytes.at(rows))
