"""Ask and tell: configurations go out, scores come back, Optuna's study remembers.

The study is in memory, because to ask one in a database costs more than to train a linear
model; `mlopt.tuning.storage` keeps a copy of it. Scores are higher-is-better throughout,
so the study maximizes.
"""

from __future__ import annotations

import contextlib
import copy
import math
import threading
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState

from mlopt.errors import StudyError
from mlopt.locking import open_in_forks
from mlopt.passes import Passes
from mlopt.tuning.samplers.samplers import Point, sampler_of
from mlopt.tuning.space.grid import at
from mlopt.tuning.space.space import Space
from mlopt.tuning.storage import records
from mlopt.tuning.storage.memory import Memory
from mlopt.tuning.storage.records import Recorded

# A guide that repeats itself is asked again a few times: an ask may be expensive.
REDRAWS = 4


@dataclass(frozen=True)
class Proposal:
    """A configuration to train.

    Parameters
    ----------
    number : int
        Of the trial in the study.
    family : str
    params : mapping
        For ``set_params``; estimators among the values must be cloned first.
    recorded : Recorded, optional
        What a stored study knows of this trial from an earlier run.
    """

    number: int
    family: str
    params: Mapping[str, Any]
    recorded: Recorded | None = None


class Proposer:
    """Proposes configurations, no two alike, and takes in what became of them.

    Parameters
    ----------
    space : Space
    sampler : str or optuna sampler, default="tpe"
    seed : int, default=0
    n_trials : int, optional
        Trials of the whole search, when known; a grid is fitted to it.
    recorded : iterable of Recorded
        Trials of an earlier run. They are proposed again under their numbers with their
        configurations; then the sampler goes on. The sequence is that of an uninterrupted
        run: a sampler that learns draws for them again, though to no effect.
    first : sequence of points
        Proposed before the sampler is asked: the defaults of each family.
    study_name : str, optional
    parts : int, default=1
        Steps that the study counts for a pass: Optuna's steps are whole numbers.

    Attributes
    ----------
    study : optuna.Study
    exhausted : str or None
        A sentence once there is nothing new to propose.
    """

    def __init__(
        self,
        space: Space,
        sampler: str | BaseSampler = "tpe",
        *,
        seed: int = 0,
        n_trials: int | None = None,
        recorded: Iterable[Recorded] = (),
        first: Sequence[Point] = (),
        study_name: str | None = None,
        parts: int = 1,
    ) -> None:
        method = sampler_of(sampler)
        self.space, self.parts = space, parts
        self.exhausted: str | None = None
        self._plan = method.plan(space, seed, n_trials)
        self._guide = method.guide and method.guide(space, seed)
        self._first = list(first)
        self._recorded = {r.number: r for r in recorded if self._check(r)}
        self._storage = Memory()
        with quiet():
            self.study = optuna.create_study(
                storage=self._storage,
                sampler=self._guide or RandomSampler(seed=seed),
                pruner=optuna.pruners.NopPruner(),
                study_name=study_name,
                direction="maximize",
            )
        self._study = self._storage.get_study_id_from_name(self.study.study_name)
        self._proposed = 0
        self._keys: set[Hashable] = set()
        self._later = {space.key(r.params) for r in self._recorded.values()}
        self._changed: set[int] = set()

    @property
    def proposed(self) -> int:
        """Trials proposed so far; the number of the next one."""
        return self._proposed

    def ask(self, n: int) -> list[Proposal]:
        """Up to ``n`` new configurations; fewer when the space is `exhausted`."""
        proposals: list[Proposal] = []
        while len(proposals) < n and self.exhausted is None:
            proposal = self._propose(self.proposed)
            if proposal is None:
                self.exhausted = f"All {self._plan} have been tried."
            else:
                proposals.append(proposal)
        return proposals

    @property
    def knows_scores(self) -> bool:
        """Whether an earlier run has looked at a trial."""
        return any(r.rungs for r in self._recorded.values())

    def stored(self, most: float = math.inf) -> list[Proposal]:
        """The rest of an earlier run's trials, up to ``most`` trials in all."""
        proposals: list[Proposal] = []
        while self.proposed < most and self.proposed in self._recorded:
            earlier = self._recorded[self.proposed]
            proposals.append(self._enter(self._begin(), dict(earlier.params), earlier))
        return proposals

    def leave(self, number: int) -> None:
        """Out of time: the trial waits in the study, to be taken up again."""
        self._storage.set_trial_state_values(number, TrialState.WAITING)
        self._changed.add(number)

    def report(
        self,
        number: int,
        passes: Passes,
        score: float,
        scores: Mapping[str, Iterable[float]] | None = None,
    ) -> None:
        """A look at a trial in training.

        Parameters
        ----------
        number : int
        passes : int or Fraction
            Passes over the rows it has made.
        score : float
            What the search compares.
        scores : mapping of str to iterable of float, optional
            Metric to the scores of the splits.
        """
        if str(passes) in self._rungs(number):
            return  # seen before: in a stored study, or when the time ran out for more
        step = int(passes * self.parts)
        self._storage.set_trial_intermediate_value(number, step, float(score))
        if scores is not None:
            self.keep(number, passes, scores)
        self._changed.add(number)

    def keep(
        self, number: int, passes: Passes, scores: Mapping[str, Iterable[float]]
    ) -> None:
        """Scores of a look that says nothing to the sampler: see `report`."""
        seen = {str(passes): records.rung_to_json(scores)}
        self.note(number, **{records.SCORES: self._rungs(number) | seen})

    def _rungs(self, number: int) -> dict[str, Any]:
        found = self._storage.get_trial(number).user_attrs.get(records.SCORES, {})
        return dict(found)

    def note(self, number: int, **attrs: Any) -> None:
        """Keep something JSON can hold about a trial: ``reason``, ``seconds``, ..."""
        for name, value in attrs.items():
            self._storage.set_trial_user_attr(number, name, value)
        self._changed.add(number)

    def tell(
        self,
        number: int,
        score: float | None,
        state: str = "COMPLETE",
        reason: str | None = None,
    ) -> str:
        """What became of a trial.

        Parameters
        ----------
        number : int
        score : float or None
            The final score; of a pruned trial, the last one reported counts.
        state : {"COMPLETE", "PRUNED", "FAIL"}
        reason : str, optional
            Why it was pruned or failed.

        Returns
        -------
        str
            The state kept: a score that is not a finite number fails the trial.
        """
        if state == "COMPLETE" and (score is None or not math.isfinite(score)):
            state, reason = "FAIL", reason or f"the score is {score}"
        if reason is not None:
            self.note(number, **{records.REASON: reason})
        value = score if state == "COMPLETE" else None
        if self._guide is None:
            self._end(number, value, TrialState[state])
        else:
            self._tell(number, value, TrialState[state])
        self._date(number)
        self._changed.add(number)
        return state

    def _tell(self, number: int, value: float | None, state: TrialState) -> None:
        """Let the guide, and all that Optuna does for one, know."""
        try:
            self.study.tell(number, value, state=state)
        except RuntimeError as error:
            # Optuna's exhaustive samplers end their own loop, which is not ours
            if "Study.stop" not in str(error):
                raise

    def _end(self, number: int, value: float | None, state: TrialState) -> None:
        """What telling Optuna comes to where nobody learns, at a tenth of the time."""
        looks = self._storage.get_trial(number).intermediate_values
        if state == TrialState.PRUNED and looks:
            last = looks[max(looks)]
            value = None if math.isnan(last) else last
        values = None if value is None else [float(value)]
        self._storage.set_trial_state_values(number, state, values)

    def _date(self, number: int) -> None:
        """A trial lasts as long as it trained, not as long as others of its batch."""
        trial = self._storage.get_trial(number)
        seconds = trial.user_attrs.get(records.SECONDS)
        if seconds is not None and trial.datetime_complete is not None:
            trial.datetime_start = trial.datetime_complete - timedelta(seconds=seconds)

    def changed(self) -> list[FrozenTrial]:
        """Copies of the trials that changed since the last call, by number."""
        numbers, self._changed = sorted(self._changed), set()
        return [copy.deepcopy(self._storage.get_trial(number)) for number in numbers]

    def _propose(self, number: int) -> Proposal | None:
        earlier = self._recorded.get(number)
        default = self._default(number)
        fresh = default is None and earlier is None
        point = self._plan.point(number, self._known) if fresh else default
        if point is None and earlier is None:
            return None
        begun = self._begin()
        if default is None and self._guide is not None:
            # Of an earlier run's trial too: what it draws next depends on what it drew.
            point = self._guided(self._guide, begun) or point
        if earlier is not None:
            point = dict(earlier.params)
        assert point is not None
        return self._enter(begun, point, earlier)

    def _begin(self) -> int:
        """The number of a new trial."""
        if self._guide is None:
            return self._storage.create_new_trial(self._study)
        return int(self.study.ask().number)

    def _default(self, number: int) -> Point | None:
        """The point of a trial that the sampler has no say in."""
        if number < len(self._first) and not self._taken(self._first[number]):
            return self._first[number]
        return None

    def _check(self, earlier: Recorded) -> bool:
        try:
            fits = earlier.params.keys() == self.space.applicable(earlier.params).keys()
        except (KeyError, StopIteration):
            fits = False
        if not fits:
            raise StudyError(
                f"Trial {earlier.number} of the study must have the parameters of the "
                f"space, and it has {dict(earlier.params)}. Use another `study_name`."
            )
        return True

    def _taken(self, point: Point) -> bool:
        return self.space.key(point) in self._keys

    def _known(self, point: Point) -> bool:
        """Proposed already, or by an earlier run under a later number."""
        return self._taken(point) or self.space.key(point) in self._later

    def _enter(self, number: int, point: Point, earlier: Recorded | None) -> Proposal:
        """Write the point into the study, as Optuna does when it suggests a value."""
        for name, distribution in self.space.applicable(point).items():
            internal = distribution.to_internal_repr(point[name])
            self._storage.set_trial_param(number, name, internal, distribution)
        self._keys.add(self.space.key(point))
        self._proposed += 1
        family, params = self.space.decode(point)
        self.note(number, **{records.FAMILY: family})
        return Proposal(number, family, params, earlier)

    def _guided(self, guide: BaseSampler, number: int) -> Point | None:
        """A new point of the guide, or None when it repeats itself."""
        frozen = self._storage.get_trial(number)
        joint = guide.infer_relative_search_space(self.study, frozen)
        for _ in range(REDRAWS):
            point = self._draw(guide, copy.deepcopy(frozen), joint)
            if not self._taken(point):
                return point
        return None

    def _draw(
        self, guide: BaseSampler, trial: FrozenTrial, joint: Mapping[str, BaseDistribution]
    ) -> Point:
        """What Optuna's own suggestions do, without writing to the study yet."""
        drawn = guide.sample_relative(self.study, trial, joint)

        def draw(name: str, distribution: BaseDistribution) -> Any:
            if distribution.single():
                value = at(distribution, 0.0)
            elif name in drawn:
                value = drawn[name]
            else:
                value = guide.sample_independent(self.study, trial, name, distribution)
            trial.params[name] = value
            trial.distributions[name] = distribution
            return value

        return self.space.draw(draw)


class _Quiet:
    """Who wants quiet now: the first to come sets it, and the last to go ends it."""

    def __init__(self) -> None:
        self.lock = open_in_forks(threading.Lock())
        self.users, self.before = 0, 0


_quiet = _Quiet()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without Optuna's messages about every study it makes, in whichever thread."""
    with _quiet.lock:
        if not _quiet.users:
            _quiet.before = optuna.logging.get_verbosity()
            optuna.logging.set_verbosity(optuna.logging.WARNING)
        _quiet.users += 1
    try:
        yield
    finally:
        with _quiet.lock:
            _quiet.users -= 1
            if not _quiet.users:
                optuna.logging.set_verbosity(_quiet.before)
