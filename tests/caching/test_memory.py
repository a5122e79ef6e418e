"""The keeper: within its budget, the least recently used first, from many threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlopt.caching import Keeper
from mlopt.errors import InputError


def test_what_is_kept_stays() -> None:
    memory = Keeper(100)
    assert memory.keep("a", "x", 1)
    assert [memory.take("a") for _ in range(3)] == ["x"] * 3
    assert "a" in memory


def test_a_missing_value_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="a"):
        Keeper(100).take("a")


def test_the_least_recently_used_is_evicted() -> None:
    memory = Keeper(10)
    memory.keep("a", "aaaa", 4)
    memory.keep("b", "bbbb", 4)
    memory.take("a")
    memory.keep("c", "cccc", 4)
    assert ["a" in memory, "b" in memory, "c" in memory] == [True, False, True]
    assert memory.statistics.evictions == 1


def test_what_is_spared_is_not_evicted() -> None:
    memory = Keeper(10)
    memory.keep("a", "aaaaaa", 6)
    assert not memory.keep("b", "bbbbbb", 6, spare=lambda token: token == "a")
    assert memory.take("a") == "aaaaaa"
    assert memory.statistics.refused == 1


def test_a_value_larger_than_the_budget_evicts_nothing() -> None:
    memory = Keeper(10)
    memory.keep("a", "aaaa", 4)
    assert not memory.keep("b", "b" * 11, 11)
    assert "a" in memory


def test_keeping_again_replaces() -> None:
    memory = Keeper(10)
    memory.keep("a", "aaaaaa", 6)
    memory.keep("a", "bbb", 3)
    assert memory.take("a") == "bbb"
    assert (memory.statistics.bytes, memory.statistics.peak) == (3, 6)


def test_many_threads_stay_within_the_budget() -> None:
    memory, tokens = Keeper(40), [f"t{i}" for i in range(20)]

    def use(token: str) -> bool:
        memory.keep(token, token * 3, len(token * 3))
        try:
            right = memory.take(token) == token * 3
        except KeyError:  # another thread's took its room
            right = True
        return right and memory.statistics.bytes <= 40

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(use, tokens * 6))
    assert memory.statistics.peak <= 40
    for token in tokens:
        memory.drop(token)
    assert memory.statistics.bytes == 0


Step = tuple[str, str, int]
steps = st.lists(
    st.tuples(
        st.sampled_from(("keep", "take", "drop")),
        st.sampled_from("abcd"),
        st.integers(1, 12),
    ),
    max_size=40,
)


@given(steps, st.integers(0, 20))
def test_any_use_keeps_the_accounts(uses: list[Step], budget: int) -> None:
    memory, held = Keeper(budget), dict[str, str]()

    def keep(token: str, n: int) -> None:
        held[token] = token * n
        memory.keep(token, token * n, n)

    def take(token: str, n: int) -> None:
        if token in memory:
            assert memory.take(token) == held[token]

    actions: dict[str, Callable[[str, int], Any]] = {
        "keep": keep,
        "take": take,
        "drop": lambda token, n: memory.drop(token),
    }
    for name, token, n in uses:
        actions[name](token, n)
        total = sum(len(held[t]) for t in "abcd" if t in memory)
        assert memory.statistics.bytes == total <= budget


@pytest.mark.parametrize("budget", [-1, float("nan")])
def test_a_wrong_budget_is_refused(budget: float) -> None:
    with pytest.raises(InputError, match="`budget`"):
        Keeper(budget)
