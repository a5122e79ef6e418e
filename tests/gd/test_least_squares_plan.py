"""Which solver of least squares is predicted to be the cheapest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.choosing import choose
from mlopt.gd.least_squares_plan import Shape, block_rows, solver_costs
from mlopt.resources import Resources

HERE = Resources(threads=2, memory=8 * 2**30)
TALL = Shape(
    n=1_000_000,
    d=50,
    outputs=1,
    nonzero=50_000_000,
    itemsize=8,
    sparse=False,
    multiplies_sparse=False,
    blocks=64,
    tol=1e-4,
    ranked=False,
)
TEXT = replace(
    TALL, n=100_000, d=50_000, nonzero=5_000_000, sparse=True, multiplies_sparse=True
)


def chosen(shape: Shape, resources: Resources = HERE) -> str:
    return choose("Ridge()", "auto", solver_costs(shape, resources), resources).chosen


def test_tall_data_go_through_one_gram_matrix() -> None:
    assert chosen(TALL) == "cholesky"


def test_text_stays_sparse_under_conjugate_gradients() -> None:
    assert chosen(TEXT) == "sparse_cg"


def test_few_wide_rows_are_factored_themselves() -> None:
    assert chosen(replace(TALL, n=50, d=5000, nonzero=250_000, tol=1e-12)) != "cholesky"


def test_what_does_not_fit_in_memory_is_rejected_with_the_reason() -> None:
    costs = solver_costs(TEXT, HERE)
    assert isinstance(costs["cholesky"], str)
    assert "GiB" in costs["cholesky"]


def test_twice_the_rows_never_cost_less() -> None:
    for shape in (TALL, TEXT):
        twice = replace(shape, n=2 * shape.n, nonzero=2 * shape.nonzero)
        for name, cost in solver_costs(shape, HERE).items():
            more = solver_costs(twice, HERE)[name]
            if isinstance(cost, Cost) and isinstance(more, Cost):
                assert more.seconds(HERE, 2) >= cost.seconds(HERE, 2)


def test_a_solver_that_cannot_run_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"needs .* GiB"):
        choose("Ridge()", "cholesky", solver_costs(TEXT, HERE), HERE)


def test_wide_blocks_have_rows_enough_for_their_gram_matrix() -> None:
    assert block_rows(np.empty((1000, 100))) is None
    assert block_rows(sparse.csr_array((1000, 1000))) is None
    assert block_rows(np.empty((20_000, 5000), np.float32)) == 2500
