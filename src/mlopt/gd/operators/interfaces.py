"""The seven operators of gradient descent: what they take, give and share.

::

    preparation   Stage      nothing, or some rows   -> the same; sets globals
                  Transform  units                   -> Batch
    processing    Sample     n                       -> indices, a Batch, or None: all rows
                  Compute    Batch                   -> partial sum; changes no context
                  Update     the whole sum           -> new weights, or None: not yet
    convergence   Converge   new weights             -> delta, infinite while unknown
                  Loop       delta                   -> True: another iteration

Source: Kaoudi et al., "A Cost-based Optimizer for Gradient Descent Optimization" (ML4all,
SIGMOD 2017), section 4. There an operator works on one unit; here it works on a batch, so
that NumPy does the work. `per_unit` turns a function of one unit into one of a batch.

Every operator is called with the `Context` as its last argument. A plain function may
leave it out. Compute runs in threads, or on workers. (Listing 6 of the paper has a Loop
that returns the opposite.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.errors import InputError

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Context(dict[str, Any]):
    """The global variables of a run, by name.

    The engine keeps "iteration" (from 1), "rows" (of the present sample), "weights",
    "previous" (weights before the last update), "seed" and "columns". A name that begins
    with an underscore is a cache: no checkpoint holds it, and no worker sees it.
    """

    def __missing__(self, name: str) -> Any:
        known = ", ".join(f"`{key}`" for key in sorted(self) if not key.startswith("_"))
        raise InputError(
            f"The context has no `{name}`: set it in `stage`. It has {known or 'nothing'}."
        )

    def shared(self) -> Context:
        """Without the caches."""
        return Context({k: v for k, v in self.items() if not k.startswith("_")})


@dataclass(frozen=True)
class Batch:
    """Parsed rows: what Transform returns.

    Parameters
    ----------
    X : ndarray or csr_array of shape (m, d)
    y : ndarray of shape (m,)
    """

    X: Any
    y: Floats

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def take(self, order: Any) -> Batch:
        """Some of the rows, in this order."""
        return Batch(self.X[order], self.y[order])


Units = Batch | list[bytes]
"""Rows before Transform: lines of text, or a batch where a source has parsed rows."""


def pick(units: Units, order: Indices) -> Units:
    """Some units, in this order."""
    return units.take(order) if isinstance(units, Batch) else [units[i] for i in order]


def below(matrices: Sequence[Any]) -> Any:
    """Matrices below each other: ndarrays, or CSR."""
    sparse = sp.issparse(matrices[0])
    return sp.vstack(matrices, format="csr") if sparse else np.concatenate(matrices)


def stacked(batches: Sequence[Batch]) -> Batch:
    """Batches below each other."""
    if len(batches) == 1:
        return batches[0]
    X = below([batch.X for batch in batches])
    return Batch(X, np.concatenate([batch.y for batch in batches]))


@dataclass(frozen=True)
class Sums:
    """What the reference `Compute` returns: sums over the rows of a batch.

    Parameters
    ----------
    gradient : ndarray of shape (p,)
        Penalty included, once for each row.
    objective : float
    other : ndarray of shape (p,), optional
        A second gradient, at other weights (SVRG).
    """

    gradient: Floats
    objective: float = float("nan")
    other: Floats | None = None

    def __add__(self, more: Sums) -> Sums:
        other = None
        if self.other is not None and more.other is not None:
            other = self.other + more.other
        return Sums(self.gradient + more.gradient, self.objective + more.objective, other)


class Transform(Protocol):
    """Parse, and perhaps normalise, units."""

    def __call__(self, units: Units, context: Context, /) -> Batch: ...


@runtime_checkable
class Aggregating(Protocol):
    """A Compute with its own way to add up: associative, and changes neither argument."""

    def aggregate(self, a: Any, b: Any, /) -> Any:
        """The partial sum of both."""
        ...


def per_unit(function: Callable[[bytes], Sequence[float]], label: int = 0) -> Transform:
    """A Transform from a function of one line, as in the paper's Listing 1.

    Parameters
    ----------
    function : callable
        From a line to numbers, the label among them.
    label : int, default=0
        Where the label is.
    """

    def transform(units: Units, context: Context) -> Batch:
        del context
        if isinstance(units, Batch):
            raise InputError(
                "`per_unit` works on lines, but these rows are parsed already."
            )
        table = np.array([function(line) for line in units], np.float64)
        return Batch(np.delete(table, label, axis=1), table[:, label])

    return transform


def summed(compute: Any, a: Any, b: Any) -> Any:
    """Two partial sums as one: by the Compute's own ``aggregate``, else by addition."""
    if isinstance(compute, Aggregating):
        return compute.aggregate(a, b)
    if isinstance(a, tuple):
        return tuple(x + y for x, y in zip(a, b, strict=True))
    return a + b
