"""When preconditioned and block solvers of least squares can be used, and what they cost.

Pure functions of shapes. Steps are those to the accuracy of a direct solution, not to a
relative gradient: the better the preconditioner, the less the difference.
"""

from __future__ import annotations

import math

from mlopt.costs import Cost
from mlopt.gd.least_squares_shape import Shape, fused_pass, gram, scan
from mlopt.gd.sample import WIDEST
from mlopt.resources import Resources

BLOCK_COLUMNS = 1024
"""Columns of a block: KeystoneML's 1000, as a power of two."""
LARGEST_RANK, _SHARE = 400, 12
"""Of a sketch: at most so many directions, and one for so many columns."""
_SAMPLES = (16, 32, 64, 128)
"""Rows of a sample for each feature; with fewer, each step gains too little."""
EXPLAINED, _TINY = 10.0, 1e-12
"""What a model may explain of the targets, in units of what it does not; no error."""
_PER_VALUE, _PER_PRODUCT = 8.0, 1 / 12
"""Preparing a value of the sample, and each product with it, in reads of a value."""
_SUMS, _DRAW = 25.0, 300.0
"""Operations in whose time a value goes into the sums of columns (0.55 ns), and is drawn
into the sample."""
_SKETCH_STEPS, _ROUNDED_STEPS = 60, 3
"""Steps to expect where they depend on the spectrum, which nobody has seen yet."""
_SKETCH_DIGIT, _SWEEP_DIGIT = 10.0, 60 / 7
"""Of these with a sketch, steps a decimal digit of the coefficients: 12,000 pictures of
mnist as 8192 random cosines took 79 to 1e-8 and 116 to 1e-12. Of blocks, sweeps a digit:
60 to 1e-7, where the default tolerance ends, as long as nobody has looked."""
_SPARSE_SKETCH = 150.0
"""How many times slower products of sparse rows are, operation for operation."""


def why_not(solver: str, shape: Shape) -> str | None:
    """Why a solver cannot take a problem, or None where it can."""
    if shape.ranked:
        return (
            "needs a positive penalty: without one it finds neither ranks nor least norms"
        )
    if solver == "dual_cholesky" and shape.n >= shape.d:
        return f"has more equations, {shape.n}, than there are columns, {shape.d}"
    if solver in ("mixed_cholesky", "block") and shape.sparse:
        return "needs dense rows: sparse ones stay sparse under `sparse_cg`"
    return None


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


def steps_to(n: int, d: int, gap: float) -> int:
    """Steps to a relative gap of the objective, with a sample or a sketch."""
    if not samples(n, d):
        return _SKETCH_STEPS
    return sample_steps(sample_rows(n, d, _TINY, gap), d, _TINY, gap)


def _sketch_steps(accuracy: float) -> int:
    """Steps with a sketch to a hundredth of ``accuracy``, where no spectrum was seen."""
    return math.ceil(_SKETCH_DIGIT * math.log10(100.0 / accuracy))


def _sweeps(accuracy: float) -> int:
    """Sweeps over several blocks to a tenth of ``accuracy``."""
    return math.ceil(_SWEEP_DIGIT * math.log10(10.0 / accuracy))


def sketch_rank(n: int, d: int) -> int:
    """Rank of the sketch: enough for the directions that stand out."""
    return max(1, min(LARGEST_RANK, d // _SHARE + 1, n))


def sketched_cost(shape: Shape, resources: Resources) -> Cost | str:
    """Conjugate gradients preconditioned by a sample of the rows, or by a sketch."""
    rows = _sample_cg if samples(shape.n, shape.d) else _sketch_cg
    return why_not("sketched_cg", shape) or rows(shape, resources)


def mixed_cost(shape: Shape, resources: Resources) -> Cost | str:
    """A Gram matrix in float32, refined in float64."""
    needed = 4.0 * shape.d**2 * (resources.threads + 3)
    why = why_not("mixed_cholesky", shape) or _room(needed, resources)
    return why or _mixed(shape, resources)


def block_cost(shape: Shape, resources: Resources) -> Cost | str:
    """Sweeps over blocks of columns."""
    needed = 8.0 * shape.d * min(shape.d, BLOCK_COLUMNS)
    return why_not("block", shape) or _room(needed, resources) or _block(shape, resources)


def _room(needed: float, resources: Resources) -> str | None:
    most = resources.memory / resources.workers / 2
    if needed <= most:
        return None
    return f"needs {needed / 2**30:.3g} of {most / 2**30:.3g} GiB for its factors"


def _steps(shape: Shape, resources: Resources, times: float) -> Cost:
    """Checking the rows, the sums of columns, and ``times`` fused passes."""
    reply, share = 8.0 * (shape.d + 1) * shape.outputs, 1.0 / resources.workers
    reading, values = scan(shape, resources, reply), share * shape.nonzero
    sums = reading | Cost(flops=_SUMS * values)
    return reading + sums + times * fused_pass(shape, resources)


def _sample_cg(shape: Shape, resources: Resources) -> Cost:
    d, size = shape.d, sample_rows(shape.n, shape.d, shape.accuracy, shape.gap)
    values = float(size * d)
    remote = resources.workers > 1
    draw = Cost(flops=_DRAW * values, network=values * shape.itemsize if remote else 0.0)
    factor = Cost(flops=values * d + 2.0 * d**3 / 3)
    steps = shape.known(sample_steps(size, d, shape.accuracy, shape.gap))
    solve = Cost(memory=8.0 * steps * d**2)
    return draw + factor + solve + _steps(shape, resources, steps)


def _sketch_cg(shape: Shape, resources: Resources) -> Cost:
    d, rank = shape.d, shape.rank or sketch_rank(shape.n, shape.d)
    share = 1.0 / resources.workers
    price = _SPARSE_SKETCH if shape.sparse else 1.0
    sketch = Cost(flops32=price * share * 4.0 * shape.nonzero * rank)
    reading = scan(shape, resources, 4.0 * d * rank, times=4)
    eigen = Cost(flops=6.0 * d * rank**2 + 20.0 * rank**3)
    expected = _SKETCH_STEPS if shape.gap else _sketch_steps(shape.accuracy)
    steps = shape.known(expected)
    solve = Cost(memory=16.0 * steps * d * rank)
    return (reading | sketch) + eigen + solve + _steps(shape, resources, steps)


def _mixed(shape: Shape, resources: Resources) -> Cost:
    d = shape.d
    factor = Cost(flops32=2.0 * d**3 / 3, memory=6 * 4.0 * d**2)
    product = gram(shape, resources, d, single=True)
    return product + factor + _steps(shape, resources, shape.known(_ROUNDED_STEPS))


def _block(shape: Shape, resources: Resources) -> Cost:
    b, share = min(shape.d, BLOCK_COLUMNS), 1.0 / resources.workers
    blocks = math.ceil(shape.d / b)
    reading = scan(shape, resources, 8.0 * shape.d * b, times=4)
    grams = reading + Cost(flops=share * shape.n * float(shape.d) * b)
    factors = Cost(flops=2.0 * shape.d * b**2 / 3)
    sweeps = shape.known(2 if blocks == 1 else _sweeps(shape.accuracy))
    # Rows are read for the gradient of a block, and again for what its change makes of it.
    sweep = scan(shape, resources, 0.0) + fused_pass(shape, resources)
    # Every block of columns asks the workers twice.
    ask = scan(shape, resources, 8.0 * b * shape.outputs)
    waits = Cost(
        tasks=ask.tasks, round_trips=ask.round_trips, python=ask.python, fixed=ask.fixed
    )
    return grams + factors + sweeps * (2 * blocks * waits + sweep)
