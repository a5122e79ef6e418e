"""Which stages run together on a worker, and what they are given: decided without a clock.

::

    request -> partitions -> [read -> align -> sort] -> all of them -> [merge] -> answer
                  of P         first phase, anywhere                second phase

A **phase** is a local pipeline: its stages run on one worker, one after the other or at
once, and what goes from one to the next does not leave it. Where all feeds of a request
are aggregated the second phase begins. Partitions are cut so that each holds whole
aggregates, as they are in the whole request: with ``P`` feeds, a multiple of all sizes.

Whether the second phase is fused with the first, so that a request is one partition on one
worker and nothing crosses in between, is a choice with a price (Whitlock et al., section
5): cut, it has the workers to itself that others leave free, and its results travel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlopt.errors import InputError
from mlopt.streaming.credits import BARRIER

SPARED = 0.02
"""Share of a partition's seconds of work that may go to moving it: less than measured times
differ by from run to run."""


def border(sizes: Sequence[int | None]) -> int:
    """Stages of the first phase: those before all feeds of a request come together."""
    return sizes.index(BARRIER) if BARRIER in sizes else len(sizes)


def unit(sizes: Sequence[int | None]) -> int:
    """Feeds that a partition must have, or a multiple, to hold whole aggregates."""
    return math.prod(size or 1 for size in sizes[: border(sizes)])


def least_partition(sizes: Sequence[int | None], cores: int, wanted: int | None) -> int:
    """Feeds of a partition, before anything is known of what stages take.

    Parameters
    ----------
    sizes : sequence of int or None
        For each stage what is aggregated before it.
    cores : int
        Of a worker: there is a feed for each.
    wanted : int or None
        What the user says.

    Raises
    ------
    InputError
        Aggregates would be others than in the whole request.
    """
    each = unit(sizes)
    if wanted is None:
        return math.ceil(cores / each) * each
    if wanted < 1:
        raise InputError(f"A partition must have at least 1 feed, got {wanted}.")
    check_partition(wanted, *(one for one in sizes[: border(sizes)] if one is not None))
    return wanted


def check_partition(partition: int, *sizes: int) -> None:
    """Refuse partitions whose aggregates are not those of the whole batch.

    (Whitlock et al., section 3.5, divide the arity of a batch by the size of an aggregate,
    which is right where partitions hold whole ones, and there only.)

    Parameters
    ----------
    partition : int
        Feeds in one.
    *sizes : int
        Of the aggregate dequeues within, in order.

    Raises
    ------
    InputError
    """
    left = partition
    for size in sizes:
        if left % size:
            raise InputError(
                f"A partition must hold whole aggregates: {size} do not divide {left} "
                f"feeds of a partition of {partition}, so that others would be together "
                f"than in the whole request. Take partitions of a multiple of {size}."
            )
        left //= size


def partition_of(least: int, each: int, work: float, moving: float, most: float) -> int:
    """Feeds of a partition, once times are known.

    Parameters
    ----------
    least : int
        `least_partition`.
    each : int
        `unit`.
    work : float
        Seconds of a feed in all stages of the phase.
    moving : float
        CPU seconds that a partition costs, whatever is in it.
    most : float
        Feeds that a partition may have beyond ``least``.
    """
    wanted = min(math.ceil(moving / SPARED / max(work, 1e-9)), most)
    return max(least, math.floor(wanted / each) * each)


def in_one_place(work: float, crossing: float, members: int, requests: int) -> bool:
    """Whether a request is answered as soon by one worker as if it was cut.

    Parameters
    ----------
    work : float
        Seconds that one worker has to do for a request.
    crossing : float
        Seconds that its results take from the first phase to the second.
    members : int
    requests : int
        Under way or waiting, this one among them: workers are shared with them.
    """
    free = members / min(max(1, requests), max(1, members))
    return work <= work / free + crossing
