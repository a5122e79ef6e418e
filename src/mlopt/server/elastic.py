"""When to change who works and who serves: proposals from metrics, and what came of them.

::

    INIT -> RUN <-> OPTIMIZE -> FINISHING ( -> RUN, if more passes are asked for)

There is no proposal but in RUN: not while one is carried out, and no more once a worker has
finished. Cruise's last state, CLEANUP, has nothing to configure: a layout cleans up when it
is closed. The controller knows no clock and no mesh: who drives it tells it the time.

Cruise (Lee et al., ICDCS 2019), section IV-A2, and its code for times.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal

import numpy as np

from mlopt.errors import InputError
from mlopt.events import Observer, Reconfigured, ignore
from mlopt.parameters import check_count, check_positive
from mlopt.plan import Alternative, Choice, Plan, format_seconds
from mlopt.server.autoconfig import Configuration, best, check_enough, predicted
from mlopt.server.metrics import Metrics
from mlopt.server.model import Kind, Work, balance
from mlopt.server.moves import Step, Table, apportioned, reconfiguration

EPOCHS = 5
"""Epochs that are compared: of so many the first and the last differ by 2.3 deviations on
average, so that what is above that is seldom chance; and load of long ago is none."""

SAID = 3
"""Reports that must say that members differ, before anything is done for that alone: after
two, one in ten jobs was changed at its best, after three none of 24
that were tried (tests/server/test_elastic.py has some)."""

HINDERED = 0.25
"""Share by which links may have more than the quickest pull said, where servers are always
busy: 12 to 24% of those that were looked at (benchmarks/server_emulated.py). What servers
send in an epoch says it right."""

Kinds = Mapping[str, Kind]
State = Literal["INIT", "RUN", "OPTIMIZE", "FINISHING"]


@dataclass(frozen=True)
class Policy:
    """When a proposal is made.

    Parameters
    ----------
    threshold : float, default=.05
        Share of an epoch's seconds that must be gained: Cruise's, against oscillation (its
        code has 0 by default, its scripts .1). Seconds are predicted to within 2% of each
        other (benchmarks/server_planner.py), so that less may be none. More must be gained
        where epochs of one configuration, or reports of workers, differ by more.
    interval, settle : float, default=10
        Seconds between two attempts, and after a change until the next: Cruise's.
    least_servers : int, default=1
        That the model needs for its memory.

    Raises
    ------
    InputError
        When one of them is out of range.
    """

    threshold: float = 0.05
    interval: float = 10.0
    settle: float = 10.0
    least_servers: int = 1

    def __post_init__(self) -> None:
        if not (isinstance(self.threshold, Real) and 0 <= self.threshold < 1):
            raise InputError(f"`threshold` must be in [0, 1), got {self.threshold!r}.")
        check_positive("interval", self.interval, zero=True, infinite=True)
        check_positive("settle", self.settle, zero=True, infinite=True)
        check_count("least_servers", self.least_servers)


@dataclass(frozen=True)
class Proposal:
    """A reconfiguration.

    Attributes
    ----------
    before, after : Configuration
    now, predicted : float
        Seconds of an epoch as it is (infinite if it cannot go on), and afterwards.
    steps : tuple of Step
    reason : str
    measured : float or None
        Seconds of an epoch afterwards, once there was one.
    took : float or None
        Seconds that the change took.
    """

    before: Configuration
    after: Configuration
    now: float
    predicted: float
    steps: tuple[Step, ...]
    reason: str
    measured: float | None = None
    took: float | None = None


class Controller:
    """Keeps a job near its best configuration.

    Parameters
    ----------
    work : Work
        Its noise and seconds of applying are measured.
    configuration : Configuration
    cores : mapping of str to int
        Of the members that are there, those without a part included.
    policy : Policy, optional
    observer : callable, optional
        Told of each reconfiguration.

    Attributes
    ----------
    metrics : Metrics
        To be told what members report.
    state : {"INIT", "RUN", "OPTIMIZE", "FINISHING"}
    configuration : Configuration
    history : list of Proposal
        Those that were carried out.
    """

    def __init__(
        self,
        work: Work,
        configuration: Configuration,
        cores: Mapping[str, int],
        policy: Policy | None = None,
        observer: Observer = ignore,
    ) -> None:
        self.work, self.configuration = work, configuration
        self.policy, self.observer = policy or Policy(), observer
        self.cores = dict(cores)
        self.metrics = Metrics()
        self.state: State = "INIT"
        self.history: list[Proposal] = []
        self._first: float | None = None  # seconds of an epoch before any change
        self._epochs: deque[float] = deque(maxlen=EPOCHS)  # since the last change
        self._open: Proposal | None = None
        self._said: deque[Kinds] = deque(maxlen=SAID)  # each since the one before
        self._next = -math.inf
        self._left: set[str] = set()  # with a part, since the last change

    def start(self) -> None:
        """All members are ready: an epoch begins."""
        self.state = "RUN"

    def joined(self, member: str) -> None:
        """A member is there; it gets a part if that helps."""
        self.cores[member] = 1

    def left(self, member: str) -> None:
        """A member is gone, or about to; a part that it has must go to others.

        What is best then is proposed whatever it gains (Cruise, section IV-A2), whoever
        takes the part meanwhile.
        """
        self.cores.pop(member, None)
        if member in self.configuration.members:
            self._left.add(member)

    @property
    def forced(self) -> bool:
        """Whether a member with a part is gone."""
        return not self.configuration.members <= self.cores.keys()

    def propose(
        self, now: float, owners: Mapping[Table, Mapping[int, str]] | None = None
    ) -> Proposal | None:
        """What to change, or None. Carry it out, and say so by `done`.

        Parameters
        ----------
        now : float
            Seconds, of any clock.
        owners : mapping, optional
            See `reconfiguration`; rows and model are dealt in whole blocks then.

        Raises
        ------
        InputError
            There are too few members to go on.
        """
        if self.state != "RUN":
            return None
        lost = self.configuration.members - self.cores.keys()
        self._left |= lost
        ready = now >= self._next and self.metrics.ready(self.configuration)
        kinds = self.metrics.kinds(self.cores)
        if not (ready or lost or (self._left and kinds)):
            return None
        self._next = now + self.policy.interval
        owners = owners or {}
        work = self.metrics.measured(self.work)
        least = self.policy.least_servers
        if not kinds:
            after = _in_blocks(_as_before(self, least), owners)
            return self._offered(after, math.inf, math.nan, owners, lost)
        wanted = best(kinds, work, least_servers=least, keep=self.configuration)
        after = _in_blocks(wanted.configuration, owners)
        if not self._left:
            sure = self._sure(kinds, after, work)
            if sure is None:
                return None
            after = _in_blocks(sure, owners)
        if not self._left and not self._gains(kinds, after, work):
            return None
        seconds = predicted(kinds, after, work)
        before = math.inf if self._left else predicted(kinds, self.configuration, work)
        return self._offered(after, before, seconds, owners, lost)

    def _sure(self, kinds: Kinds, after: Configuration, work: Work) -> Configuration | None:
        """What surely gains, if anything does.

        What is gained only because members differ must be said by several reports in
        succession: who is disturbed by others in one epoch need not be in the next. Until
        then all that work have as much.
        """
        if not self._gains(kinds, after, work):
            self._said.clear()
            return None
        even, gain = _even(after), self._gain(kinds, after, work)
        of_numbers = self._gain(_like(kinds), even, work)
        if self._gains(kinds, even, work) and of_numbers > gain / 2:
            return even  # most of it would be gained if members were alike
        self._said.append(kinds)
        self.metrics.clear()
        same = [one for one in self._said if one.keys() == kinds.keys()]
        surely = len(same) == SAID and all(self._gains(one, after, work) for one in same)
        return after if surely else None

    def _gains(self, kinds: Kinds, after: Configuration, work: Work) -> bool:
        """Whether epochs would take less, by more than is wanted and more than chance."""
        least = max(self.policy.threshold, self._doubt())
        return self._gain(kinds, after, work) >= least

    def _gain(self, kinds: Kinds, after: Configuration, work: Work) -> float:
        before = predicted(kinds, self.configuration, work)
        return 1 - predicted(kinds, after, work) / before

    def _doubt(self) -> float:
        """The share of an epoch's seconds that may be one of chance: what epochs differ by
        under one configuration, and what workers seem to differ by. Before there was an
        epoch, what links may have more."""
        epochs = [*self._epochs]
        apart = (max(epochs) - min(epochs)) / max(epochs) if epochs else HINDERED
        return max(apart, self.metrics.chance([*self.configuration.workers]))

    def _offered(
        self,
        after: Configuration,
        before: float,
        seconds: float,
        owners: Mapping[Table, Mapping[int, str]],
        lost: frozenset[str],
    ) -> Proposal | None:
        steps = reconfiguration(self.configuration, after, owners, lost)
        if not steps and not lost:
            self._left.clear()
            return None  # it is so already
        new = sorted(after.members - self.configuration.members)
        reason = f"{(before - seconds) / before:.0%} less" if math.isfinite(before) else ""
        if self._left:
            reason = f"{', '.join(sorted(self._left))} left"
        elif new:
            reason += f" with {', '.join(new)}"
        self._open = Proposal(
            self.configuration, after, before, seconds, tuple(steps), reason
        )
        self.state = "OPTIMIZE"
        return self._open

    def done(self, now: float, took: float | None = None) -> None:
        """The proposal is carried out, in ``took`` seconds."""
        if self._open is None:
            raise InputError("`done` follows a proposal, and there is none.")
        self.history.append(replace(self._open, took=took))
        self.configuration, self._open = self._open.after, None
        self.metrics.clear()
        self._epochs.clear()
        self._said.clear()
        self._left.clear()
        self._next = now + self.policy.settle
        self.state = "RUN"
        last = self.history[-1]
        self.observer(
            Reconfigured(
                now, str(last.before), str(last.after), last.predicted, last.reason
            )
        )

    def epoch(self, seconds: float) -> None:
        """An epoch without a change in it took so long.

        Each server sent its share of the model for every mini-batch: its link has that rate
        at least. A single pull says less of a link, for it is waited for.
        """
        self._epochs.append(seconds)
        for server, share in self.configuration.servers.items():
            sent = share * self.work.pulled * self.work.batches
            self.metrics.link(server, sent / seconds)
        if not self.history:
            self._first = seconds
        else:
            self.history[-1] = replace(self.history[-1], measured=seconds)

    @property
    def seen(self) -> bool:
        """Whether epochs were measured in the configuration that there is."""
        return bool(self._epochs)

    def finish(self) -> None:
        """A worker has finished: nothing is changed any more."""
        self.state = "FINISHING"

    def plan(self) -> Plan:
        """Each configuration a line: an epoch predicted, measured, and what it replaced."""
        begin = self.history[0].before if self.history else self.configuration
        foreseen = self.history[0].now if self.history else None
        choices = [
            Choice("servers", self.work.mode, str(begin), foreseen, self._first),
            *(self._line(number, one) for number, one in enumerate(self.history, 1)),
        ]
        return Plan("epochs of a job on servers", tuple(choices), notes=self._notes())

    def _line(self, number: int, one: Proposal) -> Choice:
        rejected = []
        if math.isfinite(one.now):
            rejected = [Alternative(f"stay with {one.before}", one.now)]
        moved = sum(len(step.move.blocks) for step in one.steps if step.move)
        notes = [one.reason, f"{len(one.steps)} steps, {moved} blocks moved"]
        if one.took is not None:
            notes[1] += f", {format_seconds(one.took)}"
        return Choice(
            f"change {number}", self.work.mode, str(one.after), one.predicted,
            one.measured, tuple(rejected), tuple(notes),
        )  # fmt: skip

    def _notes(self) -> tuple[str, ...]:
        kinds = self.metrics.kinds(self.cores)
        if not kinds:
            return ("nothing is measured yet",)
        work = self.metrics.measured(self.work)
        compute = sum(one.compute for one in kinds.values()) / len(kinds)
        link = sum(one.bandwidth for one in kinds.values()) / len(kinds)
        w = balance(len(kinds), compute, work.pulled / link, work)
        return (
            f"measured: {format_seconds(compute)} a mini-batch, pulls of "
            f"{format_seconds(work.pulled / link)}; of {len(kinds)} members that were "
            f"alike {w:.1f} would work",
        )


def _like(kinds: Mapping[str, Kind]) -> dict[str, Kind]:
    """All as they are on average: what single ones seem to differ by is left out."""
    compute, bandwidth = np.mean([*kinds.values()], axis=0).tolist()
    return dict.fromkeys(kinds, Kind(compute, bandwidth))


def _even(of: Configuration) -> Configuration:
    return Configuration.even([*of.workers], [*of.servers])


def _in_blocks(
    wanted: Configuration, owners: Mapping[Table, Mapping[int, str]]
) -> Configuration:
    """Shares of rows and of the model in whole blocks; who would have none has no part."""
    rows, model = owners.get("rows", {}), owners.get("model", {})
    return Configuration(_whole(wanted.workers, rows), _whole(wanted.servers, model))


def _whole(shares: Mapping[str, float], held: Mapping[int, str]) -> Mapping[str, float]:
    """Shares of blocks, if there are any."""
    counts = apportioned(shares, len(held), Counter(held.values()))
    return {m: n / len(held) for m, n in counts.items() if n} if held else shares


def _as_before(controller: Controller, least: int) -> Configuration:
    """Before anything is measured: as large a share of servers as there was."""
    now, there = controller.configuration, [*controller.cores]
    check_enough(len(there), least)
    share = len(now.servers) / len(now.members)
    count = min(len(there) - 1, max(least, round(share * len(there))))
    there.sort(key=lambda m: {"server": 0, None: 1, "worker": 2}[now.role(m)])
    return Configuration.even(there[count:], there[:count])
