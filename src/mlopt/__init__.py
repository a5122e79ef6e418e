"""A query optimizer for machine learning on Dask: it predicts, chooses, runs, and says why.

Public names are loaded on first use, so that ``import mlopt`` costs next to nothing and
imports none of Dask, Optuna, scikit-learn or Numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlopt import cluster, errors, events, gd, server
    from mlopt.detached.job import Job, jobs, submit
    from mlopt.factors.estimator import MatrixFactorization
    from mlopt.gd.elastic_net import ElasticNet, Lasso
    from mlopt.gd.least_squares import LinearRegression, Ridge
    from mlopt.gd.logistic import LogisticRegression
    from mlopt.gd.svm import LinearSVC
    from mlopt.pipeline.compose import gather, make_pipeline, optimize
    from mlopt.pipeline.estimator import Pipeline
    from mlopt.pipeline.fits.base import ManyPasses, OnePass, PartialFit
    from mlopt.pipeline.library.pca import PCA
    from mlopt.pipeline.library.random_features import RandomFeatures
    from mlopt.pipeline.steps.checking import check_operator
    from mlopt.pipeline.steps.declared import register
    from mlopt.plan import Plan
    from mlopt.predictive.answering import sql
    from mlopt.query.run import run
    from mlopt.resources import Resources
    from mlopt.scoring.predict import predict
    from mlopt.streaming.stream import Stream
    from mlopt.sweep.models import load
    from mlopt.sweep.table import best_model as sweep
    from mlopt.topics.estimator import LatentDirichletAllocation
    from mlopt.tuning.search import ModelSearchCV

    __version__: str

__all__ = [
    "PCA",
    "ElasticNet",
    "Job",
    "Lasso",
    "LatentDirichletAllocation",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "ManyPasses",
    "MatrixFactorization",
    "ModelSearchCV",
    "OnePass",
    "PartialFit",
    "Pipeline",
    "Plan",
    "RandomFeatures",
    "Resources",
    "Ridge",
    "Stream",
    "__version__",
    "check_operator",
    "cluster",
    "errors",
    "events",
    "gather",
    "gd",
    "jobs",
    "load",
    "make_pipeline",
    "optimize",
    "predict",
    "register",
    "run",
    "server",
    "sql",
    "submit",
    "sweep",
]

_HOMES = {
    "PCA": "mlopt.pipeline.library.pca",
    "ElasticNet": "mlopt.gd.elastic_net",
    "Job": "mlopt.detached.job",
    "Lasso": "mlopt.gd.elastic_net",
    "LinearRegression": "mlopt.gd.least_squares",
    "LinearSVC": "mlopt.gd.svm",
    "LogisticRegression": "mlopt.gd.logistic",
    "ManyPasses": "mlopt.pipeline.fits.base",
    "LatentDirichletAllocation": "mlopt.topics.estimator",
    "MatrixFactorization": "mlopt.factors.estimator",
    "ModelSearchCV": "mlopt.tuning.search",
    "OnePass": "mlopt.pipeline.fits.base",
    "PartialFit": "mlopt.pipeline.fits.base",
    "Pipeline": "mlopt.pipeline.estimator",
    "Plan": "mlopt.plan",
    "RandomFeatures": "mlopt.pipeline.library.random_features",
    "Resources": "mlopt.resources",
    "Ridge": "mlopt.gd.least_squares",
    "Stream": "mlopt.streaming.stream",
    "check_operator": "mlopt.pipeline.steps.checking",
    "gather": "mlopt.pipeline.compose",
    "jobs": "mlopt.detached.job",
    "load": "mlopt.sweep.models",
    "make_pipeline": "mlopt.pipeline.compose",
    "optimize": "mlopt.pipeline.compose",
    "predict": "mlopt.scoring.predict",
    "register": "mlopt.pipeline.steps.declared",
    "run": "mlopt.query.run",
    "sql": "mlopt.predictive.answering",
    "submit": "mlopt.detached.job",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("mlopt")
    elif name in ("cluster", "errors", "events", "gd", "server", "sweep"):
        value = import_module(f"mlopt.{name}")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module `mlopt` has no attribute `{name}`.")
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
