"""Where scikit-learn's own tests fail with our classes, and why: the one table of it.

A test that the table names must fail, and every other must pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import translate
from re import fullmatch


@dataclass(frozen=True)
class Difference:
    """One test of scikit-learn that fails here.

    Parameters
    ----------
    test : str
        Name of a test function: all of its cases; or of one case, in brackets. ``*``
        stands for anything. Every test that is named must fail.
    reason : str
        What differs, for the documentation.
    by_rounding : bool, default=False
        Whether rounding, or a choice by price, decides, so that it may pass as well.
    """

    test: str
    reason: str
    by_rounding: bool = False

    def names(self, test: str) -> bool:
        """Whether it is about ``test``, such as "test_ridge[svd]"."""
        pattern = translate(self.test.replace("[", "[[]"))
        name = test if "[" in self.test else test.partition("[")[0]
        return fullmatch(pattern, name) is not None


_MESSAGE = "refused as there, in other words"
_PARAMETERS = "`Pipeline` has two parameters more: `memory_budget` and `optimize`"
_OWN_WAY = "mlopt's solver comes to the solution by other steps"
_COUNTED = "`n_iter_` counts steps where scikit-learn has None"
_FITS_MORE = "fitted where scikit-learn refuses"

_NO_TWINS = "a configuration is tried once, however often a grid names it"
_CALLBACKS = (
    "a search takes `observer`, not the callbacks that scikit-learn 1.9 tries out; those "
    "of its estimators are not called"
)

EXPECTED: dict[str, tuple[Difference, ...]] = {
    "test_search": (
        Difference("test_grid_search_bad_param_grid", "bad spaces have other words"),
        Difference("test_grid_search_classifier_all_fits_fail", _NO_TWINS),
        Difference("test_callable_multimetric_clf_all_fits_fail", _NO_TWINS),
        Difference("test_grid_search_cv_splits_consistency", _NO_TWINS),
        Difference(
            "test_custom_run_search",
            "a search has attributes besides scikit-learn's, such as `events_`",
        ),
        Difference("test_search_cv_verbose_3", "`verbose` says other lines, on stderr"),
        Difference(
            "test_multi_metric_search_forwards_metadata",
            "scorers run on threads of their own: the test looks for `fit` on their stack",
        ),
        Difference("test_search_callbacks_no_propagation[search0-*", _CALLBACKS),
        Difference("test_search_callbacks_no_propagation[search1-*", _CALLBACKS),
        Difference("test_search_callbacks_propagation[search0-*", _CALLBACKS),
        Difference("test_search_callbacks_propagation[search1-*", _CALLBACKS),
        Difference("test_search_callbacks_receive_sample_weight", _CALLBACKS),
        Difference("test_search_callbacks_with_partial_fit_failures", _CALLBACKS),
        Difference(
            "test_search_cv_sample_weight_equivalence[estimator0]",
            f"{_OWN_WAY}, and by others for 253 rows than for 120 with weights: at the "
            "default `tol` probabilities agree to one digit",
            by_rounding=True,
        ),
    ),
    "test_pipeline": (
        Difference("test_pipeline_raise_set_params_error", _PARAMETERS),
        Difference("test_set_pipeline_step_passthrough", _PARAMETERS),
    ),
    "test_logistic": (
        Difference(
            "test_logistic_cv_multinomial_score[neg_log_loss-multiclass_agg_list3]",
            f"{_OWN_WAY}: at the default `tol` probabilities agree to three digits",
        ),
        Difference(
            "test_max_iter[42-newton-cholesky-*-max_iter0]",
            "the warning of no convergence has other words",
        ),
        Difference(
            "test_newton_cholesky_fallback_to_lbfgs",
            '"newton-cholesky" takes singular Hessians: it never gives way to "lbfgs"',
        ),
        Difference(
            "test_logisticregression_warns_with_n_jobs",
            "`n_jobs` has an effect: the threads of a fit",
        ),
        Difference(
            "test_logistic_regression_callback_fitted_estimator",
            "fits with callbacks are scikit-learn's, those without are not: "
            "after as many steps they are not equal",
        ),
    ),
    "test_ridge": (
        Difference("test_n_iter", _COUNTED),
        Difference(
            "test_ridge_fit_intercept_sparse_error[csr_*-svd]",
            f"an intercept with sparse rows is {_FITS_MORE}",
        ),
        Difference(
            "test_ridge_fit_intercept_sparse_error[csr_*-cholesky]",
            f"an intercept with sparse rows is {_FITS_MORE}",
        ),
    ),
    "test_linear_regression": (
        Difference(
            "test_inplace_data_preprocessing[*-None]",
            "`copy_X=False` has no effect: X is never written to",
        ),
    ),
    "test_coordinate_descent": (
        Difference(
            "test_elasticnet_precompute_gram_weighted_samples",
            f"with a matrix scikit-learn fits: at the same `tol` {_OWN_WAY}",
        ),
        Difference(
            "test_enet_float_precision",
            f"with a matrix scikit-learn fits: at the same `tol` {_OWN_WAY}",
        ),
        Difference(
            "test_lasso_dual_gap",
            "seven digits of a gap of 8e-13: the rounding of the objective is 8e-16",
            by_rounding=True,
        ),
        Difference("test_check_input_false", "`check_input=False` has no effect"),
        Difference(
            "test_enet_copy_X_False_check_input_False",
            "`copy_X=False` has no effect: X is never written to",
        ),
    ),
    "test_svm": (
        Difference(
            "test_linear_svm_convergence_warnings",
            "the squared hinge is solved in the primal, which is done in two steps here",
        ),
    ),
    "test_pca": (
        Difference(
            "test_sparse_pca_solver_error[*-randomized]",
            f'`svd_solver="randomized"` of sparse rows is {_FITS_MORE}',
        ),
        Difference("test_sparse_pca_solver_error[*-full]", _MESSAGE),
        Difference("test_pca_validation[arpack-0-*]", _MESSAGE),
        Difference("test_pca_validation[arpack-2-*]", _MESSAGE),
        Difference("test_pca_validation[auto-3-*]", _MESSAGE),
        Difference(
            "test_pca_svd_solver_auto",
            '`svd_solver="auto"` takes the way of the least predicted time',
        ),
    ),
}

_LINEAR = "sklearn/linear_model"
FILES = {
    "test_pipeline": ("Pipeline", "sklearn/tests/test_pipeline.py"),
    "test_search": ("ModelSearchCV", "sklearn/model_selection/tests/test_search.py"),
    "test_logistic": ("LogisticRegression", f"{_LINEAR}/tests/test_logistic.py"),
    "test_ridge": ("Ridge", f"{_LINEAR}/tests/test_ridge.py"),
    "test_linear_regression": (
        "LinearRegression",
        f"{_LINEAR}/tests/test_base.py",
    ),
    "test_coordinate_descent": (
        "Lasso` and `ElasticNet",
        f"{_LINEAR}/tests/test_coordinate_descent.py",
    ),
    "test_svm": ("LinearSVC", "sklearn/svm/tests/test_svm.py"),
    "test_pca": ("PCA", "sklearn/decomposition/tests/test_pca.py"),
}
"""Our files, to our class and scikit-learn's file."""


def documentation() -> str:
    """The table as docs/compatibility.md has it."""
    lines = []
    for file, (name, path) in FILES.items():
        lines += [f"## `{name}`: {path}", ""]
        ours = EXPECTED.get(file, ())
        lines += [f"* `{one.test}`: {one.reason}" for one in ours] or ["No difference."]
        lines.append("")
    return "\n".join(lines)
