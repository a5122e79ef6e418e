"""Work as a vector, how pieces of work combine, and the one place where work becomes time.

::

    a + b           one after the other       times add
    a | b           at the same time          the longer one counts
    n * a           n times in a row          times multiply
    a.waves(n, s)   n of them on s slots      ceil(n / s) waves

A leaf is one piece of work in which arithmetic and memory traffic overlap, so the slower
of the two counts (the roofline). A combination remembers its parts: a compute-bound leaf
after a memory-bound one takes the sum of both times, not the roofline of their sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Literal

from mlopt.errors import InputError
from mlopt.resources import Factors, Resources
from mlopt.resources.calibration import AS_COUNTED

Source = Literal["predicted", "sampled", "measured"]

STRENGTH: dict[Source, int] = {"predicted": 0, "sampled": 1, "measured": 2}

WORK = (
    "flops", "flops32", "memory", "disk", "network", "tasks", "round_trips", "python",
    "fixed",
)  # fmt: skip
"""The components of the vector, in the order of the fields of `Cost`, which begin it."""
_work: Callable[[Any], tuple[float, ...]] = attrgetter(*WORK)


@dataclass(frozen=True)
class Cost:
    """Work, and how it is arranged in time.

    Laws: ``+`` and ``|`` are associative with ``Cost()`` as identity; ``n * (a + b)`` is
    ``n * a + n * b``; ``(a | b).seconds(r) <= (a + b).seconds(r)``; more work never takes
    less time.

    Parameters
    ----------
    flops, flops32 : float
        Floating point operations in float64, and in float32.
    memory : float
        Bytes that travel between main memory and a core. What stays in cache is free.
    disk, network : float
        Bytes read or written; bytes sent.
    tasks, round_trips : float
        Tasks scheduled; times that a caller waits for an answer.
    python : float
        Seconds of interpreted code and of small calls, on a machine of speed 1.
    fixed : float
        Seconds that no resource changes, or that were measured as such.
    source : {"predicted", "sampled", "measured"}
        Where the numbers come from. A combination is as weak as its weakest part.
    parts : tuple of Cost
        What this is a combination of; empty for a leaf. The numbers above are then sums
        over the parts.
    overlapped : bool
        Whether the parts run at the same time.

    References
    ----------
    Sparks et al., "KeystoneML" (ICDE 2017), section III: cost as the longest path in
    operations and in bytes. Williams, Waterman, Patterson, "Roofline" (CACM 2009).
    """

    flops: float = 0.0
    flops32: float = 0.0
    memory: float = 0.0
    disk: float = 0.0
    network: float = 0.0
    tasks: float = 0.0
    round_trips: float = 0.0
    python: float = 0.0
    fixed: float = 0.0
    source: Source = "predicted"
    parts: tuple[Cost, ...] = field(default=(), repr=False)
    overlapped: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        work = _work(self)
        if not (min(work) >= 0 and sum(work) >= 0):  # a sum tells NaN, a least may not
            pairs = zip(WORK, work, strict=True)
            name, amount = next((n, a) for n, a in pairs if not a >= 0)
            raise InputError(f"`{name}` of a Cost must be at least 0, got {amount!r}.")
        if self.source not in STRENGTH:
            known = ", ".join(STRENGTH)
            raise InputError(f"`source` must be one of {known}, got {self.source!r}.")

    def __add__(self, other: Cost) -> Cost:
        return _combine((self, other), overlapped=False)

    def __radd__(self, other: int) -> Cost:
        """``sum(costs)`` starts with the integer 0."""
        return self if other == 0 else NotImplemented

    def __or__(self, other: Cost) -> Cost:
        return _combine((self, other), overlapped=True)

    def __mul__(self, times: float) -> Cost:
        if not times >= 0:
            raise InputError(f"A cost repeats at least 0 times, got {times!r}.")
        if times == 0:
            return Cost()
        # A roofline, a sum and a maximum all scale, so a loop needs no node of its own.
        scaled = [times * amount for amount in _work(self)]
        return _cost(scaled, self.source, [p * times for p in self.parts], self.overlapped)

    __rmul__ = __mul__

    def waves(self, n: int, slots: int) -> Cost:
        """``n`` such pieces of work on ``slots`` slots: the last wave counts in full.

        Source: Kaoudi et al., "A Cost-based Optimizer for Gradient Descent Optimization"
        (ML4all, SIGMOD 2017), equations (3) to (5).
        """
        if slots < 1:
            raise InputError(f"`slots` must be at least 1, got {slots!r}.")
        return self * -(-n // slots)

    def seconds(self, resources: Resources, threads: int = 1) -> float:
        """How long this takes: the only place where work becomes time.

        Parameters
        ----------
        resources : Resources
        threads : int, default=1
            Threads of one worker that share every leaf's arithmetic and memory traffic.
        """
        if self.parts:
            choose: Callable[[Iterable[float]], float] = max if self.overlapped else sum
            return choose([part.seconds(resources, threads) for part in self.parts])
        compute = self.flops / resources.gemm_f64 + self.flops32 / resources.gemm_f32
        memory = self.memory / resources.memory_rate(threads)
        return (
            max(compute / max(1, threads), memory)
            + self.disk / resources.disk
            + self.network / resources.network
            + self.tasks * resources.task
            + self.round_trips * resources.round_trip
            + self.python / resources.python
            + self.fixed
        )

    def scaled(self, factors: Factors) -> Cost:
        """This work with each term multiplied by its factor, part by part.

        Laws: all factors 1 change nothing; all factors ``f`` give ``f * cost``, but for the
        terms that have no factor.
        """
        if factors == AS_COUNTED:
            return self
        changed = {
            name: getattr(factors, name) * getattr(self, name) for name in Factors.names()
        }
        parts = tuple(part.scaled(factors) for part in self.parts)
        return replace(self, **changed, parts=parts)

    @property
    def empty(self) -> bool:
        """Whether there is no work at all."""
        return not any(_work(self))


def _combine(costs: tuple[Cost, ...], *, overlapped: bool) -> Cost:
    parts = tuple([part for cost in costs for part in _parts(cost, overlapped)])
    if len(parts) < 2:
        return parts[0] if parts else Cost()
    totals = map(sum, zip(*map(_work, parts), strict=True))
    source = min([part.source for part in parts], key=STRENGTH.__getitem__)
    return _cost(totals, source, parts, overlapped)


def _cost(work: Any, source: Source, parts: Iterable[Cost], overlapped: bool) -> Cost:
    """Of numbers in the order of `WORK`: by place, which plans make thousands of times."""
    rest: Any = source, tuple(parts), overlapped
    return Cost(*work, *rest)


def _parts(cost: Cost, overlapped: bool) -> tuple[Cost, ...]:
    if cost.empty:
        return ()
    same = bool(cost.parts) and cost.overlapped == overlapped
    return cost.parts if same else (cost,)


@dataclass(frozen=True)
class Fit:
    """The line ``a * n + b`` through sampled sizes, with neither ``a`` nor ``b`` negative.

    Parameters
    ----------
    a, b : float
        Growth per unit of size, and what is paid at any size.

    References
    ----------
    KeystoneML, section V-D: profile at two sizes and extrapolate linearly.
    """

    a: float
    b: float

    @classmethod
    def of(cls, sizes: Sequence[float], values: Sequence[float]) -> Fit:
        """Fit by least squares under ``a >= 0`` and ``b >= 0``.

        One size gives a line through the origin: without a second one, all of the value
        is taken to grow.

        Raises
        ------
        InputError
            If there is no sample, or a size is not positive, or a value is negative.
        """
        sizes, values = tuple(map(float, sizes)), tuple(map(float, values))
        if not sizes or len(sizes) != len(values):
            raise InputError(
                "`sizes` and `values` must have one length of at least 1, got "
                f"{len(sizes)} and {len(values)}."
            )
        if not (min(sizes) > 0 and min(values) >= 0 and math.isfinite(sum(sizes + values))):
            raise InputError(
                "`sizes` must be positive and `values` at least 0, all finite; got "
                f"{sizes} and {values}."
            )
        return cls(*_nonnegative_line(sizes, values))

    def at(self, n: float) -> float:
        """The value that the line predicts at size ``n``."""
        return self.a * n + self.b


def _nonnegative_line(n: tuple[float, ...], v: tuple[float, ...]) -> tuple[float, float]:
    """Least squares in two unknowns; the optimum lies on the bound that is violated."""
    n_mean, v_mean = math.fsum(n) / len(n), math.fsum(v) / len(v)
    spread = math.fsum((x - n_mean) ** 2 for x in n)
    if spread > 0:
        pairs = zip(n, v, strict=True)
        a = math.fsum((x - n_mean) * (y - v_mean) for x, y in pairs) / spread
        b = v_mean - a * n_mean
        if a < 0:
            return 0.0, v_mean
        if b >= 0:
            return a, b
    through_origin = math.fsum(x * y for x, y in zip(n, v, strict=True))
    return through_origin / math.fsum(x * x for x in n), 0.0
