"""Strata and parts: how rows and columns are cut at random, and who has which part when.

Source: Gemulla et al., "Large-scale matrix factorization with distributed stochastic
gradient descent", KDD 2011.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlopt.kernels.permutation import permutation
from mlopt.server.blocks import Array


@dataclass(frozen=True, eq=False)
class Cut:
    """One side in parts: where each number is placed, and where parts begin.

    Parameters
    ----------
    place : int64 (count,)
    edges : int64 (parts + 1,)
    """

    place: Array
    edges: Array

    @staticmethod
    def of(counts: Array, parts: int, *seed: int) -> Cut:
        """Parts of about equal sums of ``counts``, drawn at random, none of them empty."""
        n = len(counts)
        if parts == 1:
            return Cut(np.arange(n), np.array([0, n]))
        order, place = permutation(n, *seed), np.empty(n, np.int64)
        place[order] = np.arange(n)
        sums = np.cumsum(counts[order])
        inner = np.searchsorted(sums, sums[-1] * np.arange(1, parts) / parts) + 1
        # One may have more than its share: no part is empty for that.
        apart = np.arange(1, parts)
        inner = np.maximum.accumulate(np.maximum(inner - apart, 0)) + apart
        return Cut(place, np.concatenate(([0], np.minimum(inner, n - parts + apart), [n])))

    def arranged(self, A: Array) -> Array:
        """Rows of ``A``, each at its place."""
        out = np.empty_like(A)
        out[self.place] = A
        return out


@dataclass(frozen=True)
class Turns:
    """The rounds of a pass: in round ``t`` stratum ``a`` has block ``a + t``.

    They begin with one that is drawn for the pass; from one to the next each block goes to
    the neighbour of the stratum that has it, which mostly is at the same member.
    """

    seed: int

    def __call__(self, side: int, passes: int) -> list[int]:
        first = int(permutation(side, self.seed, 3, passes)[0])
        return [(first - turn) % side for turn in range(side)]
