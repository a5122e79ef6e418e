"""What values take in memory: judged by their parts, and the generators left alone."""

from __future__ import annotations

import random
from sys import getsizeof
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask.sizeof import sizeof

from mlopt.resources.sizes import memory_of

TEXTS = [chr(97 + i % 26) * (i % 47) for i in range(5000)]
WORDS = sum(map(getsizeof, TEXTS))
ARRAY = np.array(TEXTS, dtype=object)
CSR = sp.random_array((300, 200), density=0.2, format="csr", rng=0)
ENTRIES = CSR.data.nbytes + CSR.indices.nbytes + CSR.indptr.nbytes


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (TEXTS, getsizeof(TEXTS) + WORDS), ((*TEXTS,), getsizeof((*TEXTS,)) + WORDS),
        ([TEXTS] * 9, 9 * (getsizeof(TEXTS) + WORDS)), (ARRAY, ARRAY.nbytes + WORDS),
        (ARRAY.reshape(100, 50), ARRAY.nbytes + WORDS), (np.array("text", object), 61),
        (dict(enumerate(TEXTS)), getsizeof(dict(enumerate(TEXTS))) + 28 * 5000 + WORDS),
        ({*range(5000)}, getsizeof({*range(5000)}) + 28 * 5000), ([], getsizeof([])),
        (pd.Series(ARRAY, dtype=object).to_frame(), ARRAY.nbytes + WORDS),
        (pd.Index(ARRAY, dtype=object), ARRAY.nbytes + WORDS),
        (np.zeros((50, 4)), 1600), (CSR, ENTRIES), (CSR.tocoo(), 2 * CSR.data.nbytes),
    ],
)  # fmt: skip
def test_all_items_count_and_nobody_draws(value: Any, wanted: int) -> None:
    before, plain = np.random.get_state(), random.getstate()  # noqa: NPY002
    assert memory_of(value) == pytest.approx(wanted, rel=0.2, abs=900)
    assert random.getstate() == plain
    assert str(np.random.get_state()) == str(before)  # noqa: NPY002


def test_classes_are_as_large_as_they_are_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Own:
        pass

    monkeypatch.setitem(sizeof._lookup, Own, lambda _: 10**6)
    assert memory_of(Own()) == 10**6
    assert memory_of([Own()] * 9) == pytest.approx(9 * 10**6, rel=1e-3)
