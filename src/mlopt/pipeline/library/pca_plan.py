"""What each way of finding principal components would cost: pure functions of shapes.

KeystoneML, Table II, gives operations of an exact SVD as n d^2 and of a truncated one as
n d k + i n k^2; here with the prices of today's libraries, measured against BLAS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd import pricing
from mlopt.gd.pricing import arithmetic, scan
from mlopt.gd.row_products import gram_cost, qr_flops, triangle_cost
from mlopt.pipeline.library.choosing import Options, calibrated, choose
from mlopt.pipeline.library.pca_leading import krylov
from mlopt.plan import Alternative, Choice, format_bytes
from mlopt.prices import price
from mlopt.resources import Resources

OPERATOR = "PCA"
"""What calibrations call these solvers."""

_NARROW = price("pca.narrow")
_SPARSE = price("pca.sparse")
_RESTARTS = price("pca.restarts")
_APPROXIMATE = 'approximate; ask for it with svd_solver="randomized"'


@dataclass(frozen=True)
class Shape:
    """The problem, as far as its cost depends on it.

    Parameters
    ----------
    rows : pricing.Shape
        The matrix, with no targets.
    components : int
        Components to find, at most ``min(n, d)``.
    needs_all : bool
        Whether how many are kept is decided from the whole spectrum.
    oversamples : int
        Further columns of the randomized solver's sketch.
    iterations : int
        Its power iterations.
    """

    rows: pricing.Shape
    components: int
    needs_all: bool
    oversamples: int
    iterations: int

    @property
    def rank(self) -> int:
        """The most components there can be."""
        return min(self.rows.n, self.rows.d)

    @property
    def sketch(self) -> int:
        """Columns of the randomized solver's sketch."""
        return min(self.components + self.oversamples, self.rank)

    @property
    def may_approximate(self) -> bool:
        """Whether "auto" may take the randomized solver: where scikit-learn's may."""
        n, d = self.rows.n, self.rows.d
        few = self.components < 0.8 * self.rank and not self.needs_all
        return few and max(n, d) > 500 and not (is_tall(n, d) or self.rows.sparse)


def is_tall(n: int, d: int) -> bool:
    """Whether scikit-learn's "auto" takes the covariances of so many rows and columns."""
    return d <= 1000 and n >= 10 * d


def choose_solver(operator: str, wanted: str, shape: Shape, resources: Resources) -> Choice:
    """The cheapest solver that is exact enough, or ``wanted`` unless that is "auto".

    Raises
    ------
    InputError
        When ``wanted`` cannot be used here, or nothing can; with the bytes it would need.
    """
    options = solver_costs(shape, resources)
    if isinstance(reason := options.get(wanted), str):
        name = wanted.removesuffix("-svd").replace("-", "_")  # as the parameter has it
        raise InputError(f"`svd_solver`={name!r} cannot fit {operator} here: {reason}.")
    exact = {name: cost for name, cost in options.items() if name != "randomized"}
    possible = any(isinstance(cost, Cost) for cost in exact.values())
    if wanted != "auto" or shape.may_approximate or not possible:
        return choose(operator, wanted, options, resources)
    choice = choose(operator, wanted, exact, resources)
    return replace(choice, rejected=(*choice.rejected, _set_aside(options, resources)))


def _set_aside(options: Options, resources: Resources) -> Alternative:
    cost = options["randomized"]
    if not isinstance(cost, Cost):
        return Alternative("randomized", None, cost)
    return Alternative(
        "randomized", cost.seconds(resources, resources.threads), _APPROXIMATE
    )


def solver_costs(shape: Shape, resources: Resources) -> dict[str, Cost | str]:
    """Cost of each solver by name, or why it cannot be used."""
    return {name: solver_cost(name, shape, resources) for name in _COSTS}


def solver_cost(name: str, shape: Shape, resources: Resources) -> Cost | str:
    """Cost of one solver, or why it cannot be used."""
    most = resources.memory / resources.workers / 2
    found = _refusal(name, shape, resources, most) or _COSTS[name](shape, resources)
    return calibrated(OPERATOR, {name: found}, resources)[name]


def passes_over_rows(name: str, shape: Shape) -> float:
    """How often a solver reads the rows; its cost is that of as many passes."""
    if name == "randomized":
        return shape.iterations + 3.0  # the moments, the sketch, and its singular values
    if name == "arpack":
        return 1.0 + _RESTARTS * krylov(shape.components, shape.rows.d)
    return 1.0


