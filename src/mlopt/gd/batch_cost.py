"""What one scan costs for many models at once, and how many models should share it.

Shapes: ``n`` rows, ``d`` columns of data, ``B`` columns of the weight matrix, that is
models times columns of one model (folds, classes).

Per model, reading X and packing it for the products gets cheaper with B; what is left is
the rate of the products (TuPAQ, section 3.3: "Advanced batching").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.pricing import gradient_pass, shape_of_stats
from mlopt.plan import Alternative, Choice, format_bytes
from mlopt.prices import count, price
from mlopt.resources import Resources
from mlopt.stats import Stats

LARGEST = count("batch.largest")
TOLERANCE = price("batch.worth")
STATE_VECTORS = count("batch.state")


def pass_cost(
    stats: Stats,
    columns: int,
    dtype: str | None = None,
    resources: Resources = Resources(),  # noqa: B008
) -> Cost:
    """Cost of losses and gradients of ``columns`` columns in one pass over the rows.

    Parameters
    ----------
    stats : Stats
        Of the rows; `Stats.sparse` decides between the dense and the CSR kernel.
    columns : int
        B: columns of the weight matrix.
    dtype : str, optional
        Of the arithmetic; that of the data unless given.
    resources : Resources, optional
        Whose workers share the rows; this process unless given.

    Returns
    -------
    Cost
        One leaf: arithmetic and memory traffic overlap.
    """
    if columns < 1:
        raise InputError(f"`columns` must be at least 1, got {columns!r}.")
    kind = replace(stats, dtype=dtype or stats.dtype, bytes=-1, outputs=columns)
    return gradient_pass(shape_of_stats(kind), resources)


def batch_memory(
    stats: Stats, columns: int, dtype: str | None = None, *, margins: bool = False
) -> int:
    """Bytes that training ``columns`` columns keeps besides the data.

    Parameters
    ----------
    margins : bool, default=False
        Whether the margins of every row are kept too, as scores that rank rows need.
    """
    kind = replace(stats, dtype=dtype or stats.dtype)
    vectors = STATE_VECTORS * (kind.columns + 1) + (kind.rows if margins else 0)
    return columns * vectors * kind.itemsize


def choose_batch_size(
    stats: Stats,
    resources: Resources,
    *,
    columns_per_model: int = 1,
    memory_budget: int | None = None,
    n_models: int | None = None,
    dtype: str | None = None,
    margins: bool = False,
    at_once: int = 1,
) -> tuple[int, Choice]:
    """How many models should share a scan: the fewest within 10% of the best that fit.

    Fewer models a scan mean earlier feedback to the search (TuPAQ, section 4.3); but not
    among models that train at once, of which as many share one as is cheapest.

    Parameters
    ----------
    stats : Stats
    resources : Resources
        Only the rates of one thread are used, rounded to powers of two, and overheads are
        nominal: neither threads, nor a cluster, nor a noisy probe should change which
        models a search trains together.
    columns_per_model : int, default=1
        Folds times classes.
    memory_budget : int, optional
        Bytes for the models' own state.
    n_models : int, optional
        Models there will be; a batch is never larger.
    dtype : str, optional
        Of the arithmetic; that of the data unless given.
    margins : bool, default=False
        See `batch_memory`.
    at_once : int, default=1
        Models that train between two decisions of the search, in one scan or in several.

    Returns
    -------
    tuple of int and Choice
        The batch size, and the decision for a `Plan`. Its seconds are per model and pass
        on one thread of ``resources`` as they are.
    """
    if columns_per_model < 1 or (n_models is not None and n_models < 1):
        raise InputError(
            "`columns_per_model` and `n_models` must be at least 1, got "
            f"{columns_per_model!r} and {n_models!r}."
        )
    scan = _Scan(stats, columns_per_model, dtype, margins)
    sizes = _candidates(n_models)
    fits = [s for s in sizes if memory_budget is None or scan.memory(s) <= memory_budget]
    coarse = coarse_rates(resources)
    took = {size: scan.seconds_per_model(size, coarse) for size in fits or [1]}
    chosen = min(s for s in took if took[s] <= (1 + TOLERANCE) * min(took.values()))
    chosen = min(
        (s for s in took if chosen <= s <= max(chosen, at_once)), key=took.__getitem__
    )
    return chosen, _explain(scan, chosen, sizes, fits, resources)


@dataclass(frozen=True)
class _Scan:
    """A pass whose number of models is still open."""

    stats: Stats
    columns_per_model: int
    dtype: str | None
    margins: bool

    def seconds_per_model(self, size: int, resources: Resources) -> float:
        cost = pass_cost(self.stats, size * self.columns_per_model, self.dtype)
        return cost.seconds(resources) / size

    def memory(self, size: int) -> int:
        columns = size * self.columns_per_model
        return batch_memory(self.stats, columns, self.dtype, margins=self.margins)


def _explain(
    scan: _Scan, chosen: int, sizes: list[int], fits: list[int], resources: Resources
) -> Choice:
    """The decision with every other size at its price, at the rates as measured."""
    notes = ["seconds are per model and pass, on one thread"]
    if not fits:
        notes.append(
            f"over the memory budget: one model needs {format_bytes(scan.memory(1))}"
        )
    return Choice(
        step="batch size",
        operator=f"{scan.columns_per_model} columns a model",
        chosen=f"{_models(chosen)} a scan",
        predicted=scan.seconds_per_model(chosen, resources),
        rejected=tuple(
            Alternative(_models(size), scan.seconds_per_model(size, resources))
            if size in fits
            else Alternative(
                _models(size), reason=f"needs {format_bytes(scan.memory(size))}"
            )
            for size in sizes
            if size != chosen
        ),
        notes=tuple(notes),
    )


def coarse_rates(resources: Resources) -> Resources:
    """``resources`` with rates rounded to powers of two, and Python at nominal speed."""
    names = ("gemm_f64", "gemm_f32", "bandwidth")
    rounded = {name: 2.0 ** round(math.log2(getattr(resources, name))) for name in names}
    return resources.with_rates({**rounded, "python": 1.0})


def _candidates(n_models: int | None) -> list[int]:
    powers = [2**k for k in range(LARGEST.bit_length())]
    return sorted({min(size, n_models or LARGEST) for size in powers})


def _models(size: int) -> str:
    return "1 model" if size == 1 else f"{size} models"
