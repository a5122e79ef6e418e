"""scikit-learn's tests of linear support vector machines, on `mlopt.LinearSVC`."""

from tests.compat.harness import borrowed

from mlopt import LinearSVC

OURS = {"sklearn.svm": {"LinearSVC": LinearSVC}}
globals().update(borrowed("sklearn.svm.tests.test_svm", OURS))
