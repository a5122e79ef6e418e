"""What sizes in `mlopt serve` and `mlopt predict` rest on: CPU of what they bound.

    python benchmarks/sizes.py [--rounds 5]

adult as `mlopt fit` models it; CPU of one thread, the least of some rounds.

* bodies: of JSON that the event loop reads itself, up to `ASIDE` bytes.
* blocks: rows that `mlopt predict` does in a CPU second, by the bytes of a block of a file.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import mlopt
from mlopt.readers import read_table
from mlopt.scoring import scorer
from mlopt.scoring.files import Job
from mlopt.serving.app import ASIDE
from mlopt.serving.bodies import JSON, read_rows
from mlopt.serving.model import load_served
from serving import prepared

COPIES = 6
"""Of adult in the file: 24 MB, some blocks of any size that is tried."""


def least(rounds: int, work: Callable[[], object]) -> float:
    """CPU seconds."""
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def bodies(model: Path, rows: list[dict], rounds: int) -> None:
    served = load_served(model)
    each = len(json.dumps(rows[:100])) / 100
    for size in (ASIDE // 4, ASIDE, 4 * ASIDE):
        content = json.dumps(rows[: int(size / each)]).encode()
        seconds = least(rounds, lambda said=content: read_rows(said, JSON, served))
        print(f"a body of {len(content) >> 10} KB: {1e3 * seconds:.2f} ms")


def blocks(model: Path, table: Path, rounds: int) -> None:
    lines = table.read_text().splitlines(keepends=True)
    large, output = table.with_name("large.csv"), table.with_name("predicted.csv")
    large.write_text("".join([lines[0], *lines[1:] * COPIES]))
    estimator, job = mlopt.load(model), Job(large, output)
    usual = scorer.BLOCK
    for size in (usual // 4, usual // 2, usual, 2 * usual, 4 * usual):
        scorer.BLOCK = size
        one = scorer.Scorer(estimator, scorer.SHARE * size, False)
        seconds = least(rounds, lambda by=one: by.score_file((job, False)))
        count = COPIES * (len(lines) - 1)
        print(f"blocks of {size >> 10} KB: {count / seconds:,.0f} rows a CPU second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, _ = prepared(Path(folder))
        table = model.with_name("adult.csv")
        frame = read_table(table, target="income").X
        bodies(model, json.loads(frame.to_json(orient="records")), given.rounds)
        blocks(model, table, given.rounds)


if __name__ == "__main__":
    main()
