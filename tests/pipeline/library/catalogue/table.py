"""The table of operators: a new one is a line here and nothing else.

Times of operators in the interpreter and operations of the others were measured on one
thread of a server (45 Gflop/s in float64) and rounded.
"""

from __future__ import annotations

from tests.pipeline.library.catalogue import models
from tests.pipeline.library.catalogue.entry import Entry, per_byte, per_value, several

from mlopt.gd.elastic_net import ElasticNet, Lasso
from mlopt.gd.least_squares import LinearRegression, Ridge
from mlopt.gd.logistic import LogisticRegression
from mlopt.gd.svm import LinearSVC
from mlopt.pipeline.library import evaluators, image, learning, signal, text, util
from mlopt.pipeline.library.column_pca import ColumnPCA
from mlopt.pipeline.library.fisher import FisherVector
from mlopt.pipeline.library.mixture import GaussianMixture
from mlopt.pipeline.library.pca import PCA
from mlopt.pipeline.library.random_features import RandomFeatures

_PAPER = "KeystoneML, Table V"
_SOLVERS = "KeystoneML, Table I"
_UTILITIES = "KeystoneML, library"

TEXT = (
    per_byte(text.Trim, 0.2, _PAPER),
    per_byte(text.LowerCase, 1.3, _PAPER),
    per_byte(text.Tokenizer, 100.0, _PAPER),
    per_byte(text.NGrams, 180.0, _PAPER),
    per_byte(text.TermFrequency, 70.0, _PAPER),
    per_byte(text.HashingTF, 270.0, "feature hashing (Weinberger et al., 2009)"),
    per_byte(text.CommonSparseFeatures, 310.0, _PAPER),
    per_byte(text.AllSparseFeatures, 370.0, _PAPER),
    per_byte(text.WordFrequencyEncoder, 50.0, "KeystoneML, library"),
    per_byte(text.StupidBackoff, 490.0, "Brants et al., 2007"),
)

IMAGE = (
    per_value(image.PixelScaler, 0, _PAPER),
    per_value(image.GrayScaler, 60, _PAPER, written=1 / 3),
    per_value(image.Cropper, 0, _PAPER, written=0),
    per_value(image.SymmetricRectifier, 800, _PAPER, written=2),
    per_value(image.Pooler, 1000, _PAPER, written=1 / 16),
    per_value(image.ImageVectorizer, 0, _PAPER, written=0),
    per_value(image.Windower, 200, _PAPER, written=4),
    per_value(image.CenterCornerPatcher, 60, "KeystoneML, library"),
    per_value(image.PatchExtractor, 60, "KeystoneML, library", written=0.1),
    per_value(image.Flipper, 400, "KeystoneML, library", written=2),
    per_value(image.RandomImageTransformer, 1200, "KeystoneML, library"),
    per_value(image.RandomPatcher, 60, "KeystoneML, library", written=0.1),
    per_value(image.HOG, 3500, "Dalal, Triggs, 2005", written=0.3),
    per_value(image.Daisy, 60_000, "Tola et al., 2010", written=0.2),
    per_value(image.SIFT, 6400, "Lowe, 2004; KeystoneML, Table V", written=6),
    per_value(image.LCS, 3500, "KeystoneML, library", written=0.3),
    several(
        image.Convolver, models.convolution,
        {
            "separable": "4 n d b k m^2 on m^2 places of b filters, k x k",
            "matrix": "2 n d b k^2 m^2",
            "fft": "n (d + b) m^2 log m^2 + 4 n d b m^2",
        },
        "KeystoneML, III, Figure 7",
    ),
    several(
        image.LearnedConvolver, models.convolution,
        {
            "matrix": "2 n d b k^2 m^2",
            "fft": "n (d + b) m^2 log m^2 + 4 n d b m^2",
        },
        "Coates, Ng, 2012; KeystoneML, RandomPatchCifar",
    ),
    several(
        image.ZCAWhitener, models.whitening,
        {"covariance": "2 n d^2 + 9 d^3; 2 n d^2 to apply"},
        "Krizhevsky, 2009",
    ),
)  # fmt: skip

SIGNAL = (
    per_value(signal.PaddedFFT, 300, _PAPER, written=0.5),
    per_value(signal.RandomSign, 100, _PAPER),
    per_value(signal.LinearRectifier, 200, _PAPER),
    per_value(signal.NormalizeRows, 150, _PAPER),
    per_value(signal.SignedHellinger, 450, "KeystoneML, library"),
    per_value(signal.ColumnSampler, 40, "KeystoneML, library", written=0.5),
    several(
        RandomFeatures, models.random_features, {"rows": "2 n d k + 40 n k"},
        "Rahimi, Recht, 2007; KeystoneML, Table V",
    ),
)  # fmt: skip

DESCRIPTORS = (
    several(
        GaussianMixture, models.mixture, {"em": "i 32 n d k, i passes"},
        "Sanchez et al., 2013; KeystoneML, library",
    ),
    several(
        FisherVector, models.fisher_vectors,
        {
            "images": "32 n m d k on m descriptors an image, image by image",
            "batch": "32 n m d k, all images at once",
        },
        "Sanchez et al., 2013; KeystoneML, Table V",
    ),
    per_value(ColumnPCA, 64, "KeystoneML, library", written=0.5),
)  # fmt: skip

