"""The costs of KeystoneML as published and as shipped, to compare choices with it.

mlopt chooses by its own costs, with the prices of the machine at hand. These are for
fidelity: Tables I and II of the paper, and the costs of its code with the weights that its
authors fitted on 26 runs on 16 machines (r3.4xlarge).

Shapes: ``X`` (n, d), targets (n, k) of a linear solver or k components of a PCA, density s
of X, w machines.

Sparks, Venkataraman, Kaftan, Franklin, Recht, "KeystoneML: Optimizing Pipelines for
Large-Scale Advanced Analytics", ICDE 2017, section III.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.pipeline.library import choosing
from mlopt.plan import Choice, format_bytes
from mlopt.resources import Resources

VALUE_BYTES = 8
LBFGS_PASSES, BLOCK_PASSES, BLOCK = 20, 3, 1000
SPARSE_OVERHEAD = 8.0

_CPU, _MEMORY, _NETWORK = 3.8e-4, 2.9e-1, 1.32

SHIPPED = Resources(
    gemm_f64=1 / _CPU,
    bandwidth=1 / _MEMORY,
    bandwidth_all=1 / _MEMORY,
    network=1 / _NETWORK,
)
"""The fitted weights as rates, so that a `Cost` in operations and values becomes the
shipped figure. Its unit is KeystoneML's own: only ratios mean something."""


@dataclass(frozen=True)
class Problem:
    """What KeystoneML's costs depend on.

    Parameters
    ----------
    n, d, k : int
        Rows; columns; targets, or principal components.
    density : float, default=1.0
        Share of the entries of X that are not zero, above 0 and at most 1.
    machines : int, default=16
    """

    n: int
    d: int
    k: int
    density: float = 1.0
    machines: int = 16

    def __post_init__(self) -> None:
        if min(self.n, self.d, self.k, self.machines) < 1 or not 0 < self.density <= 1:
            raise InputError(
                "`n`, `d`, `k` and `machines` must be at least 1, and `density` above 0 "
                f"and at most 1; got {self}."
            )

    @property
    def levels(self) -> float:
        """Levels of a tree of all machines: log2 w."""
        return math.log2(self.machines)


@dataclass(frozen=True)
class Demand:
    """A row of Table I or II, constants omitted as there.

    Attributes
    ----------
    compute : float
        Operations of the busiest machine.
    network : float
        Values over the most loaded link.
    memory : float
        Values that one machine holds.
    """

    compute: float
    network: float
    memory: float


def local_qr(p: Problem) -> Demand:
    """Table I: QR on one machine."""
    n, d, k = p.n, p.d, p.k
    return Demand(n * d * (d + k), n * (d + k), d * (n + k))


def distributed_qr(p: Problem) -> Demand:
    """Table I: QR on all machines."""
    n, d, k, w = p.n, p.d, p.k, p.machines
    return Demand(n * d * (d + k) / w, d * (d + k), n * d / w + d**2)


def lbfgs(p: Problem, passes: int = LBFGS_PASSES) -> Demand:
    """Table I: L-BFGS; s d non-zeros in a row."""
    n, d, k, w = p.n, p.d, p.k, p.machines
    stored = p.density * d * n / w
    return Demand(passes * stored * k, passes * d * k, stored + d * k)


def _dense_lbfgs(p: Problem) -> Demand:
    return lbfgs(replace(p, density=1.0))


def block_solve(p: Problem, passes: int = BLOCK_PASSES, block: int = BLOCK) -> Demand:
    """Table I: Gauss-Seidel over blocks of columns."""
    n, d, k, w = p.n, p.d, p.k, p.machines
    return Demand(
        passes * n * d * (block + k) / w,
        passes * d * (block + k),
        n * block / w + d * k,
    )


def svd(p: Problem) -> Demand:
    """Table II: exact SVD on one machine."""
    return Demand(p.n * p.d**2, p.n * p.d, p.n * p.d + p.d**2)


def truncated_svd(p: Problem, iterations: int = 10) -> Demand:
    """Table II: approximate SVD on one machine."""
    n, d, k = p.n, p.d, p.k
    return Demand(n * d * k + iterations * n * k**2, n * d, n * d + d * k)


