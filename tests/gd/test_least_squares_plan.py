"""Which solver of least squares is predicted to be the cheapest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.choosing import choose
from mlopt.gd.least_squares_plan import Shape, block_rows, choose_solver, solver_costs
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
    return choose_solver("Ridge()", "auto", shape, resources).chosen


def test_tall_data_go_through_one_gram_matrix() -> None:
    assert chosen(TALL) == "cholesky"


def test_text_stays_sparse_under_conjugate_gradients() -> None:
    assert chosen(TEXT) == "sparse_cg"


def test_a_thousand_columns_are_sampled_and_many_more_are_not_factored() -> None:
    tall = replace(TALL, n=500_000, d=1000, nonzero=500_000_000)
    assert chosen(replace(tall, accuracy=1e-6)) == "sketched_cg"
    wide = replace(TALL, n=20_000, d=5000, nonzero=100_000_000, tol=1e-12)
    assert chosen(replace(wide, accuracy=1e-6)) in ("mixed_cholesky", "sketched_cg")
    huge = solver_costs(replace(wide, n=50_000, d=100_000, nonzero=5_000_000_000), HERE)
    assert isinstance(huge["mixed_cholesky"], str)
    assert isinstance(huge["block"], Cost)


def test_more_accuracy_never_costs_less() -> None:
    tall = replace(TALL, n=500_000, d=200, nonzero=100_000_000)
    costs = [
        solver_costs(replace(tall, accuracy=accuracy), HERE)["sketched_cg"]
        for accuracy in (1e-4, 1e-6, 1e-8, 1e-10)
    ]
    seconds = [cost.seconds(HERE, 2) for cost in costs if isinstance(cost, Cost)]
    assert len(seconds) == 4
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("solver", ["sketched_cg", "block"])
def test_the_more_digits_the_more_steps_are_expected(solver: str) -> None:
    wide = replace(TALL, n=12_000, d=8192, outputs=10, nonzero=12_000 * 8192, itemsize=4)
    rough, fine = (
        solver_costs(replace(wide, accuracy=accuracy), HERE)[solver]
        for accuracy in (1e-6, 1e-10)
    )
    assert isinstance(rough, Cost)
    assert isinstance(fine, Cost)
    assert fine.seconds(HERE, 2) > 1.2 * rough.seconds(HERE, 2)


def test_without_a_penalty_only_solvers_with_ranks_are_left() -> None:
    costs = solver_costs(replace(TALL, ranked=True), HERE)
    for name in ("sketched_cg", "mixed_cholesky", "block"):
        assert "positive penalty" in str(costs[name])


def test_sparse_rows_are_refused_where_nothing_is_gained() -> None:
    sparse_rows = solver_costs(replace(TALL, sparse=True), HERE)
    assert "dense" in str(sparse_rows["block"])
    assert "dense" in str(sparse_rows["mixed_cholesky"])


def test_few_wide_rows_are_factored_themselves() -> None:
    assert chosen(replace(TALL, n=50, d=5000, nonzero=250_000, tol=1e-12)) != "cholesky"


def test_what_does_not_fit_in_memory_is_rejected_with_the_reason() -> None:
    costs = solver_costs(TEXT, HERE)
    assert isinstance(costs["cholesky"], str)
    assert "GiB" in costs["cholesky"]


def test_twice_the_rows_never_cost_less() -> None:
    for shape in (TALL, TEXT):
        twice = replace(
            shape, n=2 * shape.n, nonzero=2 * shape.nonzero, blocks=2 * shape.blocks
        )
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


def test_sparse_columns_are_expected_to_converge_faster_the_more_rows_there_are() -> None:
    steps = [replace(TEXT, n=n).iterations for n in (100_000, 1_000_000, 10_000_000)]
    assert steps == sorted(steps, reverse=True)
    assert steps[-1] < steps[0]
    assert replace(TEXT, steps=3).iterations == 3
    assert replace(TALL, n=10_000_000).iterations == TALL.iterations
