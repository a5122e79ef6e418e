"""What every bandit promises, on simulated learning curves and on arbitrary histories."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlopt.passes import Passes
from mlopt.tuning.bandits import (
    BANDITS,
    ActionElimination,
    Bandit,
    Hyperband,
    Progress,
    SuccessiveHalving,
    bandit_of,
)

MAX_PASSES = 30
WITHIN_A_PASS = SuccessiveHalving(min_passes=1 / 9), Hyperband(min_passes=1 / 3)
Curve = Callable[[int, Passes], float]


@dataclass
class Search:
    """TuPAQ's Algorithm 2 with a curve in place of training; budget = number of models."""

    bandit: Bandit
    curve: Curve
    n_trials: int
    slots: int = 4
    converged: Callable[[int], int] = lambda trial: 10**9
    fails: frozenset[int] = frozenset()
    active: list[Progress] = field(default_factory=list)
    history: list[Progress] = field(default_factory=list)
    finished: dict[int, Progress] = field(default_factory=dict)
    pruned: dict[int, Progress] = field(default_factory=dict)
    proposed: int = 0

    def run(self) -> Search:
        """To the end, or to a number of rounds that no bandit may need."""
        for _ in range(50 * self.n_trials + 50):
            room = self.bandit.room(self.active, self.slots, self.proposed)
            entering = min(room, self.n_trials - self.proposed)
            self.active += [self.bandit.start(self.proposed + i) for i in range(entering)]
            self.proposed += entering
            if not self.active:
                return self
            self._round()
        raise AssertionError("the search does not end")

    def _round(self) -> None:
        looks = [self._train(progress) for progress in self.active]
        looks = [look for look in looks if look.trial not in self.fails]
        verdicts = self.bandit.allocate(looks, self.history)
        by_trial = {look.trial: look for look in looks}
        self.history += looks
        self.finished |= {t: by_trial[t] for t in verdicts.finished}
        self.pruned |= {t: by_trial[t] for t in verdicts.pruned}
        self.active = [by_trial[t] for t in verdicts.active]

    def _train(self, progress: Progress) -> Progress:
        stop = self.bandit.next_stop(progress)
        assert progress.passes < stop <= MAX_PASSES
        passes = min(stop, self.converged(progress.trial))
        done = passes < stop or passes >= MAX_PASSES
        score = self.curve(progress.trial, passes)
        return replace(progress, passes=passes, score=score, done=done)

    @property
    def passes(self) -> Passes:
        ended = [*self.finished.values(), *self.pruned.values()]
        return sum(progress.passes for progress in ended)


def rising(trial: int, passes: Passes) -> float:
    """Accuracies that approach 0.5 ... 1 without crossing."""
    quality = 0.5 + 0.49 * ((trial * 37) % 101) / 101
    return float(quality * (1 - 0.5 ** (1 + passes / 3)))


@pytest.fixture(params=[*sorted(BANDITS), *WITHIN_A_PASS], ids=str)
def bandit(request: pytest.FixtureRequest) -> Bandit:
    return bandit_of(request.param, MAX_PASSES)


@pytest.mark.parametrize("n_trials", [1, 2, 10, 64])
@pytest.mark.parametrize("slots", [1, 5, 100])
def test_every_trial_gets_an_end(bandit: Bandit, n_trials: int, slots: int) -> None:
    search = Search(bandit, rising, n_trials, slots).run()
    assert search.finished.keys() | search.pruned.keys() == set(range(n_trials))
    assert not search.finished.keys() & search.pruned.keys()
    assert search.finished


def test_the_best_model_is_finished_when_curves_do_not_cross(bandit: Bandit) -> None:
    search = Search(bandit, rising, 64, 16).run()
    best = max(range(64), key=lambda trial: rising(trial, MAX_PASSES))
    assert max(search.finished.values(), key=lambda p: p.score).trial == best


