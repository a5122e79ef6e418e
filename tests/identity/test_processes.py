"""A token is the same in every process, whatever the order of its sets."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = '''
import numpy as np, pandas as pd, dask.array as da
from sklearn.base import BaseEstimator, TransformerMixin
from mlopt.identity import identified

WORDS = {"the", "a", "an", "of", "in"}

def clean(text):
    return [w for w in text.split() if w not in WORDS and w not in {"to", "by", "from"}]

class Clean(TransformerMixin, BaseEstimator):
    """Keeps words."""
    kinds = frozenset({"text", "word", "letter"})

    def __init__(self, stop=frozenset({"x", "y", "z"})):
        self.stop = stop

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return [super(Clean, self).__repr__() or clean(x) for x in X]

values = [
    WORDS, clean, Clean, Clean(), lambda X: np.log(X) + len(WORDS),
    np.random.default_rng(0), pd.DataFrame({"a": ["x", None], "b": [1, 2]}),
    da.arange(10, chunks=5) + 1,
]
for value in values:
    print(identified(value))
'''


def _tokens(seed: str) -> list[str]:
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return found.stdout.split()


@pytest.mark.slow
def test_tokens_are_the_same_in_another_process() -> None:
    first = _tokens("1")
    assert len(set(first)) == 8
    assert "None" not in first
    assert _tokens("2") == first
