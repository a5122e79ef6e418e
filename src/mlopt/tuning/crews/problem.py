"""What is searched on: rows, labels, splits, metrics, and where the work runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.linear_model import Ridge
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _num_samples

from mlopt.cluster import Executor, Handle, Threads
from mlopt.cluster.near import are_near
from mlopt.gd.estimator_base import resources_of
from mlopt.gd.plans.look import rarest
from mlopt.locking import cached_property
from mlopt.pipeline.by_split import Streamed, gathering
from mlopt.prices import count, price
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.tuning.crews.chain import Parts
from mlopt.tuning.crews.own import own_params
from mlopt.tuning.crews.scoring import Metrics
from mlopt.tuning.crews.splits import Split, row_sets

_ROWS, _LEAST, _SHARE = count("apart.rows"), count("apart.least"), price("apart.share")
_ROUNDED = 1e-8
"""Of the mean squares of scaled columns: a penalty, should they depend on each other."""


@dataclass(frozen=True, eq=False)
class Labels:
    """What goes with X, as it was given: cut by rows where it has as many as X."""

    y: Any
    n: int
    sample_weight: Any = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    score_params: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=sklearn.get_config)
    """scikit-learn's settings, which other threads and processes do not see."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything about a search that its trials share.

    ``X`` is anything that scikit-learn can index by rows, `Rows` when the data live on a
    cluster, or `Streamed` when pipelines read them there; ``y`` is anything that goes with
    it, here in the driver, or None.
    """

    X: Any
    y: Any
    splits: tuple[Split, ...]
    metrics: Metrics
    classifier: bool
    executor: Executor
    sample_weight: Any = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    score_params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    train_scores: bool = False
    told: str = ""
    """What happened to the data before anything else."""
    near: Threads | None = None
    """Where few rows behind steps that workers run are scanned: a pass would take less
    than to ask a worker. None where rows stay where they were made."""
    routed: bool = False
    """Whether scikit-learn's metadata routing says who gets what."""
    estimators: Mapping[str, Any] = field(default_factory=dict)
    """Of each family, as it was before splits were drawn; as given where none is."""
    budget: int | None = None
    """Bytes of preprocessed rows that may be kept, where a pipeline says how many."""
    gathers: list[str] = field(default_factory=list)
    """What plans say of the rows that come to this process, and why they do."""

    @cached_property
    def n(self) -> int:
        """How many rows there are."""
        known = isinstance(self.X, Rows | Streamed)
        return self.X.n if known else int(_num_samples(self.X))

    @cached_property
    def column(self) -> NDArray[Any]:
        """The target as one array, (n,): of labels, or of finite numbers."""
        y = np.asarray(self.y)
        if y.ndim != 1:
            raise ValueError("y is not one column")
        if self.classifier:
            check_classification_targets(y)
            given = getattr(self.y, "dtype", y.dtype)
            if y.dtype.kind in "biuf" and not isinstance(given, np.dtype):
                raise ValueError("the classes of nullable numbers are each estimator's own")
        elif y.dtype.kind not in "biuf" or not np.isfinite(y).all():
            raise ValueError("y is not made of finite numbers")
        return y

    @cached_property
    def row_weight(self) -> NDArray[Any] | None:
        """The weights as numbers, (n,), none of them negative."""
        if self.sample_weight is None:
            return None
        weight: NDArray[Any] = _check_sample_weight(
            self.sample_weight, np.empty((self.n, 0)), dtype=np.float64,
            ensure_non_negative=True,
        )  # fmt: skip
        return weight

    @cached_property
    def scored_weight(self) -> NDArray[Any] | None:
        """The weights that count in the scores, (n,)."""
        return self.row_weight if "sample_weight" in self.score_params else None

    @cached_property
    def matrix(self) -> Any:
        """X as linear models see it: numbers, dense or CSR, or `Rows`."""
        if isinstance(self.X, Rows):
            return self.X
        if isinstance(self.X, Streamed):
            return Rows.of(self.X.data, executor=self.executor)
        if getattr(getattr(self.X, "dtype", None), "kind", "") in ("S", "U"):
            raise ValueError(
                "it is text, which `fit` reads as numbers and `predict` refuses"
            )
        return check_array(self.X, accept_sparse="csr", dtype=[np.float64, np.float32])

    @cached_property
    def not_columns(self) -> str:
        """Why no model of this search can train as a column of a matrix; "" if one can.

        Everything here is as scikit-learn has it only when a model is fitted by its own
        ``fit``: whatever is unusual, invalid or missing is left to that.
        """
        if self.routed:
            return "metadata is routed"
        if self.fit_params:
            return f"fit parameters are given: {', '.join(self.fit_params)}"
        if not self.metrics.names_only:
            return "`scoring` is a function, which may look at more than predictions"
        if set(self.score_params) - {"sample_weight"}:
            return "the scorers take parameters"
        try:
            column, _ = self.column, self.row_weight
        except (TypeError, ValueError) as error:
            return f"the target or its weights are none for a linear model: {error}"
        if self.classifier and self._lacks_a_class(column):
            return "a training split has not every class"
        return ""

    def _lacks_a_class(self, y: NDArray[Any]) -> bool:
        """Rows without weight are none: where a class has no other, models diverge."""
        classes = len(self.classes)
        counts = np.ones(self.n, bool) if self.row_weight is None else self.row_weight > 0
        return classes < 2 or any(
            len(np.unique(y[split.train][counts[split.train]])) < classes
            for split in self.splits
        )

    @cached_property
    def uneven(self) -> bool:
        """Whether a row trains several times, or has no weight: it shrinks models, too."""
        trains = [split.train for split in self.splits]
        weightless = self.row_weight is not None and not self.row_weight.all()
        return weightless or any(len(np.unique(one)) < len(one) for one in trains)

    @cached_property
    def classes(self) -> NDArray[Any]:
        """The labels in order; empty for regression."""
        return np.unique(self.column) if self.classifier else np.empty(0)

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The labels as 0, 1, ..."""
        return np.searchsorted(self.classes, self.column)

    @cached_property
    def rare(self) -> float:
        """The share of the rarest class; 0.5 for regression."""
        return rarest(np.bincount(self.codes)) if self.classifier else 0.5

    def some(self, size: int) -> NDArray[np.int64]:
        """Numbers of so many rows, or of all, in the order of a draw by the seed."""
        return np.random.default_rng(self.seed).permutation(self.n)[:size]

    @cached_property
    def apart(self) -> bool:
        """Whether planes may separate a class from the rest, as far as some rows tell."""
        X = self.X
        if isinstance(X, Rows | Streamed) or self.not_columns or not self.classifier:
            return True
        X = self.matrix
        size = min(self.n, _ROWS)
        if size < _LEAST * X.shape[1]:
            return True
        rows = self.some(size)
        few = (X[rows].toarray() if issparse(X) else X[rows]).astype(np.float64)
        planes = np.arange(self.outputs) if self.outputs > 1 else np.ones(1)
        own = self.codes[rows, None] == planes
        with np.errstate(all="ignore"):
            few = np.nan_to_num((few - few.mean(axis=0)) / few.std(axis=0))
        sides = Ridge(_ROUNDED * size).fit(few, own).predict(few).reshape(own.shape)
        return bool(((sides > 0.5) != own).mean(axis=0).min() < _SHARE)

    @cached_property
    def outputs(self) -> int:
        """Columns of one linear model: one, or one for each of three or more classes."""
        return len(self.classes) if len(self.classes) > 2 else 1

    @cached_property
    def resources(self) -> Resources:
        """What the threads or workers of the search can do, looked up once a search."""
        return resources_of(self.executor)

    @cached_property
    def whole(self) -> View:
        """Without preprocessing, all splits see one and the same matrix."""
        rows = Rows.of(self.matrix, executor=self.executor, finite=True)
        return View(rows, tuple(range(len(self.splits))))

    def streamed(self, parts: Parts) -> Streamed | None:
        """X, if it is read block by block and so are the rows behind ``parts``."""
        X = self.X
        reads = isinstance(X, Streamed) and bool(parts.steps)
        return X if reads and not self.why_gathered(parts) else None

    def why_gathered(self, parts: Parts) -> str:
        """Why the rows behind ``parts`` cannot be made block by block; "" if they can."""
        if not (isinstance(self.X, Streamed) and parts.steps):
            return ""
        return self.X.why_gathered(parts.key, parts.steps)

    def gather(self, why: str, *, declare: bool = False) -> None:
        """Note that X comes to this process, and why; see `gathering`.

        Raises
        ------
        InputError
            When it is larger than this process may hold, with the reason.
        """
        told = gathering(self.X, why, declare=declare)
        if told and told not in self.gathers:
            self.gathers.append(told)

    @cached_property
    def gathered(self) -> Any:
        """X in this process, for fits that need all of it.

        Raises
        ------
        InputError
            When it is larger than this process may hold.
        """
        if not isinstance(self.X, Rows | Streamed):
            return self.X
        if not self.gathers:
            self.gather("a fit must be given all rows")
        return self.X.collect()

    def scanned(self, matrix: Any) -> Executor:
        """Where passes over a matrix behind steps run, if it is brought here."""
        if self.near is not None and are_near((matrix,)):
            return self.near
        return self.executor

    @property
    def named(self) -> Any:
        """The same with the names of columns, where rows in blocks have some."""
        names = self.X.feature_names if isinstance(self.X, Rows) else None
        if names is None:
            return self.gathered
        import pandas as pd

        return pd.DataFrame(self.gathered, columns=list(names), copy=False)

    @cached_property
    def features(self) -> Handle:
        """A handle on X, sent once."""
        return self.executor.put(self.gathered)

    @cached_property
    def labels(self) -> Handle:
        """A handle on `Labels`, sent once."""
        return self.executor.put(
            Labels(
                self.y, self.n, self.sample_weight, own_params(self.fit_params),
                dict(self.score_params),
            )
        )  # fmt: skip

    def targets(self, dtype: Any) -> NDArray[Any]:
        """What a linear model is to predict, (n, 1): -1 and 1, class codes, or y."""
        if not self.classifier:
            return self.column.astype(dtype)[:, None]
        if self.outputs == 1:
            return (2.0 * self.codes - 1.0).astype(dtype)[:, None]
        return self.codes.astype(dtype)[:, None]

    def row_weights(
        self, splits: tuple[int, ...], class_weight: Any, dtype: Any
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Training and scoring weights, (n, splits), for some of the splits."""
        chosen = [self.splits[s] for s in splits]
        weights, judged = row_sets(chosen, self.n, self.row_weight, dtype)
        if class_weight is not None:
            for column, split in enumerate(chosen):
                weights[:, column] *= self._class_factor(class_weight, split)
        if self.scored_weight is not None:
            judged *= self.scored_weight[:, None].astype(dtype)
        return weights, judged

    def _class_factor(self, class_weight: Any, split: Split) -> NDArray[Any]:
        factor = compute_class_weight(
            class_weight, classes=self.classes, y=self.column[split.train]
        )
        return np.asarray(factor)[self.codes]


