"""What fits to samples of the rows tell of a search: of a few configurations, side by side.

Fits of a search run side by side, and so do these: what they take from one another, the
interpreter above all, they then take here too. The first two are of one configuration alone
and say how many others are worth it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from mlopt.cluster import Executor, Handle, single_threaded
from mlopt.costs import Cost, Fit
from mlopt.errors import ClusterError, TaskKilledError
from mlopt.hearing import unheard_by_all
from mlopt.kernels.compiling import worked
from mlopt.pipeline.by_split import Streamed
from mlopt.pipeline.steps.generators import generators_as_they_were
from mlopt.prices import count, price
from mlopt.resources.queued import queued
from mlopt.rows import Rows
from mlopt.stats import Stats, stored_share
from mlopt.tuning.crews.chain import Parts, fit_steps, params_of_final
from mlopt.tuning.crews.clones import clone_apart
from mlopt.tuning.crews.fitting import cut_params
from mlopt.tuning.crews.own import own_params
from mlopt.tuning.crews.plain import may_pay
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.scoring import Metrics

SIZES = (2048, 4096)
"""Rows of the two samples at most; a small table gives a quarter and a half of itself.
Boosted trees have all their leaves from some 1500 rows on: below, their time grows with the
leaves, and a line through it promised two to three times what fits take (`growth.py`)."""
STEEP, STEEPEST = 1.25, 2.0
"""How much faster than its rows the time of a sample must grow to be a power of them, and
the largest power: noise of two short fits must not promise a thousand times as long. Nor is
it told from less that fits beside each other wait for Python."""
SHARE = price("samples.share")
LITTLE = price("samples.little")
FEWEST = count("samples.rows")
MOST = count("samples.configurations")
WAITS = 0.25
"""Part of a time limit that samples are waited for at most: a fit may hang, and a worker
that is started anew for it takes a while."""
GRACE, PATIENCE = price("samples.grace"), price("samples.patience")


@dataclass(frozen=True)
class Profile:
    """What the final estimator sees, and what one fit on the training rows takes.

    ``fit`` is of the final estimator, ``prepare`` of its preprocessing, ``score`` of one
    score: in the mean of the configurations that were tried. None when not sampled.
    ``read`` is beside ``prepare``, once for all splits.
    """

    stats: Stats
    fit: Cost | None = None
    prepare: Cost | None = None
    score: Cost = field(default_factory=Cost)
    read: Cost = field(default_factory=Cost)
    source: str = ""
    """The samples in words."""
    example: Any = None
    """Some rows as the final estimator sees them."""
    crowded: float = 1.0
    """How many times as long a fit takes beside others in this process."""


@dataclass(frozen=True)
class _Look:
    """Seconds on a sample; of one that is shown, rows as the final estimator saw them."""

    prepare: float
    fit: float
    score: float
    rows: Any
    queued: float = 0.0
    """Of the seconds: for which others had the cores."""

    @property
    def seconds(self) -> float:
        return self.prepare + self.fit + self.score

    @property
    def undisturbed(self) -> float:
        """Seconds without those of others."""
        return max(self.seconds - self.queued, 0.0)

    def times(self, factor: float) -> _Look:
        """One that takes so many times as long."""
        own = {n: factor * getattr(self, n) for n in ("prepare", "fit", "score", "queued")}
        return replace(self, **own)


def profiled(
    problem: Problem,
    typical: Parts,
    drawn: Callable[[int], Sequence[Parts]] | None,
    fits: float,
    limit: float = math.inf,
) -> Profile:
    """Fit to samples of two sizes and extrapolate.

    Parameters
    ----------
    problem : Problem
    typical : Parts
        A configuration in the middle of the space.
    drawn : callable, optional
        Gives so many others, all over the space; without it the typical one stands for all.
    fits : float
        Fits that the search makes.
    limit : float
        Seconds after which the search ends.

    References
    ----------
    KeystoneML, section V-D: profile at two sizes, extrapolate time linearly. Here by a
    power where time has grown faster than that: kernels of all pairs of rows do so.
    """
    train = problem.splits[0].train
    rows = np.random.default_rng(problem.seed).permutation(train)
    few = max(FEWEST, int(SHARE * fits * len(train) / 3))  # both sizes: three times these
    small = max(1, min(few, len(train) // 4, SIZES[0]))
    for sizes in ((small, 2 * small), (len(train) // 2, len(train))):
        (first,), lost = _side_by_side(problem, [(typical, rows[: sizes[0]])], limit)
        if first is not None:
            break
        if lost:  # and so would another be
            return Profile(shape_of(problem.X))
    else:
        return Profile(shape_of(problem.X))  # the search will tell what is wrong
    most = SHARE * limit * problem.executor.threads
    if most < 3 * first.seconds:  # time is too short for another look
        return _profile(problem, [(first, first)], [], (sizes[0], sizes[0]), first.rows)
    # Where it may pay to be apart, the first once more on all other threads: how much
    # longer it takes so is what they take from one another.
    longest = min(limit, fits * first.seconds * len(train) / sizes[0])
    crowd = problem.executor.threads - 1 if may_pay(problem, typical, longest) else 0
    jobs = [(typical, rows[: sizes[1]])] + crowd * [(typical, rows[: sizes[0]])]
    (second, *crowded), _ = _side_by_side(problem, jobs, limit)
    if second is None:
        return _profile(problem, [(first, first)], [], (sizes[0], sizes[0]), first.rows)
    slower = 1.0
    if beside := [look for look in crowded if look is not None]:
        # Who waits for a core, and not for Python, would wait in a process as well.
        slower = _ratio([look.undisturbed for look in beside], first.undisturbed)
        slower = slower if slower > STEEP else 1.0
        first, second = _crowded(first, second, beside)
    # Of some fits most takes as long for few rows: then samples are no small part of them.
    each = first.seconds + second.seconds
    one_fit = extrapolated([*sizes], [first.seconds, second.seconds], len(train))
    by_rows = SHARE * fits * first.seconds * len(train) / sizes[0]
    spare = min(most, by_rows, max(SHARE * fits * one_fit, LITTLE) - each)
    both, one = (_within(spare, unit) for unit in (each, first.seconds))
    tried = drawn(both) if drawn and both > 0 else []
    others = drawn(one) if drawn and one > 0 and not tried else []
    jobs = [(parts, rows[:size]) for size in sizes[::-1] for parts in tried]
    jobs += [(parts, rows[: sizes[0]]) for parts in others]
    patient = GRACE + PATIENCE * len(jobs) * first.seconds
    looks, _ = _side_by_side(problem, jobs, limit, patient)
    pairs, others_beside = [(first, second)], [look for look in looks if look is not None]
    if tried:  # each on both samples, where both ended; the larger ones began first
        both_sizes = zip(looks[len(tried) :], looks, strict=False)
        spread = [(less, more) for less, more in both_sizes if less and more]
        # Fewer than threads end side by side no more: the first pair knows what that adds.
        few = len(spread) < problem.executor.threads
        pairs, others_beside = [*pairs, *spread] if few else spread, []
    found = _profile(problem, pairs, others_beside, sizes, second.rows)
    return replace(found, crowded=slower)


def _crowded(first: _Look, second: _Look, beside: Sequence[_Look]) -> tuple[_Look, _Look]:
    """Both as they would be beside others all along.

    ``first`` was alone. ``second`` began with those ``beside`` it, which are as large as
    the first and end sooner: from then on it was alone.
    """
    longer = _ratio([look.seconds for look in beside], first.seconds)
    together = min(second.seconds, longer * first.seconds)
    alone = second.seconds - together * (1 - 1 / longer)
    share = alone / second.seconds if second.seconds > 0 else 1.0
    return first.times(longer), second.times(longer * share)


def _within(spare: float, unit: float) -> int:
    """Looks in so many seconds; those too short to be measured may be many."""
    return min(MOST, round(spare / unit)) if unit > 0 else MOST


def _ratio(beside: Sequence[float], alone: float) -> float:
    """How many times as long fits take beside others, in the mean."""
    return max(1.0, sum(beside) / len(beside) / alone) if alone > 0 else 1.0


def _profile(
    problem: Problem,
    pairs: Sequence[tuple[_Look, _Look]],
    beside: Sequence[_Look],
    sizes: tuple[int, int],
    example: Any,
) -> Profile:
    rows = len(problem.splits[0].train)
    prepare, fit, score = (
        Cost(fixed=_mean(pairs, beside, name, sizes, rows), source="sampled")
        for name in ("prepare", "fit", "score")
    )
    seen = replace(shape_of(example), rows=problem.n, bytes=-1)
    number = 2 * len(pairs) + len(beside)
    source = f"{number} fits to {sizes[0]} and {sizes[1]} rows"
    if sizes[0] == sizes[1]:
        source = f"a fit to {sizes[0]} rows"
    return Profile(seen, fit, prepare, score, source=source, example=example)


def some_rows(problem: Problem) -> Any:
    """As many as tell what is asked of a few."""
    return _safe_indexing(problem.gathered, problem.some(SIZES[0]))


def _mean(
    pairs: Sequence[tuple[_Look, _Look]],
    beside: Sequence[_Look],
    name: str,
    sizes: tuple[int, int],
    rows: int,
) -> float:
    """Seconds on so many ``rows``, in the mean of the configurations.

    Those ``beside`` were fitted to the smaller sample alone: they grow as the others do.
    """
    sums = [sum(getattr(pair[side], name) for pair in pairs) for side in (0, 1)]
    mean = extrapolated([*sizes], sums, rows) / len(pairs)
    if beside and sums[0] > 0:
        small = sum(getattr(look, name) for look in beside) / len(beside)
        mean *= small / (sums[0] / len(pairs))
    return mean


def _side_by_side(
    problem: Problem,
    jobs: Sequence[tuple[Parts, Any]],
    limit: float,
    patient: float = math.inf,
) -> tuple[list[_Look | None], bool]:
    """One fit a job, None where it raised or had not ended after ``patient`` seconds, or
    their part of ``limit``; and whether one hung or killed who ran it.

    They run where trials do: a fit that kills its process must not kill the driver, and a
    worker's seconds are those that the search will take.
    """
    executor = problem.executor
    metrics = problem.metrics
    # A scorer of the user's own is called for what it is asked to judge alone.
    judged = metrics if metrics.names_only and not problem.score_params else None
    cuts: dict[tuple[int, bool], Handle] = {}
    handles: list[Handle] = []
    # Not in threads: filters and generators are those of the process.
    # A sample may be too small for good results.
    with unheard_by_all(), generators_as_they_were():
        for parts, rows in jobs:
            size = (len(rows), parts.pairwise)
            if size not in cuts:
                cuts[size] = executor.put(_cut(problem, rows, pairwise=parts.pairwise))
            own = params_of_final(parts.path, problem.fit_params)
            given = own_params(cut_params(own, problem.n, rows))
            job = _Job(parts, given, judged, shown=not handles)
            handles.append(executor.submit(_look, cuts[size], job))
        ended = _ended(executor, handles, min(patient, WAITS * limit), limit)
        if late := [handle for handle in handles if handle not in ended]:
            executor.abandon(late)
    found: list[_Look | None] = []
    lost = len(ended) < len(handles)
    for handle in handles:
        try:
            found.append(executor.result(handle) if handle in ended else None)
        except ClusterError:
            raise
        except Exception as error:  # of a sample that lacks what a fit needs, as a rule
            found.append(None)
            lost |= isinstance(error, TaskKilledError)
    for handle in (*handles, *cuts.values()):
        executor.release(handle)
    return found, lost


def _ended(
    executor: Executor, handles: Sequence[Handle], seconds: float, limit: float
) -> set[Handle]:
    """Those that have ended after so many ``seconds``, without those in which kernels
    compiled: who is abandoned then compiles anew at the next call. With them, ``limit``.
    """
    begun, wait, ended = time.perf_counter(), seconds, set[Handle]()
    while wait > 0 and len(ended) < len(handles):
        late = [handle for handle in handles if handle not in ended]
        try:
            ended.update(executor.as_completed(late, min(wait, threading.TIMEOUT_MAX)))
        except TimeoutError:
            ended.update(handle for handle in late if handle.done())
        # A little at least: a compilation that begins at the last moment is no busy loop.
        left = seconds - worked(begun)
        most = limit - (time.perf_counter() - begun)
        wait = min(max(left, LITTLE), most) if left > 0 else 0.0
    return ended


def extrapolated(sizes: list[int], seconds: list[float], rows: int) -> float:
    """Seconds on so many ``rows``, from those on two smaller sizes."""
    (few, many), (quick, slow) = sizes, seconds
    if few == many:
        return Fit.of([many], [slow]).at(rows)
    faster = quick > 0 and slow / quick > STEEP * many / few
    if not faster:
        return Fit.of(sizes, seconds).at(rows)
    power = min(math.log(slow / quick) / math.log(many / few), STEEPEST)
    return float(slow * (rows / many) ** power)


@dataclass(frozen=True)
class _Sample:
    """Some of the rows that a split trains on; ``scored``: as many as a test has."""

    X: Any
    y: Any
    scored: int


def _cut(problem: Problem, rows: Any, *, pairwise: bool) -> _Sample:
    X, split = _safe_indexing(problem.gathered, rows), problem.splits[0]
    if pairwise:
        X = _safe_indexing(X, rows, axis=1)
    y = None if problem.y is None else _safe_indexing(problem.y, rows)
    scored = min(len(rows), len(rows) * len(split.test) // len(split.train) or 1)
    return _Sample(X, y, scored)


@dataclass(frozen=True)
class _Job:
    """What is fitted, with which parameters, and judged by which metrics if by any; and
    whether rows are ``shown`` as it sees them."""

    parts: Parts
    params: Mapping[str, Any]
    judged: Metrics | None
    shown: bool


def _look(sample: _Sample, job: _Job) -> _Look:
    """One fit to these rows, and one score where there are metrics."""
    found = _timed(sample, job)
    # Where kernels compiled all the while, here or on another thread, no work was seen.
    return found if found.seconds > 0 else _timed(sample, job)


def _timed(sample: _Sample, job: _Job) -> _Look:
    X, y, final = sample.X, sample.y, clone_apart(job.parts.final)
    # On one thread, as trials are; OpenMP on so few rows would wait more than it works.
    with single_threaded():
        start, waited = time.perf_counter(), queued()
        _, X = fit_steps(job.parts, X, y)
        prepare, prepared = worked(start), time.perf_counter()
        final.fit(X, *(() if y is None else (y,)), **job.params)
        fit, fitted = worked(prepared), time.perf_counter()
        score = 0.0
        if job.judged is not None:
            part = np.arange(sample.scored)
            targets = None if y is None else _safe_indexing(y, part)
            job.judged.score(final, _safe_indexing(X, part), targets)
            score = worked(fitted)
        waited = queued() - waited
    rows = _safe_indexing(X, slice(SIZES[0])) if job.shown else None
    return _Look(prepare, fit, score, rows, waited)


def shape_of(X: Any) -> Stats:
    """What is known of rows without looking at them."""
    if isinstance(X, Streamed):
        return Stats(X.n, X.shape[1])
    if isinstance(X, Rows):
        density = X.nonzero / (X.n * X.d)
        return Stats(X.n, X.d, density=density, dtype=str(X.dtype), sparse=X.sparse)
    if len(getattr(X, "shape", ())) != 2:
        return Stats(_num_samples(X), 1)  # texts, images: what they hold is not known
    if sparse.issparse(X):
        n, d = X.shape
        return Stats(n, d, density=stored_share(X), dtype=str(X.dtype), sparse=True)
    dtype = str(X.dtype) if isinstance(X, np.ndarray) and X.dtype.kind == "f" else "float64"
    return Stats(X.shape[0], X.shape[1], dtype=dtype)
