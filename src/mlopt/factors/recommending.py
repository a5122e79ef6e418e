"""Items by their scores, for many users: in blocks of users, within some memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.factors.model import Factors

Array = NDArray[Any]

_SCORES = 2**22
"""Scores that are held at a time: 16 MB."""


def scores_by_block(
    model: Factors, users: Array, seen: tuple[Array, Array] | None
) -> Iterator[tuple[slice, Array]]:
    """Scores of all items, (block, items), -inf where they are seen.

    Parameters
    ----------
    model : Factors
    users : int (m,)
        Rows of ``model.P``.
    seen : int64 (users + 1,) and int32, optional
        Where each row's items begin, and these.
    """
    step = max(1, _SCORES // max(1, len(model.Q)))
    for low in range(0, len(users), step):
        here = users[low : low + step]
        scores = model.P[here] @ model.Q.T
        scores += (model.b[here] + np.float32(model.mean))[:, None]
        scores += model.c
        if seen is not None:
            starts, items = seen
            for row, user in enumerate(here):
                scores[row, items[starts[user] : starts[user + 1]]] = -np.inf
        yield slice(low, low + len(here)), scores


def best(
    model: Factors, users: Array, count: int, seen: tuple[Array, Array] | None
) -> tuple[Array, Array]:
    """The ``count`` best items of each user and their scores, (m, count), best first.

    Of equal scores the item with the lower number comes first.
    """
    items = np.empty((len(users), count), np.int64)
    found = np.empty((len(users), count), np.float32)
    for rows, scores in scores_by_block(model, users, seen):
        # All that are as good as the last of the best, so that ties go by number.
        worst = np.partition(scores, -count, axis=1)[:, -count]
        for at, (row, least) in enumerate(zip(scores, worst, strict=True), rows.start):
            good = np.flatnonzero(row >= least)
            chosen = good[np.argsort(-row[good], kind="stable")[:count]]
            items[at], found[at] = chosen, row[chosen]
    return items, found


def mean_rank(
    model: Factors, users: Array, items: Array, values: Array, seen: tuple[Array, Array]
) -> float:
    """Where held-out items stand, from 0 for the best to 1, weighed by their counts.

    Hu, Koren, Volinsky, "Collaborative filtering for implicit feedback datasets", ICDM
    2008, equation (8), among the items that the user had not in training. Random order
    gives a half. Pairs that are in ``seen`` have no say; NaN if all are.
    """
    order = np.argsort(users, kind="stable")
    some, firsts = np.unique(users[order], return_index=True)
    ends = np.append(firsts[1:], len(order))
    total = weight = 0.0
    for rows, scores in scores_by_block(model, some, seen):
        for at, row in enumerate(scores, rows.start):
            mine = order[firsts[at] : ends[at]]
            ranked = np.sort(row[row > -np.inf])
            own = row[items[mine]]
            below = np.searchsorted(ranked, own, "left")
            level = np.searchsorted(ranked, own, "right") - below
            share = 1 - (below + (level - 1) / 2) / max(1, len(ranked) - 1)
            counts = np.where(own > -np.inf, values[mine], 0)  # others are not held out
            total += float(np.sum(np.clip(share, 0, 1) * counts))
            weight += float(np.sum(counts))
    return total / weight if weight else np.nan