@dataclass(frozen=True, eq=False)
class View:
    """The rows as a final estimator sees them, for the splits that see the same.

    Row ``i`` of the view is row ``order[i]`` of the data (``order`` None: the same row). Of
    such an order the first ``train`` are there to train on and the others to judge by, be
    they the same rows.
    """

    rows: Rows
    splits: tuple[int, ...]
    order: NDArray[np.int64] | None = None
    train: int = 0
    kept: dict[str, Any] = field(default_factory=dict)
    """What trainings leave for later ones: all see its targets and row sets."""
    parts: Mapping[str, Any] = field(default_factory=dict)
    """What trainings on parts of its rows have left."""

    def arrange(self, values: NDArray[Any]) -> NDArray[Any]:
        """Per-row values of the data, in the order of the view."""
        return values if self.order is None else values[self.order]

    def arrange_sets(
        self, weights: NDArray[Any], judged: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Training and scoring weights, (n, splits), in the order of the view."""
        if self.order is None:
            return weights, judged
        sides = self.order[: self.train], self.order[self.train :]
        found = []
        for number, values in enumerate((weights, judged)):
            # A row that a split has several times has its weight as often already.
            times = np.maximum(np.bincount(sides[number], minlength=len(values)), 1)
            shares = (values / times[:, None].astype(values.dtype))[self.order]
            shares[self.train :] *= number
            shares[: self.train] *= 1 - number
            found.append(shares)
        return found[0], found[1]
