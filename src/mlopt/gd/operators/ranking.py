"""Plans in order of predicted time: costs per iteration times estimated iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import scipy.sparse as sp

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.iterations import Estimate
from mlopt.gd.operators.costs import Medium, Units, plan_cost
from mlopt.gd.operators.plans import PLANS, PlanRow
from mlopt.gd.operators.references import Settings
from mlopt.gd.operators.sources import MatrixSource, Source
from mlopt.gd.operators.text import TextSource
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.rows.block import block_count
from mlopt.stats import Stats


@dataclass(frozen=True)
class Priced:
    """A plan with its prediction.

    Attributes
    ----------
    row : PlanRow
    iterations : Estimate
    cost : Cost
        Of the whole plan.
    seconds, low, high : float
        Of the estimated iterations, and of the ends of their interval.
    """

    row: PlanRow
    iterations: Estimate
    cost: Cost
    seconds: float
    low: float
    high: float


def medium_of(source: Source, slots: int = 1) -> Medium:
    """Where a source lies, and how its partitions are read.

    Parameters
    ----------
    source : Source
    slots : int, default=1
        Tasks that work on rows in memory at the same time. Files have one reader.
    """
    nbytes = max(1, source.nbytes)
    share = -(-nbytes // source.partitions)
    if isinstance(source, MatrixSource):
        return Medium(nbytes, share, seek=0.0, memory=True, readers=slots)
    return Medium(nbytes, share)


def stats_of(source: Source) -> Stats:
    """Size and shape of the parsed rows, from what is at hand: reads no rows of a file."""
    if isinstance(source, MatrixSource):
        return stats_of_rows(source.rows)
    n, d = source.about, source.columns
    stats = Stats(n, d)
    if isinstance(source, TextSource):
        first = source.parse(source.lines).X
        density = float((first != 0).sum()) / max(1, first.shape[0] * d)
        stats = Stats(n, d, density=density, sparse=sp.issparse(first))
    return replace(stats, partitions=block_count(n, stats.bytes))


def stats_of_rows(rows: Rows) -> Stats:
    """Size and shape of rows that are parsed already."""
    return Stats(
        rows.n, rows.d, density=rows.nonzero / max(1, rows.n * rows.d),
        dtype=rows.dtype.name, partitions=len(rows.lengths), sparse=rows.sparse,
    )  # fmt: skip


def ranked(
    iterations: Mapping[str, Estimate],
    settings: Settings,
    stats: Stats,
    medium: Medium,
    resources: Resources,
    rows: Sequence[PlanRow] = PLANS,
    units: Units | None = None,
) -> list[Priced]:
    """Plans, the cheapest first. A pure function.

    Parameters
    ----------
    iterations : mapping of str to Estimate
        By `PlanRow.algorithm`; algorithms without one are left out.
    settings, stats, medium, resources, units
        See `mlopt.gd.operators.costs.operator_costs`.
    rows : sequence of PlanRow, default=PLANS

    Raises
    ------
    InputError
        When no algorithm has an estimate.
    """
    found = []
    for row in rows:
        if (estimate := iterations.get(row.algorithm)) is None:
            continue
        ends = (estimate.iterations, estimate.low, estimate.high)
        costs = [plan_cost(row, T, settings, stats, medium, resources, units) for T in ends]
        seconds = [cost.seconds(resources) for cost in costs]
        found.append(Priced(row, estimate, costs[0], *seconds))
    if not found:
        names = sorted({row.algorithm for row in rows})
        raise InputError(
            f"`iterations` must have one of {names}, got {sorted(iterations)}."
        )
    return sorted(found, key=lambda priced: priced.seconds)
