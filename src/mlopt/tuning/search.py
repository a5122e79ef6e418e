"""`ModelSearchCV`: scikit-learn's search contract, Optuna's study inside, TuPAQ beneath."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, _clone_parametrized
from sklearn.model_selection._validation import _warn_or_raise_about_fit_failures
from sklearn.utils import get_tags

from mlopt import events
from mlopt.errors import InputError
from mlopt.interrupts import Interrupts
from mlopt.passes import plain
from mlopt.plan import Plan
from mlopt.prices import price
from mlopt.tuning.counting import FINAL
from mlopt.tuning.crews.families import configure
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.scoring import SINGLE, check_refit, metrics_of
from mlopt.tuning.crews.trials import Trial, best_trial, why_none
from mlopt.tuning.final_fit import FinalFit
from mlopt.tuning.inputs import placed, problem_of
from mlopt.tuning.on_dask import OnDask, over
from mlopt.tuning.refit import out_of_fold
from mlopt.tuning.results import cv_results, metric_names
from mlopt.tuning.scheduler import Scheduler
from mlopt.tuning.setup import prepare

ROUND, PATIENCE = price("search.round"), price("search.patience")
ENDING = "interrupted: what was found is being kept; once more, and all ends at once"
_SHARED = ("client", "observer", "storage")
"""Parameters that a clone has in common with its original."""


class ModelSearchCV(OnDask):
    """Search hyperparameters and model families; train what can share a scan together.

    Linear models of all configurations and folds train as columns of one matrix (TuPAQ,
    section 3.3); everything else trains as scikit-learn would, in parallel. A bandit gives
    up on what does not promise enough (TuPAQ, Algorithm 3), an Optuna sampler proposes.

    Parameters
    ----------
    estimator : estimator, or mapping of name to (estimator, space)
        One estimator or pipeline, or several model families.
    space : mapping or list of mappings, optional
        Parameter name to an Optuna distribution, a scipy distribution, or a list of values.
        A name without ``__`` means the one nested parameter that ends so. Of a list, each
        mapping is a space of its own, as in `sklearn.model_selection.GridSearchCV`: so of
        a family, too, whose parts are called "name-0", "name-1".
    n_trials : int or None, default=64
        Configurations to try; None to go on until ``timeout`` or the end of the space.
    timeout : float, optional
        Seconds for the search, the final fit included as far as it can be foreseen.
    max_passes : int, optional
        Passes over the rows that end the training of a model, in the final fit too: of
        models that train in shared scans, and ensembles that grow reach their full size
        there. Default: the estimators' own ``max_iter`` alone; ensembles have grown at 100.
    sampler : str or optuna.samplers.BaseSampler, default="tpe"
        "random", "grid", "tpe", "gp" and "smac", which model the scores, "cmaes",
        "nelder-mead", "powell", or any Optuna sampler.
    bandit : str, Bandit or None, default="action-elimination"
        "action-elimination", "successive-halving", "hyperband", or None to train everything
        to the end.
    batch_size : int or "auto", default="auto"
        Models that share a scan; "auto" asks the cost model.
    cv : int, splitter or iterable, default=5
    scoring : str, callable, list, tuple, mapping or None
        As in `sklearn.model_selection.GridSearchCV`.
    refit : bool, str or callable, default=True
        As in `sklearn.model_selection.GridSearchCV`.
    storage : str, path or optuna.storages.RDBStorage, optional
        Optuna storage URL, the path of an SQLite file, or Optuna's storage of a database.
        The same call on the same data resumes; see docs/search.md.
    study_name : str, optional
    random_state : int or None, default=0
        With an int, the same search gives the same results, whatever the number of threads
        or workers; estimators whose ``random_state`` is None get this one, parts
        within them numbers of it by their names.
    n_jobs : int, optional
        Threads, without a cluster. Default: all.
    verbose : int, default=0
        1: a line a rung on stderr; 2: a line a trial too.
    client : distributed.Client, optional
        Default: the active client if there is one, else this process.
    observer : callable, optional
        Called with every `mlopt.events.Event`.
    error_score : "raise" or float, default=nan
        The score of a fit that fails. "raise": what it raised ends the search.
    return_predictions : bool, default=False
        With ``refit``: keep the best configuration's out-of-fold predictions as
        ``oof_predictions_``. Rows that no split tests are NaN there, or masked where
        predictions are not floats.
    return_train_score : bool, default=False
    weighted_scores : bool, optional
        Whether ``sample_weight`` counts in the scores too. Default: as in the installed
        scikit-learn, which weighs them from 1.9 on.

    Attributes
    ----------
    best_estimator_, best_params_, best_score_, best_index_, cv_results_, refit_time_,
    n_splits_, scorer_, multimetric_
        As in scikit-learn. ``best_params_`` has the key "family" when there are several;
        ``cv_results_`` has "family", "state", "passes" and "reason" besides.
    study_ : optuna.Study
    plan_ : mlopt.Plan
        What was chosen, predicted beside measured.
    events_ : tuple of mlopt.events.Event
    passes_ : int or float
        Passes over the rows, summed over trials. Models that are solved at once or each by
        itself (by Newton's method, in its dual, along a path) count as one pass.
    n_pruned_, models_trained_ : int
    interrupted_ : bool
        Whether Ctrl-C ended it. `fit` then keeps everything until then in these attributes
        and raises `KeyboardInterrupt`. Without a score there is no ``best_index_``, and no
        ``best_estimator_`` where the final fit takes more than a few seconds.

    References
    ----------
    Sparks et al., "TuPAQ: An Efficient Planner for Large-scale Predictive Analytic
    Queries", 2015.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(
        self,
        estimator: Any,
        space: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        *,
        n_trials: int | None = 64,
        timeout: float | None = None,
        max_passes: int | None = None,
        sampler: Any = "tpe",
        bandit: Any = "action-elimination",
        batch_size: int | str = "auto",
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        storage: Any = None,
        study_name: str | None = None,
        random_state: int | None = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
        client: Any = None,
        observer: events.Observer | None = None,
        error_score: Any = np.nan,
        return_predictions: bool = False,
        return_train_score: bool = False,
        weighted_scores: bool | None = None,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.n_trials = n_trials
        self.timeout = timeout
        self.max_passes = max_passes
        self.sampler = sampler
        self.bandit = bandit
        self.batch_size = batch_size
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.storage = storage
        self.study_name = study_name
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.client = client
        self.observer = observer
        self.error_score = error_score
        self.return_predictions = return_predictions
        self.return_train_score = return_train_score
        self.weighted_scores = weighted_scores

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        sample_weight: Any = None,
        **fit_params: Any,
    ) -> ModelSearchCV:
        """Search, then fit the best configuration on all rows.

        Parameters
        ----------
        X : array-like, sparse, data frame or dask collection of shape (n, d)
            Or anything with n entries that can be indexed: texts, images.
        y : array-like of shape (n,) or (n, outputs), optional
        groups : array-like of shape (n,), optional
            For the splitter.
        sample_weight : array-like of shape (n,), optional
            For the last step of a pipeline.
        **fit_params
            For the estimators' ``fit``; arrays and lists with n entries are cut like X, all
            others passed on as they are. With scikit-learn's metadata routing, whatever
            estimator, scorers and splitter ask for.

        Raises
        ------
        InputError
            When the data, the space or the budget cannot work.
        ValueError
            When every fit fails.
        StudyError
            When the storage cannot be opened or holds another search.
        KeyboardInterrupt
            After Ctrl-C or SIGTERM, with what was found kept; see ``interrupted_``.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # an interruption must not leave parts of two searches
        self.interrupted_ = False
        executor, here_X, here_y, told = placed(self, X, y)
        try:
            with Interrupts() as interrupts:
                problem = problem_of(
                    self, executor, here_X, here_y, groups, sample_weight, fit_params, told
                )
                data = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups}
                scheduler = prepare(self, problem, data | fit_params)
                final = FinalFit(
                    problem,
                    lambda trial: self._configured(scheduler, trial),
                    scheduler.batch.views.way,
                    self.max_passes,
                )
                if self.refit and not callable(self.refit):
                    scheduler.settled = final.begin
                try:
                    with interrupts.patient(PATIENCE):
                        self._search(scheduler, interrupts)
                        self._keep(problem, scheduler)
                        self._finish(problem, scheduler, final)
                except BaseException:
                    final.abandon()
                    raise
                finally:
                    final.close()
                    if problem.near is not None:
                        problem.near.close()
                if self.interrupted_ or interrupts.heard:
                    raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            executor.abandon(())  # nobody waits for what may never end
            error.add_note(self._kept())
            raise
        finally:
            executor.close()
        return self

    def explain(
        self,
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        sample_weight: Any = None,
        **fit_params: Any,
    ) -> Plan:
        """The plan of `fit` with the same arguments, before anything runs."""
        if isinstance(self.cv, Iterator):
            self.cv = [*self.cv]  # it gives them once, and `fit` is to have them
        asked = copy.copy(self)
        asked.cv = copy.deepcopy(self.cv)  # whose generator goes on in `fit`
        executor, X, y, told = placed(asked, X, y)
        try:
            problem = problem_of(
                asked, executor, X, y, groups, sample_weight, fit_params, told
            )
            return prepare(asked, problem).plan
        finally:
            executor.close()

    def _search(self, scheduler: Scheduler, interrupts: Interrupts) -> None:
        try:
            with interrupts.patient(ROUND):
                scheduler.run(interrupts.check)
        except KeyboardInterrupt:
            # What was found must not be lost: it stays here and in the storage.
            self.interrupted_ = True
            scheduler.interrupt()
            scheduler.observe(events.Message(scheduler.limits.elapsed, ENDING))
        finally:
            scheduler.prefixes.close()
            scheduler.store.close()

    def _finish(self, problem: Problem, scheduler: Scheduler, final: FinalFit) -> None:
        """Fit the best on all rows, unless that would keep somebody who wants to leave."""
        brief = not self.interrupted_ or scheduler.reserve <= PATIENCE
        try:
            if self.refit and brief and hasattr(self, "best_index_"):
                self._refit(problem, scheduler, final)
        except KeyboardInterrupt:
            self.interrupted_ = True
        self._explain(scheduler)

    def _kept(self) -> str:
        """What an interruption leaves, for who reads its traceback."""
        if not hasattr(self, "cv_results_"):
            return "The search had not begun."
        count = len(self.cv_results_["params"])
        fitted = ", `best_estimator_`" if hasattr(self, "best_estimator_") else ""
        again = "; the same call goes on from its storage" if self.storage else ""
        return f"What it found is kept: {count} trials in `cv_results_`{fitted}{again}."

    def _keep(self, problem: Problem, scheduler: Scheduler) -> None:
        trials = sorted(scheduler.trials.values(), key=lambda t: t.number)
        metrics = problem.metrics
        self.study_ = scheduler.proposer.study
        self.events_ = tuple(scheduler.log)
        self.scorer_ = dict(metrics.scorers) if metrics.multiple else metrics.scorer
        self.n_splits_ = len(problem.splits)
        if not self.interrupted_:
            _check_failures(trials, self.n_splits_, self.error_score)
        names = metric_names(trials, metrics)
        self.multimetric_ = metrics.multiple or names != (SINGLE,)
        if self.multimetric_:
            check_refit(self.refit, dict.fromkeys(names))
        self.cv_results_ = cv_results(
            trials, metrics, self.n_splits_, train=self.return_train_score
        )
        if not isinstance(self.estimator, Mapping):
            self.cv_results_["family"][:] = ""
        self.passes_ = plain(sum(t.passes for t in trials))
        self.n_pruned_ = sum(t.state == "PRUNED" for t in trials)
        self.models_trained_ = sum(t.passes > 0 for t in trials) * self.n_splits_
        self._select(trials, metrics.main)

    def _select(self, trials: list[Trial], metric: str) -> None:
        if self.multimetric_ and self.refit is False:
            return
        best = best_trial(trials, metric)
        if best is None and self.interrupted_:
            return
        if callable(self.refit):
            self.best_index_ = self._select_best_index(self.refit, metric, self.cv_results_)
        else:
            if best is None:
                # All scores are no numbers: the first, as scikit-learn has it.
                best = next((t for t in trials if not t.unfinished), None)
            if best is None:
                raise InputError(f"No trial gave a score: {why_none(trials)}")
            self.best_index_ = np.int64(trials.index(best))
            self.best_score_ = np.float64(best.mean(metric))
        chosen = trials[self.best_index_]
        family = {"family": chosen.family} if isinstance(self.estimator, Mapping) else {}
        self.best_params_ = family | dict(chosen.params)

    def _configured(self, scheduler: Scheduler, trial: Trial) -> Any:
        template = scheduler.batch.views.estimators[trial.family]
        return configure(template, trial.params, self.random_state)

    def _refit(self, problem: Problem, scheduler: Scheduler, final: FinalFit) -> None:
        chosen = sorted(scheduler.trials.values(), key=lambda t: t.number)[self.best_index_]
        others = 0
        if self.return_predictions:  # first: a fit may write into the rows it is given
            estimator = self._configured(scheduler, chosen)
            self.oof_predictions_ = out_of_fold(problem, estimator)
            others = len(problem.splits)
        self.best_estimator_, self.refit_time_ = final.of(chosen)
        fits = others + final.fits
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
        scheduler.ran[FINAL] = Counter(fit=fits)

    def _explain(self, scheduler: Scheduler) -> None:
        seconds = getattr(self, "refit_time_", None) if self.refit else None
        plan = scheduler.measured_plan(seconds)
        told = scheduler.batch.problem.gathers  # the run may have come to more
        news = [note for note in told if note not in plan.notes]
        self.plan_ = replace(plan, notes=(*plan.notes, *news))

    def _first_estimator(self) -> Any:
        """The estimator, or that of the first family."""
        several = isinstance(self.estimator, Mapping)
        return next(iter(self.estimator.values()))[0] if several else self.estimator

    def _get_scorers(self) -> tuple[Any, str]:
        """What scikit-learn's methods ask for: the scorers and the one that decides."""
        first = self._first_estimator()
        metrics = metrics_of(self.scoring, first, self.refit, self.error_score)
        return metrics.scorer, metrics.main

    def get_metadata_routing(self) -> Any:
        """As of scikit-learn's searches; all families ask for the same arguments."""
        first = over(self, self._first_estimator())
        return super(ModelSearchCV, first).get_metadata_routing()

    def __sklearn_clone__(self) -> Any:
        """A clone that shares what cannot be copied or must not be: clients, observers."""
        bare = copy.copy(self)
        shared = {n: v for n, v in self.get_params(deep=False).items() if n in _SHARED}
        for name in shared:
            setattr(bare, name, None)
        return _clone_parametrized(bare).set_params(**shared)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        return state | {"client": None} if "client" in state else state

    def __sklearn_tags__(self) -> Any:
        tags = BaseEstimator.__sklearn_tags__(self)
        inner = get_tags(self._first_estimator())
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.input_tags = inner.input_tags
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags


