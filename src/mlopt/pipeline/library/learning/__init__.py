"""Learning by blocks: least squares on generated features, and kernel machines."""

from mlopt.pipeline.library.learning.block_least_squares import (
    BlockLeastSquares,
    BlockLeastSquaresClassifier,
)
from mlopt.pipeline.library.learning.kernel_ridge import (
    KernelRidge,
    KernelRidgeClassifier,
)
from mlopt.pipeline.library.learning.per_class_weighted import (
    PerClassWeightedLeastSquares,
)

__all__ = [
    "BlockLeastSquares",
    "BlockLeastSquaresClassifier",
    "KernelRidge",
    "KernelRidgeClassifier",
    "PerClassWeightedLeastSquares",
]
