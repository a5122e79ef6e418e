"""Topics on one core, beside scikit-learn's variational Bayes and tomotopy.

On the Associated Press corpus (2246 documents, 435,838 tokens), a tenth of it held out:
processor seconds, on one thread, to the same held-out perplexity, judged for all by the
same function (half of the words of a document are given, the others predicted), with the
same priors. The goal is the worse of the best ones that both come to in the median; a curve
of perplexity over seconds is followed along straight lines. They take turns; medians of
``--rounds`` seeds (scikit-learn's: one). Without the data on a drawn corpus.

Printed, too, are the prices "gibbs.sparse", "gibbs.shard", "growth.again.topics" and
"growth.judged.topics".

usage: topics.py [--peers PYTHON] [--rounds 5] [--topics 20 100] [--data FOLDER]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import LatentDirichletAllocation as Variational

import mlopt
import mlopt.topics.training as sweeps_of

DATA = Path(os.environ.get("MLOPT_DATA", Path(__file__).parents[2] / "shared/data"))
PEER = Path(__file__).with_name("peer_topics.py")
ALPHA, BETA = 0.1, 0.01
LOOKS = (5, 10, 20, 40, 70, 100)
"""Sweeps after which perplexity is looked at."""
ROUNDS_OF_BAYES = (3, 6, 12, 25, 50)
"""The same, of passes of variational Bayes."""


def press(folder):
    """Counts of the corpus (documents, words)."""
    with gzip.open(folder / "ap_lda/docword.ap.txt.gz", "rt") as file:
        text = file.read().split("\n")
    shape = int(text[0]), int(text[1])
    table = np.array([[int(x) for x in line.split()] for line in text[3:] if line])
    return sp.csr_array((table[:, 2], (table[:, 0] - 1, table[:, 1] - 1)), shape=shape)


def drawn(documents=2000, words=8000, topics=50, length=200):
    """Counts of a corpus that is drawn from the model."""
    random = np.random.default_rng(0)
    of_topics = random.dirichlet(np.full(words, 0.05), size=topics).cumsum(axis=1)
    rows, columns = [], []
    for row in range(documents):
        share = random.dirichlet(np.full(topics, 0.1))
        chosen = random.choice(topics, size=length, p=share)
        found = [np.searchsorted(of_topics[k], u) for k, u in zip(
            chosen, random.random(length), strict=True)]  # fmt: skip
        columns.append(np.minimum(found, words - 1))
        rows.append(np.full(length, row))
    entries = np.ones(documents * length), (np.concatenate(rows), np.concatenate(columns))
    return sp.csr_array(entries, shape=(documents, words))


def model_of(topics, **settings):
    """Ours, on one thread."""
    given = {"doc_topic_prior": ALPHA, "topic_word_prior": BETA, "random_state": 0}
    return mlopt.LatentDirichletAllocation(topics, n_jobs=1, **(given | settings))


def perplexity(components, held):
    """Of topics that anybody found."""
    judge = model_of(len(components), max_iter=1).fit(held[:1])
    judge.components_ = components
    return judge.perplexity(held)


def ours(train, held, topics, seed=0):
    """Seconds and perplexities."""
    model, taken, curve = model_of(topics, warm_start=True, random_state=seed), 0.0, []
    for sweeps in LOOKS:
        begin = time.process_time()
        model.set_params(max_iter=sweeps).fit(train)
        taken += time.process_time() - begin
        curve.append((taken, model.perplexity(held)))
    return curve


def variational(train, held, topics):
    """The same of scikit-learn's, all documents at a time."""
    curve = []
    for passes in ROUNDS_OF_BAYES:
        model = Variational(
            topics, doc_topic_prior=ALPHA, topic_word_prior=BETA, max_iter=passes,
            random_state=0, n_jobs=1,
        )  # fmt: skip
        begin = time.process_time()
        model.fit(train)
        curve.append((time.process_time() - begin, perplexity(model.components_, held)))
    return curve


