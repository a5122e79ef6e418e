"""Samples and sketches as preconditioners of least squares: sizes, and steps with them.

Pure functions of shapes. Steps are those to the accuracy of a direct solution, not to a
relative gradient: the better the preconditioner, the less the difference.
"""

from __future__ import annotations

import math

from mlopt.gd.sizes import WIDEST
from mlopt.prices import count, price

LARGEST_RANK, _SHARE = count("sketched_cg.rank"), count("sketched_cg.share")
_SAMPLES = tuple(count("sketched_cg.rows") << doubled for doubled in range(4))
EXPLAINED = price("sketched_cg.explained")
_PER_VALUE, _PER_PRODUCT = price("sketched_cg.value"), price("sketched_cg.product")


def samples(n: int, d: int) -> bool:
    """Whether a preconditioner is made of a sample's Gram matrix, not of a sketch."""
    return d <= WIDEST and _SAMPLES[0] * d <= n // 2


def sample_rows(n: int, d: int, accuracy: float, gap: float = 0.0) -> int:
    """Rows of the sample that leave the least work: its Gram matrix and the steps."""
    sizes = [times * d for times in _SAMPLES if times * d <= n // 2]

    def work(size: int) -> float:
        own = size * (_PER_VALUE + _PER_PRODUCT * d)
        return own + n * sample_steps(size, d, accuracy, gap)

    return min(sizes, key=work)


def sample_steps(size: int, d: int, accuracy: float, gap: float = 0.0) -> int:
    """Steps to a tenth of ``accuracy``, or to a relative ``gap`` of the objective.

    Each makes the error ``sqrt(size / d)`` times smaller, and the gap ``size / d`` times.
    """
    each = math.log(size / d)
    steps = 1 + math.ceil(2 * math.log(10.0 / accuracy) / each)
    if gap:
        steps = min(steps, max(1, math.ceil(math.log(EXPLAINED / gap) / each)))
    return steps


def sketch_rank(n: int, d: int) -> int:
    """Rank of the sketch: enough for the directions that stand out."""
    return max(1, min(LARGEST_RANK, d // _SHARE + 1, n))
