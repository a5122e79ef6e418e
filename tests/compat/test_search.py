"""scikit-learn's tests of searches, on `mlopt.ModelSearchCV`."""

from tests.compat.harness import borrowed
from tests.compat.searches import GridSearchCV, RandomizedSearchCV

SEARCHES = {"GridSearchCV": GridSearchCV, "RandomizedSearchCV": RandomizedSearchCV}
OURS = {"sklearn.model_selection": SEARCHES}
globals().update(borrowed("sklearn.model_selection.tests.test_search", OURS))
