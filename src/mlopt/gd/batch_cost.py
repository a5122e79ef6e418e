"""What one scan costs for many models at once, and how many models should share it.

Shapes: ``n`` rows, ``d`` columns of data, ``B`` columns of the weight matrix, that is
models times columns of one model (folds, classes).

A pass reads X once. For each block of rows that fits the cache it takes two products of
``2 n d B`` flops, and an element-wise step of ``n B`` loss values and slopes. Per model,
reading X and packing it for the products gets cheaper with B; what is left is the rate of
the products (TuPAQ, section 3.3: "Advanced batching").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.plan import Alternative, Choice, format_bytes
from mlopt.resources import Resources
from mlopt.stats import Stats

LARGEST = 512
TOLERANCE = 0.10
"""A larger batch must be this much cheaper per model to be worth later feedback."""

EFFICIENCY = 0.75
"""Of a square product's rate, what two products with B columns reach as B grows."""
PACKING = 12
"""Columns of work that bringing X into the products' own layout costs, whatever B is."""
FUSED = 4
"""The same for one column, where a fused kernel takes the place of the products."""
SPARSE_EFFICIENCY, SPARSE_PACKING = 0.15, 3
ELEMENT_FLOPS = 40
"""A loss value and its slope, in flops at the rate of a product."""

CACHE = 2**20
"""Bytes near one core. W and its gradient beyond it are read anew for every block."""
BLOCK = 2**19
FEWEST_ROWS = 64

STATE_VECTORS = 26
"""Vectors of length d kept for a column: ten pairs of L-BFGS, weights, gradient, trial."""

TASK, ROUND_TRIP = 2e-4, 1e-3
"""Seconds per block and per pass that `choose_batch_size` counts on every machine."""


def pass_cost(stats: Stats, columns: int, dtype: str | None = None) -> Cost:
    """Cost of losses and gradients of ``columns`` columns in one pass over the rows.

    Parameters
    ----------
    stats : Stats
        Of the rows; `Stats.sparse` decides between the dense and the CSR kernel.
    columns : int
        B: columns of the weight matrix.
    dtype : str, optional
        Of the arithmetic; that of the data unless given.

    Returns
    -------
    Cost
        One leaf: arithmetic and memory traffic overlap. A task for each partition and one
        round trip for the pass.

    References
    ----------
    Sparks et al., "TuPAQ" (2015), section 3.3.1 (equation 2 and the roofline) and 3.3.2.
    """
    if columns < 1:
        raise InputError(f"`columns` must be at least 1, got {columns!r}.")
    kind = replace(stats, dtype=dtype or stats.dtype, bytes=-1)
    products = _sparse_flops(kind, columns) if kind.sparse else _dense_flops(kind, columns)
    flops = products + ELEMENT_FLOPS * kind.rows * columns
    single = kind.dtype == "float32"
    return Cost(
        flops=0.0 if single else flops,
        flops32=flops if single else 0.0,
        memory=kind.bytes + _weights_traffic(kind, columns),
        tasks=kind.partitions,
        round_trips=1,
    )


def _dense_flops(stats: Stats, columns: int) -> float:
    packing = PACKING if columns > 1 else FUSED
    return 4 * stats.rows * stats.columns * (columns + packing) / EFFICIENCY


def _sparse_flops(stats: Stats, columns: int) -> float:
    return 4 * stats.nonzeros * (columns + SPARSE_PACKING) / SPARSE_EFFICIENCY


def _weights_traffic(stats: Stats, columns: int) -> float:
    """Bytes of W read, and of its gradient read and written, when they leave the cache."""
    one = stats.columns * columns * stats.itemsize
    if 2 * one <= CACHE:
        return 0.0
    if stats.sparse:  # a row of W and one of the gradient for every entry of X
        return 3 * stats.nonzeros * columns * stats.itemsize
    rows = max(FEWEST_ROWS, BLOCK / (stats.itemsize * (stats.columns + columns)))
    return 3 * one * stats.rows / rows


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
    """``resources`` with rates rounded to powers of two, and nominal overheads."""
    names = ("gemm_f64", "gemm_f32", "bandwidth")
    rounded = {name: 2.0 ** round(math.log2(getattr(resources, name))) for name in names}
    return resources.with_rates(
        {**rounded, "task": TASK, "round_trip": ROUND_TRIP, "python": 1.0}
    )


def _candidates(n_models: int | None) -> list[int]:
    powers = [2**k for k in range(LARGEST.bit_length())]
    return sorted({min(size, n_models or LARGEST) for size in powers})


def _models(size: int) -> str:
    return "1 model" if size == 1 else f"{size} models"
