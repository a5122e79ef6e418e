"""`check_operator`: what is declared of an operator, held against data.

Nothing is proven by a sample; but what is wrong shows, with the rows that show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import signature
from itertools import pairwise
from numbers import Number, Real
from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer

from mlopt.errors import InputError
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.blocks.cut import usable
from mlopt.pipeline.fits.base import Fit, ManyPasses, OnePass, PartialFit
from mlopt.pipeline.fits.record import UNKNOWN
from mlopt.pipeline.fits.registry import record_of
from mlopt.pipeline.steps.by_rows import gives_lists, goes_by_rows
from mlopt.pipeline.steps.copies import blank_copy, parameters, private_copy
from mlopt.pipeline.steps.differing import first_difference, kind_of, shown, told_apart
from mlopt.pipeline.steps.kinds import ignores_targets, is_row_wise, is_stateless
from mlopt.pipeline.steps.nested import classifies
from mlopt.rows import Rows
from mlopt.rows.source import is_dask
from mlopt.stats import Stats

Outputs = Mapping[str, Any]
"""What each method makes of rows."""

_ROWS, _COLUMNS = 40, 4
_CUTS = ((0, 1, 2, 17, _ROWS), (0, 20, _ROWS))
"""Edges of blocks: of a single row, and of many."""
_ALONE, _PARTS = 64, 32
"""Rows that are tried by themselves, and blocks that every row of more is in one of."""
_LEARNT = ("transform", "predict_proba", "decision_function", "predict")
"""Methods that show what was learnt; labels only where nothing finer does."""
_APPLIES = (*_LEARNT, "predict_log_proba", "score_samples")
_LEAST = 4
"""Rows that a check needs."""
_NEAR, _NEAREST = 10.0, 0.1
"""How far apart iterations may end, in units of `tol`, and at most: `LogisticRegression` by
blocks and by rows ended 3 to 4 of them apart."""


def check_operator(
    operator: Any, X: Any = None, y: Any = None, *, rtol: float = 1e-6
) -> None:
    """Hold what is declared of an operator against data; see `mlopt.register`.

    Row by row: blocks of rows give what all rows give. Stateless: other rows leave it the
    same. Repeatable: a second fit, with a seed if it has one, gives the same. Blind to
    targets: others leave it the same. Ways: each learns what ``fit`` learns, from any
    blocks, with weights of rows where ``fit`` takes them, and statistics merge in any
    grouping.

    Parameters
    ----------
    operator : estimator, class or function
        A class is made without arguments.
    X : array-like, sparse matrix or data frame of shape (n, d), n at least 4, optional
        Rows to try it on. Default: 40 random rows of 4 numbers.
    y : array-like of shape (n,), optional
        Default: random labels of two classes, or numbers where it is no classifier.
    rtol : float, default=1e-6
        How near results must be to count as the same, relative to the largest. Models with
        `max_iter` and `tol`, which are found by iterating, must be within ten times `tol`
        of each other, where that is more.

    Raises
    ------
    InputError
        When nothing is declared of it, or it cannot be tried on these rows; or with the
        class, what is refuted, and the first row that refutes it.

    Examples
    --------
    >>> import mlopt
    >>> def centred(X):
    ...     return X - X.mean(axis=0)
    >>> mlopt.check_operator(mlopt.register(centred, row_wise=True))
    Traceback (most recent call last):
        ...
    mlopt.errors.InputError: `centred` is declared row-wise, and is not: ...
    """
    operator = _made(operator) if isinstance(operator, type) else operator
    if not callable(operator) and not hasattr(operator, "fit"):
        raise InputError(
            f"`check_operator` takes an estimator, a class or a function, got {operator!r}."
        )
    estimator = operator if hasattr(operator, "fit") else FunctionTransformer(operator)
    of_function = type(estimator) is FunctionTransformer
    key = estimator.func if of_function else type(estimator)
    record, name = record_of(key), getattr(key, "__name__", repr(key))
    if record is UNKNOWN and not is_row_wise(estimator):
        raise InputError(f"Nothing is declared of `{name}`: see `mlopt.register`.")
    random, drawn = np.random.default_rng(0), X is None
    X = random.normal(size=(_ROWS, _COLUMNS)) if X is None else _rows(X)
    n = tables.count_rows(X)
    if y is None:
        y = random.normal(size=n)
        y = np.where(y > np.median(y), "b", "a") if classifies(estimator) else y
    elif np.shape(y)[:1] != (n,):
        raise InputError(
            f"`y` must have {n} entries, one for each row of X, got shape {np.shape(y)}."
        )
    if (seed := _seed(estimator)) is not None:
        estimator = private_copy(estimator).set_params(**{seed: 0})
    check = _Check(name, estimator, X, np.asarray(y), rtol)
    if drawn:
        check.takes_drawn()
    check.run()


def _made(kind: type) -> Any:
    try:
        return kind()
    except Exception as error:
        raise InputError(
            f"`{kind.__name__}` cannot be made without arguments: {error!r}. Give an "
            "estimator of this class instead."
        ) from error


def _rows(X: Any) -> Any:
    """Rows that can be cut into blocks, and some."""
    if is_dask(X):
        raise InputError(
            f"`X` must be in memory, got {type(X).__name__}: give `X.compute()`, or some "
            "of its rows."
        )
    X = usable(X)
    if (n := tables.count_rows(X)) < _LEAST:
        raise InputError(
            f"`X` must have at least {_LEAST} rows, got {n}. Give more: blocks of fewer "
            "tell nothing."
        )
    first = tables.row_range(X, 0, 1)
    shape = np.shape(X) if hasattr(X, "shape") else np.shape(first)
    if len(shape) == 1 and isinstance(np.asarray(first)[0], Number):
        raise InputError(
            f"`X` must have rows and columns, got shape {(n,)}: give a single column as "
            "`X.reshape(-1, 1)`."
        )
    return X


def _seed(estimator: Any) -> str | None:
    """The parameter that seeds it, if it is to be seeded."""
    record = record_of(type(estimator))
    if record.by_author or record.seeded_by is not None:
        return record.seeded_by
    known = parameters(estimator)
    return "random_state" if known.get("random_state", 0) is None else None


class _Check:
    """One operator on one set of rows (n, d) and targets (n,)."""

    def __init__(self, name: str, estimator: Any, X: Any, y: Any, rtol: float) -> None:
        self.name, self.estimator, self.rtol = name, estimator, rtol
        self.X, self.y, self.n = X, y, tables.count_rows(X)
        self.methods: list[str] = []
        self.cuts = [
            sorted({min(edge, self.n) for edge in (*cut[:-1], self.n)}) for cut in _CUTS
        ]
        self.alone = range(self.n)
        if self.n > _ALONE:
            self.alone = np.random.default_rng(3).permutation(self.n)[:_ALONE].tolist()
            self.cuts.append(np.linspace(0, self.n, _PARTS + 1).astype(int).tolist())

    def takes_drawn(self) -> None:
        """Raise where it cannot be fitted to numbers that nobody gave.

        Raises
        ------
        InputError
            That says to give rows.
        """
        try:
            self.fitted(self.X, self.y)
        except Exception as error:
            raise InputError(
                f"`{self.name}` is not fitted to {_ROWS} random rows of {_COLUMNS} "
                f"numbers: {error!r}. Give `check_operator` rows and targets that it takes."
            ) from error

    def run(self) -> None:
        """Every trait that is declared."""
        X, y = self.X, self.y
        fitted = self.fitted(X, y)
        self.methods = self.found(fitted)
        whole = self.applied(fitted, X)

        def again(trait: str, how: str, X: Any, y: Any) -> None:
            self.same(trait, whole, self.applied(self.fitted(X, y), self.X), how)

        again("repeatable", "fitted a second time", X, y)
        if of_rows := [m for m in whole if goes_by_rows(self.estimator, m)]:
            self.row_wise(fitted, {method: whole[method] for method in of_rows})
        if is_stateless(self.estimator):
            self.stateless(whole)
        if ignores_targets(self.estimator):
            # Other values, too: a mean does not see a permutation.
            other = y[np.random.default_rng(1).integers(self.n, size=self.n)]
            again("blind to targets", "fitted beside other targets", X, other)
        for way in record_of(type(self.estimator)).ways:
            if not way.refuses(self.estimator, self.stats()):
                self.way(way, {m: whole[m] for m in self.telling(whole)})

    def fitted(self, X: Any, y: Any, weight: Any = None) -> Any:
        """A copy, fitted."""
        fresh = private_copy(self.estimator, apart=True)
        fresh.fit(X, y, **({} if weight is None else {"sample_weight": weight}))
        return fresh

    def found(self, model: Any) -> list[str]:
        """The methods that it has, but those beside the first that fail on all rows."""
        methods = [method for method in _APPLIES if hasattr(model, method)]
        if not methods:
            raise InputError(f"`{self.name}` has none of {', '.join(_APPLIES)}.")
        for method in methods[1:]:
            try:
                getattr(model, method)(self.X)
            except Exception:
                methods.remove(method)
        return methods

    def telling(self, whole: Outputs) -> list[str]:
        """The methods by which models that were learnt in other ways are compared.

        Not by labels, where there is more: near a border they may differ by rounding.
        """
        methods = [method for method in whole if method in _LEARNT]
        finer = [m for m in methods if m != "predict" or kind_of(whole[m]) == "f"]
        return finer or methods or list(whole)

    def applied(self, model: Any, X: Any, methods: Iterable[str] | None = None) -> Outputs:
        """What each method of the model makes of rows."""
        methods = self.methods if methods is None else methods
        outputs = {method: getattr(model, method)(X) for method in methods}
        # Probabilities of several targets are a list.
        return {
            method: np.concatenate(found, 1) if gives_lists(model, method) else found
            for method, found in outputs.items()
        }

    def stateless(self, whole: Outputs) -> None:
        """Fitted to some rows, against all: two lack what a half may have, as values."""
        half = self.n // 2
        sets = {"first half": (0, half), "second half": (half, self.n)}
        sets["last two"] = self.n - 2, self.n
        for which, (start, stop) in sets.items():
            how = f"fitted to the {which} of the rows"
            try:
                some = self.fitted(
                    tables.row_range(self.X, start, stop), self.y[start:stop]
                )
                found = self.applied(some, self.X)
            except Exception as error:
                raise self.refuted("stateless", f"{how} it raises {error!r}.") from error
            self.same("stateless", whole, found, how)

    def row_wise(self, fitted: Any, whole: Outputs) -> None:
        """Single rows, and blocks, against all rows."""
        for i in self.alone:
            alone = self.applied(fitted, tables.row_range(self.X, i, i + 1), whole)
            here = {m: tables.row_range(rows, i, i + 1) for m, rows in whole.items()}
            self.same("row-wise", here, alone, "by itself", first=i)
        for edges in self.cuts:
            parts = [self.applied(fitted, x, whole) for x, _ in self.blocks(edges)]
            stacked = {
                method: tables.stack([part[method] for part in parts], self.name)
                for method in whole
            }
            self.same("row-wise", whole, stacked, f"cut at {edges[1:-1]}")
        at_once = "transform" in whole and hasattr(self.estimator, "fit_transform")
        if at_once and is_row_wise(self.estimator):
            fresh = private_copy(self.estimator, apart=True)
            rows = {"transform": fresh.fit_transform(self.X, self.y)}
            before = {"transform": whole["transform"]}
            self.same("row-wise", before, rows, "by `fit_transform`")

    def way(self, way: Fit, whole: Outputs) -> None:
        """A way on blocks against ``fit`` on all rows."""
        trait = f"fitted by `{way.name}` as by `fit`"
        self.from_blocks(way, self.estimator, whole, None, trait)
        self.from_blocks(way, self.before(), whole, None, f"{trait} when fitted before")
        takes = "sample_weight" in signature(self.estimator.fit).parameters
        if takes and way.weighs(self.estimator):
            weight = np.random.default_rng(2).uniform(0.5, 2.0, self.n)
            weighed = self.applied(self.fitted(self.X, self.y, weight), self.X, whole)
            trait = f"{trait} to rows with weights"
            self.from_blocks(way, self.estimator, weighed, weight, trait)
        if isinstance(way, OnePass):
            blocks = self.blocks(self.cuts[0])
            parts = [way.part(self.estimator, x, y, None) for x, y in blocks]
            left = _reduced(way.merge, parts)
            right = _reduced(lambda a, b: way.merge(b, a), parts[::-1])
            one, other = (
                self.applied(way.finish(self.estimator, found), self.X, whole)
                for found in (left, right)
            )
            trait, how = "merged in any grouping", "merged from the last on"
            self.same(trait, one, other, how, rtol=self.near)

    def before(self) -> Any:
        """What a way is given where the estimator was fitted to other rows before."""
        half = tables.row_range(self.X, 0, self.n // 2)
        X = tables.stack([self.X, half], self.name)
        return blank_copy(self.fitted(X, np.concatenate((self.y, self.y[: self.n // 2]))))

    @property
    def near(self) -> float:
        """How near models must be that were learnt in two ways."""
        known = parameters(self.estimator)
        tol = known.get("tol")
        if known.get("max_iter") is None or not isinstance(tol, Real):
            return self.rtol
        return max(self.rtol, min(_NEAR * float(tol), _NEAREST))

    def from_blocks(
        self, way: Fit, estimator: Any, whole: Outputs, weight: Any, trait: str
    ) -> None:
        """A way on blocks, against what ``fit`` leads to."""
        for edges in self.cuts:
            how = f"from blocks that end at {edges[1:]}"
            try:
                model = self.by_way(way, estimator, edges, weight)
            except Exception as error:
                raise self.refuted(trait, f"{how} it raises {error!r}.") from error
            self.same(trait, whole, self.applied(model, self.X, whole), how, rtol=self.near)

    def by_way(self, way: Fit, estimator: Any, edges: list[int], weight: Any) -> Any:
        """A model that a way learnt from blocks."""
        if isinstance(way, ManyPasses):
            rows = Rows.of(self.X, block_rows=edges[-1] - edges[-2])
            return way.fit(estimator, rows, self.y, weight)
        weights = [None if weight is None else weight[i:j] for i, j in pairwise(edges)]
        blocks = [(*xy, w) for xy, w in zip(self.blocks(edges), weights, strict=True)]
        if isinstance(way, OnePass):
            parts = [way.part(estimator, *block) for block in blocks]
            return way.finish(estimator, _reduced(way.merge, parts))
        assert isinstance(way, PartialFit)
        classes = np.unique(self.y) if classifies(estimator) else None
        model = way.start(estimator)
        for block in blocks:
            model = way.turn(model, *block, classes)
        return model

    def blocks(self, edges: list[int]) -> Iterator[tuple[Any, Any]]:
        """Rows with their targets."""
        for start, stop in pairwise(edges):
            yield tables.row_range(self.X, start, stop), self.y[start:stop]

    def stats(self) -> Stats:
        """Of the rows."""
        sparse = tables.is_sparse(self.X)
        return Stats(self.n, tables.count_columns(self.X), sparse=sparse)

    def same(
        self,
        trait: str,
        whole: Outputs,
        other: Outputs,
        how: str,
        first: int = 0,
        rtol: float | None = None,
    ) -> None:
        """Raise unless rows are the same, by every method.

        Raises
        ------
        InputError
            With the first row that is not.
        """
        for method, rows in whole.items():
            number = first_difference(rows, other[method], rtol or self.rtol)
            if number is None:
                continue
            by = f"by `{method}`, " if len(self.methods) > 1 else ""
            given = shown(self.X, first + max(number, 0))
            if number < 0:
                shapes = " and ".join(str(np.shape(one)) for one in (rows, other[method]))
                text = f"{how} it gives another shape, {shapes}, for rows as {given}."
            else:
                gives, then = told_apart(rows, other[method], number)
                text = f"row {first + number}, {given}, gives {gives}, and {how} {then}."
            raise self.refuted(trait, by + text)

    def refuted(self, trait: str, text: str) -> InputError:
        """What to say of a trait that does not hold."""
        return InputError(f"`{self.name}` is declared {trait}, and is not: {text}")


def _reduced(merge: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    found = parts[0]
    for part in parts[1:]:
        found = merge(found, part)
    return found