LEARNING = (
    several(
        Ridge, models.least_squares,
        {
            "cholesky": "n (d + k)^2 + 2/3 d^3",
            "svd": "8 n (d + k)^2 + 40 d^3",
            "sparse_cg": "i (4 s k + 2 s) on s stored values, i steps",
            "sketched_cg": "a sample of 16 d rows: 16 d^3; i (4 s k + 2 s)",
            "mixed_cholesky": "n d^2 + 2/3 d^3 in float32; 3 (4 n d k)",
            "dual_cholesky": "n^2 d + 2/3 n^3, fewer rows than columns",
        },
        f"{_SOLVERS}; sketched: Avron et al., 2010",
    ),
    several(
        LinearRegression, models.ordinary_least_squares,
        {
            "cholesky": "n (d + k)^2 + 7 d^3",
            "svd": "8 n (d + k)^2 + 40 d^3",
            "sparse_cg": "i (4 s k + 2 s) on s stored values, i steps",
        },
        _SOLVERS,
    ),
    *(
        several(
            one, models.elastic_net,
            {"working-set": "i n d k, i sweeps over the columns that matter"},
            "Massias et al., 2018",
        )
        for one in (Lasso, ElasticNet)
    ),
    *(
        several(
            one, models.block_least_squares,
            {
                "keep features and factors": "i n d (4 k); n d b + d b^2 / 3 once",
                "keep factors": "i n d (4 k + 2 f); n d b + d b^2 / 3 once",
                "keep features": "i (n d (b + 4 k) + d b^2 / 3)",
                "keep nothing": "i (n d (b + 4 k + 2 f) + d b^2 / 3), f a feature",
            },
            f"{_SOLVERS}, block solve",
        )
        for one in (learning.BlockLeastSquares, learning.BlockLeastSquaresClassifier)
    ),
    several(
        learning.PerClassWeightedLeastSquares, models.per_class_least_squares,
        {"keep nothing": "i k (n d (b + 4 + 2 f) + d b^2 / 3)"},
        "KeystoneML, library",
    ),
    *(
        several(
            one, models.kernel_ridge,
            {
                "keep the kernel": "n^2 (2 d + 300) + n b^2 + i n^2 12 k",
                "make columns anew": "i (n^2 (2 d + 300 + 12 k) + n b^2)",
            },
            "KeystoneML, library; Tu et al., 2016",
        )
        for one in (learning.KernelRidge, learning.KernelRidgeClassifier)
    ),
    several(
        LogisticRegression, models.logistic_regression,
        {
            "lbfgs": "i (4 n d k + 460 n k), i passes",
            "newton-cholesky": "i (4 n d k + r d^2 k^2) on r rows of Hessians",
            "dual-newton": "n^2 d + i n^3 / 3, of fewer rows than columns",
            "newton-cg": "i (4 n d + 660 n), two classes",
            "dual-logistic": "i (4 n d + 5700 n), i epochs, two classes",
        },
        "KeystoneML, Table I; ML4all, plans",
    ),
    several(
        LinearSVC, models.support_vectors,
        {
            "lbfgs": "i (4 n d k + 460 n k), i passes",
            "newton-cholesky": "i (4 n d + r d^2) on r rows of Hessians, two classes",
            "dual-newton": "n^2 d + i n^3 / 3, of fewer rows than columns",
            "newton-cg": "i (4 n d + 660 n), i passes of each plane",
            "dual-coordinate-descent": "20 i n d k, i epochs",
        },
        "Hsieh et al., 2008",
    ),
    several(
        PCA, models.components,
        {
            "full-svd": "n d^2, all rows in one place",
            "covariance-eigh": "n d^2 + 2 d^3",
            "tsqr": "8 n d^2 + 11 d^3",
            "randomized": "6 passes of 4 n d k",
            "arpack": "10 (2 k) passes of 4 n d",
        },
        "KeystoneML, Table II; Halko et al., 2011",
    ),
)  # fmt: skip

UTILITIES = (
    per_value(util.Identity, 0, _UTILITIES, written=0),
    per_value(util.Cacher, 0, _UTILITIES, written=0),
    per_value(util.Densify, 1, _UTILITIES),
    per_value(util.Sparsify, 1000, _UTILITIES),
    per_value(util.FloatToDouble, 20, _UTILITIES, written=2),
    per_value(util.MatrixVectorizer, 5, _UTILITIES, written=0),
    per_value(util.MaxClassifier, 65, _UTILITIES, written=0),
    per_value(util.TopK, 500, _UTILITIES, written=0.1),
    per_value(util.ClassLabelIndicators, 500, _UTILITIES, written=10),
)

EVALUATORS = (
    per_value(evaluators.BinaryMetrics, 160, "KeystoneML, evaluators", written=0),
    per_value(evaluators.MulticlassMetrics, 4500, "KeystoneML, evaluators", written=0),
    per_value(evaluators.RankingMetrics, 5800, "VOC 2007", written=0),
    per_value(evaluators.mean_average_precision, 5800, "VOC 2007", written=0),
    per_value(evaluators.vote, 700, "KeystoneML, evaluators", written=0.1),
)

ENTRIES: dict[str, tuple[Entry, ...]] = {
    "Text": TEXT,
    "Images": IMAGE,
    "Signals and features": SIGNAL,
    "Descriptors": DESCRIPTORS,
    "Learning": LEARNING,
    "Utilities": UTILITIES,
    "Evaluators": EVALUATORS,
}
"""By the domain, in the order of the page."""
