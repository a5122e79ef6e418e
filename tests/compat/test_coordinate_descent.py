"""scikit-learn's tests of coordinate descent, on `mlopt.Lasso` and `mlopt.ElasticNet`."""

from tests.compat.harness import borrowed

from mlopt import ElasticNet, Lasso

OURS = {"sklearn.linear_model": {"Lasso": Lasso, "ElasticNet": ElasticNet}}
_TESTS = "sklearn.linear_model.tests.test_coordinate_descent"
globals().update(borrowed(_TESTS, OURS))
