"""How long what is let in may take, and how many rows that is: from what requests took.

While nobody is refused, a request takes what it takes: that is the **calm** time. Under
overload no more rows are open than are answered within `TIMES` as long (Little's law:
rows that are open = rows answered a second x seconds that each is open). Both are measured
from when a request was there to when it was answered, so all that makes answers slow
counts: refusals, the event loop's turns, waits for a core.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import median
from typing import NamedTuple

REMEMBERED = 9
"""Calls that count: what else the machine does changes as fast. The median of so many has
four on each side, so that a call that was interrupted changes nothing."""
TIMES = 2.5
"""What is let in under overload may take so many times as long as in calm, in most calls
(`SLOW`). Clients shall see 3 times at the 99th percentile (`benchmarks/serving.py`): the
rest is for calls that differ, and for the first ones after calm."""
SLOW = 5
"""Of so many calls under overload one may be slower: the slowest of a hundred take 1.5 to
1.8 times as long as those in the middle (`benchmarks/serving.py`), 1.2 times as long as
the second slowest of `REMEMBERED`, and one that was interrupted changes nothing."""


class Measured(NamedTuple):
    """What was seen of the last calls.

    Attributes
    ----------
    calm : float
        Seconds of the slowest request of a call while nobody is refused; infinite until
        such calls were seen.
    throughput : float
        Rows that were open, by the seconds of the slowest; 0 until it was seen.
    pressed : bool
        Whether that is of calls in which somebody was refused.
    """

    calm: float = math.inf
    throughput: float = 0.0
    pressed: bool = False


class Waits:
    """What requests take in calm, and how many rows are answered a second under overload.

    Parameters
    ----------
    latency : float
        Seconds that what is let in may take at most, however long it takes in calm.
    """

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.measured = Measured()
        self._refused = False
        self._quiet: deque[tuple[float, float]] = deque(maxlen=REMEMBERED)
        self._pressed: deque[float] = deque(maxlen=REMEMBERED)

    def refused(self) -> None:
        """A request had no credit: this is no calm."""
        self._refused = True
        self._quiet.clear()

    def took(self, rows: int, seconds: float) -> None:
        """The slowest request of a call took ``seconds``, and ``rows`` were open.

        Only `REMEMBERED` calls in a row without a refusal are calm: between two refusals
        requests still wait behind those that were let in before.
        """
        seconds = max(seconds, math.ulp(1.0))  # clocks have steps
        refused, self._refused = self._refused, False
        if refused:
            self._pressed.append(rows / seconds)
            slow = sorted(self._pressed)[len(self._pressed) // SLOW]
            self.measured = Measured(self.measured.calm, slow, True)
            return
        self._quiet.append((seconds, rows / seconds))
        if len(self._quiet) == REMEMBERED:
            calm, throughput = map(median, zip(*self._quiet, strict=True))
            self.measured = Measured(calm, throughput)
            self._pressed.clear()

    def allowed(self, least: float) -> float:
        """Seconds that what is let in may take.

        Parameters
        ----------
        least : float
            Seconds that count as calm, even where so few asked that it took less.
        """
        return min(self.latency, TIMES * max(self.measured.calm, least))