def _check_failures(trials: list[Trial], n_splits: int, error_score: Any) -> None:
    """Raise when every fit failed, warn when some did: in scikit-learn's words."""
    by_trial = [_traces(trial, n_splits, error_score) for trial in trials]
    traces = [trace for own in by_trial for trace in own]
    pairs = zip(trials, by_trial, strict=True)
    fitted = sum(n_splits for trial, own in pairs if trial.rungs or own)
    went_well = [{"fit_error": None}] * (fitted - len(traces))
    if traces:
        _warn_or_raise_about_fit_failures(
            [{"fit_error": trace} for trace in traces] + went_well, error_score
        )


def _traces(trial: Trial, n_splits: int, error_score: Any) -> Sequence[str]:
    """What the fits of a trial raised; its reason where that is all that is known."""
    if trial.traces or trial.unfinished or trial.fitted:
        return trial.traces
    raised = [f"{trial.reason}\n"] * n_splits
    ended = [*zip(*(trial.failed or {}).values(), strict=True)]
    if not ended:
        return raised
    # Stored are scores alone: a fit that raised has the error score of each metric.
    lost = np.nan if error_score == "raise" else error_score
    stands = [np.array_equal(one, [lost] * len(one), equal_nan=True) for one in ended]
    return raised[: max(1, sum(stands))]
