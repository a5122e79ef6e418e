"""Which members work and which serve, and how much of the rows and of the model each has.

Machines that are alike are a kind; of k kinds all numbers of workers and servers are
priced at once. Where these are too many, integer programs (`milp`) propose, and what
they give is improved as long as a member more or less, or an exchange, helps.

Cruise (Lee et al., ICDCS 2019), section III-C.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from mlopt.errors import InputError
from mlopt.server.milp import propose
from mlopt.server.model import Floats, Kind, Parts, Work, capacity, parts
from mlopt.server.simulate import simulate

Role = Literal["worker", "server"]

EXACTLY, ALIKE = 0.01, 0.1
"""Machines whose speeds and links differ by less are of one kind: the first, if that gives
few enough kinds, else the second, by which like machines differ while others run."""
ENUMERATED = 50_000
"""Configurations that are priced one by one: in .05 s (benchmarks/server_planner.py)."""
SOLVING = 2.0
"""Seconds for the integer programs, of the 4 to 7 that a plan for 32 kinds of machines
takes (benchmarks/server_planner.py): the rest improves what they propose."""
STARTS = 8
"""Beginnings that are simulated: in lockstep who meets whom at first may go on for ever,
and mini-batches of one pool take 13% longer after one beginning than after another. The
mean of so many was within 10% of any in 3000 drawn pools (tests/server/test_autoconfig.py
draws such)."""
AGAIN, NEAR = 64, 0.05
"""Beginnings that are simulated of configurations which are so near the best by the first:
workers of bounded staleness may fall into step or not, by which one run is off by 5%, and
the mean of eight by 2% (tests/server/test_autoconfig.py)."""
KNEE = 0.5
"""Where servers are busy for this share of the time and workers, too, the formula leaves
out who waits by chance, up to 12% (benchmarks/server_planner.py): it is simulated."""
DOUBT = 0.2
"""By which formulas may be off where machines differ (benchmarks/server_planner.py)."""
JUDGED = 12
"""Configurations at most among which the simulator decides then: .3 s for 32 members."""


@dataclass(frozen=True)
class Configuration:
    """Who does what.

    Parameters
    ----------
    workers, servers : mapping of str to float
        Of each member the share of the rows, or of the model; they sum to 1.

    Raises
    ------
    InputError
    """

    workers: Mapping[str, float]
    servers: Mapping[str, float]

    def __post_init__(self) -> None:
        for name, shares in (("workers", self.workers), ("servers", self.servers)):
            whole = sum(shares.values())
            if not shares or min(shares.values()) < 0 or not math.isclose(whole, 1.0):
                raise InputError(
                    f"`{name}` must have shares of at least 0 that sum to 1, got {shares}."
                )
        if both := sorted(self.workers.keys() & self.servers.keys()):
            raise InputError(f"A member works or serves, but {both} do both.")

    def role(self, member: str) -> Role | None:
        """What a member does; None if it has no part."""
        if member in self.workers:
            return "worker"
        return "server" if member in self.servers else None

    @property
    def members(self) -> frozenset[str]:
        """All that have a part."""
        return frozenset(self.workers) | frozenset(self.servers)

    def __str__(self) -> str:
        return f"{len(self.workers)} workers, {len(self.servers)} servers"

    @staticmethod
    def even(workers: Sequence[str], servers: Sequence[str]) -> Configuration:
        """The same share for all."""
        return Configuration(
            dict.fromkeys(workers, 1 / max(1, len(workers))),
            dict.fromkeys(servers, 1 / max(1, len(servers))),
        )


class Best(NamedTuple):
    """What was chosen.

    Attributes
    ----------
    configuration : Configuration
    seconds : float
        Predicted, of an epoch.
    """

    configuration: Configuration
    seconds: float


class Counts(NamedTuple):
    """How many workers and servers of each kind, ``(..., k)`` each."""

    workers: Floats
    servers: Floats


def best(
    members: Mapping[str, Kind],
    work: Work,
    *,
    least_servers: int = 1,
    keep: Configuration | None = None,
    enumerated: int = ENUMERATED,
    judged: int = JUDGED,
) -> Best:
    """The configuration whose epochs take the fewest seconds.

    Members of which nobody gains stay without a part.

    Parameters
    ----------
    members : mapping of str to Kind
    work : Work
    least_servers : int, default=1
        That the model needs for its memory.
    keep : Configuration, optional
        Of members that are alike those keep their role that have it.
    enumerated, judged : int
        How many configurations may be priced one by one, and simulated where machines
        differ or staleness is bounded; 1: formulas alone decide.

    Raises
    ------
    InputError
        Fewer members than one worker and the servers that are needed.

    Examples
    --------
    >>> from mlopt.server.autoconfig import best
    >>> from mlopt.server.model import Kind, Work
    >>> pool = {f"m{i}": Kind(compute=1.0, bandwidth=1e8) for i in range(32)}
    >>> print(best(pool, Work(pulled=60.5e6, mode="lockstep")).configuration)
    18 workers, 14 servers
    >>> print(best(pool, Work(pulled=60.5e6, mode="async")).configuration)
    23 workers, 9 servers
    """
    check_enough(len(members), least_servers)
    for difference in (EXACTLY, ALIKE):
        groups = alike(members, difference)
        sizes = np.array([len(group) for group in groups], float)
        if math.prod((sizes + 1) * (sizes + 2) / 2) <= enumerated:
            break
    kinds = np.array([np.mean([members[m] for m in group], 0) for group in groups])
    pricing = _Pricing(kinds, sizes, work, least_servers)
    if math.prod((sizes + 1) * (sizes + 2) / 2) <= enumerated:
        near = _all(sizes, idle=True)
    elif math.prod(sizes + 1) <= enumerated:
        counts = pricing.few(_all(sizes, idle=False), 1)[0]
        near = _neighbours(pricing.improved(counts)[1], sizes)
    else:
        proposed = propose(kinds, sizes, work, least_servers, SOLVING)
        starts = [_proportional(sizes, least_servers), *(Counts(*one) for one in proposed)]
        near = _neighbours(min(map(pricing.improved, starts), key=lambda o: o[0])[1], sizes)
    sure = len(groups) == 1 and work.mode != "bounded"
    few = pricing.few(near, 1 if sure else judged)
    found = [_dealt(groups, counts, keep, members, work) for counts in few]
    chosen = _judged(found, members, work)
    return Best(chosen, priced(members, chosen, work))


def _judged(
    found: Sequence[Configuration], members: Mapping[str, Kind], work: Work
) -> Configuration:
    """The one that takes the fewest seconds when simulated; those near it more often."""
    for starts in (STARTS, AGAIN):
        if len(found) > 1:
            took = np.array([predicted(members, one, work, starts) for one in found])
            order = np.argsort(took, kind="stable")
            found = [found[i] for i in order if took[i] <= (1 + NEAR) * took.min()]
    return found[0]


def check_enough(members: int, least_servers: int) -> None:
    """Raises InputError unless there can be workers and servers."""
    if members < 1 + least_servers:
        raise InputError(
            f"servers: needs {1 + least_servers} members (1 worker, {least_servers} for "
            f"the model), has {members}."
        )


class _Pricing(NamedTuple):
    """Numbers of some kinds of machines, compared."""

    kinds: Floats
    sizes: Floats
    work: Work
    least_servers: int

    def improved(self, found: Counts) -> tuple[float, Counts]:
        """By a member more or less, or two that exchange their roles, while that helps."""
        seconds = math.inf
        while True:
            near = self.few(_neighbours(found, self.sizes), 1)[0]
            better = float(parts(self.kinds, *near, self.work).seconds)
            if not better < seconds * (1 - 1e-9):
                return seconds, found
            seconds, found = better, near

    def few(self, counts: Counts, most: int) -> list[Counts]:
        """The cheapest, and others that formulas cannot tell from it for sure."""
        found = parts(self.kinds, *counts, self.work)
        enough = counts.servers.sum(-1) >= self.least_servers
        seconds = np.where(enough, found.seconds, math.inf)
        seconds = seconds / seconds.min()
        # Where servers limit, noise costs no time; more workers than that gain nothing.
        serve = np.where(enough, found.serve, 1.0)
        slack = np.round(np.maximum(found.worker, KNEE * serve) / serve, 9)
        size = counts.workers.sum(-1) + counts.servers.sum(-1)
        order = np.lexsort((size, slack, np.round(seconds, 9)))[:most]
        return [
            Counts(counts.workers[at], counts.servers[at])
            for at in order
            if seconds[at] <= 1 + DOUBT
        ]


def alike(members: Mapping[str, Kind], difference: float = ALIKE) -> list[list[str]]:
    """Members by kinds: none is more than a ``difference`` above the first of its kind."""
    groups: list[list[str]] = []
    for name in sorted(members, key=lambda m: (*members[m], m)):
        for group in groups:
            pairs = zip(members[name], members[group[0]], strict=True)
            if all(abs(one - first) <= difference * first for one, first in pairs):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


def _all(sizes: Floats, *, idle: bool) -> Counts:
    """Every number of workers and servers of each kind; else all members have a part."""
    each = [
        [
            (w, s)
            for w in range(int(n) + 1)
            for s in range(int(n) - w + 1)
            if idle or w + s == n
        ]
        for n in sizes
    ]
    at = np.indices([len(pairs) for pairs in each]).reshape(len(each), -1)
    chosen = [np.array(pairs, float)[row] for pairs, row in zip(each, at, strict=True)]
    both = np.stack(chosen, axis=1)
    return Counts(both[..., 0], both[..., 1])


def _proportional(sizes: Floats, least_servers: int) -> Counts:
    """A third of each kind serves: where to begin when nothing better is known."""
    servers = np.floor(sizes / 3)
    for kind in np.argsort(-sizes):
        servers[kind] += max(0.0, min(sizes[kind], least_servers - servers.sum()))
    return Counts(sizes - servers, servers)


def _neighbours(found: Counts, sizes: Floats) -> Counts:
    """One member gets another part, or two of different kinds exchange theirs."""
    k = len(sizes)
    steps = []
    for kind in range(k):
        for change in ((1, 0), (0, 1), (-1, 0), (0, -1), (1, -1), (-1, 1)):
            step = np.zeros((2, k))
            step[:, kind] = change
            steps.append(step)
        for other in range(k):
            step = np.zeros((2, k))
            step[:, kind] += (1, -1)
            step[:, other] += (-1, 1)
            steps.append(step)
    near = np.stack(found) + np.array(steps)
    possible = (near >= 0).all((1, 2)) & (near.sum(1) <= sizes).all(1)
    near = np.concatenate([np.stack(found)[None], near[possible]])
    return Counts(near[:, 0], near[:, 1])


def _dealt(
    groups: list[list[str]],
    found: Counts,
    keep: Configuration | None,
    members: Mapping[str, Kind],
    work: Work,
) -> Configuration:
    """Members for the numbers: those that have the role already, then the faster work."""
    order = {"worker": 0, None: 1, "server": 2}
    workers: list[str] = []
    servers: list[str] = []
    for group, w, s in zip(groups, found.workers, found.servers, strict=True):
        if keep is not None:
            group = sorted(group, key=lambda m: order[keep.role(m)])
        workers += group[: int(w)]
        servers += group[len(group) - int(s) :]
    return shared(members, workers, servers, work)


def shared(
    members: Mapping[str, Kind], workers: Sequence[str], servers: Sequence[str], work: Work
) -> Configuration:
    """Rows and model dealt so that all workers end together, and all servers.

    The model is dealt in proportion to what a server sends and updates in a second. Of the
    rows, a worker that waits for nobody has as many as it does mini-batches; where workers
    wait for each other each has as many mini-batches, of sizes that take as long.
    """
    kinds = np.array([members[m] for m in workers])
    serving = capacity(np.array([members[m] for m in servers]), work)
    model = serving / serving.sum()
    compute, pull = (
        kinds[:, 0],
        np.maximum(work.pulled / kinds[:, 1], work.pulled / serving.sum()),
    )
    if work.ahead < math.inf:
        # c_i size_i + pull_i is the same for all, and sizes average to 1.
        if work.mode == "lockstep":
            pull = np.maximum(pull, len(workers) * work.pulled / serving.sum())
        round_ = (len(workers) + (pull / compute).sum()) / (1 / compute).sum()
        rows = np.maximum(0.0, round_ - pull) / compute
    else:
        rows = 1 / (
            np.maximum(compute, pull) if work.mode == "prefetch" else compute + pull
        )
    rows = rows / rows.sum()
    return Configuration(
        dict(zip(workers, rows.tolist(), strict=True)),
        dict(zip(servers, model.tolist(), strict=True)),
    )


def priced(members: Mapping[str, Kind], now: Configuration, work: Work) -> float:
    """Seconds of an epoch by the formulas, shares as they are.

    Who has more than the share that it should have ends as much later.
    """
    if lost := sorted(now.members - members.keys()):
        raise InputError(f"Nothing is known of {lost}: a configuration names members.")
    found = _parts(members, now, work)
    right = shared(members, [*now.workers], [*now.servers], work)
    if work.ahead < math.inf:  # of what is too much, only the computing takes longer
        more = {m: now.workers[m] - share for m, share in right.workers.items()}
        worker = found.worker + max(members[m].compute * one for m, one in more.items())
    else:
        late = (now.workers[m] / share for m, share in right.workers.items())
        worker = found.worker * max(late)
    busy = max(now.servers[m] / share for m, share in right.servers.items())
    one = max(float(worker + found.queue * busy), float(found.serve) * busy)
    return work.batches * one


def predicted(
    members: Mapping[str, Kind], now: Configuration, work: Work, starts: int = STARTS
) -> float:
    """Seconds of an epoch: simulated near the knee, where neither side alone decides.

    And where workers that differ go in lockstep, since who meets whom at which server
    counts; and with bounded staleness, whose waits no formula here has.
    """
    seconds = priced(members, now, work)
    found = _parts(members, now, work)
    sides = sorted((float(found.worker), float(found.serve)))
    like = len(alike({m: members[m] for m in now.members})) == 1
    knee = sides[0] >= KNEE * sides[1]
    if not {"lockstep": not like, "bounded": True}.get(work.mode, knee):
        return seconds
    sizes = [len(now.workers) * share for share in now.workers.values()]
    seen = [
        simulate(
            [members[m] for m in now.workers],
            [members[m] for m in now.servers],
            work,
            shares=[*now.servers.values()],
            sizes=sizes if work.ahead < math.inf else None,
            seed=seed,
        ).seconds
        for seed in range(starts)
    ]
    return max(seconds, work.batches * sum(seen) / starts)


def _parts(members: Mapping[str, Kind], now: Configuration, work: Work) -> Parts:
    kinds = [members[m] for m in (*now.workers, *now.servers)]
    works = np.arange(len(kinds)) < len(now.workers)
    return parts(kinds, works, ~works, work)
