"""Orders are permutations, each as likely as the others, and follow from their seeds."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare

from mlopt.kernels.permutation import permutation


@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000])
def test_every_number_is_there_once(n: int) -> None:
    order = permutation(n, 3)
    assert order.dtype == np.int64
    np.testing.assert_array_equal(np.sort(order), np.arange(n))


def test_all_orders_of_four_are_as_likely() -> None:
    drawn = [tuple(permutation(4, 17, seed).tolist()) for seed in range(24_000)]
    counts = [drawn.count(order) for order in permutations(range(4))]
    assert chisquare(counts).pvalue > 1e-4


def test_a_number_is_anywhere() -> None:
    drawn = [permutation(50, seed) for seed in range(5000)]
    places = np.array([np.flatnonzero(order == 9)[0] for order in drawn])
    assert chisquare(np.bincount(places, minlength=50)).pvalue > 1e-4


def test_neighbours_are_not_kept() -> None:
    order = permutation(100_000, 5)
    assert abs(np.corrcoef(order[1:], order[:-1])[0, 1]) < 0.02
    assert np.count_nonzero(np.diff(order) == 1) < 10


def test_every_part_of_the_seed_counts() -> None:
    seeds = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (2**40,), (0, 2**40)]
    orders = {tuple(permutation(100, *seed).tolist()) for seed in seeds}
    assert len(orders) == len(seeds)
    np.testing.assert_array_equal(permutation(100, 1, 2), permutation(100, 1, 2))
