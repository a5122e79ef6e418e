"""Models in files: skops, which runs no code of the file, with a reviewed list of types.

A pickle executes what it loads. A ``.skops`` file names the types it wants to build; one
that is not on the list is refused. That is safer, not safe.
"""

from __future__ import annotations

import copy
import re
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from mlopt.errors import InputError
from mlopt.resources.probe import memory_limit
from mlopt.writing import finish_files

MODEL = "model.skops"
"""What the model of a sweep is called in its output folder."""

SCHEMA_BYTES = 128 << 20
"""Bytes of the description in a ``.skops`` file: 2.6 kB a tree, and the largest of a
sweep has 30 rounds of boosting for each of 1000 classes. It parses at 3 MB a second."""
PARSED = 15
"""Bytes in memory for a byte of it."""

KERNELS = (
    "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern", "Product",
    "RBF", "RationalQuadratic", "Sum", "WhiteKernel",
)  # fmt: skip
"""Of Gaussian processes: formulas with numbers."""

DISTANCES = (
    "BrayCurtis", "Canberra", "Chebyshev", "Dice", "Euclidean", "Hamming", "Haversine",
    "Jaccard", "Mahalanobis", "Manhattan", "Minkowski", "RogersTanimoto", "RussellRao",
    "SEuclidean", "SokalMichener", "SokalSneath",
)  # fmt: skip
"""Of neighbours: formulas, some with numbers; none is of a function of a user's own."""

TRUSTED = frozenset(
    {
        # A partial only holds a function, which must itself be on this list.
        "functools.partial",
        "mlopt.factors.estimator.MatrixFactorization",
        "mlopt.factors.sgd.Rule",
        "mlopt.gd.least_squares.LinearRegression",
        "mlopt.pipeline.estimator.Pipeline",
        "mlopt.pipeline.library.learning.feature_blocks.OwnColumns",
        "mlopt.plan.tree.Alternative",
        "mlopt.plan.tree.Choice",
        "mlopt.plan.tree.Plan",
        "mlopt.sweep.tabular.ReadColumns",
        "mlopt.sweep.tabular.ToFloat32",
        "mlopt.topics.documents.Documents",
        "numpy.dtype",
        # Splines, as arrays of a tree: a forged one can crash the process, not run code.
        "scipy._lib.array_api_compat.numpy._aliases.asarray",
        "scipy.interpolate._bsplines.BSpline",
        "sklearn._loss.loss.HalfTweedieLossIdentity",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        # A pattern and types to choose columns by; they are chosen in a fit alone.
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        # Scores of columns, which a fit alone computes.
        "sklearn.feature_selection._mutual_info.mutual_info_classif",
        "sklearn.feature_selection._mutual_info.mutual_info_regression",
        "sklearn.feature_selection._univariate_selection.chi2",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.feature_selection._univariate_selection.f_regression",
        "sklearn.feature_selection._univariate_selection.r_regression",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        *(f"sklearn.gaussian_process.kernels.{name}" for name in KERNELS),
        *(f"sklearn.metrics._dist_metrics.{name}Distance64" for name in DISTANCES),
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        # Arrays of nodes: a forged one can crash the process, not run code.
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        "sklearn.utils.validation.check_array",
    }
)
"""Types that models of sweeps, and other estimators of ours, consist of, beyond those that
skops trusts by itself, and beyond the operators of ours on the table."""


SAID = ("leaderboard_", "report_", "plan_", "test_scores_")
"""What the model of `mlopt.sweep` says of itself."""


def dump_model(model: Any) -> bytes:
    """A fitted model as the content of a ``.skops`` file, without how it was found.

    Raises
    ------
    InputError
        The model has a type that `load` would refuse.
    """
    import skops.io

    model = copy.copy(model)
    for name in SAID:
        vars(model).pop(name, None)
    content: bytes = skops.io.dumps(model)
    _check(skops.io.get_untrusted_types(data=content), "The model")
    return content


def load(path: Path | str) -> Any:
    """A fitted model that `mlopt sweep` or `mlopt fit` wrote; runs no code of the file.

    Public as `mlopt.load`.

    Parameters
    ----------
    path : path
        A ``.skops`` file, whatever it is called, or the output folder of a sweep.

    Returns
    -------
    estimator
        As scikit-learn's: ``predict`` takes a data frame with the columns of the training
        data, or a sparse matrix where it was one.

    Raises
    ------
    InputError
        The file cannot be read, is no such file, or asks for a type that is not trusted.
    """
    import skops.io

    path = model_file(Path(path).expanduser())
    other = path.exists() and not zipfile.is_zipfile(path)
    if path.suffix != ".skops" and other:  # whatever it is called
        raise InputError(
            f"A model must be a .skops file, got {path.name!r}. Files of joblib or pickle "
            "can run any code when loaded: do that in Python, if you trust them."
        )
    try:
        _check_size(path)
        content = path.read_bytes()
        wanted = skops.io.get_untrusted_types(data=content)
        _check(wanted, path.name)
        return skops.io.loads(content, trusted=list(wanted))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except InputError:
        raise
    except Exception as error:  # whatever a broken archive makes zipfile, json or skops say
        reason = re.sub(r"\s+", " ", str(error))[:200]
        raise InputError(f"{path} is not a model that can be loaded: {reason}") from error


def _check_size(path: Path) -> None:
    """Refuse what a small archive would unpack to, before any of it is parsed."""
    with zipfile.ZipFile(path) as archive:
        sizes = {member.filename: 0 for member in archive.infolist()}
        for member in archive.infolist():
            sizes[member.filename] += member.file_size
    schema, whole = sizes.get("schema.json", 0), sum(sizes.values())
    if schema > SCHEMA_BYTES:
        raise InputError(
            f"{path} describes itself in more than {SCHEMA_BYTES >> 20} MB, which no model "
            f"of mlopt does: it has {schema >> 20} MB. It may be made to fill the memory."
        )
    needed = whole + PARSED * schema
    if needed > memory_limit():
        raise InputError(
            f"{path} must fit into the {memory_limit() / 2**30:.1f} GB of memory here, but "
            f"unpacks to {whole / 2**30:.1f} GB and takes {needed / 2**30:.1f}."
        )


def model_file(path: Path) -> Path:
    """The model that ``path`` means: that of a sweep where it is its output folder.

    Raises
    ------
    InputError
        A folder without a model.
    """
    if not path.is_dir():
        return path
    with suppress(OSError):  # a folder that may only be read
        finish_files(path)
    if not (path / MODEL).is_file():
        raise InputError(
            f"`{path}` must hold a {MODEL}, as the output folder of a sweep does that came "
            "to its final fit: name the file of a model, or run the sweep again."
        )
    return path / MODEL


def _check(wanted: list[str], what: str) -> None:
    foreign = sorted(set(wanted) - TRUSTED)
    if foreign:  # the table takes a while to import
        foreign = sorted({*foreign} - _operators())
    if foreign:
        raise InputError(
            f"{what} must consist of reviewed types only; it has {', '.join(foreign[:5])}."
        )


def _operators() -> set[str]:
    """Names of all classes of ours that are on the one table of operators."""
    from mlopt.pipeline.fits.registry import RECORDS

    classes = [one for one in RECORDS if isinstance(one, type)]
    ours = [one for one in classes if one.__module__.startswith("mlopt.")]
    return {f"{one.__module__}.{one.__qualname__}" for one in ours}
