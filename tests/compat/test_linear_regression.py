"""scikit-learn's tests of ordinary least squares, on `mlopt.LinearRegression`."""

from tests.compat.harness import borrowed

from mlopt import LinearRegression

OURS = {"sklearn.linear_model": {"LinearRegression": LinearRegression}}
globals().update(borrowed("sklearn.linear_model.tests.test_base", OURS))