def _refusal(name: str, shape: Shape, resources: Resources, most: float) -> str:
    if name == "full-svd" and shape.rows.sparse:
        return "X is sparse, and it would make it dense"
    if name in ("randomized", "arpack") and shape.needs_all:
        return "it finds a given number of components: `n_components` must be an integer"
    if name == "arpack" and shape.components == shape.rank:
        return (
            "it finds fewer than all: `n_components` must be below "
            f"n_samples = {shape.rows.n} and n_features = {shape.rows.d}"
        )
    needed = memory_needed(name, shape, resources)
    if needed <= most:
        return ""
    return (
        f"it needs {format_bytes(needed)} ({needed:.0f} bytes) in one process, where "
        f"{format_bytes(most)} ({most:.0f} bytes) may be used"
    )


def memory_needed(name: str, shape: Shape, resources: Resources) -> float:
    """Bytes that a solver needs in one process, beside the rows it already holds."""
    n, d, rank = shape.rows.n, shape.rows.d, shape.rank
    # One partial result a thread, and two on their way up the tree.
    partials = resources.threads + 2
    if name == "full-svd":
        return shape.rows.itemsize * (2.0 * n * d + n * rank + 3.0 * rank**2 + rank * d)
    if name == "covariance-eigh":
        return 8.0 * (partials + 2) * d**2
    if name == "tsqr":
        return 8.0 * (partials + 2) * rank * d
    if name == "arpack":
        return 8.0 * d * (partials + krylov(shape.components, d) + shape.components)
    longest = math.ceil(n / shape.rows.blocks)
    return 8.0 * shape.sketch * (partials * d + resources.threads * longest)


def _full_svd(shape: Shape, resources: Resources) -> Cost:
    rows, remote = shape.rows, resources.remote
    moved = 1.0 * rows.n * rows.d * rows.itemsize
    gather = Cost(
        memory=4 * moved,
        network=moved if remote else 0.0,
        tasks=float(rows.blocks) if remote else 0.0,
        round_trips=1.0 if remote else 0.0,
    )
    return gather + arithmetic(rows, svd_flops(rows.n, rows.d))


def _covariance(shape: Shape, resources: Resources) -> Cost:
    last = Cost(flops=eigenvector_flops(shape.rows.d, shape.components))
    return gram_cost(shape.rows, resources) + last


def _tall_skinny_qr(shape: Shape, resources: Resources) -> Cost:
    last = Cost(flops=svd_flops(shape.rank, shape.rows.d))
    return triangle_cost(shape.rows, resources) + last


def _randomized(shape: Shape, resources: Resources) -> Cost:
    width = shape.sketch
    step = _squared(shape, resources, width) + Cost(flops=qr_flops(shape.rows.d, width))
    last = Cost(flops=qr_flops(shape.rows.n, width) / resources.workers)
    return _moments(shape, resources) + (shape.iterations + 2) * step + last


def _arpack(shape: Shape, resources: Resources) -> Cost:
    d, kept = shape.rows.d, krylov(shape.components, shape.rows.d)
    # Each vector is made orthogonal to the others, twice.
    step = _squared(shape, resources, 1) + Cost(memory=4 * 8.0 * d * kept)
    return _moments(shape, resources) + _RESTARTS * kept * step


def _squared(shape: Shape, resources: Resources, width: int) -> Cost:
    """One pass for ``Xc.T @ (Xc @ Q)``, Q of ``width`` columns."""
    rows, share = shape.rows, 1.0 / resources.workers
    price = _SPARSE if rows.sparse else _NARROW
    products = arithmetic(rows, price * 4.0 * share * rows.nonzero * width)
    sums = Cost(memory=3 * 8.0 * share * rows.blocks * rows.d * width)
    return (scan(rows, resources, 8.0 * rows.d * width) | products) + sums


def _moments(shape: Shape, resources: Resources) -> Cost:
    return scan(shape.rows, resources, 16.0 * shape.rows.d, times=4)


def svd_flops(n: int, d: int) -> float:
    """Operations of a matrix product that take as long as the thin SVD of (n, d)."""
    least = min(n, d)
    return (11.0 + 2200.0 / least) * n * d * least


def eigenvector_flops(d: int, k: int) -> float:
    """The same for ``k`` leading eigenvectors of a symmetric matrix (d, d)."""
    return (2.0 + 6.0 * k / d + 2000.0 / d) * d**3


_COSTS = {
    "full-svd": _full_svd,
    "covariance-eigh": _covariance,
    "tsqr": _tall_skinny_qr,
    "randomized": _randomized,
    "arpack": _arpack,
}
