"""Spark MLlib as one of the peers of solvers.py, on two threads of this machine.

Needs Java 17 or newer on the path. Starting the session and bringing the rows to its memory
is not counted.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

MEMORY = "10g"
FRAMES = {}
"""By shape: one process sees one data set, and its first few rows."""


def session():
    """The one session of this process, on loopback."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", MEMORY)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


def frame(X, y):
    """Rows in Spark's memory, in two parts."""
    if X.shape not in FRAMES:
        FRAMES[X.shape] = (_sparse_frame if sparse.issparse(X) else _dense_frame)(X, y)
    return FRAMES[X.shape]


def _dense_frame(X, y):
    import pyarrow as pa
    from pyarrow import parquet
    from pyspark.ml.functions import array_to_vector

    rows = pa.FixedSizeListArray.from_arrays(np.ascontiguousarray(X).ravel(), X.shape[1])
    table = pa.table({"label": y.astype(float), "row": rows.cast(pa.list_(pa.float64()))})
    with tempfile.TemporaryDirectory() as folder:
        parquet.write_table(table, Path(folder) / "rows.parquet")
        read = session().read.parquet(folder).repartition(2)
        return _kept(read.select("label", array_to_vector("row").alias("features")))


def _sparse_frame(X, y):
    from pyspark.ml.linalg import Vectors

    X = X.sorted_indices()
    rows = [
        (float(label), Vectors.sparse(X.shape[1], X.indices[i:j], X.data[i:j]))
        for label, i, j in zip(y, X.indptr[:-1], X.indptr[1:], strict=True)
    ]
    return _kept(session().createDataFrame(rows, ["label", "features"]).repartition(2))


def _kept(data):
    data = data.cache()
    data.count()
    return data


def logistic(X, y, l2, tol):
    """LogisticRegression: L-BFGS on standardised columns, the penalty on those given."""
    from pyspark.ml.classification import LogisticRegression

    return _fitted(LogisticRegression, X, y, tol, regParam=l2, family="binomial")


def ridge(solver):
    """LinearRegression by normal equations (at most 4096 columns) or L-BFGS."""

    def fit(X, y, l2, tol):
        from pyspark.ml.regression import LinearRegression

        # It divides the targets by their deviation, but not the penalty.
        penalty = l2 * float(np.std(y, ddof=1))
        return _fitted(LinearRegression, X, y, tol, regParam=penalty, solver=solver)

    return fit


def _fitted(kind, X, y, tol, **settings):
    """Coefficients, intercept and seconds; only a session can make a model."""
    data = frame(X, y)
    model = kind(standardization=False, tol=tol, maxIter=5000, **settings)
    start = time.perf_counter()
    fitted = model.fit(data)
    seconds = time.perf_counter() - start
    return fitted.coefficients.toArray(), fitted.intercept, seconds
