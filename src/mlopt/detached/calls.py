"""Calls from Python as jobs: what is sent, and what cannot be."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from numbers import Real
from pathlib import Path
from types import FunctionType
from typing import Any

from mlopt.cluster.detached import holds_futures
from mlopt.detached.kinds import Call, Train
from mlopt.detached.work import absolute, check_storage, has_its_data, plain
from mlopt.errors import InputError
from mlopt.pipeline.steps.telling import check_picklable
from mlopt.server.job import Job


def work_given(
    what: Any, X: Any, y: Any, fit_params: Mapping[str, Any]
) -> tuple[Call | Train, Any]:
    """The work of what was submitted from Python, and what it must be given from here.

    Raises
    ------
    InputError
    """
    if isinstance(what, Job | FunctionType | partial):
        if X is not None or y is not None or fit_params:
            raise has_its_data("A training")
        if not isinstance(what, Job):
            _check_function(what)
    if isinstance(what, Job):
        if what.program.executor is not None:
            raise InputError(
                "A `mlopt.server.Job` must outlive this process, but the rows of this one "
                "are held by its client: submit a function that makes it."
            )
        return Train(what=_name(getattr(what.program.step, "function", None))), what
    if isinstance(what, FunctionType | partial):
        return Train(what=_name(what)), what
    return call_of(what, X, y, fit_params)


def call_of(
    estimator: Any, X: Any, y: Any, fit_params: Mapping[str, Any]
) -> tuple[Call, tuple[Any, ...]]:
    """The work of a call, and what it must be given from this process.

    Raises
    ------
    InputError
        There is nothing to fit, or data that only a client holds, and that go with it;
        or a step cannot be pickled.
    """
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise InputError(
            "`submit` needs an estimator, a search, a `mlopt.server.Job` or a function "
            "that makes one, or a query such as 'RUN ... ON ...'; "
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
    check_picklable([(type(estimator).__name__, estimator)])
    path = target = None
    if isinstance(X, str | Path):
        path, X = absolute(str(X)), None
        if y is not None and not isinstance(y, str):
            raise InputError("`y` must name the column to predict where `X` is a path.")
        target, y = y, None
    elif isinstance(y, str):
        raise InputError(
            f"`y` can name a column where `X` is a path; of data give the values, such as "
            f"X[{y!r}], and X without them."
        )
    parameters = (
        estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    )
    work = Call(
        what=type(estimator).__name__,
        path=path,
        target=target,
        seconds=_number(parameters.get("timeout")),
        trials=_number(parameters.get("n_trials")),
    )
    return work, (estimator, X, y, dict(fit_params))


def _number(limit: Any) -> Any:
    """As a record has it; other estimators may call something else so."""
    return plain(limit) if isinstance(limit, Real) else None


def _check_function(function: Any) -> None:
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise InputError(
            f"`{_name(function)}` is called without arguments on a worker, to make a "
            f"`mlopt.server.Job`, but: {error}. Bind them with `functools.partial`."
        ) from None
    except ValueError:  # of no signature that can be asked
        return


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", "train")).strip("<_>") or "train"