def test_finished_trials_are_fully_trained(bandit: Bandit) -> None:
    search = Search(bandit, rising, 20, 4, converged=lambda t: 5 + t).run()
    assert all(p.done for p in search.finished.values())
    assert not any(p.done for p in search.pruned.values())


def test_a_bracket_ends_although_trials_fail(bandit: Bandit) -> None:
    fails = frozenset(range(0, 40, 3))
    search = Search(bandit, rising, 40, 8, fails=fails).run()
    assert search.finished.keys() | search.pruned.keys() == set(range(40)) - fails


def test_a_bracket_ends_although_everything_fails(bandit: Bandit) -> None:
    search = Search(bandit, rising, 40, 8, fails=frozenset(range(40))).run()
    assert not search.finished
    assert search.proposed == 40


@pytest.mark.parametrize("name", sorted(BANDITS))
def test_fewer_and_fewer_are_expected_to_go_on(name: str) -> None:
    alive = [bandit_of(name, 100, 27).survival(looks) for looks in range(5)]
    assert alive[0] == 1.0
    assert alive == sorted(alive, reverse=True)
    assert alive[-1] > 0


@pytest.mark.parametrize("name", sorted(BANDITS))
def test_nothing_is_pruned_after_fewer_than_three_passes(name: str) -> None:
    search = Search(bandit_of(name, MAX_PASSES), rising, 64, 16).run()
    assert all(progress.passes >= 3 for progress in search.pruned.values())


@given(
    scores=st.lists(
        st.floats(-10, 1, width=32) | st.just(math.nan), min_size=1, max_size=9
    ),
    passes=st.integers(1, MAX_PASSES),
    done=st.sets(st.integers(0, 8)),
    name=st.sampled_from(sorted(BANDITS)),
    order=st.randoms(use_true_random=False),
)
def test_verdicts_are_a_function_of_the_history(
    scores: list[float], passes: int, done: set[int], name: str, order: random.Random
) -> None:
    bandit = bandit_of(name, MAX_PASSES, len(scores))
    active = [
        Progress(t, bandit.next_stop(Progress(t, passes - 1, 0, False)), s, t in done)
        for t, s in enumerate(scores)
    ]
    verdicts = bandit.allocate(active, [])
    judged = [*verdicts.finished, *verdicts.active, *verdicts.pruned]
    assert sorted(judged) == list(range(len(scores)))
    assert verdicts.reasons.keys() == set(verdicts.pruned)
    assert all(math.isnan(scores[t]) <= (t in verdicts.pruned) for t in range(len(scores)))
    assert all(not (active[t].done and t in verdicts.active) for t in judged)
    history = [*active, *(replace(p, passes=1, score=0.9, done=False) for p in active)]
    order.shuffle(history)
    again = bandit.allocate(active, history)
    assert again == verdicts


def test_a_bandit_fits_in_json(bandit: Bandit) -> None:
    settings = json.loads(json.dumps(asdict(bandit)))
    assert type(bandit)(**settings) == bandit


@given(
    qualities=st.lists(st.floats(0, 1), min_size=1, max_size=12),
    partial_iters=st.integers(1, MAX_PASSES),
)
def test_with_one_slot_and_infinite_slack_it_is_algorithm_1(
    qualities: list[float], partial_iters: int
) -> None:
    """TuPAQ's Algorithm 2 becomes the baseline: train each point in turn, keep the best."""
    best, trained = None, []
    for point, quality in enumerate(qualities):
        trained.append(point)
        if best is None or quality > qualities[best]:
            best = point
    bandit = ActionElimination(
        eps=math.inf, first=partial_iters, every=partial_iters, max_passes=MAX_PASSES
    )
    curve: Curve = lambda trial, passes: qualities[trial] * passes / MAX_PASSES  # noqa: E731
    search = Search(bandit, curve, len(qualities), slots=1).run()
    assert list(search.finished) == trained
    assert not search.pruned
    assert search.passes == MAX_PASSES * len(qualities)
    assert max(search.finished.values(), key=lambda p: (p.score, -p.trial)).trial == best
