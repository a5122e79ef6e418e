"""scikit-learn's tests of principal components, on `mlopt.PCA`."""

from tests.compat.harness import borrowed

from mlopt import PCA

OURS = {"sklearn.decomposition": {"PCA": PCA}}
globals().update(borrowed("sklearn.decomposition.tests.test_pca", OURS))
