"""Calls that failed for a value on its way are run again, and their states told."""

from __future__ import annotations

import asyncio
from typing import Any

import distributed
import pytest
from distributed import KilledWorker
from distributed.protocol.pickle import dumps

from mlopt.cluster.lost_calls import Forgiven
from mlopt.cluster.workers import Cluster


class State:
    """Of a future, at a client."""

    def __init__(self) -> None:
        self.retried = 0

    def retry(self) -> None:
        self.retried += 1


class Scheduler:
    """Runs again what is asked for and what that needs."""

    def __init__(self, needed: tuple[str, ...]) -> None:
        self.needed = needed

    async def retry(self, keys: list[str], client: str) -> tuple[str, ...]:
        del client
        return (*self.needed, *keys)


class Client:
    """Knows the futures that it has not let go."""

    id = "client"

    def __init__(self, needed: tuple[str, ...], known: tuple[str, ...]) -> None:
        self.scheduler, self.futures = Scheduler(needed), {key: State() for key in known}

    def sync(self, function: Any, *given: Any) -> Any:
        return asyncio.run(function(*given))


class Handle:
    """A future whose value was lost on its way to a worker."""

    status = "error"

    def __init__(self, client: Client, key: str, value: str) -> None:
        self.client, self.key, self._value = client, key, value

    def exception(self) -> BaseException:
        error: BaseException = KilledWorker(self._value, None, 3)
        return error


@pytest.mark.parametrize("known", [("call",), ("call", "put-1")])
def test_what_the_client_let_go_does_not_stop_the_others(known: tuple[str, ...]) -> None:
    client = Client(("cut-1", "put-1"), known)
    assert Forgiven().again([Handle(client, "call", "put-1")])
    assert [state.retried for state in client.futures.values()] == [1] * len(known)


def test_a_value_is_sent_anew_twice() -> None:
    client, forgiven = Client((), ("call",)), Forgiven()
    handle = Handle(client, "call", "put-1")
    assert [forgiven.again([handle]) for _ in range(3)] == [True, True, False]
    assert not forgiven.again([Handle(client, "call", "train-1")])


class Ended:
    """A future that has ended, until its result is lost."""

    def __init__(self) -> None:
        self.status = "finished"


def test_every_call_that_ended_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever becomes of it while the one before is looked at."""
    monkeypatch.setattr(Cluster, "_wait", lambda *given: None)
    first, late = Ended(), Ended()
    late.status, told = "pending", []
    for handle in Cluster.as_completed(object.__new__(Cluster), [first, late]):
        told.append(handle)
        first.status, late.status = "lost", "finished"
    assert told == [first, late]


def _lose(key: str, dask_scheduler: Any) -> None:
    """As Dask does where what a result needs counts as failed: it is not made again."""
    _, *messages = dask_scheduler._transition(key, "released", "lost")
    dask_scheduler.send_all(*messages)


def test_a_result_that_is_lost_before_it_is_sent_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And is not waited for without end, though Dask has forgotten to."""
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as client:
        executor = Cluster(client, patience=3.0)
        handle = executor.submit(pow, 3, 4)
        distributed.wait(handle)
        gather = client.gather

        async def late(handles: list[Any], asynchronous: bool) -> Any:
            await client.scheduler.run_function(
                function=dumps(_lose), args=dumps((handle.key,)), kwargs=dumps({})
            )
            while handle.status != "lost":
                await asyncio.sleep(0.01)
            return await gather(handles, asynchronous=asynchronous)

        monkeypatch.setattr(client, "gather", late)
        assert executor.result(handle) == 81
