"""The best configuration once more, on all rows; and its out-of-fold predictions.

scikit-learn's linear classes get their coefficients from the same batched kernels as the
search did, set on the user's own class: the objective is theirs, and so is the tolerance.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.utils.validation import validate_data

from mlopt.errors import ClusterError, TaskKilledError
from mlopt.gd.columns import layout
from mlopt.gd.linear_training import LinearTraining
from mlopt.gd.passes import Sums, evaluate
from mlopt.pipeline.blocks.tables import copied
from mlopt.pipeline.steps.kinds import may_write
from mlopt.rows import Rows
from mlopt.tuning.alone import every_row, fit_alone
from mlopt.tuning.crews.chain import Parts, assemble, cut, fit_steps
from mlopt.tuning.crews.clones import clone_apart
from mlopt.tuning.crews.families import Way
from mlopt.tuning.crews.fitting import Fold, fit_fold, make_fold
from mlopt.tuning.crews.linear_task import LinearTask
from mlopt.tuning.crews.prefixes import as_matrix, cut_rows, keeps
from mlopt.tuning.crews.problem import Labels, Problem, View
from mlopt.tuning.crews.scan import Owner, seen_by, training_of
from mlopt.tuning.crews.splits import Split
from mlopt.tuning.crews.trials import Trial


def refit(problem: Problem, estimator: Any, way: Way, max_passes: int | None = None) -> Any:
    """``estimator``, configured, fitted on every row of ``problem`` as its trial was.

    ``max_passes`` ends it early where the user said so for the search.
    """
    ours = type(way.parts.final).__module__.startswith("mlopt.")
    streams = problem.streamed(way.parts) is not None
    # Its own fit, which may plan, knows no other limit than `max_iter`.
    if way.task is not None and (streams or not ours or max_passes is not None):
        try:
            fitted = _batched(problem, estimator, way.parts, way.task, max_passes)
        except ClusterError:
            raise
        except Exception:
            if streams:
                raise
            fitted = None
        if fitted is not None:
            return fitted
    # Scikit-learn's own fit takes no blocks of rows, whoever calls for it.
    blocks = ours and isinstance(problem.X, Rows) and not way.parts.final._not_ours()
    return _alone(problem, estimator, problem.X if blocks else problem.named)


def _alone(problem: Problem, estimator: Any, X: Any) -> Any:
    """By its own ``fit``."""
    rows = every_row(X, problem.y, problem.sample_weight, problem.fit_params)
    return fit_alone(estimator, rows, problem.executor.threads)


def _batched(
    problem: Problem, estimator: Any, parts: Parts, task: LinearTask, limit: int | None
) -> Any:
    fitted: dict[str, Any] = {}
    X, names = problem.matrix if not parts.steps else None, problem.X
    if (streamed := problem.streamed(parts)) is not None:
        chain = streamed.chain(parts.key, parts.steps)
        fitted, X = streamed.fitted(chain, parts.steps, kept=keeps(problem, chain, 1))
    elif parts.steps:
        # The user's own rows are read again: by its own fit, and fold by fold.
        writes = any(may_write(step) for _, step in parts.steps)
        names = copied(problem.gathered) if writes else problem.gathered
        fitted, names = fit_steps(parts, names, problem.y, problem.fit_params)
        X = as_matrix(names)
    every = np.arange(problem.n)
    alone = replace(problem, splits=(Split(every, every),))
    if parts.steps:
        rows = X if isinstance(X, Rows) else Rows.of(X, executor=problem.scanned(X))
        view = View(rows, (0,))
    else:
        view = View(problem.whole.rows, (0,), parts=problem.whole.kept)
    owner, view = Owner(Trial(0, "", {}), task, 0, 0), seen_by(task, view)
    training = training_of(alone, view, [owner], limit, judge=False)
    training.advance(training.max_passes)
    cut_short = limit is None and task.schedule is None and not training.converged.all()
    if cut_short and not isinstance(X, Rows):
        # where scikit-learn's own solver ends is not where this one does
        own = _alone(problem, estimator, problem.named)
        if not (task.by_passes and _stopped_above(training, cut(own).final, task)):
            return own
        told = (
            "The best model had not converged in `max_iter` passes over all rows, and "
            "`fit` of its own class stopped further from the minimum: the former is kept. "
            "Scale the columns, or increase `max_iter`."
        )
        warnings.warn(told, ConvergenceWarning, stacklevel=2)
    coef, intercept = training.coefficients(0)
    fresh = clone(parts.final)
    if not isinstance(X, Rows):
        validate_data(fresh, names, skip_check_array=True)
    elif view.rows.names is not None:
        fresh.feature_names_in_ = np.asarray(view.rows.names, dtype=object)
    classes = problem.classes
    passes, learnt = training.passes, training.learnt(0)
    fitted[parts.name] = task.fitted(fresh, coef, intercept, classes, passes, learnt)
    return assemble(estimator, fitted)


def _stopped_above(training: LinearTraining, final: Any, task: LinearTask) -> bool:
    """Whether ``final`` takes for a minimum what is above that which ``training`` found."""
    if np.max(final.n_iter_) >= task.max_iter:
        return False  # it knows, and has warned
    intercept = np.broadcast_to(final.intercept_, len(final.coef_))
    weights = np.column_stack((final.coef_, intercept)).T
    rows, plan = training.rows, layout(training.models)
    weights = np.ascontiguousarray(weights, rows.dtype)
    at = evaluate(rows, weights, plan, Sums.of(rows), gradient=False, scored=False)
    gap = float(plan.model_sum(at.value)[0] - training.objective()[0])
    return gap > task.tol


def out_of_fold(problem: Problem, estimator: Any) -> NDArray[Any]:
    """Predictions of each row by the model of the split that did not train on it, (n, ...).

    Rows that no split tests stay NaN, or are masked where predictions are not floats; so do
    those of a split whose fit fails, unless such an error is to be raised.
    """
    whole = Parts((), estimator)
    handles = [
        problem.executor.submit(
            _predict_fold, problem.features, problem.labels, estimator, split,
            whole.pairwise,
        )
        for split in problem.splits
    ]  # fmt: skip
    found, errors = [], []
    for split, handle in zip(problem.splits, handles, strict=True):
        try:
            found.append((split, np.asarray(problem.executor.result(handle))))
        except (ClusterError, TaskKilledError):
            raise
        except Exception as error:
            if problem.metrics.error_score == "raise":
                raise
            errors.append(error)
    if not found:
        raise errors[0]
    if errors:
        told = f"{len(errors)} of {len(handles)} fits for out-of-fold predictions failed"
        warnings.warn(f"{told}: {errors[0]}", FitFailedWarning, stacklevel=2)
    parts = [part for _, part in found]
    first, dtype = parts[0], np.result_type(*parts)  # labels of one fold may be longer
    empty = np.empty((problem.n, *first.shape[1:]), dtype)
    out: Any = np.ma.masked_array(empty, mask=True)
    for split, part in found:
        out[split.test] = part
    if dtype.kind == "f":
        return out.filled(np.nan)  # type: ignore[no-any-return]
    return out if np.ma.is_masked(out) else out.data  # type: ignore[no-any-return]


def _predict_fold(
    X: Any, labels: Labels, estimator: Any, split: Split, pairwise: bool
) -> Any:
    fold = make_fold(cut_rows(X, split, pairwise), labels, ((), ""), split)
    assert isinstance(fold, Fold)
    with sklearn.config_context(**fold.config):
        model = clone_apart(estimator)
        fit_fold(model, fold)
        return model.predict(fold.X_test)