def distributed_svd(p: Problem) -> Demand:
    """Table II: exact SVD on all machines."""
    n, d, w = p.n, p.d, p.machines
    return Demand(n * d**2 / w, d**2, n * d / w + d**2)


def distributed_truncated_svd(p: Problem, iterations: int = 10) -> Demand:
    """Table II: approximate SVD on all machines."""
    n, d, k, w = p.n, p.d, p.k, p.machines
    compute = (n * d * k + iterations * n * k**2) / w
    return Demand(compute, iterations * (n * k + d * k), n * d / w + d * k)


def lbfgs_weight(iterations: int) -> int:
    """How often L-BFGS reads its input at most."""
    return iterations + 1


def block_weight(iterations: int) -> int:
    """How often the block solver reads its input at most."""
    return 3 * iterations + 1


def _shipped_exact(p: Problem) -> Cost:
    n, d, k, w = p.n, p.d, p.k, p.machines
    return Cost(
        flops=n * d * (d + k) / w, memory=n * d / w + d**2, network=1.0 * d * (d + k)
    )


def _shipped_block(p: Problem) -> Cost:
    n, d, k, w = p.n, p.d, p.k, p.machines
    return BLOCK_PASSES * Cost(
        flops=n * d * (BLOCK + k) / w,
        memory=n * d / w + d * k,
        network=2.0 * d * (BLOCK + k) * p.levels,
    )


def _shipped_dense_lbfgs(p: Problem) -> Cost:
    n, d, k, w = p.n, p.d, p.k, p.machines
    network = 2.0 * d * k * p.levels
    return LBFGS_PASSES * Cost(flops=n * d * k / w, memory=n * d / w, network=network)


def _shipped_sparse_lbfgs(p: Problem) -> Cost:
    n, d, k, w = p.n, p.d, p.k, p.machines
    stored = SPARSE_OVERHEAD * p.density * n * d / w
    network = 2.0 * d * k * p.levels
    return LBFGS_PASSES * Cost(flops=stored * k, memory=stored, network=network)


def _shipped_local_pca(p: Problem) -> Cost:
    values = 1.0 * p.n * p.d
    return Cost(flops=values * p.d, memory=values, network=values)


def _shipped_distributed_pca(p: Problem) -> Cost:
    n, d, w = p.n, p.d, p.machines
    return Cost(
        flops=n * d**2 / w + d**3 * p.levels,
        memory=1.0 * n * d,
        network=d**2 * p.levels,
    )


@dataclass(frozen=True)
class Method:
    """A physical operator: its row of a table, and the cost that was shipped."""

    demand: Callable[[Problem], Demand]
    shipped: Callable[[Problem], Cost]


LINEAR_SOLVERS: dict[str, Method] = {
    "exact": Method(distributed_qr, _shipped_exact),
    "block": Method(block_solve, _shipped_block),
    "dense L-BFGS": Method(_dense_lbfgs, _shipped_dense_lbfgs),
    "sparse L-BFGS": Method(lbfgs, _shipped_sparse_lbfgs),
}

PCA: dict[str, Method] = {
    "local": Method(svd, _shipped_local_pca),
    "distributed": Method(distributed_svd, _shipped_distributed_pca),
}


def choose(
    methods: Mapping[str, Method], problem: Problem, memory: float = math.inf
) -> Choice:
    """The method that KeystoneML takes: the least shipped cost of those that fit.

    Parameters
    ----------
    methods : mapping of str to Method
        `LINEAR_SOLVERS` or `PCA`.
    problem : Problem
    memory : float, optional
        Bytes of one machine; a method that needs more is not taken.

    Raises
    ------
    InputError
        When none fits, with the bytes that each needs.
    """
    options: dict[str, Cost | str] = {}
    for name, method in methods.items():
        needed = VALUE_BYTES * method.demand(problem).memory
        options[name] = (
            method.shipped(problem)
            if needed <= memory
            else f"needs {format_bytes(needed)} of {format_bytes(memory)} a machine"
        )
    return choosing.choose(str(problem), "auto", options, SHIPPED)