def tomotopy(train, held, topics, python, seed):
    """The same of tomotopy's sampler, on one worker."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "counts.npz"
        sp.save_npz(path, train)
        command = [python, PEER, path, topics, ALPHA, BETA, seed, *LOOKS]
        done = subprocess.run(map(str, command), capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [
            (line["seconds"], perplexity(np.load(line["file"]), held)) for line in lines
        ]


def seconds_to(goal, curve):
    """Where a curve comes down to the goal; infinite where it does not."""
    before = (0.0, np.inf)
    for taken, value in curve:
        if value <= goal:
            if np.isinf(before[1]):
                return taken
            share = (before[1] - goal) / (before[1] - value)
            return before[0] + share * (taken - before[0])
        before = taken, value
    return np.inf


def beside(name, curves):
    """Ours beside another's: curves of both, one for each round and seed."""
    best = [statistics.median(min(p for _, p in run) for run in side) for side in curves]
    goal = max(best)
    own, other = (
        statistics.median(seconds_to(goal, run) for run in side) for side in curves
    )
    print(
        f"  {name}: to perplexity {goal:.0f} {other:.2f} s, ours {own:.2f} s: "
        f"{other / own:.1f}x; best {best[1]:.0f}, ours {best[0]:.0f}",
        flush=True,
    )


def took(call):
    """Processor seconds."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def prices(train, held):
    """What `mlopt.prices` holds."""
    for topics in (20, 100, 150, 200, 400):
        each = {}
        for sampler in ("dense", "sparse"):
            fit = model_of(topics, sampler=sampler, warm_start=True, max_iter=10).fit(train)
            fit.set_params(max_iter=40)
            each[sampler] = took(lambda fit=fit: fit.fit(train)) / 30
        rates = {way: train.sum() / seconds / 1e6 for way, seconds in each.items()}
        one = took(lambda k=topics: model_of(k, max_iter=1).fit(train))
        sweep = min(each.values())
        judged = took(lambda fit=fit: fit.perplexity(held)) * train.sum() / held.sum()
        print(
            f"{topics} topics: dense {rates['dense']:.1f}, sparse {rates['sparse']:.1f} M "
            f"tokens/s; what begins anew takes {(one - sweep) / sweep:.1f} sweeps, to "
            f"judge as many documents {judged / sweep:.1f}"
        )
    whole, usual = [], sweeps_of.SHARD
    for shard in (train.sum() + 1, train.sum() / 4):
        sweeps_of.SHARD = shard
        model = model_of(20, warm_start=True, max_iter=10).fit(train)
        whole.append(took(lambda m=model: m.set_params(max_iter=40).fit(train)) / 30)
    sweeps_of.SHARD = usual
    print(f"four shards on one thread take {whole[1] / whole[0]:.2f} of one")


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--topics", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--data", type=Path, default=DATA)
    arguments = parser.parse_args()
    there = (arguments.data / "ap_lda").is_dir()
    X = press(arguments.data) if there else drawn()
    X, held = X[np.arange(X.shape[0]) % 10 > 0], X[np.arange(X.shape[0]) % 10 == 0]
    print(f"{X.shape[0]} documents, {X.sum():.0f} tokens, {X.shape[1]} words")
    model_of(2, max_iter=1).fit(X[:9]).perplexity(held[:9])  # compiles
    prices(X, held)
    for topics in arguments.topics:
        print(f"{topics} topics")
        beside("scikit-learn", [[ours(X, held, topics)], [variational(X, held, topics)]])
        if arguments.peers:
            pairs = [
                (
                    ours(X, held, topics, seed),
                    tomotopy(X, held, topics, arguments.peers, seed),
                )
                for seed in range(arguments.rounds)
            ]
            beside("tomotopy", list(zip(*pairs, strict=True)))


if __name__ == "__main__":
    main()
