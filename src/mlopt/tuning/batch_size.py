"""How many models should share a scan.

Per model, reading X and packing it for the products gets cheaper with the columns of the
weight matrix; what is left is the rate of the products (TuPAQ, section 3.3: "Advanced
batching").
"""

from __future__ import annotations

import math

from mlopt.errors import InputError
from mlopt.gd.pricing import gradient_pass, shape_of_stats
from mlopt.gd.row_products import beyond
from mlopt.plan import Alternative, Choice
from mlopt.prices import count, price
from mlopt.resources import Resources
from mlopt.stats import Stats

LARGEST = count("batch.largest")
TOLERANCE = price("batch.worth")
_COPIES = 16
"""Of weights, in training by L-BFGS: they and where they were, gradients, directions, trial
steps and their sums, six vectors of the fewest pairs, and two beside these on the way."""


def choose_batch_size(
    stats: Stats,
    resources: Resources,
    *,
    columns_per_model: int = 1,
    n_models: int | None = None,
    at_once: int = 1,
) -> tuple[int, Choice]:
    """How many models should share a scan: the fewest within 10% of the best.

    Fewer models a scan mean earlier feedback to the search (TuPAQ, section 4.3); but not
    among models that train at once, of which as many share one as is cheapest. Never more
    than there is room for the weights of.

    Parameters
    ----------
    stats : Stats
    resources : Resources
        Only the rates of one thread are used, rounded to powers of two, and overheads are
        nominal: neither threads, nor a cluster, nor a noisy probe should change which
        models a search trains together. And the memory of a worker.
    columns_per_model : int, default=1
        Folds times classes.
    n_models : int, optional
        Models there will be; a batch is never larger.
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

    def seconds_per_model(size: int, here: Resources) -> float:
        shape = shape_of_stats(stats, size * columns_per_model)
        return gradient_pass(shape, Resources()).seconds(here) / size

    coarse, sizes = coarse_rates(resources), _candidates(n_models)
    model = training_bytes(stats.columns, columns_per_model)
    why = {
        size: beyond(size * model, resources, "weights in training") or "" for size in sizes
    }
    most = max((size for size in sizes if not why[size]), default=1)
    took = {size: seconds_per_model(size, coarse) for size in sizes if size <= most}
    chosen = min(s for s in took if took[s] <= (1 + TOLERANCE) * min(took.values()))
    chosen = min(
        (s for s in took if chosen <= s <= max(chosen, at_once)), key=took.__getitem__
    )
    rejected = tuple(
        Alternative(models_in_words(size), seconds_per_model(size, resources), why[size])
        for size in sizes
        if size != chosen
    )
    return chosen, Choice(
        "batch size", f"{columns_per_model} columns a model",
        f"{models_in_words(chosen)} a scan",
        seconds_per_model(chosen, resources), rejected=rejected,
        notes=("seconds are per model and pass, on one thread",),
    )  # fmt: skip


def training_bytes(d: int, columns: int) -> float:
    """What so many columns of weights of ``d`` features take while they train."""
    return 8.0 * _COPIES * (d + 1) * columns


def coarse_rates(resources: Resources) -> Resources:
    """``resources`` with rates rounded to powers of two, and Python at nominal speed."""
    names = ("gemm_f64", "gemm_f32", "bandwidth")
    rounded = {name: 2.0 ** round(math.log2(getattr(resources, name))) for name in names}
    return resources.with_rates({**rounded, "python": 1.0})


def _candidates(n_models: int | None) -> list[int]:
    powers = [2**k for k in range(LARGEST.bit_length())]
    return sorted({min(size, n_models or LARGEST) for size in powers})


def models_in_words(size: int) -> str:
    """So many models."""
    return "1 model" if size == 1 else f"{size} models"
