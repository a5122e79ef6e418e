"""Reconfigurations end where they should, in any order that their steps allow."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from mlopt.server.autoconfig import Configuration
from mlopt.server.moves import Step, Table, apportioned, paired, reconfiguration

NAMES = [f"m{number}" for number in range(7)]


@st.composite
def configurations(draw: st.DrawFn, names: list[str]) -> Configuration:
    roles = draw(st.lists(st.integers(0, 2), min_size=len(names), max_size=len(names)))
    roles[:2] = [1, 2]
    shares: list[dict[str, float]] = []
    for role in (1, 2):
        members = [m for m, has in zip(names, roles, strict=True) if has == role]
        weights = [draw(st.floats(0.05, 1.0)) for _ in members]
        whole = sum(weights)
        shares.append({m: one / whole for m, one in zip(members, weights, strict=True)})
    return Configuration(*shares)


@given(
    shares=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=9),
    blocks=st.integers(0, 200),
)
def test_blocks_are_dealt_to_the_last_and_nobody_is_a_block_off(
    shares: list[float], blocks: int
) -> None:
    whole = sum(shares)
    fair = {f"m{number}": one / whole for number, one in enumerate(shares)}
    found = apportioned(fair, blocks)
    assert sum(found.values()) == blocks
    assert all(abs(found[m] - fair[m] * blocks) < 1 + 1e-6 for m in fair)


@given(
    owners=st.lists(st.sampled_from(NAMES), min_size=1, max_size=60),
    wanted=configurations(NAMES),
)
def test_no_block_moves_in_vain(owners: list[str], wanted: Configuration) -> None:
    held = dict(enumerate(owners))
    counts = apportioned(wanted.servers, len(held))
    moves = paired(held, counts)
    surplus = {m: owners.count(m) - counts.get(m, 0) for m in NAMES}
    moved = [block for move in moves for block in move.blocks]
    assert len(moved) == len(set(moved)) == sum(max(0, n) for n in surplus.values())
    assert len(moves) < sum(n != 0 for n in surplus.values()) or not moves


@given(data=st.data(), seed=st.integers(0, 1000))
def test_any_allowed_order_ends_with_what_is_wanted(data: st.DataObject, seed: int) -> None:
    now = data.draw(configurations(NAMES[:5]))
    wanted = data.draw(configurations(NAMES[::-1][:6]))
    lost = set(data.draw(st.sets(st.sampled_from(NAMES[:1] + NAMES[2:5])))) - wanted.members
    owners: dict[Table, dict[int, str]] = {
        "rows": {b: data.draw(st.sampled_from([*now.workers])) for b in range(12)},
        "model": {b: data.draw(st.sampled_from([*now.servers])) for b in range(100, 120)},
    }
    steps = reconfiguration(now, wanted, owners, lost)
    roles: dict[str, object] = {m: now.role(m) for m in now.members - lost}
    todo, draw = dict(enumerate(steps)), random.Random(seed)
    done: set[int] = set()
    while todo:
        at = draw.choice([at for at, step in todo.items() if done.issuperset(step.after)])
        _do(todo.pop(at), roles, owners)
        done.add(at)
    assert roles == {m: wanted.role(m) for m in wanted.members}
    for held_, shares in zip(
        owners.values(), (wanted.workers, wanted.servers), strict=True
    ):
        held = [*held_.values()]
        assert all(abs(held.count(m) - len(held) * shares[m]) < 1 + 1e-6 for m in shares)
        assert set(held) <= set(shares)


def _do(step: Step, roles: dict[str, object], owners: dict[Table, dict[int, str]]) -> None:
    if step.move is None:
        if step.what == "delete":
            del roles[step.member]
            assert all(step.member not in held.values() for held in owners.values())
        else:
            assert (step.what == "switch") == (step.member in roles)
            roles[step.member] = step.role
        return
    blocks, source, target = step.move
    assert roles[target] == {"rows": "worker", "model": "server"}[step.table]
    # Rows leave who works on no more, or goes on working on others.
    assert (step.what == "restore") == (source not in roles)
    for block in blocks:
        assert owners[step.table][block] == source
        owners[step.table][block] = target


def test_a_reconfiguration_is_what_the_picture_shows() -> None:
    now = Configuration.even(["m1", "m2"], ["m3"])
    wanted = Configuration({"m1": 6 / 16, "m4": 10 / 16}, {"m2": 0.5, "m3": 0.5})
    rows = {b: "m1" if b < 8 else "m2" for b in range(16)}
    steps = reconfiguration(
        now, wanted, {"rows": rows, "model": dict.fromkeys(range(4), "m3")}
    )
    assert [str(step) for step in steps] == [
        "add m4 as worker",
        "switch m2 as server",
        "move 8 blocks of rows, m2 -> m4",
        "move 2 blocks of rows, m1 -> m4",
        "move 2 blocks of model, m3 -> m2",
    ]
    assert [step.after for step in steps] == [(), (), (0, 1), (0,), (1,)]
