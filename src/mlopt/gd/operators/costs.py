"""What a plan of gradient descent costs: ML4all's formulas (3) to (9) on `mlopt.costs`.

The formulas say how much work there is and how it repeats; `Cost.seconds` alone turns work
into time. So pages and packets are bytes here, and the paper's pageIO and NT are the rates
of `Resources`. Only a seek has its own time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.operators.references import PlanRow, Settings
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.stats import Stats

OPERATORS = ("transform", "stage", "sample", "compute", "update", "converge", "loop")

PARSE = price("operator.parse")
LOSS = price("operator.loss")
STORED = price("operator.stored")
COIN = price("operator.coin")
CALL = price("operator.call")
BLOCK = price("operator.block")
TOUCH = price("operator.touch")


@dataclass(frozen=True)
class Waves:
    """How many partitions a data set has, and in how many waves they are processed.

    Parameters
    ----------
    rows : int
        n
    nbytes : int
        |D|_b: bytes of the data set.
    partition_bytes : int
        |P|_b
    cap : int
        Processes that run in parallel.

    Examples
    --------
    The paper's: 85 partitions on 10 nodes that process 2 each.

    >>> waves = Waves(rows=8500, nbytes=8500, partition_bytes=100, cap=20)
    >>> waves.partitions, waves.count, waves.last
    (85, 5, 5.0)
    """

    rows: int
    nbytes: int
    partition_bytes: int
    cap: int = 1

    def __post_init__(self) -> None:
        if min(self.rows, self.nbytes) < 0 or min(self.partition_bytes, self.cap) < 1:
            raise InputError(
                "`rows` and `nbytes` must be at least 0, `partition_bytes` and `cap` at "
                f"least 1, got {self!r}."
            )

    @property
    def partitions(self) -> int:
        """``p(D) = ceil(|D|_b / |P|_b)``"""
        return -(-self.nbytes // self.partition_bytes)

    @property
    def w(self) -> float:
        """``w(D) = p(D) / cap``"""
        return self.partitions / self.cap

    @property
    def full(self) -> int:
        """``floor(w(D))``: waves in which every process has a partition."""
        return self.partitions // self.cap

    @property
    def k(self) -> int:
        """``ceil(n |P|_b / |D|_b)``: rows of a partition; all where there is only one."""
        if not self.nbytes:
            return self.rows
        return min(self.rows, -(-self.rows * self.partition_bytes // self.nbytes))

    @property
    def last(self) -> float:
        """``lwp(D)``: partitions in the wave that is not full.

        ``(n mod (k cap floor(w))) / k`` is no number where no wave is full: it is then
        p(D). And k is rounded up, so that k cap floor(w) may exceed n, which would make the
        whole of n a last wave: it never has more partitions than the full waves leave.
        """
        left = self.partitions - self.cap * self.full
        if not self.full or not self.k:
            return float(left)
        return min((self.rows % (self.k * self.cap * self.full)) / self.k, float(left))

    @property
    def last_rows(self) -> float:
        """``min(lwp, 1) k``: rows of the largest partition in the last wave."""
        return min(self.last, 1.0) * self.k

    @property
    def count(self) -> int:
        """Waves in all, the last one included if it has any partition."""
        return self.full + (self.last > 0)


@dataclass(frozen=True)
class Medium:
    """Where a data set lies.

    Parameters
    ----------
    nbytes : int
        |D|_b
    partition_bytes : int
        |P|_b
    page : int, default=4096
        |page|_b: the least that is read.
    packet : int, default=1500
        |packet|_b: the least that is sent.
    seek : float, default=3e-5
        SK, in seconds: of one read from Python, where the file is in the page cache. A
        solid state disk takes 1e-4 more. 0 in memory.
    memory : bool, default=False
        Whether it is in memory, where pages cost what memory traffic costs.
    readers : int, default=1
        Processes that read and transform it in parallel: the cap of its waves. The sources
        of `mlopt.gd.operators` are read by one.
    """

    nbytes: int
    partition_bytes: int
    page: int = 4096
    packet: int = 1500
    seek: float = 3e-5
    memory: bool = False
    readers: int = 1

    def waves(self, rows: int, cap: int) -> Waves:
        """How its partitions are processed on ``cap`` slots."""
        return Waves(rows, self.nbytes, self.partition_bytes, cap)

    def read(self, nbytes: float) -> Cost:
        """One seek, and pages for ``nbytes`` from there."""
        pages = math.ceil(nbytes / self.page) * self.page
        if self.memory:
            return Cost(memory=pages, fixed=self.seek)
        return Cost(disk=pages, fixed=self.seek)

    def sent(self, nbytes: float) -> Cost:
        """Formula (5), with packets of ``packet`` bytes: NT is the cost of one byte."""
        return Cost(network=math.ceil(nbytes / self.packet) * self.packet)


def io(medium: Medium, waves: Waves) -> Cost:
    """Formula (3): a seek and a partition for each full wave, and one for the last.

    A last wave without partitions costs nothing, not even its seek.
    """
    whole = min(medium.partition_bytes, medium.nbytes)
    cost = waves.full * medium.read(whole)
    if waves.last > 0:
        cost += medium.read(min(waves.last, 1.0) * whole)
    return cost


def cpu(unit: Cost, waves: Waves) -> Cost:
    """Formula (4): ``unit`` for each row of a partition in each full wave, and the last."""
    return (waves.full * waves.k + waves.last_rows) * unit


@dataclass(frozen=True)
class Units:
    """``CPU_u(op)``: the work of each operator on one row, and of those that see no rows.

    Parameters
    ----------
    transform, compute, sample : Cost
        For one row.
    stage, update, converge, loop : Cost
        For one call.
    """

    transform: Cost = field(default_factory=Cost)
    compute: Cost = field(default_factory=Cost)
    sample: Cost = field(default_factory=Cost)
    stage: Cost = field(default_factory=Cost)
    update: Cost = field(default_factory=Cost)
    converge: Cost = field(default_factory=Cost)
    loop: Cost = field(default_factory=Cost)


def units_of(stats: Stats, *, text: bool) -> Units:
    """The work of the reference operators on rows like these.

    Parameters
    ----------
    stats : Stats
    text : bool
        Whether Transform parses text.
    """
    filled = max(1.0, stats.density * stats.columns)
    vector = Cost(flops=2 * stats.columns, memory=16 * stats.columns)
    calls = Cost(python=CALL)
    # X is read for the margins, and once more for the gradient: these are no fused passes.
    products = Cost(flops=4 * filled, memory=2 * stats.itemsize * filled)
    if stats.sparse:
        products = Cost(fixed=STORED * filled)
    return Units(
        transform=Cost(fixed=PARSE * (filled + 1)) if text else Cost(),
        compute=products + Cost(fixed=LOSS),
        sample=Cost(fixed=COIN),
        stage=calls,
        update=vector + calls,
        converge=vector + calls,
        loop=calls,
    )


def sample_cost(
    sampling: str, medium: Medium, waves: Waves, units: Units, size: int
) -> Cost:
    """``c_SP(D)`` of one iteration.

    Bernoulli reads and looks at everything; in memory it looks at row numbers only.
    Random-partition seeks for each row.
    Shuffled-partition reads and shuffles a partition once for ``ceil(k / size)``
    iterations.
    """
    calls = Cost(python=CALL)
    single = size * medium.read(medium.nbytes / max(1, waves.rows))
    if medium.memory:
        single += min(size, waves.partitions) * Cost(python=TOUCH)
    if sampling == "bernoulli":
        if medium.memory:
            return waves.rows * units.sample + single + calls
        return io(medium, waves) + cpu(units.sample, waves) + calls
    if sampling == "random-partition":
        return single + size * units.sample + calls
    if sampling == "shuffled-partition":
        whole = medium.read(min(medium.partition_bytes, medium.nbytes))
        once = whole + waves.k * units.sample
        return (1 / max(1, math.ceil(waves.k / size))) * once + calls
    raise InputError(
        '`sampling` must be "bernoulli", "random-partition" or "shuffled-partition", got '
        f"{sampling!r}."
    )


_BEFORE = {"lazy": ("stage",)}
_ALWAYS = ("compute", "update", "converge", "loop")
_EACH = {
    "all": _ALWAYS,
    "eager": ("sample", *_ALWAYS),
    "lazy": ("sample", "transform", *_ALWAYS),
}


def once_and_each(c: Mapping[str, Cost], kind: str) -> tuple[Cost, Cost]:
    """What is paid once, and in each of T iterations: formulas (7), (8) and (9).

    ::

        "all"    c_S + c_T + T (              c_C + c_U + c_CV + c_L)
        "eager"  c_S + c_T + T (c_SP +        c_C + c_U + c_CV + c_L)
        "lazy"   c_S       + T (c_SP + c_T +  c_C + c_U + c_CV + c_L)
    """
    before = _BEFORE.get(kind, ("stage", "transform"))
    once, each = (
        sum((c[name] for name in names), Cost()) for names in (before, _EACH[kind])
    )
    return once, each


def operator_costs(
    row: PlanRow,
    settings: Settings,
    stats: Stats,
    medium: Medium,
    resources: Resources,
) -> dict[str, Cost]:
    """The cost of one call of each operator in a plan (formula 6).

    An eager plan reads ``medium`` once, and works on rows in memory from then on.

    Parameters
    ----------
    row : PlanRow
    settings : Settings
    stats : Stats
        Of the parsed rows.
    medium : Medium
        Where the source lies.
    resources : Resources
    """
    units = units_of(stats, text=not medium.memory)
    cap = resources.slots
    share = max(1, stats.bytes // max(1, stats.partitions))
    held = replace(medium, nbytes=stats.bytes, partition_bytes=share, seek=0.0, memory=True)
    source = medium.waves(stats.rows, medium.readers)
    parsed = held.waves(stats.rows, cap)
    size = row.rows(settings, stats.rows)
    costs = {
        "stage": units.stage,
        "update": units.update,
        "converge": units.converge,
        "loop": units.loop,
    }
    if cap > 1 and places(row, settings, stats, medium)["compute"] == "distributed":
        gradient = 8.0 * stats.columns
        costs["update"] += held.sent(gradient) + Cost(round_trips=1)
        costs["update"] += Cost(tasks=parsed.partitions)
    if row.sampling is None:
        # Compute's own memory traffic is the reading of the rows: it is not charged twice.
        costs["compute"] = cpu(units.compute, parsed) + parsed.count * Cost(python=BLOCK)
    else:
        costs["compute"] = size * units.compute + Cost(python=CALL)
        where, waves = (medium, source) if row.lazy else (held, parsed)
        costs["sample"] = sample_cost(row.sampling, where, waves, units, size)
    everything = io(medium, source) + cpu(units.transform, source)
    if settings.stage_rows is None:
        costs["stage"] += everything
    if row.lazy:
        costs["transform"] = size * units.transform + Cost(python=CALL)
    else:
        ready = medium.memory and settings.transform is None
        costs["transform"] = Cost() if ready else everything
    return costs


def priced(
    row: PlanRow,
    settings: Settings,
    stats: Stats,
    medium: Medium,
    resources: Resources,
) -> tuple[Cost, Cost]:
    """What a plan costs before its first iteration, and for each; see `operator_costs`."""
    costs = operator_costs(row, settings, stats, medium, resources)
    kind = "all" if row.sampling is None else row.transform
    return once_and_each(costs, kind)


def places(
    row: PlanRow, settings: Settings, stats: Stats, medium: Medium
) -> dict[str, str]:
    """Where each operator runs: "local" if its input fits one partition (appendix D).

    A plan may mix: the Sample of SGD sees all rows, and its Compute one.
    """
    whole = "local" if medium.nbytes <= medium.partition_bytes else "distributed"
    share = row.rows(settings, stats.rows) / max(1, stats.rows)
    fits = share * medium.nbytes <= medium.partition_bytes
    part = "local" if fits else "distributed"
    inputs = {"transform": part if row.lazy else whole, "compute": part}
    if row.sampling is not None:
        inputs["sample"] = whole
    return {name: inputs.get(name, "local") for name in OPERATORS if _has(row, name)}


def _has(row: PlanRow, operator: str) -> bool:
    return operator != "sample" or row.sampling is not None
