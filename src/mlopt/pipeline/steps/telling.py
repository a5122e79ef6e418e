"""What a pipeline says of its steps: before a run, beside it, and in its notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.compose import ColumnTransformer

from mlopt.cluster.parcel import check_packs
from mlopt.identity import class_of
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.steps.nested import is_pipeline, parts_of
from mlopt.pipeline.steps.repeating import doubt, is_random

Steps = Sequence[tuple[str, Any]]


def check_picklable(steps: Steps) -> None:
    """Every step must travel to the workers; see `mlopt.cluster.parcel.check_packs`."""
    check_packs("Step", _leaves(steps))


def doubt_notes(steps: Steps) -> tuple[str, ...]:
    """Which steps are fitted as often as they occur, and what would change that."""
    leaves = list(_leaves(steps))
    random = [path for path, step in leaves if is_random(step)]
    others = {p: d for p, s in leaves if p not in random and (d := doubt(s)) is not None}
    notes = []
    if random:
        notes.append(
            "random without a seed, so neither shared nor remembered: "
            f"{', '.join(random)}; give `random_state` a number"
        )
    if others:
        said = ", ".join(f"{path} ({reason})" for path, reason in others.items())
        notes.append(f"neither shared nor remembered: {said}; see `mlopt.register`")
    return tuple(notes)


def report(pipeline: Any) -> None:
    """Print a line a step, as scikit-learn does where ``verbose`` is set."""
    if not pipeline.verbose:
        return
    count = len(pipeline.steps)
    for number, (name, _) in enumerate(pipeline.steps, 1):
        parts = [c for c in pipeline.plan_.choices if f"{c.step}/".startswith(f"{name}/")]
        seconds = sum(c.measured or 0.0 for c in parts)
        text = f"(step {number} of {count}) Processing {name}"
        print(f"[Pipeline] {text:.<60}, total={seconds:6.1f}s")  # noqa: T201  (asked for)


def like_last(steps: Steps, rows: Any) -> Any:
    """The rows, dense or sparse as the last step will give them from now on."""
    last = steps[-1][1]
    while is_pipeline(last) and last.steps:
        last = last.steps[-1][1]
    if (
        class_of(last) is ColumnTransformer
        and tables.is_sparse(rows)
        and not last.sparse_output_
    ):
        return rows.toarray()
    return rows


def _leaves(steps: Steps, around: str = "") -> Iterator[tuple[str, Any]]:
    """Steps with none inside that are planned by themselves, by their paths."""
    for name, step in steps:
        path = f"{around}{name}"
        if step is None or isinstance(step, str):
            continue
        if (parts := parts_of(step)) is None:
            yield path, step
        else:
            yield from _leaves(parts, f"{path}/")
