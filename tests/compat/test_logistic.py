"""scikit-learn's tests of logistic regression, on `mlopt.LogisticRegression`."""

from tests.compat.harness import borrowed

from mlopt import LogisticRegression

OURS = {"sklearn.linear_model": {"LogisticRegression": LogisticRegression}}
globals().update(borrowed("sklearn.linear_model.tests.test_logistic", OURS))
