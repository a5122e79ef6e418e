"""scikit-learn's tests of pipelines, on `mlopt.Pipeline`."""

from tests.compat.harness import borrowed

from mlopt import Pipeline, make_pipeline

OURS = {"sklearn.pipeline": {"Pipeline": Pipeline, "make_pipeline": make_pipeline}}
globals().update(borrowed("sklearn.tests.test_pipeline", OURS))
