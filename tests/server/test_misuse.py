"""What people give a job by mistake is refused in words, in every layout alike."""

from __future__ import annotations

import pickle
import threading
import warnings
from collections import deque
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from tests.server.test_jobs import ALL, KINDS

from mlopt.cluster.wire import LARGEST
from mlopt.errors import InputError, InputWarning, TaskError
from mlopt.server import Job, Policy

X = np.arange(12.0).reshape(6, 2)
ZEROS = np.zeros(2)


def one(block: Any, model: Any) -> Any:
    return np.ones_like(model)


def job(step: Any = one, model: Any = ZEROS, rows: Any = X, **given: Any) -> Job:
    return Job(step, model, rows, **{"members": 3, **given})


@pytest.mark.parametrize("layout", ALL)
@pytest.mark.parametrize(
    ("model", "said"),
    [
        ([0.0, 0.0], r"arrays by name.* got 0.0: of a list of numbers make an array"),
        ([ZEROS, ZEROS], "arrays by name"),
        ("abc", "must hold numbers"),
        (None, "must hold numbers"),
        (np.zeros(0), "must hold numbers, and some"),
        ({}, "must have an array"),
        ([], "must have a part"),
        ({"w": {"v": ZEROS}}, "`w` has .* type object"),
        ({1: ZEROS}, "names .* must be texts, got 1"),
        (np.ma.masked_greater([1.0, 2.0], 1.5), "must not be a masked array"),
        (sp.eye_array(2), "it is sparse. Give its `toarray`"),
        ({"w": sp.eye_array(2)}, "`w` is sparse. Give its `toarray`"),
    ],
)
def test_a_model_that_is_none_is_refused_at_once(
    layout: Any, model: Any, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        job(model=model, layout=layout)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"threshold": 1.0}, r"`threshold` must be in \[0, 1\), got 1.0"),
        ({"threshold": "5%"}, "`threshold` must be .* got '5%'"),
        ({"interval": -1}, "`interval` must be .* at least 0; got -1"),
        ({"interval": "10s"}, "`interval` must be .* got '10s'"),
        ({"settle": None}, "`settle` must be .* got None"),
        ({"least_servers": 0}, "`least_servers` must be .* at least 1, got 0"),
        ({"least_servers": 1.5}, "`least_servers` must be an integer .* got 1.5"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_at_once(given: Any, said: str) -> None:
    """In a job it would be an error at the first proposal, long after."""
    with pytest.raises(InputError, match=said):
        Policy(**given)


@pytest.mark.parametrize("layout", ALL)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"passes": -1}, "`passes` must be an integer of at least 0, got -1"),
        ({"passes": 2.5}, "`passes` must be .* got 2.5"),
        ({"passes": None}, "`passes` must be"),
        ({"staleness": -1, "mode": "bounded"}, "`staleness` must be .* at least 0, got -1"),
        ({"servers": 0}, "`servers` must be .* at least 1, got 0"),
        ({"members": 0}, "`members` must be .* at least 1, got 0"),
        ({"n_jobs": 0}, "`n_jobs` must not be 0"),
        ({"n_jobs": "a"}, "`n_jobs` must be a whole number or None, got 'a'"),
        ({"policy": "x"}, "`policy` must be a mlopt.server.Policy, got 'x'"),
        ({"observer": 3}, "`observer` must be callable, got 3"),
        ({"step": "descend"}, "`step` must be callable, got 'descend'"),
        ({"where": "tcp://127.0.0.1:1"}, "`where` must be a client, an executor or a mesh"),
        ({"rows": (x for x in X)}, "`rows` must be .* got generator"),
        ({"rows": None}, "`rows` must be .* got NoneType"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_at_once(
    layout: Any, given: Any, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        job(layout=layout, **given)


@pytest.mark.parametrize("layout", ALL)
@pytest.mark.parametrize(
    ("delta", "said"),
    [
        (None, "must return a delta .* it returned None"),
        (np.ma.masked_greater([1.0, 2.0], 1.5), "masked"),
        (sp.csr_array([[1.0, 2.0]]), "`toarray`"),
        (1.0, r"should have \(2,\), and has \(\)"),
    ],
)
def test_what_cannot_be_added_is_said(layout: Any, delta: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        job(lambda block, model: delta, layout=layout).run()


def spoils(block: Any, model: Any) -> Any:
    rows = block.X.data if sp.issparse(block.X) else block.X
    rows *= 2
    return np.ones_like(model)


def spoils_target(block: Any, model: Any) -> Any:
    block.extra["y"][:] = 7
    return np.ones_like(model)


@pytest.mark.parametrize(("layout", "mode"), KINDS)
@pytest.mark.parametrize("step", [spoils, spoils_target])
@pytest.mark.parametrize("make", [np.copy, sp.csr_array, pd.DataFrame])
def test_a_step_cannot_change_rows(layout: Any, mode: Any, step: Any, make: Any) -> None:
    rows, y = make(X), np.zeros(6)
    with pytest.raises(ValueError, match="read-only"):
        job(step, rows=rows, y=y, layout=layout, mode=mode, passes=2).run()
    np.testing.assert_array_equal(rows.toarray() if sp.issparse(rows) else rows, X)
    assert not y.any()


@pytest.mark.parametrize("layout", ALL)
def test_steps_share_rows_that_are_not_copied_for_them(layout: Any) -> None:
    seen = list[Any]()

    def step(block: Any, model: Any) -> Any:
        seen.append(block.X)
        return np.zeros(2)

    job(step, layout=layout).run()
    assert np.shares_memory(seen[0], X)


@pytest.mark.parametrize("layout", ALL)
@pytest.mark.parametrize(
    "block",
    [threading.Lock(), np.zeros(3, [("a", "i4")]), np.broadcast_to(0.0, LARGEST)],
    ids=["a lock", "records", "more than a message may have"],
)
def test_blocks_in_this_process_are_whatever_they_are(layout: Any, block: Any) -> None:
    done = job(rows=[(block,), (block,)], layout=layout, passes=2).run()
    np.testing.assert_array_equal(done.model, [4, 4])


@pytest.mark.parametrize("layout", ALL)
def test_a_model_that_is_spoilt_is_told(layout: Any) -> None:
    with pytest.warns(InputWarning, match="the model has NaN or infinity after 2 passes"):
        job(lambda block, model: model * np.nan, layout=layout, passes=2).run()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        job(model=np.array([np.inf, 0]), layout=layout).run()
        job(model={"n": np.array(3)}, step=lambda b, m: {"n": 1}, layout=layout).run()


@pytest.mark.parametrize("layout", ALL)
def test_a_job_is_pickled_as_far_as_it_is(layout: Any) -> None:
    begun = job(layout=layout, passes=5)
    begun.advance(2)
    copy = pickle.loads(pickle.dumps(begun))
    assert copy.passes == begun.passes == 2
    for whole in (copy, begun):
        np.testing.assert_array_equal(whole.run().model, [5, 5])


@pytest.mark.parametrize("state", [{}, {"passes": 1, "model": np.zeros(5)}, {"passes": 1}])
def test_a_state_of_another_job_is_refused(state: Any) -> None:
    with pytest.raises(InputError, match="`state` of a job like this one"):
        job().restore(state)


@pytest.mark.parametrize("rows", [range(4), deque([1, 2, 3, 4])])
def test_any_sequence_is_blocks(rows: Any) -> None:
    assert job(rows=rows, layout="threads").run().model.tolist() == [4, 4]


@pytest.mark.parametrize(("layout", "mode"), KINDS)
@pytest.mark.parametrize("kind", ["bool", "int8", "int64"])
def test_sums_of_whole_numbers_are_right_whatever_steps_return(
    layout: Any, mode: Any, kind: str
) -> None:
    def step(block: Any, w: np.ndarray) -> np.ndarray:
        return np.full(2, 1 if kind == "bool" else 100).astype(kind)

    made = Job(
        step, np.zeros(2, np.int32), range(4), layout=layout, mode=mode, passes=2, members=3
    )
    assert made.run().model.tolist() == [8 if kind == "bool" else 800] * 2


@pytest.mark.parametrize(("layout", "mode"), KINDS)
@pytest.mark.parametrize("kinds", ["?", "b", "e", "lddd", "?dbe"])
def test_steps_may_return_narrower_types_than_the_model(
    layout: Any, mode: Any, kinds: str
) -> None:
    def step(block: Any, w: np.ndarray) -> np.ndarray:
        kind = kinds[block % len(kinds)]
        return np.full(2, 1 if kind == "?" else 100).astype(kind)

    blocks = list(range(400))
    made = Job(step, np.zeros(2), blocks, layout=layout, mode=mode, passes=2, members=3)
    once = sum(1 if kinds[b % len(kinds)] == "?" else 100 for b in blocks)
    assert made.run().model.tolist() == [2 * once] * 2


@pytest.mark.parametrize(("layout", "mode"), KINDS)
@pytest.mark.parametrize(
    ("start", "delta", "said"),
    [
        (np.zeros(2, np.int8), np.full(2, 1000), "cannot be added to int8: it has 1000"),
        (np.zeros(2, np.int8), np.full(2, 100, np.int8), "beyond what int8 holds"),
        (np.zeros(2, np.uint8), np.full(2, 200, np.uint8), "beyond what uint8 holds"),
    ],
)
def test_whole_numbers_that_do_not_fit_are_refused(
    layout: Any, mode: Any, start: np.ndarray, delta: np.ndarray, said: str
) -> None:
    def step(block: Any, w: np.ndarray) -> np.ndarray:
        return delta

    made = Job(step, start, range(2), layout=layout, mode=mode, passes=3, members=3)
    with pytest.raises((InputError, TaskError), match=said):
        made.run()


@pytest.mark.parametrize(("layout", "mode"), KINDS)
def test_of_a_sum_that_does_not_fit_nothing_is_added(layout: Any, mode: Any) -> None:
    def step(block: Any, model: Any) -> Any:
        return {name: np.full_like(array, 100) for name, array in model.items()}

    model = {"wide": np.zeros(2, np.int64), "narrow": np.zeros(2, np.int8)}
    made = Job(step, model, [0], layout=layout, mode=mode, passes=3, members=2)
    with pytest.raises((InputError, TaskError), match="beyond what int8 holds"):
        made.run()
    assert made.passes == 1
    assert {name: list(array) for name, array in made.model.items()} == {
        "wide": [100, 100], "narrow": [100, 100]
    }  # fmt: skip


def test_masks_of_y_are_not_ignored() -> None:
    y = np.ma.array(np.arange(4.0), mask=[True, False, False, False])
    with pytest.raises(InputError, match="y must not be a masked array"):
        Job(lambda block, w: w, np.zeros(2), np.ones((4, 2)), y=y)


def test_a_job_that_went_beyond_its_passes_has_none_left() -> None:
    one = job(passes=3)
    one.run()
    one.advance(5)
    one.close()
    assert one.run().passes == 8
