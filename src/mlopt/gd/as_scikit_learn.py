"""What mlopt has no solver for is fitted by scikit-learn's own, and the plan says so.

The estimators here are subclasses of scikit-learn's: parameters are checked as there, and
``sparsify``, callbacks and whatever else the class there can do are inherited.
"""

from __future__ import annotations

import time
from typing import Any

from sklearn.base import is_regressor

from mlopt.errors import InputError
from mlopt.gd.estimator_base import numbers
from mlopt.plan import Choice, Plan
from mlopt.rows import Rows
from mlopt.rows.source import collected_together, is_dask

WAY = "scikit-learn"


def plan_as_scikit_learn(estimator: Any, why: str, X: Any) -> Plan:
    """The plan of a fit that scikit-learn does, for the reason ``why``.

    Raises
    ------
    InputError
        When X is a Dask collection: scikit-learn would load it.
    """
    if is_dask(X) or isinstance(X, Rows):
        raise InputError(
            f"X must be in memory for scikit-learn's own solver, got a Dask collection "
            f"({why}). Leave that parameter out, or give X.compute()."
        )
    note = f"run as scikit-learn does, not planned: {why}"
    return Plan(f"fit {estimator}", (Choice("fit", str(estimator), WAY, notes=(note,)),))


def fit_as_scikit_learn(
    estimator: Any, kind: type, why: str, X: Any, *others: Any, **changed: Any
) -> None:
    """Let ``kind`` of scikit-learn fit, and take over what it learnt.

    Parameters
    ----------
    estimator : instance of a subclass of ``kind``
        Attributes that it has learnt are where ``kind`` starts, if it starts warm.
    kind : type
    why : str
        Why mlopt does not fit this, for the plan.
    X : array-like, sparse matrix or data frame of shape (n, d)
    *others
        What else `fit` is given.
    **changed
        Parameters that are not those of ``estimator``.

    Raises
    ------
    InputError
        See `plan_as_scikit_learn`.
    """
    plan = plan_as_scikit_learn(estimator, why, X)
    started = time.perf_counter()
    own = estimator.get_params(deep=False)
    peer = kind(**{name: own[name] for name in kind._get_param_names()} | changed)  # type: ignore[attr-defined]
    known = vars(estimator)
    vars(peer).update({name: known[name] for name in known if name not in own})
    vars(peer).pop("plan_", None)
    others = tuple(collected_together(*others))
    if others and is_regressor(estimator):
        others = (numbers(others[0]), *others[1:])
    peer.fit(X, *others)
    mine = {name: value for name, value in vars(peer).items() if name not in own}
    for name in set(known) - set(own) - set(mine):
        delattr(estimator, name)
    known.update(mine)
    seconds = time.perf_counter() - started
    estimator.plan_ = plan.with_measured({"fit": seconds}, total=seconds)
