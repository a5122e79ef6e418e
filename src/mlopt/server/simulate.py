"""Workers and servers in simulated time: what the formulas of `model` are judged by.

A worker computes, pushes, waits for those whom it must not leave behind, and pulls. A
server answers one ask after the other, first come first served; the link of a worker takes
in what servers send at its own rate, one after the other. Nothing is random but the noise
of computing, from a seed.

Since no answer overtakes another, the end of a pull is known when it is asked for: one
event a pull (or an ask, in turn). The events are those of `mlopt.kernels.queues`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mlopt.errors import InputError
from mlopt.server.model import Kind, Work

WARM = 5
"""Mini-batches of each worker that are not counted: that all begin at once lasts a few."""


class Simulated(NamedTuple):
    """What was seen.

    Attributes
    ----------
    seconds : float
        Of a mini-batch of the cluster: an epoch has `Work.batches` of them.
    pull, wait : float
        Seconds that a worker pulled, and waited for others, on average a mini-batch.
    busy : float
        Share of the time in which the busiest server was.
    """

    seconds: float
    pull: float
    wait: float
    busy: float


def simulate(
    workers: Sequence[Kind],
    servers: Sequence[Kind],
    work: Work,
    *,
    shares: Sequence[float] | None = None,
    sizes: Sequence[float] | None = None,
    batches: int = 30,
    seed: int = 0,
) -> Simulated:
    """Run some mini-batches of every worker.

    Parameters
    ----------
    workers, servers : sequence of Kind
    work : Work
    shares : sequence of float, optional
        Of the model on each server; equal by default.
    sizes : sequence of float, optional
        Of each worker's mini-batch, 1 being the usual one.
    batches : int, default=30
        Of each worker on average, those of the beginning included.
    seed : int, default=0

    Raises
    ------
    InputError

    Examples
    --------
    >>> from mlopt.server.model import Kind, Work
    >>> from mlopt.server.simulate import simulate
    >>> work = Work(pulled=1e8, mode="lockstep", pulls="at once")
    >>> found = simulate([Kind(1.0, 1e8)] * 3, [Kind(1.0, 1e8)] * 2, work)
    >>> round(3 * found.seconds, 6)  # 1 + (3 + 2 - 1) / 2
    3.0
    """
    if not workers or not servers:
        raise InputError(
            f"There must be workers and servers, got {len(workers)} and {len(servers)}."
        )
    if batches <= WARM:
        raise InputError(f"`batches` must be more than {WARM}, got {batches}.")
    shares = [1 / len(servers)] * len(servers) if shares is None else shares
    sizes = [1.0] * len(workers) if sizes is None else sizes
    w = len(workers)
    # of those that end, and of those that have begun by then
    drawn = np.random.default_rng(seed).normal(size=(batches + 1) * w)
    sized = zip(workers, sizes, strict=True)
    held = [share * work.pulled for share in shares]
    pairs = zip(held, servers, strict=True)
    # loads Numba, which who asks only formulas does without
    from mlopt.kernels.queues import run

    seen = run(
        np.array([one.compute * size for one, size in sized]),
        np.array(sizes, float),
        np.array([[bytes_ / one.bandwidth for bytes_ in held] for one in workers]),
        np.array([bytes_ / one.bandwidth + work.message for bytes_, one in pairs]),
        np.array([share * work.applying for share in shares]),
        np.maximum(0.0, 1 + work.noise * drawn),
        message=work.message,
        ahead=work.ahead,
        prefetch=work.mode == "prefetch",
        in_turn=work.in_turn,
        warm=WARM * w,
        total=batches * w,
    )
    each = batches * w
    return Simulated(
        # From the end of a wave to the end of a wave.
        (seen.end - seen.begin) / seen.done,
        seen.pull / each,
        seen.wait / each,
        seen.busy / seen.end,
    )
