"""Ensembles that grow: how, and whether to look at them on the way.

A look at an ensemble that is not grown up has a price beside its score: what goes on under
``warm_start`` may begin anew much of what a fit begins with. Histogram boosting puts its
rows into bins and asks all of its trees again, which takes as long as growing fifteen more.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any

from sklearn import ensemble

from mlopt.factors.estimator import MatrixFactorization
from mlopt.passes import Passes
from mlopt.prices import price
from mlopt.topics.estimator import LatentDirichletAllocation


@dataclass(frozen=True)
class Growth:
    """How a class of ensembles grows under ``warm_start``, and what a look at it costs.

    Parameters
    ----------
    parameter : str
        Says how many members there are.
    priced : str
        Whose prices in `mlopt.prices` hold: "growth.again.*" and "growth.judged.*".
    kept : tuple of str
        Attributes of a fitted one that hold its members, in the order of their growth; none
        where its members are passes, which leave nothing of what was before.
    """

    parameter: str
    priced: str
    kept: tuple[str, ...] = ("estimators_",)

    @property
    def again(self) -> float:
        """Members that are grown in the time of what begins anew after a look."""
        return price(f"growth.again.{self.priced}")

    @property
    def judged(self) -> float:
        """Share of the time of growing a member in which it predicts as many rows."""
        return price(f"growth.judged.{self.priced}")


_FOREST, _TREES = Growth("n_estimators", "forest"), Growth("n_estimators", "boosting")
_BAGS = Growth("n_estimators", "bagging", ("estimators_", "estimators_features_"))
_HIST = Growth("max_iter", "histograms", ("_predictors",))
_PASSES, _SWEEPS = Growth("max_iter", "factors", ()), Growth("max_iter", "topics", ())
GROWING: dict[type, Growth] = {
    ensemble.RandomForestClassifier: _FOREST,
    ensemble.RandomForestRegressor: _FOREST,
    ensemble.ExtraTreesClassifier: _FOREST,
    ensemble.ExtraTreesRegressor: _FOREST,
    ensemble.GradientBoostingClassifier: _TREES,
    ensemble.GradientBoostingRegressor: _TREES,
    ensemble.BaggingClassifier: _BAGS,
    ensemble.BaggingRegressor: _BAGS,
    ensemble.HistGradientBoostingClassifier: _HIST,
    ensemble.HistGradientBoostingRegressor: _HIST,
    MatrixFactorization: _PASSES,
    LatentDirichletAllocation: _SWEEPS,
}
"""What adds members under ``warm_start``: ensembles, passes, sweeps."""

STOPS = 10_000
"""Rows above which scikit-learn's "auto" stops early."""
LOOKS = price("growth.unasked")


def members(model: Any) -> int:
    """How many members an ensemble that grows will have; 0 of anything else.

    So it is of what can have no members, too, as of ``n_estimators=2.5``: ``fit`` says why.
    """
    growth = GROWING.get(type(model))
    count: Any = getattr(model, growth.parameter) if growth else 0
    return max(0, int(count)) if isinstance(count, Integral) else 0


def grows(model: Any) -> bool:
    """Whether ``model`` may be grown in steps and come out as if it had grown at once.

    What sets rows aside, or counts rows that a member did not see, does so anew for each
    step; members that are drawn side by side take other draws of a shared generator.
    """
    if not members(model) or model.warm_start:
        return False
    together = GROWING[type(model)] in (_FOREST, _BAGS)
    if together and not isinstance(model.random_state, Integral | None):
        return False
    if getattr(model, "n_iter_no_change", None) is not None and not is_hist(model):
        return False
    return not (getattr(model, "oob_score", False) or _is_balanced(model))


def is_hist(model: Any) -> bool:
    """Whether it is histogram boosting, as scikit-learn has it."""
    # Early stopping of histogram boosting draws its rows from a seed that it keeps.
    return GROWING.get(type(model)) is _HIST


def stops_early(model: Any, rows: int) -> bool:
    """Whether histogram boosting on so many ``rows`` may end before its last round."""
    asked = is_hist(model) and model.early_stopping
    return bool(rows > STOPS if asked == "auto" else asked)


def _is_balanced(model: Any) -> bool:
    # Weights of classes by their frequency make a warm start warn.
    return isinstance(getattr(model, "class_weight", None), str)


def helpers(model: Any, threads: int) -> int:
    """Threads that a fit with the machine to itself can use where one of many has one."""
    independent = type(model) in GROWING and getattr(model, "n_jobs", 1) is None
    return threads if independent else 1


def tells_stages(model: Any) -> bool:
    """Whether a fitted ``model`` that grows tells what it was with fewer members."""
    return bool(GROWING[type(model)].kept)


def members_at(model: Any, passes: Passes, full: int) -> int:
    """Members of ``model`` after so many of ``full`` passes."""
    part = min(Fraction(passes) / full, Fraction(1))
    return max(1, math.ceil(members(model) * part))


def add_members(model: Any, count: int, fit: Callable[[], object]) -> None:
    """``fit`` the model until it has ``count`` members, from those that it has."""
    growth = GROWING[type(model)]
    model.set_params(**{growth.parameter: count, "warm_start": True})
    fit()


def first_members(model: Any, count: int) -> Any:
    """A fitted ``model`` as it was when it had grown its first ``count`` members."""
    growth = GROWING[type(model)]
    young = copy.copy(model)
    setattr(young, growth.parameter, count)
    for name in growth.kept:
        setattr(young, name, getattr(model, name)[:count])
    return young


def has_stopped(model: Any) -> bool:
    """Whether early stopping has ended ``model``, maybe with the last tree of a step.

    A warm start would grow one more tree before it asks.
    """
    if not is_hist(model):
        return False
    own = model.validation_fraction is None
    judged = model.train_score_ if own else model.validation_score_
    asked = model.do_early_stopping_ and model._should_stop(judged)
    return bool(asked or model.n_iter_ < model.max_iter)


def price_of_looks(
    model: Any, stops: Sequence[Passes], full: int, judged: float, *, again: bool = True
) -> float:
    """What looks at ``stops`` add to one fit of ``model``, as a share of it.

    Parameters
    ----------
    model : estimator
        Such that `grows`.
    stops : sequence of passes
        Before the end.
    full : int
        Passes of a model that has grown up.
    judged : float
        Rows that a look predicts, for each row of training.
    again : bool, default=True
        Whether the fit goes on after a look; else the first members of one that has ended
        are judged.
    """
    growth, size = GROWING[type(model)], members(model)
    early = [count for s in stops if (count := members_at(model, s, full)) < size]
    anew = growth.again if again else 0.0
    return sum(anew + growth.judged * judged * count for count in early) / size


def affordable(
    stops: Sequence[Passes], cost: Callable[[Sequence[Passes]], float]
) -> tuple[Passes, ...]:
    """Those of ``stops`` that cost no more than `LOOKS` together, the first among them.

    They are apart by equal factors: a model that is hopeless is so early, and one that is
    nearly grown up saves little.
    """
    for number in range(len(stops), 0, -1):
        chosen = _spread(stops, number)
        if cost(chosen) <= LOOKS:
            return chosen
    return ()


def _spread(stops: Sequence[Passes], number: int) -> tuple[Passes, ...]:
    """So many of ``stops`` at most, by equal factors from the first on."""
    if number >= len(stops):
        return tuple(stops)
    factor = (stops[-1] / stops[0]) ** (1 / number)
    wanted = [stops[0] * factor**k for k in range(number)]
    near = {min(stops, key=lambda stop: (abs(stop - w), stop)) for w in wanted}
    return tuple(sorted(near))
