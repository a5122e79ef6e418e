"""The keeper: within its budget, until the last reader is done, from many threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlopt.caching import Disk, Keeper
from mlopt.errors import InputError


def keeper(budget: float, disk: Disk | None = None) -> Keeper:
    """One in which a string takes as many bytes as it has letters."""
    return Keeper(budget, disk=disk, sizeof=len)


def test_the_last_reader_releases() -> None:
    memory = keeper(100)
    memory.announce("a", 2)
    assert memory.keep("a", "value")
    assert memory.take("a") == "value"
    assert "a" in memory
    assert memory.take("a") == "value"
    assert "a" not in memory
    assert (memory.statistics.hits, memory.statistics.released) == (2, 1)
    assert (memory.statistics.bytes, memory.statistics.peak) == (0, 5)


def test_readers_announced_twice_add_up() -> None:
    memory = keeper(100)
    memory.announce("a")
    memory.announce("a")
    memory.keep("a", "x")
    memory.take("a")
    assert "a" in memory


def test_what_was_never_announced_stays() -> None:
    memory = keeper(100)
    memory.keep("a", "x")
    assert [memory.take("a") for _ in range(3)] == ["x"] * 3
    assert "a" in memory


def test_a_missing_value_is_a_key_error_and_counts_the_reader() -> None:
    memory = keeper(100)
    memory.announce("a", 2)
    with pytest.raises(KeyError, match="a"):
        memory.take("a")
    memory.keep("a", "x")
    memory.take("a")
    assert "a" not in memory
    assert memory.statistics.misses == 1


def test_the_least_recently_used_is_evicted() -> None:
    memory = keeper(10)
    memory.keep("a", "aaaa")
    memory.keep("b", "bbbb")
    memory.take("a")
    memory.keep("c", "cccc")
    assert ["a" in memory, "b" in memory, "c" in memory] == [True, False, True]
    assert memory.statistics.evictions == 1


def test_a_pinned_value_is_neither_evicted_nor_released() -> None:
    memory = keeper(10)
    memory.announce("a")
    memory.keep("a", "aaaaaa")
    with memory.pinned("a"):
        assert not memory.keep("b", "bbbbbb")
        memory.take("a")
        assert "a" in memory
    assert "a" not in memory
    assert memory.statistics.refused == 1


def test_a_value_larger_than_the_budget_evicts_nothing() -> None:
    memory = keeper(10)
    memory.keep("a", "aaaa")
    assert not memory.keep("b", "b" * 11)
    assert "a" in memory


def test_keeping_again_replaces() -> None:
    memory = keeper(10)
    memory.keep("a", "aaaaaa")
    memory.keep("a", "bbb")
    assert memory.take("a") == "bbb"
    assert memory.statistics.bytes == 3


def test_real_values_are_measured() -> None:
    memory = Keeper(10_000)
    assert memory.keep("small", np.zeros(1000))
    assert not memory.keep("large", np.zeros(2000))


def test_evicted_values_with_readers_to_come_go_to_disk_and_leave_it(
    tmp_path: Path,
) -> None:
    disk = Disk(tmp_path)
    memory = keeper(10, disk)
    memory.announce("a", 2)
    memory.keep("a", "aaaaaa")
    memory.keep("b", "bbbbbb")
    assert "a" not in memory
    assert memory.take("a") == "aaaaaa"
    assert "a" in disk
    memory.take("a")
    assert "a" not in disk
    assert memory.statistics.disk_hits == 2


def test_persisted_values_outlive_readers_and_the_keeper(tmp_path: Path) -> None:
    memory = keeper(10, Disk(tmp_path))
    memory.announce("a")
    memory.keep("a", "aaaa", persist=True)
    memory.take("a")
    memory.clear()
    assert keeper(10, Disk(tmp_path)).take("a") == "aaaa"


def test_a_damaged_file_is_a_miss(tmp_path: Path) -> None:
    memory = keeper(1, Disk(tmp_path))
    memory.announce("a", 2)
    memory.keep("a", "aaaa")
    (tmp_path / "a.kept").write_bytes(b"junk")
    with pytest.raises(KeyError):
        memory.take("a")


def test_what_cannot_be_written_is_only_not_there(tmp_path: Path) -> None:
    memory = Keeper(0, disk=Disk(tmp_path))
    memory.announce("a", 2)
    assert not memory.keep("a", threading.Lock())
    with pytest.raises(KeyError):
        memory.take("a")


def test_threads_that_ask_together_make_once() -> None:
    memory, made = keeper(100), []

    def make() -> str:
        made.append(1)
        time.sleep(0.02)
        return "value"

    memory.announce("a", 8)
    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda _: memory.fetch("a", make), range(8)))
    assert values == ["value"] * 8
    assert len(made) == 1
    assert "a" not in memory


def test_what_a_maker_raises_reaches_the_caller_and_the_next_tries_again() -> None:
    memory = keeper(100)

    def fail() -> str:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        memory.fetch("a", fail)
    assert memory.fetch("a", lambda: "x") == "x"


def test_the_only_reader_does_not_keep_what_it_makes() -> None:
    memory = keeper(100)
    memory.announce("a")
    assert memory.fetch("a", lambda: "x") == "x"
    assert memory.statistics.peak == 0


def test_many_threads_lose_nothing_and_stay_within_the_budget(tmp_path: Path) -> None:
    memory, readers, tokens = keeper(40, Disk(tmp_path)), 6, [f"t{i}" for i in range(20)]
    for token in tokens:
        memory.announce(token, readers)

    def read(token: str) -> bool:
        value = memory.fetch(token, lambda: token * 3)
        return bool(value == token * 3 and memory.statistics.bytes <= 40)

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(read, tokens * readers))
    now = memory.statistics
    assert now.hits + now.misses == len(tokens) * readers
    assert (now.bytes, list(tmp_path.iterdir())) == (0, [])
    assert now.peak <= 40


Step = tuple[str, str, int]
steps = st.lists(
    st.tuples(
        st.sampled_from(("announce", "keep", "take", "drop")),
        st.sampled_from("abcd"),
        st.integers(1, 12),
    ),
    max_size=40,
)


@given(steps, st.integers(0, 20))
def test_any_use_keeps_the_accounts(uses: list[Step], budget: int) -> None:
    memory, held = keeper(budget), dict[str, str]()

    def keep(token: str, n: int) -> None:
        held[token] = token * n
        memory.keep(token, token * n)

    def take(token: str, n: int) -> None:
        if token in memory:
            assert memory.take(token) == held[token]

    actions: dict[str, Callable[[str, int], Any]] = {
        "announce": memory.announce,
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


def test_no_readers_cannot_be_announced() -> None:
    with pytest.raises(InputError, match="`readers`"):
        keeper(1).announce("a", 0)
