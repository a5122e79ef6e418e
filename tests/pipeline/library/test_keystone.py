"""KeystoneML's choices, with the costs that it shipped."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.pipeline.library import keystone
from tests.pipeline.library.keystone import LINEAR_SOLVERS, PCA, SHIPPED, Problem, choose

from mlopt.errors import InputError

# Memory of one r3.4xlarge.
MACHINE = 122 * 2**30


@pytest.mark.parametrize(
    ("n", "d", "k", "density", "chosen"),
    [
        (1_000_000, 1000, 1000, 1.0, "exact"),
        (1_000_000, 10_000, 1000, 1.0, "block"),
        (1_000_000, 10_000, 2, 0.01, "sparse L-BFGS"),
        (2_200_000, 1024, 138, 1.0, "exact"),
        (2_200_000, 4096, 138, 1.0, "block"),
        (2_200_000, 16_384, 138, 1.0, "block"),
        (65_000_000, 1024, 2, 0.005, "sparse L-BFGS"),
        (65_000_000, 16_384, 2, 0.005, "sparse L-BFGS"),
    ],
)
def test_golden_choices(n: int, d: int, k: int, density: float, chosen: str) -> None:
    assert choose(LINEAR_SOLVERS, Problem(n, d, k, density, 16)).chosen == chosen


def test_the_mistake_that_the_paper_admits_is_a_near_tie() -> None:
    choice = choose(LINEAR_SOLVERS, Problem(2_200_000, 4096, 138))
    exact = next(one for one in choice.rejected if one.name == "exact")
    assert exact.seconds is not None
    assert choice.predicted is not None
    assert 1.0 < exact.seconds / choice.predicted < 1.3


def test_shipped_costs_by_hand() -> None:
    cw, mw, nw = 3.8e-4, 2.9e-1, 1.32
    n, d, k, s, w, tree = 1e6, 5000, 10, 0.02, 8, 3
    problem = Problem(int(n), d, k, s, w)
    expected = {
        "exact": max(cw * n * d * (d + k) / w, mw * (n * d / w + d**2)) + nw * d * (d + k),
        "block": 3
        * (
            max(cw * n * d * (1000 + k) / w, mw * (n * d / w + d * k))
            + nw * 2 * d * (1000 + k) * tree
        ),
        "dense L-BFGS": 20
        * (max(cw * n * d * k / w, mw * n * d / w) + nw * 2 * d * k * tree),
        "sparse L-BFGS": 20
        * (8 * max(cw * n * s * d * k / w, mw * n * d * s / w) + nw * 2 * d * k * tree),
        "local": max(cw * n * d**2, mw * n * d) + nw * n * d,
        "distributed": max(cw * (n * d**2 / w + d**3 * tree), mw * n * d)
        + nw * d**2 * tree,
    }
    for name, method in {**LINEAR_SOLVERS, **PCA}.items():
        assert method.shipped(problem).seconds(SHIPPED) == pytest.approx(expected[name])


def test_exact_is_out_of_memory_where_it_crashed() -> None:
    amazon = {d: Problem(65_000_000, d, 2, 0.005, 16) for d in (2048, 8192)}
    assert 8 * keystone.distributed_qr(amazon[2048]).memory < MACHINE
    choice = choose(LINEAR_SOLVERS, amazon[8192], MACHINE)
    refused = {one.name: one.reason for one in choice.rejected if one.seconds is None}
    assert choice.chosen == "sparse L-BFGS"
    assert "GiB of 122 GiB a machine" in refused["exact"]


def test_memory_changes_the_choice() -> None:
    problem = Problem(1_000_000, 2000, 1000)
    room = 8 * keystone.distributed_qr(problem).memory
    assert choose(LINEAR_SOLVERS, problem, room).chosen == "exact"
    assert choose(LINEAR_SOLVERS, problem, room - 8).chosen != "exact"


def test_nothing_fits_says_how_many_bytes_are_missing() -> None:
    with pytest.raises(InputError, match=r"`local`: needs .* of 10 B a machine"):
        choose(PCA, Problem(1000, 10, 2), 10)


def test_local_qr_sends_rows_and_distributed_qr_their_squares() -> None:
    problem = Problem(1000, 10, 2)
    local, distributed = keystone.local_qr(problem), keystone.distributed_qr(problem)
    assert (local.compute, local.network, local.memory) == (120_000, 12_000, 10_020)
    assert (distributed.compute, distributed.network) == (7500, 120)
    assert distributed.memory == 10_000 / 16 + 100


def test_lbfgs_and_block_solve_by_hand() -> None:
    problem = Problem(1000, 10, 2, density=0.5)
    assert keystone.lbfgs(problem, 3) == keystone.Demand(1875, 60, 332.5)
    assert keystone.block_solve(problem, 2, 5) == keystone.Demand(8750, 140, 332.5)


@pytest.mark.parametrize("n", [10_000, 1_000_000])
@pytest.mark.parametrize(("d", "few"), [(256, 1), (256, 16), (4096, 16), (4096, 64)])
def test_truncated_svd_is_less_work_for_few_components(n: int, d: int, few: int) -> None:
    problem = Problem(n, d, few)
    assert keystone.truncated_svd(problem).compute < keystone.svd(problem).compute
    here = keystone.distributed_svd(problem)
    assert keystone.distributed_truncated_svd(problem).compute < here.compute
    assert keystone.truncated_svd(problem).memory < keystone.svd(problem).memory


def test_only_the_truncated_svd_sends_more_for_more_rows() -> None:
    few, many = Problem(10_000, 256, 16), Problem(1_000_000, 256, 16)
    assert keystone.distributed_svd(few).network == keystone.distributed_svd(many).network
    truncated = keystone.distributed_truncated_svd
    assert truncated(many).network > 90 * truncated(few).network


def test_exact_and_distributed_are_cheaper_for_many_rows_and_components() -> None:
    problem = Problem(1_000_000, 256, 256)
    assert keystone.svd(problem).compute < keystone.truncated_svd(problem).compute
    assert keystone.distributed_svd(problem).compute == keystone.svd(problem).compute / 16
    assert choose(PCA, Problem(1_000_000, 256, 16)).chosen == "distributed"
    # Table III: on one machine a million rows of 4096 do not fit.
    wide = Problem(1_000_000, 4096, 16)
    assert 8 * keystone.svd(wide).memory > 30 * 2**30
    assert choose(PCA, wide, 30 * 2**30).chosen == "distributed"


def test_on_one_machine_there_is_no_network_tree() -> None:
    alone = Problem(10_000, 256, 16, machines=1)
    assert PCA["distributed"].shipped(alone).network == 0.0


def test_weights_count_how_often_the_input_is_read() -> None:
    assert keystone.lbfgs_weight(20) == 21
    assert keystone.block_weight(3) == 10


@pytest.mark.parametrize("wrong", [{"n": 0}, {"density": 0.0}, {"density": math.nan}])
def test_a_problem_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be at least 1"):
        Problem(**{"n": 1, "d": 1, "k": 1, **wrong})
