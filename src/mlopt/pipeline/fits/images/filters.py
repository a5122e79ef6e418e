"""Filters from patches, in one pass over the images."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from mlopt.pipeline.fits.base import OnePass
from mlopt.pipeline.library.image.drawn import Drawn
from mlopt.pipeline.library.image.learned import LearnedConvolver


class DrawPatches(OnePass):
    """`LearnedConvolver`: patches of each block, those of the smallest numbers kept."""

    name = "patches by block"
    kinds = (LearnedConvolver,)

    def part(self, estimator: Any, X: Any, y: Any, weight: Any) -> tuple[Drawn, int]:
        return estimator.draw(X), estimator.most_images

    def merge(self, left: tuple[Drawn, int], right: tuple[Drawn, int]) -> Any:
        drawn, most = left
        return drawn.merge(right[0], most), most

    def finish(self, estimator: Any, statistics: tuple[Drawn, int]) -> Any:
        return clone(estimator).finish(statistics[0])
