"""Models in files: skops, which runs no code of the file, with a reviewed list of types.

A pickle executes what it loads. A ``.skops`` file names the types it wants to build; one
that is not on the list is refused. That is safer, not safe.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mlopt.errors import InputError

TRUSTED = frozenset(
    {
        # A partial only holds a function, which must itself be on this list.
        "functools.partial",
        "mlopt.gd.least_squares.LinearRegression",
        "mlopt.gd.least_squares.Ridge",
        "mlopt.gd.logistic.LogisticRegression",
        "mlopt.gd.svm.LinearSVC",
        "mlopt.pipeline.library.random_features.RandomFeatures",
        "mlopt.plan.tree.Alternative",
        "mlopt.plan.tree.Choice",
        "mlopt.plan.tree.Plan",
        "mlopt.sweep.tabular.ReadColumns",
        "mlopt.sweep.tabular.ToFloat32",
        "numpy.dtype",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        # Arrays of nodes: a forged one can crash the process, not run code.
        "sklearn.tree._tree.Tree",
        "sklearn.utils.validation.check_array",
    }
)
"""Types that models of sweeps consist of, beyond those that skops trusts by itself."""


def dump_model(model: Any) -> bytes:
    """A fitted model as the content of a ``.skops`` file.

    Raises
    ------
    InputError
        The model has a type that `load_model` would refuse.
    """
    import skops.io

    content: bytes = skops.io.dumps(model)
    _check(skops.io.get_untrusted_types(data=content), "The model")
    return content


def load_model(path: Path) -> Any:
    """A model from a ``.skops`` file that `dump_model` made.

    Raises
    ------
    InputError
        The file cannot be read, is no such file, or asks for a type that is not trusted.
    """
    import skops.io

    if path.suffix != ".skops":
        raise InputError(
            f"A model must be a .skops file, got {path.name!r}. Files of joblib or pickle "
            "can run any code when loaded: do that in Python, if you trust them."
        )
    try:
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


def _check(wanted: list[str], what: str) -> None:
    foreign = sorted(set(wanted) - TRUSTED)
    if foreign:
        raise InputError(
            f"{what} must consist of reviewed types only; it has {', '.join(foreign[:5])}."
        )
