"""What training an estimator will take: by samples of the rows, and by the cost model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from mlopt.cluster import Threads
from mlopt.cluster.near import is_near
from mlopt.costs import Cost
from mlopt.gd.pricing import gradient_pass, shape_of_stats
from mlopt.kernels.compiled import missing
from mlopt.locking import cached_property
from mlopt.pipeline.by_split import Streamed
from mlopt.plan import Choice, format_bytes, format_seconds
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.resources.experience import FEW, SECONDS, Ratio
from mlopt.rows import Rows
from mlopt.stats import Stats
from mlopt.tuning.batch_size import LARGEST, choose_batch_size, models_in_words
from mlopt.tuning.crews.chain import Parts
from mlopt.tuning.crews.families import Way
from mlopt.tuning.crews.linear_task import LinearTask
from mlopt.tuning.crews.prefixes import keeps, memory_of_views
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.scans import LOCKSTEP, TYPICAL_PASSES, Scans, at_once_cost
from mlopt.tuning.samples import LITTLE, Profile, profiled, shape_of, some_rows

WORTH = price("search.worth")
PRICES = "price list"
"""How costs of shared scans are known."""
DOUBT = {PRICES: price("search.doubt.priced"), "sampled": price("search.doubt.sampled")}

_DENSE = ("few", "tiles", "slopes")


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
    part: float = 1.0
    """Of one such trial that is expected: others are given up, and looks add to it."""
    source: str = PRICES
    """How it is known."""
    method: str = ""
    """Under which searches over the family are remembered."""
    kernels: int = 0
    """How many must be compiled first."""
    sparse: bool = False
    """Whether the final estimator sees sparse rows."""
    crowded: float = 1.0
    """How many times as long a fit takes beside others in one process."""
    processes: int = 0
    """That fits run in; 0 for the threads of this one."""
    descends: str = LOCKSTEP
    """How models of a scan are expected to."""
    turns: str = ""
    """Why the rows behind preprocessing are not kept for all splits; "" if they are."""
    rounds: int = 1
    """In which the trials begin, at least: no more are in training at the same time."""

    def of_trials(
        self, problem: Problem, cost: Cost, trials: float, *, batched: bool
    ) -> float:
        """Seconds of so many: fits beside each other, scans one after the other."""
        threads, here = problem.executor.threads, problem.resources
        if batched:
            return trials * cost.seconds(here, threads)
        fits = len(problem.splits)
        waves = math.ceil(trials * fits / threads) if trials * fits > threads else 1
        return self.part * max(waves, self.rounds) * cost.seconds(here) / fits

    def slower_together(self, problem: Problem, trials: float) -> str:
        """Why so many trials of a family that has a batched form are fitted one by one.

        Of sparse rows, which a scan shares little of, and by more than both predictions are
        off as a rule: what noise would choose were not the same in the next search.
        """
        if self.alone is None or self.batched is None or not self.sparse:
            return ""
        together = self.of_trials(problem, self.batched, trials, batched=True)
        apart = self.of_trials(problem, self.alone, trials, batched=False)
        if together <= DOUBT[PRICES] * DOUBT["sampled"] * apart:
            return ""
        both = map(format_seconds, (together, apart))
        return "a shared scan would take {}, and fits by themselves {}".format(*both)

    @property
    def chosen(self) -> Cost | None:
        """What is expected of the way that is chosen."""
        return self.batched if self.batched is not None else self.alone

    @cached_property
    def remembered(self) -> Ratio:
        """What searches over the family took here beside what was predicted."""
        experience = Resources.probe().experience
        kind = self.kind
        return Ratio() if experience is None else experience.of(self.method, SECONDS, kind)

    @property
    def kind(self) -> str:
        """Predictions that are alike."""
        return PRICES if self.batched is not None else "sampled"

    @property
    def doubt(self) -> float:
        """By which factor it may be off, once it is multiplied by what is remembered."""
        return self.remembered.doubt(DOUBT[self.kind])

    def paced(self, seconds: float | None) -> float | None:
        """``seconds`` as they turned out here, as far as that is remembered."""
        return None if seconds is None else seconds * self.remembered.factor()

    @property
    def known(self) -> str:
        """How it is known, in words."""
        count = self.remembered.count
        return self.source + (f", {count} searches here" if count >= FEW else "")


def forecast(
    problem: Problem,
    ways: Sequence[Way],
    searched: Iterable[str],
    *,
    n_models: int,
    batch_size: int | str,
    families: int = 1,
    drawn: Callable[[int], Sequence[Parts]] | None = None,
    limit: float = math.inf,
    at_once: int = 1,
    brief: bool = False,
) -> Forecast:
    """Predict one trial of a family, as it trains and one by one for comparison.

    Parameters
    ----------
    problem : Problem
    ways : sequence of Way
        A typical one first, then extremes.
    searched : iterable of str
        Names of the parameters that vary: preprocessing that varies is not shared.
    n_models : int
        Trials there will be at most.
    batch_size : int or "auto"
        Trials that share a scan, when the user says so.
    families : int, default=1
        That share the trials.
    drawn : callable, optional
        Gives so many configurations from all over the space, for samples.
    limit : float
        Seconds after which the search ends, its share of them.
    at_once : int, default=1
        Trials that train between two decisions of the search.
    brief : bool, default=False
        Whether to leave out samples that would only tell what the way not taken costs,
        when the search is short.
    """
    begin = time.perf_counter()
    way, splits = ways[0], len(problem.splits)
    parts, task = way.parts, way.task
    sample = True
    if brief and task is not None and not parts.steps:
        columns, here = n_models * splits * problem.outputs, problem.resources
        shape = shape_of_stats(shape_of(problem.matrix), columns)
        scan = gradient_pass(shape, here)
        sample = (TYPICAL_PASSES * scan).seconds(here) > WORTH
    others, fits = drawn if task is None else None, splits * n_models / families
    tasks = [one.task for one in ways if one.task is not None]
    known = _profile(problem, parts, others, fits, limit, sample=sample, tasks=tasks)
    looked = time.perf_counter() - begin
    steps = tuple(f"{name}__" for name in parts.names)
    varies = any(name.startswith(steps) for name in searched)
    prepares = splits if varies else splits * splits / fits
    method = f"search, {type(parts.final).__name__}"
    alone = final = None
    if known.fit is not None and known.prepare is not None:
        alone = prepares * known.prepare + splits * (known.fit + known.score)
        final = (problem.n / len(problem.splits[0].train)) * (known.prepare + known.fit)
    if task is None:
        return Forecast(
            alone, reason=way.reason, final=final, looked=looked, source=known.source,
            method=method, crowded=known.crowded,
        )  # fmt: skip
    per_model = splits * problem.outputs
    size, choice = choose_batch_size(
        known.stats, problem.resources, columns_per_model=per_model,
        n_models=max(1, min(n_models, at_once)), at_once=at_once,
    )  # fmt: skip
    if task.at_once:  # the more the better: they share what is solved
        size = max(size, min(at_once, LARGEST))
        choice = replace(choice, chosen=models_in_words(size) + " a scan")
    if batch_size != "auto":
        size, choice = int(batch_size), replace(choice, chosen=f"{batch_size}, as asked")
    batched, final, descends = _in_scans(
        problem, tasks, known, min(size, max(1, at_once)), splits if parts.steps else 1,
        max(1.0, n_models / families),
    )  # fmt: skip
    turns = _in_turns(problem, known.stats) if parts.steps else ""
    if turns:  # each scan prepares them anew
        prepares = max(prepares, splits / size)
    if known.prepare is not None and parts.steps:
        one = known.prepare + (1 / splits) * known.read
        batched, final = batched + prepares * one, final + known.prepare + known.read
    found = Forecast(
        alone, batched, choice, size, final=final, looked=looked, method=method,
        kernels=missing(*_kernels(task, known.stats)), sparse=known.stats.sparse,
        turns=turns, descends=descends,
    )  # fmt: skip
    trials = n_models / families
    shares_little = known.stats.sparse and task.by_passes and not sample
    if shares_little and found.of_trials(problem, batched, trials, batched=True) > LITTLE:
        # Fits by themselves may be quicker.
        known = _profile(problem, parts, None, fits, limit, sample=True)
        if known.fit is not None:
            found = replace(found, alone=splits * (known.fit + known.score))
    return found


def _in_scans(
    problem: Problem,
    tasks: Sequence[LinearTask],
    known: Profile,
    together: int,
    scans: int,
    trials: float,
) -> tuple[Cost, Cost, str]:
    """One of so many trials on all splits, one fit on all rows, and how they descend.

    ``together`` train at the same time, in so many ``scans`` of some splits each.
    """
    task, splits, stats = tasks[0], len(problem.splits), known.stats
    if task.at_once:
        models, sets = max(1, round(trials)), splits // scans
        seen = known.example
        all_models = scans * at_once_cost(problem, tasks, stats, models, sets, seen)
        one = at_once_cost(problem, tasks, stats, 1, 1, seen)
        return (1 / models) * all_models, one, LOCKSTEP
    plan, outputs = Scans.of(problem, tasks, stats, known.example), problem.outputs
    brought = scans > 1 and problem.near is not None and is_near(stats.bytes)
    if not (brought or isinstance(problem.executor, Threads)):
        plan = plan.on_workers()
    given = stats, together * splits, outputs, scans
    batched = (1 / together) * plan.cost(*given)
    return batched, plan.final(stats, outputs), plan.way(*given)


def _in_turns(problem: Problem, stats: Stats) -> str:
    """Why rows like these have no room for all splits at a time; "" if they have."""
    room, splits = memory_of_views(problem), len(problem.splits)
    if isinstance(problem.X, Rows | Streamed) or splits * stats.bytes <= room or splits < 2:
        return ""
    each, most = map(format_bytes, (stats.bytes, room))
    return f"{each} a split, and there is room for {most}"


def _kernels(task: LinearTask, stats: Stats) -> tuple[str, ...]:
    """Modules of `mlopt.kernels` that a scan takes its loops from."""
    if task.direct:
        return ()
    if task.by_columns:
        return ("shrinkage",)
    if task.schedule is not None:
        return ("permutation", "sgd" if stats.sparse else "sgd_dense")
    return ("pointwise", "moments", *(("sparse",) if stats.sparse else _DENSE))


def _profile(
    problem: Problem,
    parts: Parts,
    drawn: Callable[[int], Sequence[Parts]] | None,
    fits: float,
    limit: float,
    *,
    sample: bool,
    tasks: Sequence[LinearTask] = (),
) -> Profile:
    """By samples where rows are here or can be; else, what is known of their shape."""
    X = problem.X
    if isinstance(X, Streamed) and X.lazy:
        return _streamed(problem, X, parts, tasks, round(fits / len(problem.splits)))
    if isinstance(X, Rows):
        return Profile(shape_of(X))
    if not sample:
        return Profile(shape_of(problem.gathered), example=some_rows(problem))
    return profiled(problem, parts, drawn, fits, limit)


def _streamed(
    problem: Problem, X: Streamed, parts: Parts, tasks: Sequence[LinearTask], models: int
) -> Profile:
    """By a sample of the rows; they are made anew in each pass, unless they are kept.

    They are read for all splits together, and preprocessed for each.
    """
    try:
        chain = X.chain(parts.key, parts.steps)
        example = X.example(chain)
    except Exception:  # a sample may lack what a fit needs: the search will tell
        return Profile(shape_of(X))
    seen = replace(shape_of(example), rows=X.n, bytes=-1)
    times, threads = 3.0, problem.executor.threads  # to fit steps, to look, and to train
    if tasks and not tasks[0].at_once and not keeps(problem, chain, len(problem.splits)):
        times = 2.0 + Scans.of(problem, tasks, seen, example).passes(models)
    read, made = (
        Cost(fixed=times * X.n * one / threads, source="sampled")
        for one in (X.row_seconds, chain.row_seconds)
    )
    return Profile(seen, prepare=made, read=read, example=example)
