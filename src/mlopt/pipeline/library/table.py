"""The library's transformers that treat each row, document or image by itself."""

from __future__ import annotations

from mlopt.pipeline.library import image, signal, text, util
from mlopt.pipeline.library.column_pca import ColumnPCA
from mlopt.pipeline.library.fisher import FisherVector
from mlopt.pipeline.library.mixture import GaussianMixture
from mlopt.pipeline.library.pca import PCA
from mlopt.pipeline.library.random_features import RandomFeatures

ROW_WISE: frozenset[type] = frozenset({
    PCA, RandomFeatures,
    text.Trim, text.LowerCase, text.Tokenizer, text.NGrams, text.TermFrequency,
    text.HashingTF, text.CommonSparseFeatures, text.AllSparseFeatures,
    text.WordFrequencyEncoder,
    image.PixelScaler, image.GrayScaler, image.Cropper, image.SymmetricRectifier,
    image.Pooler, image.ImageVectorizer, image.Windower, image.CenterCornerPatcher,
    image.HOG, image.Daisy, image.SIFT, image.LCS,
    image.RandomImageTransformer, image.RandomPatcher,
    ColumnPCA, FisherVector, GaussianMixture,
    image.Convolver, image.ZCAWhitener, image.LearnedConvolver,
    signal.PaddedFFT, signal.RandomSign, signal.LinearRectifier, signal.NormalizeRows,
    signal.SignedHellinger,
    util.Cacher, util.Densify, util.FloatToDouble, util.Identity, util.MatrixVectorizer,
    util.MaxClassifier, util.Sparsify, util.TopK,
})  # fmt: skip
"""`image.Flipper` is not among them: it makes two rows of one."""
