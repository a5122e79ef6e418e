"""Learning by blocks: least squares on generated features, and kernel machines."""

from mlopt.pipeline.library.learning.block_least_squares import (
    BlockLeastSquares,
    BlockLeastSquaresClassifier,
)

__all__ = ["BlockLeastSquares", "BlockLeastSquaresClassifier"]
