"""The best configuration once more, on all rows; and its out-of-fold predictions.

scikit-learn's linear classes get their coefficients from the same batched kernels as the
search did, set on the user's own class: the objective is theirs, and so is the tolerance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from mlopt.rows import Rows
from mlopt.tuning.alone import every_row, fit_alone
from mlopt.tuning.crews.chain import Parts, assemble, cut, fit_steps, params_of_final
from mlopt.tuning.crews.fitting import fit_arguments, make_fold
from mlopt.tuning.crews.linear_task import LinearTask, linear_task
from mlopt.tuning.crews.prefixes import cut_rows
from mlopt.tuning.crews.problem import Problem, View
from mlopt.tuning.crews.scan import Owner, training_of
from mlopt.tuning.crews.splits import Split
from mlopt.tuning.crews.trials import Trial


def refit(problem: Problem, estimator: Any) -> Any:
    """``estimator``, configured, fitted on every row of ``problem``."""
    parts = cut(estimator)
    task = _task(problem, parts)
    if task is None:
        y = problem.y if problem.supervised else None
        rows = every_row(problem.X, y, problem.sample_weight, problem.fit_params)
        return fit_alone(estimator, rows, problem.executor.threads)
    fitted, X = fit_steps(parts, problem.X, problem.y, problem.fit_params)
    fitted[parts.name] = _batched(problem, parts.final, task, X)
    return assemble(estimator, fitted)


def _task(problem: Problem, parts: Parts) -> LinearTask | None:
    ours = type(parts.final).__module__.startswith("mlopt.")
    own = params_of_final(parts.path, problem.fit_params)
    if ours or own or problem.y.ndim > 1 or not problem.supervised:
        return None
    return linear_task(parts.final)


def _batched(problem: Problem, estimator: Any, task: LinearTask, X: Any) -> Any:
    every = np.arange(len(problem.y))
    alone = replace(problem, X=X, splits=(Split(every, every),))
    rows = X if isinstance(X, Rows) else Rows.of(X, executor=problem.executor)
    owner = Owner(Trial(0, "", {}), task, 0, 0)
    training = training_of(alone, View(rows, (0,)), [owner], task.max_iter, judge=False)
    training.advance(task.max_iter)
    coef, intercept = training.coefficients(0)
    fresh = clone(estimator)
    if not isinstance(X, Rows):
        validate_data(fresh, X, skip_check_array=True)
    return task.fitted(fresh, coef, intercept, problem.classes, training.passes)


def out_of_fold(problem: Problem, estimator: Any) -> NDArray[Any]:
    """Predictions of each row by the model of the split that did not train on it, (n, ...).

    Rows that no split tests stay NaN (or the first class, with labels that are not floats).
    """
    handles = [
        problem.executor.submit(
            _predict_fold, problem.features, problem.labels, estimator, split
        )
        for split in problem.splits
    ]
    parts = [problem.executor.result(handle) for handle in handles]
    first = np.asarray(parts[0])
    empty = np.nan if first.dtype.kind == "f" else first[0]
    out = np.full((len(problem.y), *first.shape[1:]), empty, dtype=first.dtype)
    for split, part in zip(problem.splits, parts, strict=True):
        out[split.test] = part
    return out


def _predict_fold(X: Any, labels: tuple[Any, ...], estimator: Any, split: Split) -> Any:
    fold = make_fold(cut_rows(X, split), labels, ((), ""), split, None)
    model = clone(estimator)
    model.fit(fold.X, fold.y, **fit_arguments(model, fold))
    return model.predict(fold.X_test)
