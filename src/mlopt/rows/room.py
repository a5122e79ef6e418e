"""How many bytes of rows workers have room for beside what they use already."""

from __future__ import annotations

from collections.abc import Sequence

from mlopt.cluster import Executor, Memory

PAUSES, KILLED = 0.8, 0.95
"""Shares of its memory at which Dask pauses a worker, and ends it."""
AT_ONCE = 3
"""Blocks for each that is worked on: as it was read, what a step makes of it, and one on
its way."""


def memories(executor: Executor) -> Sequence[Memory]:
    """Of workers that have loaded what work on rows needs; none in this process."""
    return executor.memories(_load)


def at_once(found: Sequence[Memory], nbytes: float) -> int | None:
    """How many blocks of ``nbytes`` a worker may work on at a time; None: all threads."""
    if not found:
        return None
    most = max(1, int(min(m.below(PAUSES) for m in found) / (AT_ONCE * max(1.0, nbytes))))
    return most if any(m.threads > most for m in found) else None


def _load() -> None:
    import numpy as np
    import pandas
    import sklearn.compose
    import sklearn.preprocessing

    from mlopt.kernels.pointwise import losses_and_slopes

    del pandas, sklearn
    # Numba loads as much again when the first kernel runs.
    losses_and_slopes("squared", np.zeros(1), np.zeros(1))
