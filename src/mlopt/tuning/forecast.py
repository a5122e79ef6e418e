"""What training an estimator will take: by samples of the rows, and by the cost model."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from mlopt.cluster import single_threaded
from mlopt.costs import Cost, Fit
from mlopt.gd.batch_cost import choose_batch_size, pass_cost
from mlopt.kernels.compiling import worked
from mlopt.pipeline.by_split import Streamed
from mlopt.plan import Choice
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats
from mlopt.tuning.crews.chain import Parts, fit_steps, params_of_final
from mlopt.tuning.crews.families import Way
from mlopt.tuning.crews.fitting import cut_params
from mlopt.tuning.crews.linear_task import LinearTask
from mlopt.tuning.crews.prefixes import keeps
from mlopt.tuning.crews.problem import Problem

SIZES = (1024, 2048)
"""Rows of the two samples; a small data set gives a quarter and a half of itself."""
STEEP, STEEPEST = 1.25, 2.0
"""How much faster than its rows the time of a sample must grow to be a power of them, and
the largest power: noise of two short fits must not make hours of seconds."""
FEWEST = 200
"""Rows below which a fit is not worth predicting."""
WORTH = 3.0
"""Seconds on one thread: a shorter search in batches is begun without samples."""
TYPICAL_PASSES = {False: 20, True: 20}
"""Passes that a model costs until it stops on its own: of quasi-Newton steps, with what the
start on a sample and the preconditioner add to them; of stochastic epochs."""
SGD_SLOWNESS = 1.5
"""Arithmetic of a lockstep epoch against a pass of matrix products: it follows one row at a
time, so that weights come from cache and not from registers."""


_STEP, _EPOCH = price("lbfgs.step"), price("sequential.epoch")
_SCAN, _COLUMN = price("batch.scan"), price("batch.column")


@dataclass(frozen=True)
class Profile:
    """What the final estimator sees, and what one fit on the training rows takes.

    ``fit`` is the whole but the ``score``, ``prepare`` the preprocessing alone; None when
    not sampled.
    """

    stats: Stats
    fit: Cost | None = None
    prepare: Cost | None = None
    score: Cost = field(default_factory=Cost)


@dataclass(frozen=True)
class Forecast:
    """One trial of a family, all its splits, trained to the end on one thread.

    ``batch`` says how many trials share a scan (``trials``), for families that can.
    """

    alone: Cost | None
    batched: Cost | None = None
    batch: Choice | None = None
    trials: int = 1
    reason: str = ""
    """Why the family is fitted one by one; "" when it is not."""
    final: Cost | None = None
    """Of one fit on all rows, on one thread where it was sampled."""
    looked: float = 0.0
    """Seconds that the samples took."""

    @property
    def chosen(self) -> Cost | None:
        """What is expected of the way that is chosen."""
        return self.batched if self.batched is not None else self.alone


def forecast(
    problem: Problem,
    way: Way,
    searched: Iterable[str],
    *,
    n_models: int,
    batch_size: int | str,
    sample: bool,
    at_once: int = 1,
    brief: bool = False,
    looks: float = 0.0,
) -> Forecast:
    """Predict one trial that trains this ``way``, and one by one for comparison.

    Parameters
    ----------
    problem : Problem
    way : Way
    searched : iterable of str
        Names of the parameters that vary: preprocessing that varies is not shared.
    n_models : int
        Trials there will be at most.
    batch_size : int or "auto"
        Trials that share a scan, when the user says so.
    sample : bool
        Whether to fit to samples of the rows.
    at_once : int, default=1
        Trials that train between two decisions of the search.
    brief : bool, default=False
        Whether to leave out samples that would only tell what the way not taken costs,
        when the search is short.
    looks : float, default=0.0
        What looks before its end add to a fit, as a share of it.
    """
    begin = time.perf_counter()
    parts, task, splits = way.parts, way.task, len(problem.splits)
    if brief and task is not None and not parts.steps:
        columns, here = n_models * splits * problem.outputs, Resources.probe()
        scan = pass_cost(_shape(problem.matrix), columns, resources=here)
        sample = sample and (_passes(task) * scan).seconds(here) > WORTH
    known = _profile(problem, parts, sample=sample)
    looked = time.perf_counter() - begin
    alone = final = None
    if known.fit is not None:
        alone = splits * ((1 + looks) * known.fit + known.score)
        final = (problem.n / len(problem.splits[0].train)) * known.fit
    if task is None:
        return Forecast(alone, reason=way.reason, final=final, looked=looked)
    per_model = splits * problem.outputs
    size, choice = choose_batch_size(
        known.stats, Resources.probe(), columns_per_model=per_model, n_models=n_models,
        at_once=at_once,
    )  # fmt: skip
    if batch_size != "auto":
        size, choice = int(batch_size), replace(choice, chosen=f"{batch_size}, as asked")
    together, scans = min(size, max(1, at_once)), splits if parts.steps else 1
    training = _training(task, known.stats, together * per_model, scans)
    batched = (1 / together) * training
    if known.prepare is not None and parts.steps:
        steps = tuple(f"{name}__" for name in parts.names)
        varies = any(name.startswith(steps) for name in searched)
        batched = batched + (splits if varies else splits / n_models) * known.prepare
    final = _training(task, known.stats, problem.outputs, 1)
    return Forecast(alone, batched, choice, size, final=final, looked=looked)


def _training(task: LinearTask, stats: Stats, columns: int, scans: int) -> Cost:
    """So many ``columns`` of weights to their end, shared out among ``scans``."""
    step = _EPOCH if task.schedule is not None else _STEP
    one = pass_cost(stats, -(-columns // scans)) + Cost(python=step)
    beside = Cost(python=scans * _SCAN + columns * _COLUMN)
    return (scans * _passes(task)) * one + beside


def _passes(task: LinearTask) -> float:
    """What a full training comes to, in passes of matrix products."""
    sgd = task.schedule is not None
    return min(task.max_iter, TYPICAL_PASSES[sgd]) * (SGD_SLOWNESS if sgd else 1.0)


def _profile(problem: Problem, parts: Parts, *, sample: bool) -> Profile:
    """Fit to two samples and extrapolate; without samples, the shape alone.

    References
    ----------
    KeystoneML, section V-D: profile at two sizes, extrapolate time linearly. Here by a
    power where time has grown faster than that: kernels of all pairs of rows do so.
    """
    X, train = problem.X, problem.splits[0].train
    X = X.data if isinstance(X, Streamed) and not X.lazy else X
    if isinstance(X, Streamed) and X.lazy:
        return _streamed(problem, X, parts)
    plain = Profile(_shape(X))
    if isinstance(X, Rows) or len(train) < FEWEST or not sample or parts.pairwise:
        return plain
    sizes = [
        min(size, len(train) // part) for size, part in zip(SIZES, (4, 2), strict=True)
    ]
    rows = np.random.default_rng(problem.seed).permutation(train)
    try:
        looks = [_look(problem, parts, rows[:size]) for size in sizes]
    except Exception:  # a sample may lack what a fit needs: the search will tell
        return plain
    prepare, final, score = (
        Cost(fixed=extrapolated(sizes, [*seconds], len(train)), source="sampled")
        for seconds in zip(*(look[:3] for look in looks), strict=True)
    )
    seen = replace(looks[-1][3], rows=problem.n, bytes=-1)
    return Profile(seen, fit=prepare + final, prepare=prepare, score=score)


def extrapolated(sizes: list[int], seconds: list[float], rows: int) -> float:
    """Seconds on so many ``rows``, from those on two smaller sizes."""
    (few, many), (quick, slow) = sizes, seconds
    faster = quick > 0 and slow / quick > STEEP * many / few
    if not faster:
        return Fit.of(sizes, seconds).at(rows)
    power = min(math.log(slow / quick) / math.log(many / few), STEEPEST)
    return float(slow * (rows / many) ** power)


def _look(problem: Problem, parts: Parts, rows: Any) -> tuple[float, float, float, Stats]:
    """Seconds of preprocessing, of the final fit and of its score; what the fit saw."""
    X = _safe_indexing(problem.gathered, rows)
    y = None if problem.y is None else _safe_indexing(problem.y, rows)
    final = clone(parts.final)
    params = cut_params(params_of_final(parts.path, problem.fit_params), problem.n, rows)
    # On one thread, as trials are; OpenMP on so few rows would wait more than it works.
    with single_threaded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a sample may be too small for good results
        start = time.perf_counter()
        _, X = fit_steps(parts, X, y)
        preparing, prepared = worked(start), time.perf_counter()
        final.fit(X, *(() if y is None else (y,)), **params)
        fitted, seen = time.perf_counter(), worked(prepared)
        if problem.metrics.names_only and not problem.score_params:
            # A scorer of the user's own is not called but for what it is asked to judge.
            split = problem.splits[0]
            part = np.arange(len(rows) * len(split.test) // len(split.train) or 1)
            targets = None if y is None else _safe_indexing(y, part)
            problem.metrics.score(final, _safe_indexing(X, part), targets)
            return preparing, seen, worked(fitted), _shape(X)
        return preparing, seen, 0.0, _shape(X)


def _streamed(problem: Problem, X: Streamed, parts: Parts) -> Profile:
    """By a sample of the rows; they are made anew in each pass, unless they are kept."""
    try:
        chain = X.chain(parts.key, parts.steps)
    except Exception:  # a sample may lack what a fit needs: the search will tell
        return Profile(Stats(X.n, X.shape[1]))
    seen = replace(_shape(chain.example), rows=X.n, bytes=-1)
    kept = keeps(problem, chain, len(problem.splits))
    # To fit the steps, to look at what they give, and to train.
    times = 2 + (0 if kept else TYPICAL_PASSES[False])
    made = Cost(fixed=times * X.n * (X.row_seconds + chain.row_seconds), source="sampled")
    return Profile(seen, prepare=made)


def _shape(X: Any) -> Stats:
    if isinstance(X, Rows):
        density = X.nonzero / (X.n * X.d)
        return Stats(X.n, X.d, density=density, dtype=str(X.dtype), sparse=X.sparse)
    if len(getattr(X, "shape", ())) != 2:
        return Stats(_num_samples(X), 1)  # texts, images: what they hold is not known
    if sparse.issparse(X):
        n, d = X.shape
        return Stats(n, d, density=X.nnz / max(1, n * d), dtype=str(X.dtype), sparse=True)
    dtype = str(X.dtype) if isinstance(X, np.ndarray) and X.dtype.kind == "f" else "float64"
    return Stats(X.shape[0], X.shape[1], dtype=dtype)
