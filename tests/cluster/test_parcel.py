"""Values on their way to workers are what they were."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlopt.cluster.parcel import pack, unpack

RNG = np.random.default_rng(0)
FOLDS, LABELS = RNG.integers(0, 2, 50_000).astype(np.uint8), RNG.integers(0, 3, 9_000)
NUMBERS = RNG.normal(size=(2_000, 4))


def test_folds_and_labels_take_a_quarter_and_numbers_what_they_take() -> None:
    assert 4 * pack(FOLDS).nbytes < FOLDS.nbytes
    assert 4 * pack(LABELS).nbytes < LABELS.nbytes
    assert np.shares_memory(pack(NUMBERS).arrays[0], NUMBERS)
    assert pack(FOLDS[:1000]).arrays[0].nbytes == 1000  # nothing to be saved


def test_what_was_compressed_is_the_same_and_can_be_written_to() -> None:
    given: dict[str, Any] = {"folds": FOLDS, "labels": LABELS, "X": NUMBERS, "few": b"1"}
    parcel = pack(given)
    assert len(parcel.compressed) == 2
    found = unpack(parcel)
    assert list(found) == list(given)
    for name in ("folds", "labels", "X"):
        np.testing.assert_array_equal(found[name], given[name])
        assert found[name].dtype == given[name].dtype
        assert found[name].flags.writeable
        assert found[name].flags.aligned
        assert not np.shares_memory(found[name], given[name])
