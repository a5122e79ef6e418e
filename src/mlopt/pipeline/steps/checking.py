"""`check_operator`: what is declared of an operator, held against data.

Nothing is proven by a sample; but what is wrong shows, with the rows that show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import FunctionTransformer

from mlopt.errors import InputError
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.fits.base import Fit, ManyPasses, OnePass, PartialFit
from mlopt.pipeline.fits.record import UNKNOWN
from mlopt.pipeline.fits.registry import record_of
from mlopt.pipeline.steps.copies import private_copy
from mlopt.pipeline.steps.kinds import ignores_targets, is_row_wise, is_stateless
from mlopt.pipeline.steps.nested import classifies
from mlopt.rows import Rows
from mlopt.stats import Stats

_ROWS, _COLUMNS = 40, 4
_CUTS = ((0, 1, 2, 17, _ROWS), (0, 20, _ROWS))
"""Edges of blocks: of a single row, and of many."""
_ALONE, _PARTS = 64, 32
"""Rows that are tried by themselves, and blocks that every row of more is in one of."""
_APPLIES = ("transform", "predict_proba", "decision_function", "predict")


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
        How near results must be to count as the same, relative to the largest.

    Raises
    ------
    InputError
        When nothing is declared of it; or with the class, what is refuted, and the first
        row that refutes it.

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
    operator = operator() if isinstance(operator, type) else operator
    estimator = operator if hasattr(operator, "fit") else FunctionTransformer(operator)
    of_function = type(estimator) is FunctionTransformer
    key = estimator.func if of_function else type(estimator)
    record, name = record_of(key), getattr(key, "__name__", repr(key))
    if record is UNKNOWN and not is_row_wise(estimator):
        raise InputError(f"Nothing is declared of `{name}`: see `mlopt.register`.")
    random, drawn = np.random.default_rng(0), X is None
    X = random.normal(size=(_ROWS, _COLUMNS)) if X is None else X
    n = tables.count_rows(X)
    if y is None:
        y = random.normal(size=n)
        y = np.where(y > np.median(y), "b", "a") if classifies(estimator) else y
    if record.seeded_by is not None:
        estimator = private_copy(estimator).set_params(**{record.seeded_by: 0})
    check = _Check(name, estimator, X, np.asarray(y), rtol)
    if drawn:
        check.takes_drawn()
    check.run()


class _Check:
    """One operator on one set of rows (n, d) and targets (n,)."""

    def __init__(self, name: str, estimator: Any, X: Any, y: Any, rtol: float) -> None:
        self.name, self.estimator, self.rtol = name, estimator, rtol
        self.X, self.y, self.n = X, y, tables.count_rows(X)
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
        whole = self.applied(fitted, X)

        def again(trait: str, how: str, X: Any, y: Any) -> None:
            self.same(trait, whole, self.applied(self.fitted(X, y), self.X), how)

        again("repeatable", "fitted a second time", X, y)
        if is_row_wise(self.estimator):
            self.row_wise(fitted, whole)
        if is_stateless(self.estimator):
            self.stateless(whole)
        if ignores_targets(self.estimator):
            # Other values, too: a mean does not see a permutation.
            other = y[np.random.default_rng(1).integers(self.n, size=self.n)]
            again("blind to targets", "fitted beside other targets", X, other)
        for way in record_of(type(self.estimator)).ways:
            if not way.refuses(self.estimator, self.stats()):
                self.way(way, whole)

    def fitted(self, X: Any, y: Any, weight: Any = None) -> Any:
        """A copy, fitted."""
        fresh = private_copy(self.estimator, apart=True)
        fresh.fit(X, y, **({} if weight is None else {"sample_weight": weight}))
        return fresh

    def applied(self, model: Any, X: Any) -> Any:
        """What the model makes of rows."""
        for method in _APPLIES:
            if hasattr(model, method):
                return getattr(model, method)(X)
        raise InputError(f"`{self.name}` has none of {', '.join(_APPLIES)}.")

    def stateless(self, whole: Any) -> None:
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

    def row_wise(self, fitted: Any, whole: Any) -> None:
        """Single rows, and blocks, against all rows."""
        for i in self.alone:
            alone = self.applied(fitted, tables.row_range(self.X, i, i + 1))
            here = tables.row_range(whole, i, i + 1)
            self.same("row-wise", here, alone, "by itself", first=i)
        for edges in self.cuts:
            parts = [self.applied(fitted, block) for block, _ in self.blocks(edges)]
            self.same(
                "row-wise", whole, tables.stack(parts, self.name), f"cut at {edges[1:-1]}"
            )
        if hasattr(self.estimator, "fit_transform") and hasattr(fitted, "transform"):
            fresh = private_copy(self.estimator, apart=True)
            at_once = fresh.fit_transform(self.X, self.y)
            self.same("row-wise", whole, at_once, "by `fit_transform`")

    def way(self, way: Fit, whole: Any) -> None:
        """A way on blocks against ``fit`` on all rows."""
        self.from_blocks(way, whole, None, f"fitted by `{way.name}` as by `fit`")
        takes = "sample_weight" in signature(self.estimator.fit).parameters
        if takes and way.weighs(self.estimator):
            weight = np.random.default_rng(2).uniform(0.5, 2.0, self.n)
            weighed = self.applied(self.fitted(self.X, self.y, weight), self.X)
            trait = f"fitted by `{way.name}` as by `fit` to rows with weights"
            self.from_blocks(way, weighed, weight, trait)
        if isinstance(way, OnePass):
            blocks = self.blocks(self.cuts[0])
            parts = [way.part(self.estimator, x, y, None) for x, y in blocks]
            left = _reduced(way.merge, parts)
            right = _reduced(lambda a, b: way.merge(b, a), parts[::-1])
            one, other = (
                self.applied(way.finish(self.estimator, found), self.X)
                for found in (left, right)
            )
            self.same("merged in any grouping", one, other, "merged from the last on")

    def from_blocks(self, way: Fit, whole: Any, weight: Any, trait: str) -> None:
        """A way on blocks, against what ``fit`` leads to."""
        for edges in self.cuts:
            how = f"from blocks that end at {edges[1:]}"
            try:
                model = self.by_way(way, edges, weight)
            except Exception as error:
                raise self.refuted(trait, f"{how} it raises {error!r}.") from error
            self.same(trait, whole, self.applied(model, self.X), how)

    def by_way(self, way: Fit, edges: list[int], weight: Any) -> Any:
        """A model that a way learnt from blocks."""
        if isinstance(way, ManyPasses):
            rows = Rows.of(self.X, block_rows=edges[-1] - edges[-2])
            return way.fit(self.estimator, rows, self.y, weight)
        weights = [None if weight is None else weight[i:j] for i, j in pairwise(edges)]
        blocks = [(*xy, w) for xy, w in zip(self.blocks(edges), weights, strict=True)]
        if isinstance(way, OnePass):
            parts = [way.part(self.estimator, *block) for block in blocks]
            return way.finish(self.estimator, _reduced(way.merge, parts))
        assert isinstance(way, PartialFit)
        classes = np.unique(self.y) if classifies(self.estimator) else None
        model = private_copy(self.estimator, apart=True)
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

    def same(self, trait: str, whole: Any, other: Any, how: str, first: int = 0) -> None:
        """Raise unless rows are the same.

        Raises
        ------
        InputError
            With the first row that is not.
        """
        number = _first_difference(whole, other, self.rtol)
        if number is None:
            return
        given = _shown(self.X, first + max(number, 0))
        if number < 0:
            shapes = " and ".join(str(np.shape(one)) for one in (whole, other))
            text = f"{how} it gives another shape, {shapes}, for rows as {given}."
        else:
            gives, then = _shown(whole, number), _shown(other, number)
            text = f"row {first + number}, {given}, gives {gives}, and {how} {then}."
        raise self.refuted(trait, text)

    def refuted(self, trait: str, text: str) -> InputError:
        """What to say of a trait that does not hold."""
        return InputError(f"`{self.name}` is declared {trait}, and is not: {text}")


def _reduced(merge: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    found = parts[0]
    for part in parts[1:]:
        found = merge(found, part)
    return found


def _first_difference(whole: Any, other: Any, rtol: float) -> int | None:
    """The number of the first row that differs; -1 for other shapes; None for none."""
    one, two = (np.asarray(_dense(value)) for value in (whole, other))
    if one.shape != two.shape:
        return -1
    if one.dtype.kind in "fciub" and two.dtype.kind in "fciub":
        finite = np.abs(one[np.isfinite(one)])
        scale = rtol * float(finite.max(initial=0.0))
        equal = np.isclose(one, two, rtol=rtol, atol=scale, equal_nan=True)
    else:
        equal = (one == two) | ((one != one) & (two != two))
    rows = np.flatnonzero(~equal.reshape(len(one), -1).all(axis=1))
    return int(rows[0]) if rows.size else None


def _dense(value: Any) -> Any:
    return value.toarray() if sp.issparse(value) else value


def _shown(values: Any, row: int) -> str:
    """A row in few words."""
    found = np.asarray(_dense(tables.row_range(values, row, row + 1))).ravel()
    with np.printoptions(precision=4, threshold=6, edgeitems=3, linewidth=200):
        return str(found if found.size > 1 else found[0] if found.size else found)
