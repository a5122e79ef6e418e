"""From parameters and ratings to a training, and how far it goes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mlopt.errors import InputError
from mlopt.factors.als import ALSTraining
from mlopt.factors.ids import Ids
from mlopt.factors.model import Factors, drawn, faint
from mlopt.factors.pricing import Passes, as_least_squares
from mlopt.factors.ratings import Ratings
from mlopt.factors.sgd import Rule, SGDTraining
from mlopt.factors.shelves import Grid
from mlopt.kernels.permutation import permutation
from mlopt.server.layouts.places import Places


@dataclass(frozen=True)
class Settings:
    """The parameters of an estimator, with "auto" decided."""

    k: int
    rule: Rule
    solver: str
    confidence: float | None
    max_iter: int
    patience: int | None
    held_out: float
    tol: float
    seed: int


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a training came to."""

    model: Factors
    passes: int
    ratings: Ratings
    """What it was trained on."""
    errors: tuple[float, ...] = ()
    """Held-out errors, one a pass, where early stopping was asked for."""


def begin(ratings: Ratings, settings: Settings) -> Factors:
    """Factors that nothing was learnt of; zeros for who has no ratings."""
    users, items = ratings.shape
    rule = settings.rule
    mean = float(np.mean(ratings.values, dtype=np.float64))
    if settings.confidence is None:
        level = 0.0 if rule.biased else mean
        P, Q = drawn(ratings.shape, settings.k, level, settings.seed, rule.nonnegative)
    else:
        P, Q = faint(ratings.shape, settings.k, settings.seed)
    P[np.diff(ratings.starts) == 0] = 0
    Q[np.bincount(ratings.items, minlength=items) == 0] = 0
    zeros = np.zeros(users, np.float32), np.zeros(items, np.float32)
    return Factors(P, Q, *zeros, mean if rule.biased else 0.0)


def carried_over(
    model: Factors, users: Ids, items: Ids, ratings: Ratings, start: Factors, biased: bool
) -> Factors:
    """``start`` with what ``model`` says of users and items that it had ratings of."""
    for known, now, A, own, known_A, known_own, what in (
        (users, ratings.user_ids, start.P, start.b, model.P, model.b, "user"),
        (items, ratings.item_ids, start.Q, start.c, model.Q, model.c, "item"),
    ):
        places = known.find(now.labels, what)
        # Zeros say that there were no ratings: from them on nothing would ever be learnt.
        here = (places >= 0) & np.any(known_A, axis=1)[places]
        A[here] = known_A[places[here]]
        if biased:
            own[here] = known_own[places[here]]
    return start


def train(
    ratings: Ratings,
    start: Factors,
    passes: int,
    settings: Settings,
    places: Places,
    judged: bool,
) -> Fitted:
    """Train from ``start``, which has ``passes`` behind it, to the end.

    ``judged`` says that they were those with the least error on what is held out.
    """
    if settings.patience is None:
        training = training_of(ratings, start, passes, settings, places)
        training.advance(settings.max_iter - passes)
        return Fitted(training.factors(), training.passes, ratings)
    return _with_patience(ratings, start, passes, settings, places, judged)


def training_of(
    ratings: Ratings, start: Factors, passes: int, settings: Settings, places: Places
) -> SGDTraining | ALSTraining:
    """The training of a solver, where it takes the least."""
    if settings.solver != "sgd":
        places.choose("least squares of each side in turn", as_least_squares)
        return ALSTraining(
            ratings, start, settings.rule, confidence=settings.confidence, passes=passes,
            executor=places.threads,
        )  # fmt: skip
    grid, left = Grid.of(ratings, settings.seed), settings.max_iter - passes
    looks = 0 if settings.patience is None else left
    todo = Passes(grid, start, settings.rule, settings.seed, left, looks)
    chosen = places.choose(str(todo), todo.prices)
    return SGDTraining(
        ratings, start, settings.rule, seed=settings.seed, passes=passes, grid=grid,
        mesh=places.mesh, threads=None if chosen.apart else places.pool.here,
    )  # fmt: skip


def _with_patience(
    ratings: Ratings,
    start: Factors,
    passes: int,
    settings: Settings,
    places: Places,
    judged: bool,
) -> Fitted:
    """Keep the pass with the least error on ratings that are held out."""
    assert settings.patience is not None
    n = len(ratings.values)
    held = np.zeros(n, bool)
    held[permutation(n, settings.seed, 4)[: round(settings.held_out * n)]] = True
    if not held.any() or held.all():
        raise InputError(
            f"`validation_fraction`={settings.held_out:g} of {n} ratings must leave some "
            "to hold out and some to train on: give more ratings, or no "
            "`n_iter_no_change`."
        )
    left_out = ratings.some(held)
    pairs = left_out.users, left_out.items, left_out.values, settings.confidence
    kept = ratings.some(~held)
    if settings.rule.biased:
        start = _without_others(kept, start)
    training = training_of(kept, start, passes, settings, places)
    best, errors, waited = Fitted(start, passes, kept), list[float](), 0
    least = start.rmse(*pairs) if judged else np.inf
    while training.passes < settings.max_iter and waited < settings.patience:
        training.advance(1)
        model = training.factors()
        errors.append(model.rmse(*pairs))
        waited = 0 if errors[-1] < least - settings.tol else waited + 1
        if errors[-1] < least:
            least, best = errors[-1], Fitted(model, training.passes, kept)
    return replace(best, errors=tuple(errors))


def _without_others(ratings: Ratings, start: Factors) -> Factors:
    """Zeros for who has no ratings among these, and no bias from an earlier fit."""
    items = np.bincount(ratings.items, minlength=ratings.shape[1])
    P, Q = start.P.copy(), start.Q.copy()
    P[(np.diff(ratings.starts) == 0) & (start.b == 0)] = 0
    Q[(items == 0) & (start.c == 0)] = 0
    return replace(start, P=P, Q=Q)
