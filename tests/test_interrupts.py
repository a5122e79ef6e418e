"""An interruption is heard even where compiled code drops or disguises it."""

import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from mlopt import LogisticRegression, ModelSearchCV
from mlopt.interrupts import Interrupts
from mlopt.tuning.crews.batching import BatchCrew
from mlopt.tuning.crews.trainer import Clock
from mlopt.tuning.crews.trials import TrainRequest, TrainResult

pytestmark = pytest.mark.usefixtures("ctrl_c")


def disguise() -> None:
    """What a comparison in compiled code makes of Ctrl-C."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise TypeError("Cannot compare structured arrays") from None


def test_an_interruption_that_was_swallowed_is_raised_at_the_next_check() -> None:
    with Interrupts() as interrupts:
        interrupts.check()
        with contextlib.suppress(KeyboardInterrupt):  # as a destructor does
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()


def test_an_interruption_in_disguise_is_one_still() -> None:
    with pytest.raises(KeyboardInterrupt) as caught, Interrupts():
        disguise()
    assert isinstance(caught.value.__cause__, TypeError)


def test_other_errors_and_other_threads_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), Interrupts():
        raise ZeroDivisionError
    seen = []

    def elsewhere() -> None:
        with Interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [before]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_search_keeps_what_it_has_whatever_becomes_of_the_signal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    train = BatchCrew.train
    calls = []

    def interrupted(
        crew: BatchCrew, requests: Sequence[TrainRequest], clock: Clock
    ) -> Iterator[Sequence[TrainResult]]:
        calls.append(len(requests))
        if len(calls) == 2:
            disguise()
        yield from train(crew, requests, clock)

    monkeypatch.setattr(BatchCrew, "train", interrupted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    search = ModelSearchCV(
        LogisticRegression(), {"C": np.geomspace(1e-4, 10, 12).tolist()}, n_trials=12, cv=2,
        sampler="grid", random_state=0, batch_size=4,
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt) as caught:
        search.fit(X, X[:, 0] > 0)
    assert "`best_estimator_`" in caught.value.__notes__[0]
    assert search.interrupted_
    assert len(calls) == 2
    assert 0 < sum(t.state.name == "COMPLETE" for t in search.study_.trials) < 12
