"""`MatrixFactorization`: what a user rates is a product of factors of both."""

from __future__ import annotations

from contextlib import closing
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.factors.als import solution
from mlopt.factors.checks import (
    CONSTRAINTS,
    check_ratings,
    check_settings,
    check_signs,
    knows,
    refuse_unknown,
    warn_of_others,
    warn_of_small,
)
from mlopt.factors.fitting import Fitted, Settings, begin, carried_over, train
from mlopt.factors.ids import Ids
from mlopt.factors.model import Factors
from mlopt.factors.ratings import (
    Ratings,
    check_real,
    columns_of,
    entries_of,
    pairs_of,
    ratings_of,
)
from mlopt.factors.recommending import best, mean_rank
from mlopt.factors.sgd import Rule
from mlopt.parameters import seed_of
from mlopt.rows.frames import frame_names, is_frame
from mlopt.rows.source import collected, collected_together
from mlopt.server.layouts.places import Places

Array = NDArray[Any]


class MatrixFactorization(RegressorMixin, BaseEstimator):
    """Factors of users and items from the ratings that there are.

    With ``r`` the rating of user ``u`` and item ``i``, and sums over stored ratings alone,
    what is minimised is::

        sum (r - mean - b_u - c_i - p_u q_i)^2
            + alpha (b_u^2 + c_i^2 + |p_u|^2 + |q_i|^2)

    so that the penalty of a user, or an item, counts once for each of its ratings. Without
    ``biases`` there is neither a mean nor ``b`` and ``c``. What is not stored is unknown,
    and no zero: this is not the problem of `sklearn.decomposition.NMF`. With ``implicit``
    the ratings are counts, of plays or purchases, and *all* pairs are summed over::

        sum (1 + confidence r) (1[r > 0] - p_u q_i)^2  +  alpha (sum |p_u|^2 + sum |q_i|^2)

    Parameters
    ----------
    n_components : int, default=16
        Factors of each user and item; at most as many as there are users, or items.
    alpha : float, default=0.05
        The penalty; positive.
    nonnegative : bool, default=False
        Whether no factor may be below 0; ratings must not be, either.
    implicit : bool, default=False
        Whether ratings are counts.
    biases : bool or "auto", default="auto"
        "auto": unless ``nonnegative`` or ``implicit``.
    solver : {"auto", "sgd", "als"}, default="auto"
        Stochastic gradient descent, or alternating least squares; "auto" is "als" for
        counts, which need it, and else "sgd", whose passes are quicker.
    layout : {"auto", "threads", "rotate"}, default="auto"
        Where it runs: on the threads of this process; or on the workers of the active
        client, for "sgd": each has some of the users, and blocks of items go round. The
        result is the same to the bit. "auto" is what takes the least predicted time of
        those that can be had.
    max_iter : int, default=20
        Passes over the ratings, those of earlier fits under ``warm_start`` among them.
    learning_rate : float, default=0.03
        The step of "sgd" in the first pass, for ratings of deviation around 1.
    decay : float, default=0.95
        Each pass has so much of the step of the one before.
    confidence : float, default=1.0
        What a count of 1 weighs more than none.
    duplicates : {"error", "mean", "sum", "last"}, default="error"
        What becomes of pairs that are there twice.
    handle_unknown : {"baseline", "error"}, default="baseline"
        What `predict` does with users and items that `fit` has not seen: what is known
        without their factors and biases, or an error that names one.
    n_iter_no_change : int, optional
        Stop when the error on held-out ratings has not improved for so many passes, and
        keep the best pass. Default: train to ``max_iter``.
    validation_fraction : float, default=0.1
        Share of the ratings held out for that.
    tol : float, default=1e-4
        An improvement of the error on held-out ratings.
    warm_start : bool, default=False
        Go on from the last fit: users and items that it knew keep their factors. For other
        ratings there must be a pass left.
    random_state : int, RandomState or None, default=None
        For the first factors and the order of ratings. The result depends on it alone, not
        on the number of threads.
    n_jobs : int, optional
        Threads. Default: all cores.

    Attributes
    ----------
    user_factors_, item_factors_ : ndarray of shape (users, k) and (items, k), float32
    user_biases_, item_biases_ : ndarray of shape (users,) and (items,), float32
    mean_ : float
        Of the ratings.
    users_, items_ : ndarray
        Labels in order: of row ``users_[j]`` the factors are ``user_factors_[j]``. Of a
        sparse matrix 0, 1, ...
    n_iter_ : int
        Passes that are behind the factors.
    validation_errors_ : tuple of float
        Root mean squared errors on held-out ratings, one a pass; empty without. For counts
        of whether there is one, 0 or 1, each weighed as in training.
    plan_ : Plan
        The layout that was chosen, and rejected ones, with predicted and measured seconds
        of training.
    n_features_in_, feature_names_in_
        Columns of X, and what they are called.

    Notes
    -----
    Users and items without ratings have zeros for factors and biases: predictions are the
    mean and the other side's bias. Without biases they are the mean, and 0 for counts.

    References
    ----------
    Koren, Bell, Volinsky, "Matrix factorization techniques for recommender systems",
    Computer 42, 2009. Zhou et al., "Large-scale parallel collaborative filtering for the
    Netflix prize", AAIM 2008. Hu, Koren, Volinsky, "Collaborative filtering for implicit
    feedback datasets", ICDM 2008. Gemulla et al., KDD 2011.

    Examples
    --------
    >>> import mlopt
    >>> rows = [["ann", "tea"], ["ann", "milk"], ["bob", "tea"], ["bob", "rum"]]
    >>> stars = [5, 1, 5, 3]
    >>> model = mlopt.MatrixFactorization(2, random_state=0).fit(rows, stars)
    >>> bool(model.predict([["bob", "tea"]]) > model.predict([["bob", "milk"]]))
    True
    >>> model.recommend(["ann"], 1)[0].tolist()
    [['rum']]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = CONSTRAINTS

    def __init__(
        self,
        n_components: int = 16,
        *,
        alpha: float = 0.05,
        nonnegative: bool = False,
        implicit: bool = False,
        biases: bool | str = "auto",
        solver: str = "auto",
        layout: str = "auto",
        max_iter: int = 20,
        learning_rate: float = 0.03,
        decay: float = 0.95,
        confidence: float = 1.0,
        duplicates: str = "error",
        handle_unknown: str = "baseline",
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        tol: float = 1e-4,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.nonnegative = nonnegative
        self.implicit = implicit
        self.biases = biases
        self.solver = solver
        self.layout = layout
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.decay = decay
        self.confidence = confidence
        self.duplicates = duplicates
        self.handle_unknown = handle_unknown
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> MatrixFactorization:
        """Learn factors and biases.

        Parameters
        ----------
        X : sparse matrix (users, items), or array or frame (n, 2) or (n, 3)
            Stored entries of a sparse matrix are the ratings, zeros among them. Rows are
            (user, item, rating), or (user, item) with the ratings as y; users and items
            are whole numbers or texts. Dask collections are gathered here.
        y : array-like of shape (n,), optional

        Returns
        -------
        self

        Raises
        ------
        InputError
            When a parameter is out of range or X is malformed; a rating is not finite, or
            negative where it may not be; a pair comes twice; there are more components than
            users or items; or factors grow without bounds.
        """
        check_settings(self)
        X, y = collected_together(X, y)
        ratings = ratings_of(X, y, self.duplicates)
        check_ratings(self, ratings)
        if not self.implicit:
            warn_of_small(ratings, self.alpha)
        before = self if self.warm_start and hasattr(self, "user_factors_") else None
        seed = self._seed if before else seed_of(self.random_state)
        settings = self._settings(seed)
        start, passes, judged = begin(ratings, settings), 0, False
        earlier = self._trained(ratings) if before else (False, False)
        if before:
            start = carried_over(
                self._model(), Ids(self.users_), Ids(self.items_), ratings, start,
                settings.rule.biased,
            )  # fmt: skip
            passes = self.n_iter_
            # Of other ratings, it has seen some that are held out now.
            judged = bool(self.validation_errors_) and knows(self, ratings)
            judged = judged and self._held_out == self.validation_fraction
        with Places(self.layout, self.n_jobs) as places:
            fitted = train(ratings, start, passes, settings, places, judged)
            self.plan_ = places.plan(self)
        self._keep(ratings, fitted, seed, earlier)
        self.n_features_in_ = ratings.shape[1] if sp.issparse(X) else len(pairs_of(X))
        self.__dict__.pop("feature_names_in_", None)
        if is_frame(X):
            self.feature_names_in_ = np.array(frame_names(X), dtype=object)
        return self

    def predict(self, X: Any) -> NDArray[np.float32]:
        """The ratings that users would give.

        Parameters
        ----------
        X : array or frame of shape (n, 2) or (n, 3), or sparse matrix (users, items)
            Rows (user, item); a third column is not looked at. Of a sparse matrix, whose
            rows are ``users_`` and columns ``items_``, its stored entries row by row.

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        InputError
            When X is malformed, or names somebody unknown and `handle_unknown` is "error".
        """
        check_is_fitted(self)
        users, items = self._numbers(collected(X))
        found = self._model().predict(users, items)
        rule, confidence = self._learnt
        if not rule.biased and confidence is None:
            rated_users, rated_items = self._rated
            known = (users >= 0) & (items >= 0) & rated_users[users] & rated_items[items]
            found[~known] = self.mean_
        return found

    def recommend(
        self, users: Any, n_items: int = 10, *, exclude_seen: bool = True
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The items that users would rate best.

        Parameters
        ----------
        users : array-like of shape (m,), or sparse matrix (m, items)
            Users of `fit`, or the ratings of new ones, whose columns are ``items_``.
        n_items : int, default=10
        exclude_seen : bool, default=True
            Leave out what a user has rated, in `fit` or in the matrix given.

        Returns
        -------
        items : ndarray of shape (m, n_items)
            Labels, best first.
        scores : ndarray of shape (m, n_items)
            What `predict` says of users and items with ratings. Where a user has seen
            almost all, the last items are seen ones, with a score of -inf.

        Raises
        ------
        InputError
            When a user is not known, or there are not so many items.
        """
        check_is_fitted(self)
        whole = isinstance(n_items, Integral) and not isinstance(n_items, bool)
        if not whole or not 1 <= n_items <= len(self.items_):
            raise InputError(
                f"`n_items` must be one of 1 ... {len(self.items_)}, the number of items; "
                f"got {n_items!r}."
            )
        model, seen, users = self._model(), self._seen, collected(users)
        if sp.issparse(users):
            new = self._new(users)
            P, b = self._solve(new)
            model = Factors(P, model.Q, b, model.c, model.mean)
            numbers: Array = np.arange(len(P))
            seen = new.told(self._learnt[1] is not None)
        else:
            numbers = Ids(self.users_).find(users, "user")
            refuse_unknown(numbers, np.asarray(users), "user")
        items, scores = best(model, numbers, n_items, seen if exclude_seen else None)
        return self.items_[items], scores

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Factors of new users, for the items' factors as they are.

        Parameters
        ----------
        X : sparse matrix (m, items)
            Their ratings; columns are ``items_``.

        Returns
        -------
        ndarray of shape (m, k)
            The least squares solution of each row; zeros without ratings.
        """
        check_is_fitted(self)
        X = collected(X)
        if not sp.issparse(X):
            raise InputError(
                f"X must be a sparse matrix with a column for each of the "
                f"{len(self.items_)} items, in the order of `items_`; got "
                f"{type(X).__name__}."
            )
        return self._solve(self._new(X))[0]

    def score(self, X: Any, y: Any = None) -> float:
        """How well held-out ratings are predicted: the best is 1.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        float
            The share of the variance that is explained (R^2). For counts the mean share of
            the items without a count in `fit` that stand behind a held-out one, weighed by
            its count, which a random order makes a half: users and items that are not known
            are left out, as are pairs that `fit` has seen; NaN if all have been seen.

        Raises
        ------
        InputError
            X is malformed, or has no count of a user and an item that are known.
        """
        check_is_fitted(self)
        X = collected(X)
        if sp.issparse(X):
            self._check_shape(X)
            warn_of_others(self, X)
        if self._learnt[1] is None:
            values = entries_of(X)[2] if sp.issparse(X) else columns_of(X, y)[2]
            check_real(values)
            return float(r2_score(np.asarray(values, np.float64), self.predict(X)))
        held = ratings_of(X, y, "sum")
        users, items = held.users, held.items
        if not sp.issparse(X):
            users = Ids(self.users_).find(held.user_ids.labels, "user")[users]
            items = Ids(self.items_).find(held.item_ids.labels, "item")[items]
        known = (users >= 0) & (items >= 0) & (held.values > 0)
        if not known.any():
            raise InputError(
                "X must hold a count of a user and an item that `fit` has seen."
            )
        triple = users[known], items[known], held.values[known]
        return 1 - mean_rank(self._model(), *triple, self._seen)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Rows are pairs of labels, no measurements: most checks of scikit-learn give those.
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.target_tags.required = False
        tags.non_deterministic = False
        return tags

    def _biased(self) -> bool:
        plain = not (self.nonnegative or self.implicit)
        return plain if self.biases == "auto" else bool(self.biases)

    def _settings(self, seed: int) -> Settings:
        automatic = "als" if self.implicit else "sgd"
        return Settings(
            k=int(self.n_components),
            rule=self._rule(),
            solver=automatic if self.solver == "auto" else self.solver,
            confidence=self._confidence(),
            max_iter=int(self.max_iter),
            patience=self.n_iter_no_change,
            held_out=self.validation_fraction,
            tol=self.tol,
            seed=seed,
        )

    def _rule(self) -> Rule:
        biased, cut = self._biased(), bool(self.nonnegative)
        # Of another type kernels would be compiled anew.
        alpha, rate, decay = map(float, (self.alpha, self.learning_rate, self.decay))
        return Rule(alpha, rate, decay, biased, cut)

    def _confidence(self) -> float | None:
        return float(self.confidence) if self.implicit else None

    def _trained(self, ratings: Ratings) -> tuple[Array, Array]:
        """Which users and items the last fit was trained on."""
        sides = zip(
            (self.users_, self.items_), (ratings.user_ids, ratings.item_ids), self._rated,
            ("user", "item"), strict=True,
        )  # fmt: skip
        found = []
        for labels, now, rated, what in sides:
            places = Ids(labels).find(now.labels, what)
            found.append((places >= 0) & rated[places])
        return found[0], found[1]

    def _keep(
        self, ratings: Ratings, fitted: Fitted, seed: int, earlier: tuple[Any, Any]
    ) -> None:
        model = fitted.model
        self.user_factors_, self.item_factors_ = model.P, model.Q
        self.user_biases_, self.item_biases_ = model.b, model.c
        self.mean_ = float(np.mean(ratings.values, dtype=np.float64))
        self.users_, self.items_ = ratings.user_ids.labels, ratings.item_ids.labels
        self.n_iter_, self.validation_errors_ = fitted.passes, fitted.errors
        self._seed, self._seen = seed, ratings.told(bool(self.implicit))
        self._given = ratings.digest
        # Parameters may be set anew before anybody predicts.
        self._learnt = self._rule(), self._confidence()
        rated = fitted.ratings
        counts = np.bincount(rated.items, minlength=len(self.items_))
        # Of earlier fits, where least squares of fewer ratings have not made zeros of it.
        users, items = earlier[0] & model.P.any(axis=1), earlier[1] & model.Q.any(axis=1)
        self._rated = (np.diff(rated.starts) > 0) | users, (counts > 0) | items
        self._held_out = self.validation_fraction

    def _model(self) -> Factors:
        return Factors(
            self.user_factors_, self.item_factors_, self.user_biases_, self.item_biases_,
            self.mean_ if self._learnt[0].biased else 0.0,
        )  # fmt: skip

    def _numbers(self, X: Any) -> tuple[Array, Array]:
        if sp.issparse(X):
            self._check_shape(X)
            return entries_of(X)[:2]
        if is_frame(X) and hasattr(self, "feature_names_in_"):
            names, fitted = frame_names(X), tuple(self.feature_names_in_)
            if names[:2] != fitted[:2]:
                raise InputError(
                    f"X must have the columns that `fit` has seen, {fitted[:2]}; got "
                    f"{names}."
                )
        users, items = pairs_of(X)[:2]
        found = Ids(self.users_).find(users, "user"), Ids(self.items_).find(items, "item")
        if self.handle_unknown == "error":
            refuse_unknown(found[0], users, "user")
            refuse_unknown(found[1], items, "item")
        return found

    def _check_shape(self, X: Any) -> None:
        """Rows and columns of a matrix are users and items by number: some rows of it are
        others than `fit` has seen."""
        if X.shape != (shape := (len(self.users_), len(self.items_))):
            raise InputError(
                f"A sparse matrix must have a row for each of the users of `fit` and a "
                f"column for each of the items, shape {shape}; got {X.shape}. Give rows "
                "(user, item), or for new users see `transform`; splits are of such rows."
            )

    def _new(self, X: Any) -> Ratings:
        """Ratings of new users."""
        if X.shape[1] != len(self.items_):
            raise InputError(
                f"X must have a column for each of the {len(self.items_)} items, in the "
                f"order of `items_`; got shape {X.shape}."
            )
        if not X.nnz:
            starts = np.zeros(X.shape[0] + 1, np.int64)
            none = np.empty(0, np.int32), np.empty(0, np.float32)
            return Ratings(starts, *none, Ids.numbers(X.shape[0]), Ids.numbers(X.shape[1]))
        new = ratings_of(X, None, self.duplicates)
        rule, confidence = self._learnt
        check_signs(new, confidence is not None, rule.nonnegative)
        return new

    def _solve(self, new: Ratings) -> tuple[Array, Array]:
        model = self._model()
        with closing(Threads(self.n_jobs)) as executor:
            return solution(
                new.rows, model.Q, model.c, model.mean, *self._learnt, executor=executor,
            )  # fmt: skip
