"""From the settings of a `ModelSearchCV` to a scheduler that is ready to run."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from importlib.metadata import version
from numbers import Integral, Real
from typing import Any

from mlopt import events
from mlopt.errors import InputError
from mlopt.training import Limits
from mlopt.tuning import where as places
from mlopt.tuning.bandits import bandit_of
from mlopt.tuning.crews.batching import BatchCrew
from mlopt.tuning.crews.black_box import BlackBoxCrew
from mlopt.tuning.crews.families import Views, Way
from mlopt.tuning.crews.prefixes import Prefixes, memory_of_views
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.forecast import Forecast, forecast
from mlopt.tuning.foresight import Foresight
from mlopt.tuning.inputs import families_of
from mlopt.tuning.pioneers import Pioneers
from mlopt.tuning.planning import search_plan
from mlopt.tuning.rungs import Rungs
from mlopt.tuning.samplers.proposer import Proposer
from mlopt.tuning.samplers.samplers import sampler_of
from mlopt.tuning.scheduler import Scheduler
from mlopt.tuning.space.defaults import class_points, default_points
from mlopt.tuning.space.space import Space
from mlopt.tuning.storage.fingerprint import part, part_of_data, part_of_setting
from mlopt.tuning.storage.store import LONGEST_WAIT, NullStore, Store, open_store
from mlopt.tuning.turns import Turns
from mlopt.tuning.typical import spread, ways_of

FULL_TRAINING = 100
"""Passes of the full training of an estimator that has none (TuPAQ, section 4.3): at these
an ensemble has grown to its full size."""
GENERATION = 16
"""Trials in training at once when the sampler learns: more would make it wait."""
MOST_MODELS = 256
"""Models that one scan is planned for when the search sets no number."""


def prepare(
    search: Any, problem: Problem, given: Mapping[str, Any] | None = None
) -> Scheduler:
    """Everything a search needs, checked.

    ``given`` are the data by name, as the user gave them: a stored study is theirs alone.
    None opens no storage.
    """
    remember = given is not None
    families = families_of(search)
    given_as = {name: estimator for name, (estimator, _) in families.items()}
    estimators = {**given_as, **problem.estimators}
    space = (
        Space.of_families(families, in_turn=isinstance(search.estimator, Mapping))
        if "" not in families
        else Space.of(*_swap(families[""]))
    )
    asked = _trials_asked(search, space)
    prefixes = Prefixes(problem, memory_of_views(problem))
    views = Views(estimators, problem, prefixes, search.random_state)
    sizes = [size for size in (asked, space.size) if size]
    n_trials = min(sizes, default=None)
    n_models = min([MOST_MODELS, *sizes])
    # Samples count, too.
    limits = Limits(seconds=None if search.timeout is None else float(search.timeout))
    ways, forecasts = _foreseen(
        search, asked, problem, space, views, n_models, brief=remember
    )
    max_passes = _max_passes(search, ways)
    perfect = _perfect(problem)
    bandit = bandit_of(search.bandit, max_passes, asked, perfect=perfect)
    sampler_of(search.sampler)  # or raise: what is stored is that of this setting alone
    store: Store = NullStore()
    if given is not None:
        wait = min(LONGEST_WAIT, max(0.0, limits.seconds_left))
        store = _open_store(search, problem, space, given, wait)
    with ExitStack() as failed:
        failed.callback(store.close)  # nobody would go on with the study
        first = default_points(space) if isinstance(search.estimator, Mapping) else []
        plain = class_points(space)
        proposer = Proposer(
            space,
            search.sampler,
            seed=search.random_state or 0,
            n_trials=asked,
            recorded=store.recorded(),
            first=first,
            study_name=search.study_name,
            parts=bandit.parts,
        )
        batches = all(own[0].task is not None for own in ways.values())
        short = search.timeout is not None and not batches
        full = search.max_passes or FULL_TRAINING
        rungs = Rungs(bandit, full, _judged(problem), short, problem.metrics.names_only)
        busy = -(-problem.executor.threads // len(problem.splits))
        slots = _slots(search, asked, batches, n_models, busy)
        forecasts = {
            name: replace(
                one,
                rounds=-(-n_models // slots),
                part=one.part
                if one.batched is not None
                else rungs.part(ways[name][0].parts.final, n_models // len(ways)),
            )
            for name, one in forecasts.items()
        }
        limit = math.inf if search.timeout is None else search.timeout
        forecasts, where = places.chosen(
            problem, ways, forecasts, n_models / len(ways), limit
        )
        if where is not None:
            problem.executor.apart()
        batched = [f.trials for f in forecasts.values() if f.batch is not None]
        stepwise = search.bandit is not None
        scheduler = Scheduler(
            proposer=proposer,
            bandit=bandit,
            pioneers=Pioneers(rungs, views, problem.metrics.main, asked),
            store=store,
            batch=BatchCrew(problem, views, search.max_passes, min(batched, default=1)),
            black_box=BlackBoxCrew(problem, views, full, stepwise),
            foresight=Foresight(
                forecasts, views, rungs, None if search.timeout else n_trials
            ),
            metric=problem.metrics.main,
            slots=slots,
            turns=Turns(
                len(first),
                frozenset(i for i, point in enumerate(first) if point in plain),
                short and bool(space.chooser),
            ),
            n_trials=asked,
            limits=limits,
            observe=_observer(search),
            plan=search_plan(search, problem, ways, forecasts, space, rungs, slots, where),
            refits=bool(search.refit),
        )
        failed.pop_all()
    return scheduler


def _foreseen(
    search: Any,
    n_trials: int | None,
    problem: Problem,
    space: Space,
    views: Views,
    n_models: int,
    *,
    brief: bool,
) -> tuple[dict[str, list[Way]], dict[str, Forecast]]:
    """How each family trains, and what a full trial of it takes."""
    ways: dict[str, list[Way]] = {}
    found: dict[str, Forecast] = {}
    # What is stored goes on as it began, whatever samples take then.
    fixed = search.batch_size != "auto" or search.max_passes is not None
    fixed |= search.storage is not None
    number = len(space.families)
    for family in space.families:
        name, varied = family.name, [p.name for p in family.parameters]
        for _ in range(2):
            own = ways[name] = ways_of(views, family)
            # Brackets begin whole.
            bandit = bandit_of(search.bandit, _max_passes(search, ways), n_trials)
            slots = _slots(search, n_trials, True, n_models)
            found[name] = forecast(
                problem, own, varied, n_models=n_models, families=number,
                batch_size=search.batch_size,
                drawn=spread(views, family),
                limit=math.inf if search.timeout is None else search.timeout / number,
                at_once=max(slots, bandit.room((), slots)), brief=brief,
            )  # fmt: skip
            why = found[name].slower_together(problem, n_models / number)
            if fixed or not why or not all(w.task and w.task.by_passes for w in own):
                break
            views.apart(name, why)
    return ways, found


def _open_store(
    search: Any, problem: Problem, space: Space, given: Mapping[str, Any], wait: float
) -> Store:
    """The storage of ``search``, or one that forgets; waits so long for who is at it."""
    if search.storage is None:
        return NullStore()
    splits = [(split.train, split.test) for split in problem.splits]
    same = {name: part_of_data(value) for name, value in given.items()}
    same["splits"] = part(splits, str(len(splits)))
    settings = (
        "scoring", "sampler", "bandit", "max_passes", "random_state", "weighted_scores",
        "error_score",
    )  # fmt: skip
    same |= {name: part_of_setting(getattr(search, name)) for name in settings}
    same |= {"refit": problem.metrics.main, "mlopt": version("mlopt")}
    marks = space.fingerprint() | same
    return open_store(search.storage, search.study_name or "mlopt", marks, wait=wait)


def _swap(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    return pair[1], pair[0]


def _trials_asked(search: Any, space: Space) -> int | None:
    """Trials that a search may take, None for no limit, where its budget makes sense."""
    for name in ("n_trials", "timeout", "max_passes"):
        value = getattr(search, name)
        if value is not None and not (isinstance(value, Real) and float(value) > 0):
            raise InputError(f"`{name}` must be a positive number or None, got {value!r}.")
    if math.isinf(search.max_passes or 0):
        raise InputError("`max_passes` must be finite, or None for as many as it takes.")
    n_trials, seed = search.n_trials, search.random_state
    endless = n_trials is None or math.isinf(n_trials)
    if not endless and n_trials % 1:
        raise InputError(f"`n_trials` must be a whole number, got {n_trials!r}.")
    if seed is not None and not (isinstance(seed, Integral) and 0 <= int(seed) < 2**32):
        raise InputError(
            "`random_state` must be None or a whole number from 0 to 2**32 - 1, got "
            f"{seed!r}: give an int, from which all else is drawn."
        )
    if not isinstance(search.verbose, Real):
        raise InputError(f"`verbose` must be a number, got {search.verbose!r}.")
    size = search.batch_size
    if size != "auto" and not (isinstance(size, Integral) and int(size) >= 1):
        raise InputError(
            f'`batch_size` must be a positive integer or "auto", got {size!r}.'
        )
    if endless and math.isinf(search.timeout or math.inf) and space.size is None:
        raise InputError(
            "A search needs an end: give `n_trials`, `timeout`, or a space of finitely "
            "many configurations."
        )
    return None if endless else int(n_trials)


def _max_passes(search: Any, ways: Mapping[str, Sequence[Way]]) -> int:
    """Passes after which every training has ended by itself."""
    if search.max_passes is not None:
        return int(search.max_passes)
    tasks = [way.task for own in ways.values() for way in own]
    return max(FULL_TRAINING if task is None else task.max_iter for task in tasks)


def _judged(problem: Problem) -> float:
    """Rows that a look at a model predicts, for each row that it trains on."""
    first = problem.splits[0]
    return len(first.test) / max(1, len(first.train)) + problem.train_scores


def _perfect(problem: Problem) -> float:
    """The best score there can be: 0 for negated losses, 1 for the others."""
    scorer = problem.metrics.scorers[problem.metrics.main]
    negated = getattr(scorer, "_sign", 1) < 0
    return 0.0 if negated else 1.0


def _slots(
    search: Any, n_trials: int | None, batched: bool, most: int, busy: int = 0
) -> int:
    """TuPAQ's BatchSize: how many trials are in training at the same time.

    A plan is made for ``most`` of them, who may share a scan. Where a clock ends the
    search, ``busy`` at least: so many keep all threads at work. Elsewhere it is the same on
    any machine, so that the result is.
    """
    if search.batch_size != "auto":
        return int(search.batch_size)
    if not batched and search.timeout is not None:
        # Every family's default and two more: what is in training at the end is lost.
        several = isinstance(search.estimator, Mapping)
        return max(busy, 2 + (len(search.estimator) if several else 2))
    if sampler_of(search.sampler).learns or search.timeout is not None:
        return GENERATION
    return max(GENERATION, n_trials or 0, most if batched else 0)


def _observer(search: Any) -> events.Observer:
    own = search.observer or events.ignore
    if not search.verbose:
        return own

    def observe(event: events.Event) -> None:
        own(event)
        if search.verbose > 1 or isinstance(event, events.RungDone):
            sys.stderr.write(f"[mlopt] {event}\n")

    return observe
