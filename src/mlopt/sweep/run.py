"""The sweep itself: read, search, fit the best on all training rows, test, write.

``config + data -> prepare -> ModelSearchCV -> final fit -> test -> outputs``
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from importlib.metadata import version
from numbers import Integral
from pathlib import Path
from typing import Any

from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import get_scorer

from mlopt import events
from mlopt.hearing import unheard_by_all
from mlopt.identity import join, token_of
from mlopt.interrupts import Interrupts
from mlopt.plan import Plan
from mlopt.report.checked import Checked, check_model
from mlopt.report.history import trial_rows
from mlopt.sweep.clock import Clock
from mlopt.sweep.config import Config, Search, settled
from mlopt.sweep.loading import Source, from_file, from_frame
from mlopt.sweep.outputs import check_folder, replaces, write, write_trials
from mlopt.sweep.planning import sweep_plan
from mlopt.sweep.prepare import Prepared, looks_for_one, prepare
from mlopt.sweep.result import SweepInterrupted, SweepResult

END_SHARE = 0.05
"""Part of the time limit that is kept for the test and the writing."""

SLACK = 0.1
"""How much larger than the best error a trial's may be. TuPAQ's 0.5 is for linear models of
very different quality; the families of a sweep lie closer together."""

TEST_SCORING: Mapping[str, tuple[str, ...]] = {
    "binary": ("accuracy", "roc_auc", "f1_macro", "neg_log_loss"),
    "multiclass": ("accuracy", "balanced_accuracy", "f1_macro", "neg_log_loss"),
    "continuous": ("r2", "neg_mean_absolute_error", "neg_root_mean_squared_error"),
}


_NO_SCORES = "One or more of the"
"""As scikit-learn says it."""


def sweep(
    data: Any = None,
    target: str | int | None = None,
    *,
    config: Config | None = None,
    test: Any = None,
    output: Path | str | None = None,
    families: Iterable[str] = (),
    name: str = "data",
    client: Any = None,
    observer: events.Observer = events.ignore,
    **settings: Any,
) -> SweepResult:
    """Search model families for the best model of a table, fit and test it.

    Parameters
    ----------
    data : data frame or str
        A table in memory, or the name of a file; None: what ``config`` names.
    target : str or int, optional
        The column to predict, by its name.
    config : Config, optional
        Settings; by default those of a configuration file without a line.
    test : data frame or str, optional
        Rows to test on at the end; by default a fifth of ``data`` is set aside.
    output : path, optional
        Directory for the results; nothing is written without one, nor without one in
        ``config``.
    families : iterable of str
        Families to search; empty for all.
    name : str
        What to call a table in memory.
    client : distributed.Client, optional
    observer : callable
        Called with every event.
    **settings
        Any key of the sections of a configuration: ``timeout=60``, ``scoring="roc_auc"``.

    Raises
    ------
    InputError, ConfigError, StudyError
        When no sweep can come of the data, the settings or the storage.
    SweepInterrupted
        After Ctrl-C or SIGTERM, with the result so far; it is written by then. Before the
        first score there is none, and it is a plain `KeyboardInterrupt`.

    Examples
    --------
    >>> result = sweep(frame, target="late", timeout=60)    # doctest: +SKIP
    >>> result.model.predict(new_rows)                      # doctest: +SKIP
    """
    clock = Clock(observer)
    config = settled(config, target=_named(target), **settings)
    output = config.output.directory if output is None else output
    if output is not None:
        inputs = (data, test, config.data.path or None, config.data.test)
        check_folder(Path(output), inputs)
    with Interrupts() as interrupts:
        prepared = read_and_prepare(clock, config, data, test, families, name)
        search = build_search(prepared, config, clock, client, output)
        clock.tell(_search_sentence(search, config.search))
        stopped = False
        try:
            # Failed trials are told as events, and listed in the report.
            with unheard_by_all(FitFailedWarning), unheard_by_all(UserWarning, _NO_SCORES):
                search.fit(prepared.X, prepared.y, **prepared.fitted)
        except KeyboardInterrupt:
            if interrupts.insisted or not hasattr(search, "best_index_"):
                raise
            stopped = True
        except ValueError:  # no trial has a score: what became of each is told
            if output is not None:
                rows = trial_rows(getattr(search, "events_", ()))
                write_trials(rows, config, Path(output))
            raise
        with interrupts.patient(None):
            result = _finish(clock, config, prepared, search)
            if output is not None:
                if replaced := replaces(result, Path(output)):
                    clock.tell(replaced)
                write(result, Path(output))
                clock.tell(f"written to {output}")
        if stopped or interrupts.heard:
            raise SweepInterrupted(result)
    return result


def explain(
    data: Any = None,
    target: str | int | None = None,
    *,
    config: Config | None = None,
    test: Any = None,
    families: Iterable[str] = (),
    **settings: Any,
) -> Plan:
    """The plan of `sweep` with the same arguments; fits samples alone."""
    clock = Clock(events.ignore)
    config = settled(config, target=_named(target), **settings)
    prepared = read_and_prepare(clock, config, data, test, families)
    search = build_search(prepared, config, clock, None, None)
    plan = search.explain(prepared.X, prepared.y, **prepared.fitted)
    return sweep_plan(prepared, plan, config, {}, None)


def _named(target: Any) -> Any:
    """A column that is called by a number, as that of a table without names."""
    numbered = isinstance(target, Integral) and not isinstance(target, bool)
    return str(target) if numbered else target


def _finish(clock: Clock, config: Config, prepared: Prepared, search: Any) -> SweepResult:
    """Test the best configuration, if it was fitted: after Ctrl-C only if that is quick."""
    best = trial_rows(search.events_)[search.best_index_]
    model, checked = getattr(search, "best_estimator_", None), None
    if model is not None:
        prepared.mark(model)
        clock.tell(f"best {prepared.scoring}: {best.score:.5g}, {best.label}")
        checked = clock.measure("test", lambda: _check(prepared, model))
        clock.tell(f"test {prepared.scoring}: {checked.score(prepared.scoring)}")
    plan = sweep_plan(prepared, search.plan_, config, clock.seconds, clock.elapsed)
    return SweepResult(prepared, search, best, model, plan, checked, clock.elapsed, config)


def read_and_prepare(
    clock: Clock,
    config: Config,
    data: Any,
    test: Any,
    families: Iterable[str],
    name: str = "data",
    *,
    folds: bool = True,
) -> Prepared:
    """Read what is to be read, and say what was found out."""
    source = clock.measure("read", lambda: _source(data, config, name))
    rows, columns = source.X.shape
    clock.tell(f"read {source.name}: {rows:,} rows, {columns} columns")
    wanted = test if test is not None else config.data.test
    apart = None if wanted is None else _source(wanted, config, "test table", source)
    prepared: Prepared = clock.measure(
        "prepare", lambda: prepare(config, source, apart, families, folds=folds)
    )
    for message in prepared.messages:
        clock.tell(message)
    return prepared


def build_search(
    prepared: Prepared, config: Config, clock: Clock, client: Any, output: Path | str | None
) -> Any:
    """The search over the prepared families, within the time that is left."""
    from mlopt.tuning.search import ModelSearchCV

    given = config.search
    left = given.timeout and max(1.0, given.timeout * (1 - END_SHARE) - clock.elapsed)
    storage = given.storage
    if storage is None and output is not None:
        Path(output).mkdir(parents=True, exist_ok=True)
        storage = f"sqlite:///{Path(output) / 'study.db'}"
    return ModelSearchCV(
        prepared.families,
        n_trials=given.n_trials,
        timeout=left,
        max_passes=given.max_passes,
        sampler=given.sampler,
        bandit=_bandit(given.bandit),
        batch_size=given.batch_size,
        cv=prepared.cv,
        scoring=prepared.scoring,
        weighted_scores=True if prepared.beside.weight is not None else None,
        storage=storage,
        study_name=given.study_name or _study_name(prepared, given),
        random_state=given.seed,
        n_jobs=given.n_jobs,
        client=client,
        observer=clock.from_now(),
    )


def _study_name(prepared: Prepared, given: Search) -> str:
    """Another one for other data or settings: a command typed twice goes on, or anew."""
    settings = given.sampler, given.bandit, given.max_passes, given.seed, version("mlopt")
    return f"sweep-{join(prepared.fingerprint, token_of(settings))[:10]}"


def _bandit(name: str) -> Any:
    from mlopt.tuning.bandits import ActionElimination

    if name == ActionElimination.name:
        return ActionElimination(eps=SLACK)
    return None if name == "none" else name


def _source(data: Any, config: Config, name: str, like: Source | None = None) -> Source:
    # A number, or "last", means the column that it meant in the rows to search on.
    target = config.data.target
    if like is not None and target is not None:
        target = str(like.y.name)
    if data is None or isinstance(data, str | Path):
        task = config.data.task
        if looks_for_one(config.search.scoring):
            task = "regression"  # true is 1, and "true" is not
        return from_file(str(data or config.data.path), target, like, task)
    return from_frame(data, target or "target", name)


def _check(prepared: Prepared, model: Any) -> Checked:
    names = dict.fromkeys((prepared.scoring, *TEST_SCORING[prepared.target.kind]))
    needs_proba = {"roc_auc", "neg_log_loss"}
    if not hasattr(model, "predict_proba"):
        names = {n: None for n in names if n not in needs_proba or n == prepared.scoring}
    beside = prepared.beside_test.scored
    scorers = {name: partial(get_scorer(name), **beside) for name in names}
    return check_model(
        model, prepared.X_test, prepared.y_test, scorers, prepared.test_source
    )


def _search_sentence(search: Any, config: Search) -> str:
    limits = []
    if search.n_trials is not None:
        limits.append(f"{search.n_trials} trials")
    if search.timeout is not None:
        limits.append(f"{search.timeout:.0f} s")
    pruning = f"pruned by {config.bandit}" if search.bandit else "nothing pruned"
    return f"searching for {' or '.join(limits)}: {search.sampler} proposes, {pruning}"
