"""From the shape of data to the costs that operators choose by.

Where a cost needs more than data say, parameters are those of the operator's defaults; of
those without, ``outputs`` of the data are components, filters or features.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from mlopt.costs import Cost
from mlopt.gd import logistic, svm
from mlopt.gd.least_squares_fit import SOLVERS
from mlopt.gd.plans.fitting import prices
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import CoefficientError
from mlopt.gd.pricing import arithmetic, shape_of_stats
from mlopt.gd.working_set import WAY
from mlopt.pipeline.library import fisher, pca_plan
from mlopt.pipeline.library.image import convolution_plan
from mlopt.pipeline.library.learning import block_cost, feature_blocks
from mlopt.pipeline.library.learning.kernel_ridge import kernel_costs
from mlopt.resources import Resources
from mlopt.stats import Stats

Options = Mapping[str, Cost | str]

_SIDE, _CHANNELS = 5, 3
"""Of a filter, where only the images are known."""
_BLOCK = 2048
"""Columns of a block."""
_DESCRIBED = 32
"""Columns of a descriptor, where only the images are known."""
_SKINNY, _ITERATIONS = 4.0, 30
"""Products with few columns against large ones; passes of EM."""


_DEFAULT = CoefficientError(1e-6, 1e-4)
"""What `Ridge` asks for with its default tolerance."""


def least_squares(stats: Stats, resources: Resources) -> Options:
    """`Ridge`."""
    outline = Outline.of_stats("squared", stats)
    asked = replace(outline, l2=1.0 / stats.rows, stop=_DEFAULT)
    return prices(SOLVERS, asked, resources)


def ordinary_least_squares(stats: Stats, resources: Resources) -> Options:
    """`LinearRegression`, which finds ranks too."""
    outline = Outline.of_stats("squared", stats)
    return prices(SOLVERS, replace(outline, stop=_DEFAULT), resources)


def components(stats: Stats, resources: Resources) -> Options:
    """`PCA`, as many components as ``outputs``."""
    shape = pca_plan.Shape(
        rows=replace(shape_of_stats(stats), columns=0),
        components=min(stats.outputs, stats.rows, stats.columns),
        needs_all=False, oversamples=10, iterations=4,
    )  # fmt: skip
    return pca_plan.solver_costs(shape, resources)


def logistic_regression(stats: Stats, resources: Resources) -> Options:
    """`LogisticRegression`."""
    loss = "multinomial" if stats.outputs > 1 else "logistic"
    return prices(logistic.SOLVERS, Outline.of_stats(loss, stats), resources)


def elastic_net(stats: Stats, resources: Resources) -> Options:
    """`Lasso` and `ElasticNet`."""
    return prices([WAY], Outline.of_stats("squared", stats), resources)


def support_vectors(stats: Stats, resources: Resources) -> Options:
    """`LinearSVC`, whose intercept is penalised."""
    outline = Outline.of_stats("squared_hinge", stats)
    penalised = replace(outline, free_intercept=False, l2=1.0)
    return prices(svm.SOLVERS, penalised, resources)


def convolution(stats: Stats, resources: Resources) -> Options:
    """`Convolver`: square images of three channels, filters of 5 x 5 that are separable."""
    side = max(_SIDE, math.isqrt(stats.columns // _CHANNELS))
    sizes = convolution_plan.Sizes(
        stats.rows, side, side, _CHANNELS, stats.outputs, _SIDE, True, stats.itemsize
    )
    return convolution_plan.costs(sizes, resources)


def whitening(stats: Stats, resources: Resources) -> Options:
    """`ZCAWhitener`: a covariance, its eigenvectors, and a product to apply them."""
    n, d = stats.rows, stats.columns
    last = Cost(flops=pca_plan.eigenvector_flops(d, d))
    return {"covariance": Cost(flops=4.0 * n * d**2, memory=4.0 * stats.bytes) + last}


def random_features(stats: Stats, resources: Resources) -> Options:
    """`RandomFeatures`: a product with random weights, and a cosine of each result."""
    n, k = stats.rows, stats.outputs
    flops = 2.0 * n * stats.columns * k + 40.0 * n * k
    moved = stats.bytes + 2.0 * n * k * stats.itemsize
    return {"rows": arithmetic(stats, flops) | Cost(memory=moved)}


def mixture(stats: Stats, resources: Resources) -> Options:
    """`GaussianMixture`: densities, and sums of rows and of their squares, in each pass."""
    del resources
    each = _SKINNY * 8.0 * stats.rows * stats.columns * stats.outputs
    return {"em": _ITERATIONS * Cost(flops=each, memory=float(stats.bytes))}


def fisher_vectors(stats: Stats, resources: Resources) -> Options:
    """`FisherVector`: images of as many descriptors as there are columns for."""
    each = max(1, stats.columns // _DESCRIBED)
    sizes = fisher.Sizes(stats.rows, each, _DESCRIBED, stats.outputs, stats.itemsize)
    return fisher.costs(sizes, resources)


def block_least_squares(stats: Stats, resources: Resources) -> Options:
    """`BlockLeastSquares` on the columns of X, three sweeps."""
    work = block_cost.Work(
        shape_of_stats(stats), stats.columns, _BLOCK, feature_blocks.OWN_FLOPS, passes=3
    )
    return {
        name: block_cost.cost(work, keeping, resources)
        for name, keeping in block_cost.WAYS.items()
    }


def per_class_least_squares(stats: Stats, resources: Resources) -> Options:
    """`PerClassWeightedLeastSquares`, which keeps nothing."""
    name = "keep nothing"
    return {name: block_least_squares(stats, resources)[name]}


def kernel_ridge(stats: Stats, resources: Resources) -> Options:
    """`KernelRidge`, ten sweeps."""
    return kernel_costs(shape_of_stats(stats), _BLOCK, 10, resources)
