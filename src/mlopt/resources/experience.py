"""What fits took beside what was predicted: running ratios, for each method of a machine.

A ratio is kept as the mean of its logarithms and their mean distance from it. One fit moves
either by a bounded step, so that a machine that was busy once does no harm; the last ones
count, so that a machine that changes is followed; and few fits are believed in part only.

They are on disk, beside the rates of the machine. Several processes write one file: each
adds its fits to what the file holds now, under a lock, and moves a whole new file into
place. What cannot be written waits in this process, where it counts all the same.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import math
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from mlopt.locking import cached_property, in_forks, open_in_forks
from mlopt.options import switch
from mlopt.prices import price
from mlopt.resources import cache

SECONDS = "seconds"
"""What a run took over what was predicted for the passes that it took."""
PASSES = "passes"
"""Passes that a run took over those that were foreseen."""
ANY = "any method"
"""All methods together: a machine that is slower than its price list is so for all of them,
and those that nobody has tried are no better for it."""
FEW = 3
"""Fits that count as much as the prediction itself, and make a kind of problem known."""
_LAST = 30
"""Fits after which the first ones begin to be forgotten."""
_BOUND = math.log(3.0)
"""How far from the mean a ratio may pull, as a logarithm."""
_SPREAD = 0.3
"""The distance from the mean that is assumed before there are two ratios, a logarithm."""
_USUAL = 1.6
"""Mean distances that hold four fifths of all ratios, where these are normal."""
_SHORTEST = price("remember.shortest")
SETTING = "mlopt.remember"
"""Of ``dask.config``, and DASK_MLOPT__REMEMBER of the environment; on unless false."""
_APART = 1.0
"""Seconds between two writings: short fits must not wait for the disk one by one."""
_KIND = "experience"
"""Of what is kept of a machine, in the name of its file."""
_MOST = 100
"""Fits that wait for a file that can be written; older ones are forgotten."""


@dataclass(frozen=True)
class Ratio:
    """Measured over predicted, of the fits so far.

    Parameters
    ----------
    mean, spread : float
        Of the logarithms: where they lie, and how far from there in the mean.
    count : int
        Of fits.
    """

    mean: float = 0.0
    spread: float = _SPREAD
    count: int = 0

    def __post_init__(self) -> None:
        if not (
            math.isfinite(self.mean) and 0 <= self.spread < math.inf and self.count >= 0
        ):
            raise ValueError(f"A ratio must be finite, and its count at least 0: {self!r}")

    def after(self, ratio: float) -> Ratio:
        """With one more fit, whose measured over predicted is ``ratio``, positive."""
        share = 1.0 / (1 + min(self.count, _LAST - 1))
        off = max(-_BOUND, min(_BOUND, math.log(ratio) - self.mean))
        spread = self.spread
        if self.count:
            spread += share * (abs(off) - spread)
        return Ratio(self.mean + share * off, spread, self.count + 1)

    @property
    def belief(self) -> float:
        """From 0, nothing was measured, to nearly 1."""
        return self.count / (self.count + FEW)

    def factor(self, assumed: float = 1.0) -> float:
        """What predictions are to be multiplied by: ``assumed`` without a fit."""
        known = self.belief * self.mean
        return math.exp(known + (1 - self.belief) * math.log(assumed))

    def doubt(self, assumed: float) -> float:
        """By which factor a corrected prediction may be off: ``assumed`` without a fit."""
        known = self.belief * _USUAL * self.spread
        return math.exp((1 - self.belief) * math.log(assumed) + known)


@dataclass(frozen=True)
class Experience:
    """Every ratio that is remembered of a machine.

    Parameters
    ----------
    entries : tuple of ((str, str, str), Ratio)
        Keys are a method's name, `SECONDS` or `PASSES`, and a kind of problems.
    """

    entries: tuple[tuple[tuple[str, str, str], Ratio], ...] = ()

    @cached_property
    def _by_key(self) -> dict[tuple[str, str, str], Ratio]:
        return dict(self.entries)

    def of(self, method: str, what: str, kind: str) -> Ratio:
        """The ratio of a method on a kind of problems; one of no fits if it has none."""
        return self._by_key.get((method, what, kind), Ratio())

    def pace(self, method: str, form: str, assumed: float = 1.0) -> tuple[float, float]:
        """What a method's seconds are to be multiplied by, and how far off that may be.

        Parameters
        ----------
        method : str
        form : str
            Of the rows: "dense" or "sparse".
        assumed : float, default=1.0
            How far off it may be where nothing ran yet.
        """
        one, all_ = self.of(method, SECONDS, form), self.of(ANY, SECONDS, form)
        return one.factor(all_.factor()), one.doubt(assumed)

    def after(self, seen: Iterable[Seen]) -> Experience:
        """With fits that were seen since."""
        found = dict(self.entries)
        for one in seen:
            key = one.method, one.what, one.kind
            found[key] = found.get(key, Ratio()).after(one.ratio)
        return Experience(tuple(sorted(found.items())))

    def to_dict(self) -> dict[str, dict[str, dict[str, list[float]]]]:
        """Mean, spread and count by method, what is compared, and kind; ready for JSON."""
        found: dict[str, dict[str, dict[str, list[float]]]] = {}
        for (method, what, kind), ratio in self.entries:
            found.setdefault(method, {}).setdefault(what, {})[kind] = list(astuple(ratio))
        return found

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Experience:
        """The inverse of `to_dict`.

        Raises
        ------
        AttributeError, TypeError, ValueError
            For what `to_dict` does not make.
        """
        entries = {
            (str(method), str(what), str(kind)): Ratio(
                float(mean), float(spread), int(count)
            )
            for method, of in found.items()
            for what, kinds in of.items()
            for kind, (mean, spread, count) in kinds.items()
        }
        return cls(tuple(sorted(entries.items())))


@dataclass(frozen=True)
class Seen:
    """One fit: its ``ratio`` of measured over predicted, as `Experience` keeps it."""

    method: str
    what: str
    kind: str
    ratio: float


def told(took: float, foreseen: float) -> float | None:
    """Measured over predicted of one run, as far as it tells something; None where nothing.

    The clock and other programs take so much of either, or give it, that quick runs tell
    little: those of them that are remembered are those that an accident made longer.

    Parameters
    ----------
    took, foreseen : float
        Seconds.
    """
    if took < _SHORTEST or not foreseen > 0:
        return None
    return (took + _SHORTEST) / (foreseen + _SHORTEST)


_lock = open_in_forks(threading.Lock())
_waiting: list[Seen] = []
_last: tuple[object, Experience] = (None, Experience())
_written = -math.inf


def remembers() -> bool:
    """Whether the user lets fits be remembered."""
    return switch(SETTING, True)


def experience() -> Experience | None:
    """What this machine remembers; None where it must not."""
    if not remembers():
        return None
    with _lock:
        return _read().after(_waiting)


def remember(seen: Iterable[Seen]) -> None:
    """Add fits to what is remembered, unless the user does not want that."""
    if not remembers():
        return
    with _lock:
        _waiting.extend(seen)
        del _waiting[:-_MOST]
        if time.monotonic() - _written >= _APART:
            _write()


def _write() -> None:
    """Whoever calls it holds the lock of this process."""
    global _written
    if _waiting:
        _written = time.monotonic()
        with suppress(OSError, RuntimeError), _only_writer(_file()):  # no home, no matter
            found, key = _read().after(_waiting), _machine()
            record = {"formulas": cache.FORMULAS, "methods": found.to_dict()}
            if cache.write(key, _KIND, {"machine": key, **record}):
                _waiting.clear()


@atexit.register
def _end() -> None:
    """Short fits that came one after the other are not lost."""
    if _waiting and remembers():
        _write()


in_forks(_waiting.clear)  # it is the parent's to write


def forget() -> None:
    """Remember nothing of this machine."""
    with _lock, suppress(OSError, RuntimeError):
        _waiting.clear()
        _file().unlink(missing_ok=True)


def _machine() -> dict[str, str]:
    return cache.of_one_thread(cache.identity(1))


def _file() -> Path:
    return cache.path(_machine(), _KIND)


def _read() -> Experience:
    """What the file holds; it is read again when it is another one."""
    global _last
    try:
        file = _file()
        status = file.stat()
    except (OSError, RuntimeError):
        return Experience()
    stamp = str(file), status.st_ino, status.st_mtime_ns, status.st_size
    if _last[0] != stamp:
        _last = stamp, _load(file)
    return _last[1]


def _load(file: Path) -> Experience:
    """Nothing where the file is damaged, or of another price list."""
    try:
        record = json.loads(file.read_text("utf-8"))
        if record["formulas"] != cache.FORMULAS:
            return Experience()
        return Experience.from_dict(record["methods"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Experience()


@contextmanager
def _only_writer(file: Path) -> Iterator[None]:
    """Holds the lock of the file.

    Raises
    ------
    OSError
        When another process holds it, or there cannot be one: nobody waits for it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    number = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(number)
