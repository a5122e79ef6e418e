"""What is known better is chosen before a guess, and wide least squares stop in time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from mlopt.gd.plans import Task, plan
from mlopt.gd.plans.ranking import _careful
from mlopt.gd.plans.running import Alternative
from mlopt.gd.plans.speculation import Passes
from mlopt.gd.sample import WIDEST, draw
from mlopt.rows import Rows

Array = NDArray[Any]


def correlated(n: int, d: int) -> tuple[Array, Array]:
    """Columns that share a few factors: hard for any diagonal."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 3 * rng.normal(size=(n, 5)) @ rng.normal(size=(5, d))
    return X, X @ rng.normal(size=d) / np.sqrt(d) + rng.normal(size=n) + 2


def alternatives() -> tuple[Alternative, Alternative]:
    """Two ways of the same task, to be given other predictions."""
    X, y = correlated(200, 5)
    found = plan(Task("squared", l2=1e-3), X, y, methods=["qr", "lbfgs"]).alternatives
    return found[0], found[1]


def given(one: Alternative, name: str, source: str, seconds: float, most: float) -> Any:
    passes = Passes(10.0, 1.0, 100.0, source)
    return replace(
        one, name=name, passes=passes, predicted_seconds=seconds, interval=(0.1, most)
    )


@pytest.mark.parametrize(("source", "seconds", "most", "chosen"), [
    ("sampled", 1.4, 2.0, "other"),
    ("typical", 1.4, 2.0, "guess"),  # a guess too
    ("sampled", 1.4, 9.0, "guess"),  # may take longer
    ("sampled", 2.4, 3.0, "guess"),  # costs too much more
])  # fmt: skip
def test_a_guess_gives_way_to_what_is_known_better(
    source: str, seconds: float, most: float, chosen: str
) -> None:
    one, two = alternatives()
    guess = given(one, "guess", "typical", 1.0, 5.0)
    other = given(two, "other", source, seconds, most)
    names = [a.name for a in _careful((guess, other))]
    assert names[0] == chosen
    assert sorted(names) == ["guess", "other"]


def test_what_is_known_does_not_give_way() -> None:
    one, two = alternatives()
    known = given(one, "known", "foreseen", 1.0, 5.0)
    other = given(two, "other", "sampled", 1.1, 1.2)
    assert _careful((known, other)) == (known, other)


def test_wide_least_squares_are_left_to_conjugate_gradients() -> None:
    X, y = correlated(300, WIDEST)
    found = plan(Task("squared", l2=1e-2), X, y, speculation=False)
    assert "conjugate gradients" in found.refused["lbfgs"]
    narrow = plan(Task("squared", l2=1e-2), X[:, :50], y, speculation=False)
    assert "lbfgs" not in narrow.refused


@pytest.mark.parametrize("wanted", [1e-2, 1e-4, 1e-6])
def test_conjugate_gradients_stop_near_the_gap_that_was_asked_for(wanted: float) -> None:
    X, y = correlated(1500, 400)
    task = Task("squared", l2=1e-3)
    exact = plan(task, X, y, tolerance=1e-10, methods=["qr"]).run().objective
    one, further = (
        plan(task, X, y, tolerance=tol, methods=["conjugate-gradients"]).run()
        for tol in (wanted, wanted / 100)
    )
    assert one.converged
    assert one.objective <= exact * (1 + 2 * wanted)  # the gap is an estimate
    assert one.n_iter < further.n_iter


def test_a_sample_holds_the_same_rows_dense_and_sparse() -> None:
    X, y = correlated(1000, 7)
    beside = {"targets": y[:, None], "weights": np.arange(1000.0)[:, None]}
    samples = [
        draw(Rows.of(matrix, block_rows=130).attach(**beside), 300)
        for matrix in (X, sparse.csr_array(X))
    ]
    dense, csr = (sample.collect() for sample in samples)
    np.testing.assert_array_equal(dense, csr.toarray())
    weights = np.concatenate(samples[0].map(lambda block: block.extra["weights"]))
    targets = np.concatenate(samples[0].map(lambda block: block.extra["targets"]))
    # Weights count the rows: what lies beside a row came with it.
    np.testing.assert_array_equal(dense, X[weights[:, 0].astype(int)])
    np.testing.assert_array_equal(targets, y[weights[:, 0].astype(int)][:, None])
