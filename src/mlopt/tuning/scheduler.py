"""The loop of TuPAQ (Algorithm 2): propose, train a while, let the bandit decide, repeat.

Everything is synchronous by rung: what a rung decides is a function of the history alone,
so the same seed gives the same search whatever the number of threads or workers, and a
search that was killed is resumed by replaying what the storage holds.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from mlopt import events
from mlopt.cluster import between_passes
from mlopt.passes import Passes
from mlopt.plan import Plan, format_seconds
from mlopt.prices import price
from mlopt.training import Limits
from mlopt.tuning.bandits import Bandit, Progress
from mlopt.tuning.bandits.base import over
from mlopt.tuning.counting import FINAL, PREPARING, with_ran
from mlopt.tuning.crews.batching import BatchCrew
from mlopt.tuning.crews.black_box import BlackBoxCrew
from mlopt.tuning.crews.prefixes import Prefixes
from mlopt.tuning.crews.trainer import Clock, Trainer
from mlopt.tuning.crews.trials import (
    NOT_FINITE,
    TrainRequest,
    TrainResult,
    Trial,
    best_trial,
    check_failures,
    mean_score,
)
from mlopt.tuning.foresight import Foresight
from mlopt.tuning.pioneers import Pioneers
from mlopt.tuning.planning import PROPOSALS, measured
from mlopt.tuning.prices import Prices
from mlopt.tuning.replay import Earlier
from mlopt.tuning.samplers.proposer import Proposal, Proposer
from mlopt.tuning.storage import records
from mlopt.tuning.storage.store import Store
from mlopt.tuning.turns import Turns

GRACE, LATE = price("search.grace"), price("search.late")


@dataclass(eq=False)
class Scheduler:
    """Runs a search to the end of its budget.

    Parameters
    ----------
    proposer, bandit, store
        Who proposes, who decides, where it is remembered.
    pioneers : Pioneers
        Where trials that are fitted one by one are looked at, and who trains before others.
    batch, black_box : Trainer
        Who trains: trials with a batched form, and the others.
    foresight : Foresight
        What trials take beside what was foreseen of them.
    metric : str
        The metric that decides.
    slots : int
        Trials in training at the same time (TuPAQ's BatchSize).
    turns : Turns
        Which trials are defaults of the families, and who trains first.
    n_trials : int or None
    limits : Limits
    observe : Observer
    """

    proposer: Proposer
    bandit: Bandit
    pioneers: Pioneers
    store: Store
    batch: BatchCrew
    black_box: BlackBoxCrew
    foresight: Foresight
    metric: str
    slots: int
    n_trials: int | None
    limits: Limits
    observe: events.Observer = events.ignore
    refits: bool = True
    turns: Turns = field(default_factory=Turns)
    settled: Callable[[Trial], None] = lambda trial: None
    """Called with the trial that alone can still win, while it goes on training."""
    trials: dict[int, Trial] = field(default_factory=dict)
    active: list[Trial] = field(default_factory=list)
    earlier: Earlier = field(default_factory=Earlier)
    plan: Plan = field(default_factory=lambda: Plan("search"))
    log: list[events.Event] = field(default_factory=list)
    spent: dict[str, float] = field(default_factory=dict)
    ran: dict[str, Counter[str]] = field(default_factory=dict)
    """Fits and scores, by family; of the plan's other steps, by their names."""
    looks: list[Progress] = field(default_factory=list)
    """Every look at every trial: a bandit compares models of the same age."""
    rung: int = 0
    stopped: str = "budget"
    asking: float = 0.0
    """Seconds spent on proposals and on the storage."""
    _first: Trial | None = None
    _cut: set[int] = field(default_factory=set)
    """Trials that time cut off before the look that was asked for."""

    def __post_init__(self) -> None:
        problem = self.batch.problem
        self.prices = Prices(problem, self.batch.views, self.bandit.max_passes)

    def run(self, check: Callable[[], None] = lambda: None) -> None:
        """Search until the budget is spent or the space is.

        ``check`` is called before a round and before an outcome is believed; it raises
        to end the search.
        """
        if self.store.told:
            self._say(events.Message(self.limits.elapsed, self.store.told))
        with between_passes():
            while self._round(check):
                pass
        self._end_search()

    def measured_plan(self, refit: float | None) -> Plan:
        """The plan with what it took; families in seconds of training, over all tasks."""
        names = {"": self.plan.choices[0].step if self.plan.choices else ""}
        seconds = {names.get(family, family): s for family, s in self.spent.items()}
        seconds[PROPOSALS] = self.asking
        ran = {names.get(name, name): counts for name, counts in self.ran.items()}
        if refit is not None:
            seconds[FINAL] = refit
        told = (f"{name or 'looks'}: {text}" for name, text in self.pioneers.told.items())
        plan = replace(self.plan, notes=(*self.plan.notes, *told))
        return measured(with_ran(plan, ran), seconds, self.limits.elapsed)

    def interrupt(self) -> None:
        """Ctrl-C: what is in training stays unfinished; the storage takes it up again."""
        self.stopped = "interrupted"
        self._end_search()

    @property
    def reserve(self) -> float:
        """Seconds that the final fit of the best so far will take."""
        best = best_trial(self.trials.values(), self.metric)
        return self.prices.final(best) if best and self.refits else 0.0

    def _may_start(self, trial: Trial, seconds: float) -> bool:
        """Whether ``trial`` can train for ``seconds`` and still be the one that is fitted.

        Until something has a score, time does not count for the first that asks: there
        must be a model in the end.
        """
        left, prices = self.limits.seconds_left, self.prices
        price = prices.least if trial.number in self.turns.plain else prices.final
        final = price(trial) if self.refits and math.isfinite(left) else 0.0
        in_time = math.isinf(left) or seconds + max(final, self.reserve) < left
        if self._scored():
            return in_time
        self._first = self._first or trial
        return in_time or trial is self._first

    def _waits(self) -> float:
        """Seconds to wait for what is in training: a fit may hang.

        Without a score a search is rather late; yet it must end if nothing ever does.
        """
        left = self.limits.seconds_left
        if math.isinf(left):
            return left
        if self._scored():
            return left - self.reserve + GRACE
        return left + max(LATE, self.limits.seconds or 0.0)

    def _late(self, seconds: float) -> bool:
        return self.limits.seconds_left - self.reserve <= seconds

    def _scored(self) -> bool:
        return any(t.passes > 0 for t in self.trials.values())

    def _round(self, check: Callable[[], None]) -> bool:
        check()
        left = self.limits.seconds_left
        late = math.isfinite(left) and left <= self.reserve
        # One round there must be, or scores of an earlier run: no model is worse than late.
        if late and (self.rung > 0 or self.proposer.knows_scores):
            self.stopped = "no time was left"
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
        if not heard:
            self.stopped = "no time was left"  # there is none for anything in training
        return heard

    def _settles(self) -> bool:
        """Whether only one trial can still win."""
        ended = any(t.state == "COMPLETE" for t in self.trials.values())
        return len(self.active) == 1 and not ended and not self._may_come()

    @property
    def trainers(self) -> tuple[Trainer, ...]:
        """Who trains, each its own trials."""
        return self.batch, self.black_box

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
        proposed, turns = self.proposer.proposed, self.turns
        rest = max(0, turns.count - proposed) if turns.short else 0
        going = [self._progress(t) for t in turns.going(self.active)]
        room = self.bandit.room(going, max(self.slots, rest + len(going)), proposed)
        if rest or turns.leading(self.active):
            room = min(room, rest)
        if self.n_trials is not None:
            room = min(room, self.n_trials - proposed)
        start = time.perf_counter()
        proposals = self.proposer.ask(room) if room > 0 else []
        self.asking += time.perf_counter() - start
        self._begin(proposals)

    def _begin(self, proposals: Sequence[Proposal]) -> None:
        for proposal in proposals:
            number = proposal.number
            if proposal.recorded is not None:
                self.earlier.trials[number] = proposal.recorded
            bracket = self.bandit.bracket(number)
            trial = Trial(number, proposal.family, proposal.params, bracket)
            self.trials[number] = trial
            self.active.append(trial)
            self._say(
                events.TrialStarted(self.limits.elapsed, number, trial.family, trial.params)
            )

    def _turn(self) -> list[Trial]:
        """Who trains now: where time is short, defaults that it suffices for come first."""
        threads = self.batch.problem.executor.threads
        spare = (self.limits.seconds_left - self.reserve) * threads
        spent = sum(self.spent.values())
        self.active, dear = self.turns.choose(self.active, self.prices.rest, spare, spent)
        for trial in dear:
            text = (
                f"trial {trial.number}, a default of {trial.family}, would take "
                f"{format_seconds(self.prices.rest(trial))} on one thread: too much of the "
                "time left to go before others, it trains beside them and may be given up"
            )
            self._say(events.Message(self.limits.elapsed, text))
            self.plan = replace(self.plan, notes=(*self.plan.notes, text))
        return self.pioneers.now(self.turns.now(self.active))

    def _stop(self, trial: Trial) -> Passes:
        """Passes at which ``trial`` is looked at next."""
        if self.turns.straight(trial):
            return self.bandit.max_passes
        views = self.batch.views
        if self.bandit.optional and not views.is_batched(trial):
            return self.pioneers.next(trial)
        return self.bandit.next_stop(self._progress(trial))

    def _order(self, trial: Trial) -> TrainRequest:
        """As far as its next look; what is trained past others tells of them, too."""
        until = self._stop(trial)
        return TrainRequest(trial, until, self.pioneers.stages(trial, until))

    def _train(self, check: Callable[[], None]) -> bool:
        """One rung for those whose turn it is (line 8); whether to go on."""
        turn = self._turn()
        asked = [(trial, trial.passes) for trial in turn]
        heard = self._advance(turn, check)
        return self.turns.heard(asked) or heard

    def _advance(self, waiting: list[Trial], check: Callable[[], None]) -> bool:
        """Train everything ``waiting`` to its next look; whether anything was trained."""
        heard = False
        while waiting:
            orders = [self._order(trial) for trial in waiting]
            for together in self._outcomes(orders):
                check()
                heard = heard or bool(together)
                self._cut -= {outcome.trial for outcome in together}
                self._cut |= _cut_off(together, orders)
                ended = [self._hear(outcome).state != "RUNNING" for outcome in together]
                if any(ended):
                    self._remember()
            if self._waits() <= 0:
                self.stopped = "no time was left"
            first, self._first = self._first, None
            if self._scored() or first is None or first.reason is None:
                break
            # Time is up, and the one that was to give a model all the same has failed.
            waiting = [trial for trial in waiting if trial.reason is None]
        return heard

    def _hear(self, outcome: TrainResult) -> Trial:
        """Take in what came of a trial; one that failed or is fully trained ends here."""
        trial = self.trials[outcome.trial]
        took = self.spent.get(trial.family, 0.0) + outcome.seconds
        self.spent[trial.family] = took
        self.ran.setdefault(trial.family, Counter()).update(outcome.ran)
        self.prices.hear(trial, outcome)
        self.foresight.hear(trial, outcome)
        trial.record(outcome)
        score = trial.mean(self.metric)
        if trial.reason is None and not math.isfinite(score):
            trial.reason = f"{NOT_FINITE}: {score}"
            self.proposer.keep(trial.number, trial.passes, trial.scores)
        if trial.reason is not None:
            self._end(trial, "FAIL", trial.reason)
            return trial
        self._say(events.TrialScored(
            self.limits.elapsed, trial.number, trial.family, trial.passes, score,
            outcome.seconds, outcome.replayed,
        ))  # fmt: skip
        for passes, scores in (*outcome.stages.items(), (trial.passes, trial.scores)):
            mean = mean_score(scores, self.metric)
            self.proposer.report(trial.number, passes, mean, scores)
            if passes != trial.passes:
                early = replace(self._progress(trial), done=False)
                self.looks.append(replace(early, passes=passes, score=mean))
        if over(self._progress(trial), self.bandit.max_passes):
            self._end(trial, "COMPLETE", None)  # whatever the others do
        return trial

    def _outcomes(self, orders: Sequence[TrainRequest]) -> Iterator[Sequence[TrainResult]]:
        """Replayed from the storage where a trial had ended there, trained otherwise."""
        replays = [self.earlier.look(order.trial, order.until) for order in orders]
        yield [outcome for outcome in replays if outcome is not None]
        pairs = zip(orders, replays, strict=True)
        fresh = [order for order, replay in pairs if replay is None]
        fresh = self.batch.views.together(fresh)
        clock = Clock(self._may_start, self._waits, self._late, self._scored)
        # One after the other: a trial may turn out to have no batched form.
        for trainer in self.trainers:
            if own := [request for request in fresh if trainer.takes(request.trial)]:
                yield from trainer.train(own, clock)

    def _decide(self) -> None:
        """Finished, active or pruned (line 10); failures leave first."""
        going = [t for t in self.active if t.state != "FAIL" and t.number not in self._cut]
        looked = [t for t in going if t.passes > 0]
        scored = [self._progress(t) for t in looked]
        verdicts = self.bandit.allocate(scored, self.looks)
        self.looks += scored
        for number in verdicts.pruned:
            trial = self.trials[number]
            if self.turns.keeps(trial) and math.isfinite(trial.mean(self.metric)):
                continue
            self._end(trial, "PRUNED", verdicts.reasons.get(number))
        self.active = [t for t in self.active if t.state == "RUNNING"]
        if self.n_trials is None and self.proposer.space.size is None:
            check_failures(self.trials.values())
        alive = {trial.number for trial in self.active}
        for trainer in self.trainers:
            trainer.drop(alive)
        self.prefixes.retain(alive, more=self._may_come())
        start = time.perf_counter()
        self._remember()
        self.asking += time.perf_counter() - start

    def _remember(self) -> None:
        if self.store.keeps:  # what changed is copied, which takes time
            self.store.write(self.proposer.changed())

    def _end(self, trial: Trial, state: str, reason: str | None) -> None:
        trial.state, trial.reason = state, reason
        self.foresight.end(trial)
        if state != "FAIL":
            self.pioneers.end(trial)
        self.plan = self.foresight.corrected(self.plan)
        score = trial.mean(self.metric)
        took = {records.SECONDS: trial.seconds, records.WORK: trial.work}
        self.proposer.note(trial.number, **took)
        for name, own in (
            (records.TRAIN, trial.train_scores),
            (records.FAILED, trial.failed),
        ):
            if own:
                self.proposer.note(trial.number, **{name: records.rung_to_json(own)})
        self.proposer.tell(trial.number, score, state, reason)
        now = self.limits.elapsed
        if state == "FAIL":
            self._say(events.TrialFailed(now, trial.number, reason or ""))
        elif state == "PRUNED":
            why = reason or ""
            self._say(events.TrialPruned(now, trial.number, trial.passes, score, why))
        else:
            self._say(events.TrialFinished(now, trial.number, trial.passes, score))

    def _end_search(self) -> None:
        """What an earlier run knows counts; what is in training waits in the storage."""
        self.ran[PREPARING] = self.prefixes.fits()
        self.foresight.remember({self.trials[number].family for number in self._cut})
        self._take_in_the_rest()
        for trial in self.active:
            if trial.state == "RUNNING":
                trial.state = "PRUNED" if trial.passes else "FAIL"
                trial.reason, trial.unfinished = f"unfinished: {self.stopped}", True
                self.proposer.leave(trial.number)
                self._say(events.TrialLeft(
                    self.limits.elapsed, trial.number, trial.passes,
                    trial.mean(self.metric), trial.reason,
                ))  # fmt: skip
        self._remember()

    def _take_in_the_rest(self) -> None:
        """Of trials that an earlier run has looked at, all that there was no time for."""
        most = math.inf if self.n_trials is None else self.n_trials
        self._begin(self.proposer.stored(most))
        for trial in [t for t in self.active if t.state == "RUNNING"]:
            while trial.state == "RUNNING" and (
                look := self.earlier.look(trial, late=True)
            ):
                self._hear(look)
            state, reason = self.earlier.end(trial)
            if trial.state == "RUNNING" and state == "PRUNED":
                self._end(trial, state, reason)

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
        return Progress(
            trial.number, trial.passes, score, trial.done, trial.bracket, trial.family
        )


def _cut_off(outcomes: Sequence[TrainResult], orders: Sequence[TrainRequest]) -> set[int]:
    """Those that were not trained as far as was asked, though they go on."""
    until = {order.trial.number: order.until for order in orders}
    fresh = [one for one in outcomes if not (one.done or one.replayed or one.reason)]
    return {one.trial for one in fresh if one.passes < until[one.trial]}
