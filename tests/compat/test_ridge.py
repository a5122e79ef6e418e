"""scikit-learn's tests of ridge regression, on `mlopt.Ridge`."""

from tests.compat.harness import borrowed

from mlopt import LinearRegression, Ridge

OURS = {"sklearn.linear_model": {"Ridge": Ridge, "LinearRegression": LinearRegression}}
globals().update(borrowed("sklearn.linear_model.tests.test_ridge", OURS))
