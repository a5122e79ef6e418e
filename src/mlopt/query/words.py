"""The words of the language that have a meaning by themselves."""

from __future__ import annotations

from typing import Literal

Task = Literal["classification", "regression"]

RESERVED = ("RUN", "ON", "HAVING", "USING", "PERSIST", "PREDICT", "WITH")
HAVING = ("TIME", "EPSILON", "MAX_ITER")
USING = ("ALGORITHM", "CONVERGENCE", "STEP", "SAMPLER")

TASKS: dict[str, tuple[Task, str]] = {
    "classification": ("classification", "logistic"),
    "regression": ("regression", "squared"),
    "logistic": ("classification", "logistic"),
    "logistic_regression": ("classification", "logistic"),
    "svm": ("classification", "hinge"),
    "hinge": ("classification", "hinge"),
    "squared_hinge": ("classification", "squared_hinge"),
    "linear": ("regression", "squared"),
    "linear_regression": ("regression", "squared"),
    "squared": ("regression", "squared"),
}
"""Tasks and gradients by name: what is learnt, and with which loss (ML4all, Table 3)."""

ALGORITHMS = (
    "BGD",
    "MGD",
    "SGD",
    "SVRG",
    "lbfgs",
    "newton-cholesky",
    "dual-newton",
    "newton-cg",
    "dual-coordinate-descent",
    "dual-logistic",
    "primal-coordinate-descent",
    "cholesky",
    "svd",
    "sparse_cg",
)
"""ML4all's algorithms, then solvers by the names that the estimators have for them."""

SAMPLERS = ("bernoulli", "random_partition", "shuffled_partition")
PARSERS = ("csv", "libsvm", "parquet", "npz", "sklearn")

DEFAULT_EPSILON = 1e-3
"""ML4all, Appendix A."""
