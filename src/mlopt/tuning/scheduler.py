"""The loop of TuPAQ (Algorithm 2): propose, train a while, let the bandit decide, repeat.

Everything is synchronous by rung: what a rung decides is a function of the history alone,
so the same seed gives the same search whatever the number of threads or workers, and a
search that was killed is resumed by replaying what the storage holds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from mlopt import events
from mlopt.cluster import between_passes
from mlopt.errors import InputError
from mlopt.plan import Plan
from mlopt.training import Limits
from mlopt.tuning.bandits import Bandit, Progress
from mlopt.tuning.crews.batching import BatchCrew
from mlopt.tuning.crews.black_box import BlackBoxCrew
from mlopt.tuning.crews.prefixes import Prefixes
from mlopt.tuning.crews.trials import Order, Outcome, Trial, best_trial, check_failures
from mlopt.tuning.planning import FINAL, PROPOSALS, measured
from mlopt.tuning.samplers.proposer import Proposer
from mlopt.tuning.storage.records import Recorded
from mlopt.tuning.storage.store import Store


@dataclass(eq=False)
class Scheduler:
    """Runs a search to the end of its budget.

    Parameters
    ----------
    proposer, bandit, store
        Who proposes, who decides, where it is remembered.
    batch, black_box : crews
        Who trains: trials with a batched form, and the others.
    is_batched : mapping of family to bool
    metric : str
        The metric that decides.
    slots : int
        Trials in training at the same time (TuPAQ's BatchSize).
    n_trials : int or None
    limits : Limits
    observe : Observer
    """

    proposer: Proposer
    bandit: Bandit
    store: Store
    batch: BatchCrew
    black_box: BlackBoxCrew
    metric: str
    slots: int
    n_trials: int | None
    limits: Limits
    observe: events.Observer = events.ignore
    raise_errors: bool = False
    refits: bool = True
    settled: Callable[[Trial], None] = lambda trial: None
    """Called with the trial that alone can still win, while it goes on training."""
    trials: dict[int, Trial] = field(default_factory=dict)
    active: list[Trial] = field(default_factory=list)
    recorded: dict[int, Recorded] = field(default_factory=dict)
    plan: Plan = field(default_factory=lambda: Plan("search"))
    log: list[events.Event] = field(default_factory=list)
    spent: dict[str, float] = field(default_factory=dict)
    looks: list[Progress] = field(default_factory=list)
    """Every look at every trial: a bandit compares models of the same age."""
    rung: int = 0
    stopped: str = "budget"
    asking: float = 0.0
    """Seconds spent on proposals and on the storage."""

    def run(self, check: Callable[[], None] = lambda: None) -> None:
        """Search until the budget is spent or the space is.

        ``check`` is called before a round and before an outcome is believed; it raises
        to end the search.
        """
        with between_passes():
            while self._round(check):
                pass
        for trial in self.active:
            self._leave_unfinished(trial)

    def measured_plan(self, refit: float | None) -> Plan:
        """The plan with what it took; families in seconds of training, over all tasks."""
        names = {"": self.plan.choices[0].step if self.plan.choices else ""}
        seconds = {names.get(family, family): s for family, s in self.spent.items()}
        seconds[PROPOSALS] = self.asking
        if refit is not None:
            seconds[FINAL] = refit
        return measured(self.plan, seconds, self.limits.elapsed)

    def interrupt(self) -> None:
        """Ctrl-C: what is in training stays unfinished; the storage takes it up again."""
        self.stopped = "interrupted"
        for trial in self.active:
            self._leave_unfinished(trial)
        self._remember()

    @property
    def seconds_left(self) -> float:
        """Until the time limit, less what the final fit of the best so far will take."""
        return self.limits.seconds_left - (self.reserve if self.refits else 0.0)

    @property
    def reserve(self) -> float:
        """Seconds that the final fit will take; rather too many.

        That of the best so far, or of one in training, which may be the best in the end.
        """
        best = best_trial(self.trials.values(), self.metric)
        return max(map(self._fit_seconds, [best, *self.active] if best else []), default=0)

    def _fit_seconds(self, trial: Trial) -> float:
        """Seconds of one full fit on all rows, by what its splits have taken so far."""
        problem = self.batch.problem
        share = len(problem.y) / len(problem.splits[0].train) / len(problem.splits)
        if self.batch.views.is_batched(trial):
            # Alone, a model takes as long as all that share its scan, at most.
            return share * trial.seconds * self.slots
        whole = trial.state == "COMPLETE" or trial.passes == 0
        ahead = 1.0 if whole else self.bandit.max_passes / trial.passes
        return share * trial.seconds * max(ahead, 1.0)

    def _round(self, check: Callable[[], None]) -> bool:
        check()
        if self.seconds_left <= 0:
            self.stopped = "timeout"
            return False
        self._enter()
        if not self.active:
            return False
        heard = self._train(check)
        self._decide()
        if self._settles():
            self.settled(self.active[0])
        self.rung += 1
        self._report()
        return heard

    def _settles(self) -> bool:
        """Whether only one trial can still win."""
        ended = any(t.state == "COMPLETE" for t in self.trials.values())
        return len(self.active) == 1 and not ended and not self._may_come()

    @property
    def prefixes(self) -> Prefixes:
        """The preprocessed rows that trials share."""
        return self.batch.views.prefixes

    def _may_come(self) -> bool:
        """Whether there may be further proposals."""
        full = self.n_trials is not None and self.proposer.proposed >= self.n_trials
        return not full and self.proposer.exhausted is None

    def _enter(self) -> None:
        """Fill the free slots with new proposals (TuPAQ, Algorithm 2, line 7)."""
        proposed = self.proposer.proposed
        training = [self._progress(t) for t in self.active]
        room = self.bandit.room(training, self.slots, proposed)
        if self.n_trials is not None:
            room = min(room, self.n_trials - proposed)
        start = time.perf_counter()
        proposals = self.proposer.ask(room) if room > 0 else []
        self.asking += time.perf_counter() - start
        for proposal in proposals:
            number = proposal.number
            if proposal.recorded is not None:
                self.recorded[number] = proposal.recorded
            bracket = self.bandit.bracket(number)
            trial = Trial(number, proposal.family, proposal.params, bracket)
            self.trials[number] = trial
            self.active.append(trial)
            self._say(
                events.TrialStarted(self.limits.elapsed, number, trial.family, trial.params)
            )

    def _train(self, check: Callable[[], None]) -> bool:
        """One rung for everything active (line 8); whether anything was trained."""
        orders = [Order(t, self.bandit.next_stop(self._progress(t))) for t in self.active]
        heard = False
        for outcome in self._outcomes(orders):
            check()
            heard = True
            trial = self.trials[outcome.trial]
            took = self.spent.get(trial.family, 0.0) + outcome.seconds
            self.spent[trial.family] = took
            trial.record(outcome)
            if trial.reason is None and not math.isfinite(trial.mean(self.metric)):
                trial.reason = f"its score is not finite: {trial.mean(self.metric)}"
            if trial.reason is None:
                self._say(events.TrialScored(
                    self.limits.elapsed, trial.number, trial.family, trial.passes,
                    trial.mean(self.metric), outcome.seconds, outcome.replayed,
                ))  # fmt: skip
        return heard

    def _outcomes(self, orders: Sequence[Order]) -> Iterator[Outcome]:
        """Replayed from the storage where a trial had ended there, trained otherwise."""
        fresh = []
        for order in orders:
            replay = self._replay(order)
            if replay is None:
                fresh.append(order)
            else:
                yield replay
        fresh = self.batch.views.together(fresh)
        batched = [o for o in fresh if self.batch.views.is_batched(o.trial)]
        others = [o for o in fresh if not self.batch.views.is_batched(o.trial)]
        if batched:
            yield from self.batch.advance(batched)
        if others:
            yield from self.black_box.advance(others, lambda: self.seconds_left)

    def _replay(self, order: Order) -> Outcome | None:
        """The next look at a trial that had ended in the storage, as it was then."""
        number, passes = order.trial.number, order.trial.passes
        record = self.recorded.get(number)
        if record is None or not record.finished:
            return None
        later = [rung for rung in sorted(record.rungs) if rung > passes]
        if not later and record.state != "FAIL":
            return None  # a larger budget would have it go on: train it again
        if not later:
            reason = record.reason or "no reason is recorded"
            return Outcome(number, passes, {}, True, 0.0, reason=reason, replayed=True)
        last = len(later) == 1
        return Outcome(
            number, later[0], record.rungs[later[0]], record.state == "COMPLETE" and last,
            record.seconds if last else 0.0, replayed=True,
        )  # fmt: skip

    def _decide(self) -> None:
        """Finished, active or pruned (line 10); failures leave first."""
        for trial in [t for t in self.active if t.reason is not None]:
            self._end(trial, "FAIL", trial.reason)
            if self.raise_errors:
                raise InputError(f"Trial {trial.number} failed: {trial.reason}")
        scored = [self._progress(t) for t in self.active if t.passes > 0]
        for trial in self.active:
            if trial.passes > 0:
                score = trial.mean(self.metric)
                self.proposer.report(trial.number, trial.passes, score, trial.scores)
        verdicts = self.bandit.allocate(scored, self.looks)
        self.looks += scored
        for number in verdicts.finished:
            self._end(self.trials[number], "COMPLETE", None)
        for number in verdicts.pruned:
            self._end(self.trials[number], "PRUNED", verdicts.reasons.get(number))
        check_failures(self.trials.values())
        alive = {trial.number for trial in self.active}
        self.batch.drop(alive)
        self.black_box.drop(alive)
        self.prefixes.retain(alive, more=self._may_come())
        start = time.perf_counter()
        self._remember()
        self.asking += time.perf_counter() - start

    def _remember(self) -> None:
        if self.store.keeps:  # what changed is copied, which takes time
            self.store.write(self.proposer.changed())

    def _end(self, trial: Trial, state: str, reason: str | None) -> None:
        trial.state, trial.reason = state, reason
        self.active.remove(trial)
        score = trial.mean(self.metric)
        self.proposer.note(trial.number, seconds=trial.seconds)
        self.proposer.tell(trial.number, score, state, reason)
        now = self.limits.elapsed
        if state == "FAIL":
            self._say(events.TrialFailed(now, trial.number, reason or ""))
        elif state == "PRUNED":
            why = reason or ""
            self._say(events.TrialPruned(now, trial.number, trial.passes, score, why))
        else:
            self._say(events.TrialFinished(now, trial.number, trial.passes, score))

    def _leave_unfinished(self, trial: Trial) -> None:
        """Out of time: the storage keeps the trial as running, to be taken up again."""
        trial.state = "PRUNED" if trial.passes else "FAIL"
        trial.reason, trial.unfinished = f"unfinished: {self.stopped}", True

    def _report(self) -> None:
        states = [t.state for t in self.trials.values()]
        best = best_trial(self.trials.values(), self.metric)
        self._say(events.RungDone(
            self.limits.elapsed, self.rung, len(self.active), states.count("PRUNED"),
            states.count("COMPLETE"), states.count("FAIL"),
            sum(t.passes for t in self.trials.values()),
            best.mean(self.metric) if best else float("nan"), best.number if best else -1,
        ))  # fmt: skip

    def _say(self, event: events.Event) -> None:
        self.log.append(event)
        self.observe(event)

    def _progress(self, trial: Trial) -> Progress:
        score = trial.mean(self.metric)
        return Progress(trial.number, trial.passes, score, trial.done, trial.bracket)
