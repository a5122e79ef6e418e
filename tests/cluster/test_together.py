"""Algorithms whose calls over the same items go together: the same results, fewer tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from functools import partial
from operator import add
from typing import Any

import pytest

from mlopt.cluster import Threads, Together, once

ITEMS = [list(range(7)), [10 * i for i in range(7)], [100] * 7]


class Counting(Threads):
    """Notes how many items each `reduce` had."""

    def __init__(self) -> None:
        super().__init__(1)
        self.asked: list[int] = []

    def reduce(self, function: Any, combine: Any, items: Any, *shared: Any) -> Any:
        self.asked.append(len(items))
        return super().reduce(function, combine, items, *shared)


def summed(executor: Any, items: Any, passes: int) -> list[int]:
    """Each pass adds what the one before came to."""
    found = [0]
    for _ in range(passes):
        last = found[-1]
        total = executor.reduce(lambda i, k: i + k, lambda a, b: a + b, items, last)
        found.append(total)
    return found


def test_passes_that_are_as_many_are_one_and_who_ends_is_not_waited_for() -> None:
    where, passes = Counting(), (2, 5, 3)
    expected = [summed(Threads(1), i, p) for i, p in zip(ITEMS, passes, strict=True)]
    together = Together(where, 3)
    jobs: dict[Any, Callable[[], Any]] = {
        member: partial(summed, member, items, count)
        for member, items, count in zip(together.members, ITEMS, passes, strict=True)
    }
    assert together.run(jobs) == expected
    assert where.asked == [7] * 5
    # By itself, a member waits for nobody.
    assert summed(together.members[0], ITEMS[0], 2) == expected[0]


def test_what_one_has_read_the_others_need_not_read() -> None:
    where, read = Counting(), list[int]()

    def work(item: int) -> int:
        def make() -> int:
            read.append(item)
            return item

        return int(once(item, make))

    together = Together(where, 2)
    jobs = {
        member: partial(member.reduce, work, max, ITEMS[0]) for member in together.members
    }
    assert together.run(jobs) == [6, 6]
    assert sorted(read) == ITEMS[0]
    assert once("a", lambda: 1) + once("a", lambda: 2) == 3  # outside of such a task


class Stepwise:
    """Adds up a list, reading one of it a step."""

    def __init__(self, read: Callable[[int], int], factor: int) -> None:
        self.read, self.factor = read, factor

    def __call__(self, item: list[int]) -> int:
        raise AssertionError("run step by step beside the others")

    def steps(self, item: list[int]) -> Generator[None, None, int]:
        total = 0
        for one in item:
            total += self.factor * self.read(one)
            yield
        return total


def test_functions_of_several_steps_go_step_by_step_and_hold_what_one_has_read() -> None:
    there: set[int] = set()

    class Read(int):
        def __del__(self) -> None:
            there.discard(int(self))

    reads: list[int] = []

    def make(number: int) -> Read:
        assert not there  # what the step before has read is gone
        there.add(number)
        reads.append(number)
        return Read(number)

    def read(number: int) -> int:
        return int(once(number, partial(make, number)))

    items = [[1, 2, 3], [4, 5]]
    together = Together(Counting(), 2)
    jobs = {
        member: partial(member.reduce, Stepwise(read, factor), add, items)
        for factor, member in enumerate(together.members, start=1)
    }
    assert together.run(jobs) == [15, 30]
    assert reads == [1, 2, 3, 4, 5]


def test_an_error_is_that_of_whose_call_it_is_and_the_others_go_on() -> None:
    together, done = Together(Counting(), 2), threading.Event()

    def fails(item: int) -> int:
        raise KeyError(item)

    def second() -> None:
        summed(together.members[1], ITEMS[1], 4)
        done.set()

    jobs = {
        together.members[0]: lambda: together.members[0].reduce(fails, max, ITEMS[0]),
        together.members[1]: second,
    }
    with pytest.raises(KeyError):
        together.run(jobs)
    assert done.is_set()
