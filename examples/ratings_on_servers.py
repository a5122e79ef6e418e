"""Factors of ratings as a job on servers that configures itself while members come and go.

MovieLens's small set again (see ``ratings.py``), by a step of one's own: it is given a
block of ratings and the model, goes down the squared errors, and returns what that adds.
The job begins with one worker and more servers than it needs; four members join, and leave.
Drawn are the seconds of each epoch, and when the job was configured anew. Members are
threads of this process, so each step sleeps for ``--pause`` seconds, as if it had more to
do. Run with::

    python examples/ratings_on_servers.py --output .
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mlopt.cluster import MeshHere
from mlopt.events import Event, Reconfigured
from mlopt.server import Job, Policy

DATA = Path(os.environ.get("MLOPT_DATA", Path(__file__).parents[2] / "shared/data"))
BLOCKS, BATCH = 48, 32
RATE, PENALTY = 0.02, 0.05
Arrays = Mapping[str, np.ndarray]


class Ratings(NamedTuple):
    """Of user ``users[j]`` for film ``items[j]``, above the mean of all."""

    users: np.ndarray
    items: np.ndarray
    stars: np.ndarray


class Descends:
    """A step: a pass over a block in small batches."""

    def __init__(self, pause: float) -> None:
        self.pause = pause

    def __call__(self, block: Ratings, model: Arrays) -> Arrays:
        time.sleep(self.pause)
        now = {name: array.copy() for name, array in model.items()}
        for at in range(0, len(block.stars), BATCH):
            u, i, stars = (column[at : at + BATCH] for column in block)
            errors = RATE * (stars - predicted(now, u, i))
            P, Q = now["P"][u], now["Q"][i]
            np.add.at(now["P"], u, errors[:, None] * Q - RATE * PENALTY * P)
            np.add.at(now["Q"], i, errors[:, None] * P - RATE * PENALTY * Q)
            np.add.at(now["b"], u, errors - RATE * PENALTY * now["b"][u])
            np.add.at(now["c"], i, errors - RATE * PENALTY * now["c"][i])
        return {name: now[name] - array for name, array in model.items()}


def predicted(model: Arrays, u: np.ndarray, i: np.ndarray) -> np.ndarray:
    """Stars above the mean."""
    products = np.einsum("ij,ij->i", model["P"][u], model["Q"][i])
    return np.asarray(model["b"][u] + model["c"][i] + products)


def read(folder: Path) -> tuple[list[Ratings], Ratings, float, dict[str, np.ndarray]]:
    """Blocks of ratings, those held out, the mean, and a model to begin with."""
    table = pd.read_csv(folder / "ml_latest_small/ratings.csv.gz")
    table = table.sample(frac=1, random_state=0)
    users, _ = pd.factorize(table.userId)
    items, _ = pd.factorize(table.movieId)
    mean = float(table.rating.mean())
    stars = table.rating.to_numpy() - mean
    rng = np.random.default_rng(0)
    model: dict[str, np.ndarray] = {
        "P": 0.1 * rng.standard_normal((users.max() + 1, 8)),
        "Q": 0.1 * rng.standard_normal((items.max() + 1, 8)),
        "b": np.zeros(users.max() + 1),
        "c": np.zeros(items.max() + 1),
    }
    held = np.arange(len(table)) % 10 == 0
    # All ratings of a user are in one block: nobody else changes what it has learnt of it.
    blocks = [~held & (users % BLOCKS == block) for block in range(BLOCKS)]
    cut = [Ratings(users[rows], items[rows], stars[rows]) for rows in (held, *blocks)]
    return cut[1:], cut[0], mean, model


class Diary:
    """When epochs ended, and what happened meanwhile, in seconds."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.ends = [0.0]
        self.changes: list[tuple[float, str]] = []
        self.pool: list[tuple[float, int]] = []

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began

    def told(self, event: Event) -> None:
        """The job is configured anew."""
        if isinstance(event, Reconfigured):
            self.changes.append((self.now, event.after))
            print(f"{self.now:5.1f} s  {event.before} -> {event.after}: {event.reason}")


def picture(diary: Diary) -> Figure:
    """Seconds of each epoch, and what came between."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    axes.stairs(np.diff(diary.ends), diary.ends, baseline=None, color="tab:blue")
    top = max(np.diff(diary.ends))
    for number, (when, what) in enumerate(diary.changes):
        axes.axvline(when, color="black", linestyle="--", linewidth=1)
        axes.text(when, top * (1 - 0.06 * (number % 6)), f" {what}", fontsize=8)
    colors = "tab:gray", "tab:green", "tab:red"
    for (when, many), color in zip(diary.pool, colors, strict=True):
        axes.axvline(when, color=color, linewidth=4, alpha=0.5,
                     label=f"{many} members from here")  # fmt: skip
    axes.margins(x=0.12)
    axes.set(xlabel="seconds", ylabel="seconds of an epoch", ylim=(0, None),
             title="Dashed: the job was configured anew")  # fmt: skip
    axes.legend(loc="center right")
    return figure


def train(job: Job, mesh: MeshHere, diary: Diary, epochs: int) -> None:
    """Some epochs with the members that there are, with four more, and without these."""
    came: list[str] = []
    for change in ("begin", "join", "leave"):
        if change == "join":
            came += [mesh.add() for _ in range(4)]
        if change == "leave":
            for member in came:
                mesh.lose(member)
        diary.pool.append((diary.now, len(mesh.members)))
        for _ in range(epochs):
            job.advance(1)
            diary.ends.append(diary.now)
        seconds = np.diff(diary.ends)[-epochs // 2 :].mean()
        print(f"{len(mesh.members)} members: {seconds:.2f} s an epoch in the end")


def main(arguments: Sequence[str] | None = None) -> Diary:
    """Train while members come and go; judge, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--output", type=Path, default=Path())
    parser.add_argument("--epochs", type=int, default=8, help="of each of three times")
    parser.add_argument("--pause", type=float, default=0.05)
    options = parser.parse_args(arguments)
    blocks, held, mean, model = read(options.data)
    # Threads of one machine are in each other's way: gains below 15% may be chance.
    policy = Policy(0.15, interval=10 * options.pause, settle=20 * options.pause)
    with MeshHere(5) as mesh:
        diary = Diary()
        job = Job(
            Descends(options.pause), model, blocks, layout="servers", servers=4,
            policy=policy, observer=diary.told, where=mesh,
        )  # fmt: skip
        train(job, mesh, diary, options.epochs)
        found = job.model
        job.close()
    told = np.clip(mean + predicted(found, held.users, held.items), 0.5, 5)
    error = np.sqrt(np.mean((told - mean - held.stars) ** 2))
    print(f"RMSE {error:.3f} on {len(held.stars):,} ratings held out")
    path = options.output / "ratings_on_servers.png"
    picture(diary).savefig(path, dpi=120)
    print(f"epochs are drawn in {path}")
    return diary


if __name__ == "__main__":
    main()
