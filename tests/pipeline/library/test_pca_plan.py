"""The choice of a solver for PCA, on machines that need not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd import pricing
from mlopt.pipeline.library.pca_leading import leading_exact
from mlopt.pipeline.library.pca_plan import (
    Shape,
    choose_solver,
    memory_needed,
    passes_over_rows,
    solver_costs,
)
from mlopt.resources import Resources
from mlopt.rows import Rows

MACHINE = Resources(threads=4, memory=16 * 2**30)


def shape(n: int, d: int, k: int, *, nonzero: int = 0, **changed: Any) -> Shape:
    rows = pricing.Shape(
        n=n,
        d=d,
        columns=0,
        nonzero=nonzero or n * d,
        itemsize=8,
        sparse=bool(nonzero),
        blocks=16,
    )
    settings: dict[str, Any] = {"needs_all": False, "oversamples": 10, "iterations": 7}
    return Shape(rows, k, **{**settings, **changed})


def chosen(problem: Shape, resources: Resources = MACHINE, wanted: str = "auto") -> str:
    return choose_solver("PCA()", wanted, problem, resources).chosen


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (shape(500_000, 100, 50), "covariance-eigh"),
        (shape(20_000, 2000, 20), "randomized"),
        (shape(50_000, 20_000, 20, nonzero=1_000_000), "arpack"),
        (shape(300, 20_000, 300, needs_all=True), "full-svd"),
    ],
)
def test_the_cheapest_solver_is_chosen(problem: Shape, expected: str) -> None:
    assert chosen(problem) == expected


@pytest.mark.parametrize(
    ("n", "d", "k", "may"),
    [
        (400, 300, 10, False),  # small: the exact ones are instant
        (100_000, 500, 10, False),  # tall: a covariance matrix is as cheap
        (2000, 1500, 1300, False),  # nearly all components
        (2000, 1500, 100, True),
        (1000, 600, 50, True),
    ],
)
def test_auto_approximates_only_where_scikit_learn_does(
    n: int, d: int, k: int, may: bool
) -> None:
    problem = shape(n, d, k)
    assert problem.may_approximate == may
    choice = choose_solver("PCA()", "auto", problem, MACHINE)
    assert may or choice.chosen != "randomized"
    assert chosen(problem, wanted="randomized") == "randomized"


def test_a_solver_set_aside_is_shown_with_its_seconds() -> None:
    choice = choose_solver("PCA()", "auto", shape(100_000, 500, 10), MACHINE)
    aside = next(one for one in choice.rejected if one.name == "randomized")
    assert aside.seconds is not None
    assert 'ask for it with svd_solver="randomized"' in aside.reason


@pytest.mark.parametrize(
    "solver", ["full-svd", "covariance-eigh", "tsqr", "randomized", "arpack"]
)
def test_a_solver_without_memory_is_refused_with_bytes(solver: str) -> None:
    problem = shape(100_000, 3000, 50)
    needed = memory_needed(solver, problem, Resources())
    tight = Resources(memory=int(2 * needed) - 2)
    assert isinstance(solver_costs(problem, tight)[solver], str)
    with pytest.raises(InputError, match=rf"{needed:.0f} bytes\).*may be used"):
        choose_solver("PCA()", solver, problem, tight)
    roomy = Resources(memory=int(2 * needed) + 2)
    assert isinstance(solver_costs(problem, roomy)[solver], Cost)


def test_sparse_rows_are_not_approximated_as_scikit_learn_does_not() -> None:
    assert not shape(2000, 1500, 100, nonzero=10_000).may_approximate


def test_little_memory_leaves_solvers_that_read_more_often() -> None:
    problem = shape(1_000_000, 900, 20)
    assert chosen(problem) == "covariance-eigh"
    tight = Resources(memory=int(2 * memory_needed("arpack", problem, Resources())) + 2)
    assert chosen(problem, tight) == "arpack"


def test_nothing_fits_says_what_each_would_need() -> None:
    problem = shape(100_000, 50_000, 50_000, nonzero=1_000_000, needs_all=True)
    with pytest.raises(InputError, match=r"`tsqr`: it needs .* GiB.*must be an integer"):
        choose_solver("PCA()", "auto", problem, MACHINE)


def test_more_memory_never_makes_the_choice_slower() -> None:
    problem = shape(200_000, 3000, 40)
    seconds = [
        choose_solver("PCA()", "auto", problem, Resources(memory=size * 2**30)).predicted
        for size in (1, 4, 16, 64)
    ]
    assert seconds == sorted(seconds, key=lambda s: -(s or 0.0))


def test_workers_share_all_but_the_gathering_solver() -> None:
    problem = shape(2_000_000, 200, 10)
    alone, together = Resources(memory=2**36), Resources(workers=8, memory=2**39)
    for name, cost in solver_costs(problem, alone).items():
        shared = solver_costs(problem, together)[name]
        assert isinstance(cost, Cost)
        assert isinstance(shared, Cost)
        faster = shared.seconds(together) < cost.seconds(alone)
        assert faster == (name != "full-svd")


def test_lanczos_is_foreseen_to_read_as_often_as_it_does() -> None:
    """What makes its rows anew is priced by that: a tenth of it would flatter it."""
    X = np.random.default_rng(0).normal(size=(800, 60)) * np.arange(1.0, 61.0) ** -0.5
    *_, taken = leading_exact(Rows.of(X), X.mean(axis=0), 5, np.random.RandomState(0))
    foreseen = passes_over_rows("arpack", shape(800, 60, 5))
    assert foreseen / 2.5 < taken < foreseen * 2.5


def test_a_sketch_reads_once_for_each_iteration_and_three_times_more() -> None:
    assert passes_over_rows("randomized", shape(800, 60, 5, iterations=4)) == 7.0
    assert passes_over_rows("covariance-eigh", shape(800, 60, 5)) == 1.0
