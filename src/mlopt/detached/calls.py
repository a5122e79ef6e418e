"""``estimator.fit(X, y)`` as a job: what is sent, and what cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlopt.cluster.detached import holds_futures
from mlopt.detached.work import Call, absolute, check_storage
from mlopt.errors import InputError


def call_of(
    estimator: Any, X: Any, y: Any, fit_params: Mapping[str, Any]
) -> tuple[Call, tuple[Any, ...]]:
    """The work of a call, and what it must be given from this process.

    Raises
    ------
    InputError
        There is nothing to fit, or data that only a client holds, and that go with it.
    """
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise InputError(
            "`submit` needs an estimator, a search, or a query such as 'RUN ... ON ...'; "
            f"got {estimator!r:.80}."
        )
    if X is None:
        raise InputError("`X` must be given: a Dask collection, a path, or an array.")
    for what, value in {"X": X, "y": y, **fit_params}.items():
        if holds_futures(value):
            raise InputError(
                f"`{what}` must outlive this process, but stands on futures of its client: "
                "give the collection that was not persisted, or the paths of its files."
            )
    check_storage(getattr(estimator, "storage", None))
    path = target = None
    if isinstance(X, str | Path):
        path, X = absolute(str(X)), None
        if y is not None and not isinstance(y, str):
            raise InputError("`y` must name the column to predict where `X` is a path.")
        target, y = y, None
    parameters = (
        estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    )
    work = Call(
        what=type(estimator).__name__,
        path=path,
        target=target,
        seconds=parameters.get("timeout"),
        trials=parameters.get("n_trials"),
    )
    return work, (estimator, X, y, dict(fit_params))
