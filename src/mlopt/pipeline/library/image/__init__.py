"""Operators on batches of images, (n, height, width, channels)."""

from mlopt.pipeline.library.image.augment import RandomImageTransformer, RandomPatcher
from mlopt.pipeline.library.image.convolution import Convolver
from mlopt.pipeline.library.image.daisy import Daisy
from mlopt.pipeline.library.image.hog import HOG
from mlopt.pipeline.library.image.lcs import LCS
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
from mlopt.pipeline.library.image.sift import SIFT

__all__ = [
    "HOG",
    "LCS",
    "SIFT",
    "CenterCornerPatcher",
    "Convolver",
    "Cropper",
    "Daisy",
    "Flipper",
    "GrayScaler",
    "ImageVectorizer",
    "LearnedConvolver",
    "PatchExtractor",
    "PixelScaler",
    "Pooler",
    "RandomImageTransformer",
    "RandomPatcher",
    "SymmetricRectifier",
    "Windower",
    "ZCAWhitener",
    "repeat_labels",
]
