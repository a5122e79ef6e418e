"""Samples of a problem's rows on which methods show how many passes they take.

::

    rows for each column of weights
      20             fewer than this are another problem
      200            where methods begin
      1 / (0.6 tol)  the minimum of a sample is as near to that of all rows as was asked for

With s rows the minimum is about ``d / (2 s)`` too low, in units of the log-likelihood: that
much is noise. Where it is more than the tolerance, a method goes after the noise, for which
it may need many more passes than for what all rows have in common.
"""

from __future__ import annotations

from mlopt.gd.plans.task import Problem
from mlopt.gd.sample import USUAL_LOSS, draw
from mlopt.prices import count

_LEAST = count("samples.least")
_FEWEST = count("samples.fewest")
USUAL = count("samples.usual")
MANY = count("samples.many")
_BYTES = count("samples.bytes")


class Samples:
    """Samples of one problem, drawn when they are first needed.

    Parameters
    ----------
    problem : Problem
    tolerance : float
        Relative to the minimum of the objective.

    Attributes
    ----------
    least, usual, most : int
        Rows.
    """

    def __init__(self, problem: Problem, tolerance: float) -> None:
        n, size = problem.rows.n, (problem.rows.d + 1) * problem.outputs
        self.problem, self._noise = problem, size / (2 * USUAL_LOSS)
        self.least = min(max(_LEAST * size, _FEWEST), max(n // 8, 1))
        held = _BYTES * n // max(problem.rows.nbytes, 1)
        enough = min(max(USUAL * size, MANY), n // 4, held)
        self.usual = max(enough, self.least)
        near = min(round(self._noise / tolerance), n // 2, held)
        self.most = max(near, self.usual)
        self._drawn: dict[int, Problem] = {}

    def within(self, rows: float) -> int | None:
        """The usual size or a half of it, ..., for so many rows; None below the least."""
        size = self.usual
        while size > rows and size // 2 >= self.least:
            size //= 2
        return size if size <= rows else None

    def noise(self, size: int) -> float:
        """By how much the minimum of so many rows is too low, relative to it."""
        return self._noise * max(1.0 / size - 1.0 / self.problem.rows.n, 0.0)

    def of(self, size: int) -> Problem:
        """The same task on so many rows."""
        if size not in self._drawn:
            self._drawn[size] = self.problem.on(draw(self.problem.rows, max(size, 1)))
        return self._drawn[size]
