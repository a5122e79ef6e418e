"""Operators on batches of images, (n, height, width, channels)."""

from mlopt.pipeline.library.image.convolution import Convolver
from mlopt.pipeline.library.image.learned import LearnedConvolver
from mlopt.pipeline.library.image.patches import (
    CenterCornerPatcher,
    PatchExtractor,
    Windower,
    ZCAWhitener,
)
from mlopt.pipeline.library.image.pixels import (
    Cropper,
    Flipper,
    GrayScaler,
    ImageVectorizer,
    PixelScaler,
    Pooler,
    SymmetricRectifier,
    repeat_labels,
)

__all__ = [
    "CenterCornerPatcher",
    "Convolver",
    "Cropper",
    "Flipper",
    "GrayScaler",
    "ImageVectorizer",
    "LearnedConvolver",
    "PatchExtractor",
    "PixelScaler",
    "Pooler",
    "SymmetricRectifier",
    "Windower",
    "ZCAWhitener",
    "repeat_labels",
]
