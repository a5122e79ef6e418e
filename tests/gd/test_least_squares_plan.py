"""Which solver of least squares is predicted to be the cheapest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd import Task, plan
from mlopt.gd.least_squares_fit import SOLVERS
from mlopt.gd.plans.fitting import passes_to_expect, prices
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.refined import steps_cost
from mlopt.gd.plans.sparse_cg import left_out
from mlopt.gd.plans.stop import CoefficientError, RelativeGap
from mlopt.gd.pricing import Shape
from mlopt.gd.row_products import block_rows
from mlopt.pipeline.library.choosing import choose
from mlopt.resources import Resources

HERE = Resources(threads=2, memory=8 * 2**30)
TALL = Shape(
    n=1_000_000, d=50, columns=1, nonzero=50_000_000, itemsize=8, sparse=False, blocks=64
)
TEXT = replace(TALL, n=100_000, d=50_000, nonzero=5_000_000, sparse=True)


def problem(
    shape: Shape, accuracy: float = 1e-8, tol: float = 1e-4, l2: float = 1e-6
) -> Outline:
    return Outline("squared", shape, l2=l2, stop=CoefficientError(accuracy, tol))


def costs(shape: Shape, **asked: float) -> dict[str, Cost | str]:
    return prices(SOLVERS, problem(shape, **asked), HERE)


def chosen(shape: Shape, **asked: float) -> str:
    aside = left_out(shape.sparse)
    return choose("Ridge()", "auto", costs(shape, **asked), HERE, left_out=aside).chosen


def test_tall_data_go_through_one_gram_matrix() -> None:
    assert chosen(TALL) == "cholesky"


def test_text_stays_sparse_under_conjugate_gradients() -> None:
    assert chosen(TEXT) == "sparse_cg"


def test_a_thousand_columns_are_sampled_and_many_more_are_not_factored() -> None:
    tall = replace(TALL, n=500_000, d=1000, nonzero=500_000_000)
    assert chosen(tall, accuracy=1e-6) == "sketched_cg"
    wide = replace(TALL, n=20_000, d=5000, nonzero=100_000_000)
    assert chosen(wide, accuracy=1e-6, tol=1e-12) in ("mixed_cholesky", "sketched_cg")
    huge = costs(replace(wide, n=50_000, d=100_000, nonzero=5_000_000_000))
    assert isinstance(huge["mixed_cholesky"], str)
    assert isinstance(huge["sketched_cg"], Cost)


def test_more_accuracy_never_costs_less() -> None:
    tall = replace(TALL, n=500_000, d=200, nonzero=100_000_000)
    found = [
        costs(tall, accuracy=accuracy)["sketched_cg"]
        for accuracy in (1e-4, 1e-6, 1e-8, 1e-10)
    ]
    seconds = [cost.seconds(HERE, 2) for cost in found if isinstance(cost, Cost)]
    assert len(seconds) == 4
    assert seconds == sorted(seconds)


def test_the_more_digits_the_more_steps_are_expected() -> None:
    wide = replace(TALL, n=12_000, d=8192, columns=10, nonzero=12_000 * 8192, itemsize=4)
    found = [costs(wide, accuracy=one)["sketched_cg"] for one in (1e-6, 1e-10)]
    rough, fine = found
    assert isinstance(rough, Cost)
    assert isinstance(fine, Cost)
    assert fine.seconds(HERE, 2) > 1.2 * rough.seconds(HERE, 2)


def test_without_a_penalty_only_solvers_with_ranks_are_left() -> None:
    found = costs(TALL, l2=0.0)
    for name in ("sketched_cg", "mixed_cholesky", "dual_cholesky"):
        assert "positive penalty" in str(found[name])


def test_sparse_rows_are_refused_where_nothing_is_gained() -> None:
    sparse_rows = costs(replace(TALL, sparse=True))
    assert "dense" in str(sparse_rows["mixed_cholesky"])


def test_few_wide_rows_are_factored_themselves() -> None:
    assert chosen(replace(TALL, n=50, d=5000, nonzero=250_000), tol=1e-12) != "cholesky"


def test_what_does_not_fit_in_memory_is_rejected_with_the_reason() -> None:
    why = costs(TEXT)["cholesky"]
    assert isinstance(why, str)
    assert "GiB" in why


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_threads_without_a_block_take_no_memory(loss: str) -> None:
    """What fits on two threads fits on 64 where the rows are two blocks."""
    few = replace(TALL, n=1500, d=1100, nonzero=1_650_000, blocks=2)
    posed = Outline(loss, few, l2=1e-3, stop=RelativeGap(1e-6), free_intercept=True)
    for name, method in BY_NAME.items():
        if loss in method.losses:
            prices = [
                method.price(posed, Resources(threads=threads, memory=2**30))
                for threads in (2, 64)
            ]
            assert isinstance(prices[0], str) == isinstance(prices[1], str), name


def test_twice_the_rows_never_cost_less() -> None:
    for shape in (TALL, TEXT):
        twice = replace(
            shape, n=2 * shape.n, nonzero=2 * shape.nonzero, blocks=2 * shape.blocks
        )
        for name, cost in costs(shape).items():
            more = costs(twice)[name]
            if isinstance(cost, Cost) and isinstance(more, Cost):
                assert more.seconds(HERE, 2) >= cost.seconds(HERE, 2)


def test_a_solver_that_cannot_run_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"needs .* GiB"):
        choose("Ridge()", "cholesky", costs(TEXT), HERE)


def test_wide_blocks_have_rows_enough_for_their_gram_matrix() -> None:
    assert block_rows(np.empty((1000, 100))) is None
    assert block_rows(sparse.csr_array((1000, 1000))) is None
    assert block_rows(np.empty((20_000, 5000), np.float32)) == 2500


def test_sparse_columns_are_expected_to_converge_faster_the_more_rows_there_are() -> None:
    def steps(shape: Shape) -> float:
        return passes_to_expect("sparse_cg", problem(shape))

    text = [steps(replace(TEXT, n=n)) for n in (100_000, 1_000_000, 10_000_000)]
    assert text == sorted(text, reverse=True)
    assert text[-1] < text[0]
    assert steps(replace(TALL, n=10_000_000)) == steps(TALL)


def test_a_solver_that_is_left_out_is_taken_where_nothing_else_can_be_used() -> None:
    options: dict[str, Cost | str] = {"sparse_cg": Cost(fixed=1.0), "svd": Cost(fixed=2.0)}
    aside = left_out(sparse=False)
    choice = choose("Ridge()", "auto", options, HERE, left_out=aside)
    assert choice.chosen == "svd"
    assert [(a.name, a.seconds) for a in choice.rejected] == [("sparse_cg", None)]
    assert choose("Ridge()", "sparse_cg", options, HERE, left_out=aside).predicted == 1.0
    options["svd"] = "needs memory"
    assert choose("Ridge()", "auto", options, HERE, left_out=aside).chosen == "sparse_cg"


@pytest.mark.parametrize(("l2", "refused"), [(1e-7, True), (1e-5, False)])
def test_few_rows_that_a_tiny_penalty_holds_are_not_factored_in_single_precision(
    l2: float, refused: bool
) -> None:
    X = np.random.default_rng(0).normal(size=(60, 80)) / np.sqrt(80)  # rows of length 1
    found = plan(Task("squared", l2=l2), X, X[:, 0], tolerance=1e-2)
    names = {one.name for one in found.alternatives}
    assert ("mixed_cholesky" not in names) == refused
    assert found.run().converged


def test_steps_with_an_inverse_cost_what_float64_costs() -> None:
    def steps(shape: Shape) -> float:
        ten, none = (steps_cost(shape, HERE, count) for count in (10.0, 0.0))
        return ten.seconds(HERE, HERE.threads) - none.seconds(HERE, HERE.threads)

    assert steps(replace(TALL, itemsize=4)) == pytest.approx(steps(TALL))
