"""What is predicted of a method as counted, what experience makes of it, and what it took.

Prices and passes to expect are those of many machines and problems. What fits took on this
machine, and how many passes, is remembered (`mlopt.resources.experience`) by method, and
moves later predictions and their intervals: nothing but what is predicted and chosen.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

from mlopt.gd.plans.expected import expected as expected_of
from mlopt.gd.plans.method import Method, digits
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import CoefficientError, RelativeGap, Stop, asked_of
from mlopt.kernels.compiling import compiled, worked
from mlopt.locking import in_forks, open_in_forks
from mlopt.prices import price
from mlopt.resources.experience import (
    ANY,
    FEW,
    PASSES,
    SECONDS,
    Experience,
    Seen,
    remember,
    told,
)

_BUSY = price("remember.busy")
_LEAST_DOUBT = price("remember.doubt")
_FORESEEN = price("speculation.doubt.shape")
_PRICED = price("run.doubt")
SAMPLED = ("sampled", "extrapolated", "worst case")
"""Where passes come from that were seen on a sample."""


@dataclass(frozen=True)
class Passes:
    """Passes to expect.

    Parameters
    ----------
    expected, low, high : float
        ``low <= expected <= high``.
    source : str
        How that is known: "sampled" and "extrapolated", by a run on a sample; "worst case",
        where that run showed only that they are many; "foreseen", by shape or spectrum;
        "typical", of such shapes; "seen", of such problems on this machine; "known", they
        do not depend on the data.
    """

    expected: float
    low: float
    high: float
    source: str

    @property
    def fewest(self) -> float:
        """As good as never fewer: twice as far off, in digits, as ``low``."""
        return self.low * (self.low / self.expected)  # its square may overflow

    @property
    def most(self) -> float:
        """As good as never more: twice as far off, in digits, as ``high``."""
        return self.high * (self.high / self.expected)

    def within(self, most: float) -> Passes:
        """As they are where there are no more than ``most``."""
        low, middle, high = (min(p, most) for p in (self.low, self.expected, self.high))
        return Passes(middle, low, high, self.source)

    @staticmethod
    def known(passes: float) -> Passes:
        """Passes that do not depend on the data."""
        return Passes(passes, passes, passes, "known")

    @staticmethod
    def about(passes: float, factor: float, source: str) -> Passes:
        """``passes``, give or take a factor."""
        return Passes(passes, max(1.0, passes / factor), passes * factor, source)


def typical(method: Method, outline: Outline, stop: Stop) -> Passes:
    """What is known before a run; passes grow with the digits asked for."""
    if isinstance(stop, CoefficientError):
        return Passes.known(method.steps(outline, stop) if method.steps else 1.0)
    gap = stop.tolerance if isinstance(stop, RelativeGap) else None
    foreseen = method.foreseen(outline, gap) if gap else None
    # A spectrum tells more than problems that were alike, and these more than a shape.
    by_spectrum = foreseen is not None and outline.spectrum is not None
    asked = asked_of(stop, dual=method.bounds)
    seen = None if by_spectrum else expected_of(method.name, outline, asked)
    if seen is None and foreseen is not None:
        return Passes.about(foreseen, _FORESEEN, "foreseen")
    expected, doubt = method.passes(outline.shape), method.doubt
    if seen is not None:
        passes, doubt = seen
        # What is known as well as from a sample needs none.
        source = "foreseen" if doubt <= _FORESEEN else "typical"
        return Passes.about(max(1.0, passes), doubt, source)
    if not method.iterates:
        return Passes.known(expected)
    if gap and (usual := method.usual(outline, gap)) is not None:
        expected, doubt = usual
    elif gap:
        expected *= digits(gap)
    return Passes.about(max(2.0, expected), doubt, "typical")


@dataclass(frozen=True, eq=False)
class Forecast:
    """What is predicted of a method before experience corrects it.

    Parameters
    ----------
    method : str
        Its name.
    outline : Outline
    stop : str
        At what kind of criterion it stops.
    passes : Passes
    seconds : callable
        From a number of passes to seconds.
    experience : Experience or None
        Of this machine; None where nothing is remembered.
    """

    method: str
    outline: Outline
    stop: str
    passes: Passes
    seconds: Callable[[float], float]
    experience: Experience | None

    @property
    def form(self) -> str:
        """The rows that a price is for."""
        return form_of(self.outline)

    @property
    def kind(self) -> str:
        """Problems whose passes are alike, foreseen in one way."""
        source = "speculated" if self.passes.source in SAMPLED else self.passes.source
        return f"{self.outline.loss}, {self.form}, {self.stop}, {source}"

    def corrected_passes(self) -> Passes:
        """Passes to expect, as far as problems like this one were seen here."""
        passes = self.passes
        if self.experience is None or passes.low == passes.high:
            return passes
        ratio = self.experience.of(self.method, PASSES, self.kind)
        if not ratio.count:
            return passes
        doubt = max(ratio.doubt(math.sqrt(passes.high / passes.low)), _LEAST_DOUBT)
        source = "seen" if ratio.count >= FEW else passes.source
        return Passes.about(max(1.0, passes.expected * ratio.factor()), doubt, source)

    def corrected_seconds(self, passes: Passes) -> tuple[float, float, float]:
        """For the fewest passes, for the mean of them, and for the most."""
        low = mean = high = self.seconds(passes.low)
        if passes.high > passes.low:
            high = self.seconds(passes.high)
        if high > low:
            mean = (high - low) / math.log(high / low)
        factor, _ = self._pace
        return factor * low, factor * mean, factor * high

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """Seconds that a run takes four times of five, low and high as passes have it."""
        middle, part = math.sqrt(low * high), math.log(high / low) / 2 if low else 0.0
        width = math.exp(math.hypot(part, math.log(self._pace[1])))
        return middle / width, middle * width

    @property
    def _pace(self) -> tuple[float, float]:
        """What prices are to be multiplied by here, and how far off that may be."""
        known = self.experience or Experience()
        return known.pace(self.method, self.form, _PRICED)

    def seen(self, took: float, passes: int, ended: bool) -> list[Seen]:
        """What a run of this method tells.

        Parameters
        ----------
        took : float
            Seconds.
        passes : int
        ended : bool
            Whether it was at its tolerance then. If not, passes tell something only where
            there were more of them than expected.
        """
        if passes < 1 or (ratio := told(took, self.seconds(passes))) is None:
            return []
        found = [Seen(name, SECONDS, self.form, ratio) for name in (self.method, ANY)]
        guess = self.passes
        if guess.low < guess.high and (ended or passes > guess.expected):
            share = passes / guess.expected
            found.append(Seen(self.method, PASSES, self.kind, share))
        return found


def form_of(outline: Outline) -> str:
    """What kind of rows a price is for."""
    return "sparse" if outline.shape.sparse else "dense"


_lock = open_in_forks(threading.Lock())
_stints: weakref.WeakSet[Stint] = weakref.WeakSet()
"""At work now, in whatever thread."""
in_forks(_stints.clear)


@dataclass(eq=False)
class Stint:
    """A method at work from now on: how long, and whether the machine was its own.

    Parameters
    ----------
    forecast : Forecast
    """

    forecast: Forecast
    crowded: bool = False
    _began: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        if self.forecast.experience is None:
            return
        with _lock:
            for other in list(_stints):
                other.crowded = self.crowded = True
            _stints.add(self)
        self._began = time.perf_counter(), time.process_time()

    def end(self, passes: int, ended: bool) -> None:
        """Remember it, unless others had a part of the machine; see `Forecast.seen`.

        A second call does nothing.
        """
        with _lock:
            if self not in _stints:
                return
            _stints.discard(self)
        wall, processor = self._began
        took = worked(wall)
        idle = time.process_time() - processor < _BUSY * took
        if self.crowded or idle or compiled(wall) > 0:
            return
        if seen := self.forecast.seen(took, passes, ended):
            remember(seen)
