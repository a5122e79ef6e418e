"""Boosted trees fitted with one thread or all, whichever is quicker here and now.

scikit-learn's trees of histograms start and join OpenMP's threads many times a tree. Where
cores are shared with other work these wait for each other, and one thread alone may be
several times as fast. A few trees each way tell.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from mlopt.cluster import single_threaded
from mlopt.tuning.crews.growing import is_hist, members, stops_early

_FEW = 100
"""Trees from which trying is worth the time."""
_SHARE = 50
"""Of so many trees one is grown on one thread and one on all, to see which is quicker."""
_CLEARLY = 1.2
"""How many times as long all threads must take: noise of a few trees is less."""


def can_be_tried(model: Any, rows: int) -> bool:
    """Whether it may grow in pieces and come out as if it had grown at once."""
    if not is_hist(model) or model.warm_start or members(model) < _FEW:
        return False
    return not stops_early(model, rows)  # pieces would stop elsewhere


def fit_boosted(model: Any, X: Any, y: Any, arguments: Mapping[str, Any]) -> Any:
    """``model``, fitted to all its trees.

    Parameters
    ----------
    model : HistGradientBoostingClassifier or HistGradientBoostingRegressor
        Such that `can_be_tried`.
    X, y : rows and targets
    arguments : mapping
        Further ones of ``fit``.
    """
    trees = model.max_iter
    tried = max(2, trees // _SHARE)
    model.set_params(warm_start=True)
    seconds = []
    for threads, stop in ((single_threaded, tried), (nullcontext, 2 * tried)):
        begin = time.perf_counter()
        with threads():
            model.set_params(max_iter=stop).fit(X, y, **arguments)
        seconds.append(time.perf_counter() - begin)
    with single_threaded() if seconds[1] > _CLEARLY * seconds[0] else nullcontext():
        model.set_params(max_iter=trees).fit(X, y, **arguments)
    return model.set_params(warm_start=False)
