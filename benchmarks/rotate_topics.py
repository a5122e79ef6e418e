"""Topics on one worker process and on two, whose counts of words go round.

A corpus is drawn from the model: a hundred topics whose words follow Zipf's law, documents
of 200 tokens. Rounds of some sweeps on one worker, on two, and by one thread of this
process follow each other; printed are medians over rounds, a sweep: wall seconds, processor
seconds of the worker that had the most (what a machine with a core for each would need at
least), and of both. Then how well words of other documents are predicted after as many
sweeps of each, the sequential sampler among them, and whether the counts of all parts are
those of the topics of the tokens. At last two workers do the same again, one of which is
killed in the middle.

usage: rotate_topics.py [--tokens 20e6] [--topics 20 100] [--sweeps 5] [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import threading
from contextlib import closing

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import time

import numpy as np
import scipy.sparse as sp
from rotate import measured

import mlopt
import mlopt.topics.training as sequential
from mlopt.cluster import MeshDask, Threads, local_cluster
from mlopt.server.layouts.rotate import Rotate
from mlopt.topics.counting import Priors, table
from mlopt.topics.documents import Documents
from mlopt.topics.rotating import RotatingGibbs
from mlopt.topics.training import GibbsTraining, first_topics

PRIORS = Priors(0.1, 0.01)
LENGTH = 200


def drawn(tokens, words, topics=100, seed=0):
    """Counts of a corpus (documents, words)."""
    random = np.random.default_rng(seed)
    documents = tokens // LENGTH
    zipf = 1 / (10 + np.arange(words))
    shares = random.dirichlet(np.full(topics, 0.1), size=documents)
    counts = random.multinomial(LENGTH, shares)
    rows, columns = [], []
    # The topics are of the corpus, whatever documents are drawn.
    theirs = np.random.default_rng(1)
    for topic in range(topics):
        upto = theirs.gamma(0.2 * words * zipf / zipf.sum()).cumsum()
        rows.append(np.repeat(np.arange(documents), counts[:, topic]))
        found = np.searchsorted(upto / upto[-1], random.random(len(rows[-1])))
        columns.append(np.minimum(found, words - 1))
    rows, columns = np.concatenate(rows), np.concatenate(columns)
    X = sp.coo_array((np.ones(len(rows), np.int32), (rows, columns)), (documents, words))
    return X.tocsr()


def counts_of(training):
    """Tokens of each word that are of each topic, (words, topics)."""
    return table(training.documents, training.topics, training.number)


def perplexity(topics, counts, held):
    """Of words that were held out, by counts (words, topics) of anybody."""
    judge = mlopt.LatentDirichletAllocation(
        topics, doc_topic_prior=PRIORS.alpha, topic_word_prior=PRIORS.beta, max_iter=1,
        layout="threads", n_jobs=1,
    ).fit(held[:1])  # fmt: skip
    judge.components_ = counts.T + PRIORS.beta
    return judge.perplexity(held)


def exact(training):
    """Whether counts of parts are those of the topics, and as many as there are tokens."""
    parts, states = training.layout.model()
    strata = training.strata
    again = strata.model(strata.topics(states), training.number, training.sparse)
    same = all(np.array_equal(a["of_all"], b["of_all"]) for a, b in zip(
        parts, again, strict=True))  # fmt: skip
    if not training.sparse:
        pairs = zip(parts, again, strict=True)
        same &= all(np.array_equal(a["of_words"], b["of_words"]) for a, b in pairs)
    return same and sum(p["of_all"].sum() for p in parts) == len(strata.documents.words)


def killed(client, training, after, sweeps):
    """Sweeps in which a worker is killed after some seconds."""
    pids = list(client.run(os.getpid).values())
    timer = threading.Timer(after, os.kill, [pids[0], signal.SIGKILL])
    timer.start()
    began = time.perf_counter()
    training.advance(sweeps)
    return time.perf_counter() - began


def compared(topics, train, held, given):
    documents = Documents.of(train)
    first = first_topics(len(documents.words), topics, 0)
    settings = documents, first, topics, PRIORS
    with (
        local_cluster(2) as client,
        MeshDask(client) as one_mesh,
        MeshDask(client) as two_mesh,
        closing(Threads(1)) as executor,
    ):

        def seconds():
            return list(client.run(time.process_time).values())

        here = GibbsTraining(*settings, seed=0, executor=executor)
        two = RotatingGibbs(*settings, seed=0, mesh=two_mesh, side=given.side)
        one = Rotate(two.layout.program, one_mesh, members=1)
        ways = {
            "one thread here": (here.advance, lambda: [time.process_time()]),
            "one worker": (one.advance, seconds),
            "two workers": (two.layout.advance, seconds),
        }
        found = {name: [] for name in ways}
        for advance, _ in ways.values():
            advance(1)  # begins
        for _ in range(given.rounds):
            for name, (advance, clock) in ways.items():
                found[name].append(measured(advance, given.sweeps, clock))
        waited = [
            f"{100 * d.waited / (d.compute + d.waited):.0f}%" for d in two.layout.done
        ]
        print(f"{topics} topics, {two.strata.side} strata; seconds a sweep")
        print("                       wall    CPU, busiest    CPU, all")
        medians = {}
        for name, rounds in found.items():
            wall = statistics.median(wall for wall, _ in rounds)
            busiest = statistics.median(max(cpu) for _, cpu in rounds)
            total = statistics.median(sum(cpu) for _, cpu in rounds)
            medians[name] = wall, busiest
            print(f"  {name:18s} {wall:.4f}  {busiest:14.4f}  {total:10.4f}")
        for name in ("one worker", "one thread here"):
            ratios = [a / b for a, b in zip(
                medians[name], medians["two workers"], strict=True)]  # fmt: skip
            walls = sorted(a[0] / b[0] for a, b in zip(
                found[name], found["two workers"], strict=True))  # fmt: skip
            print(
                f"  {name} : two workers, wall {ratios[0]:.2f}x (rounds {walls[0]:.2f}x to "
                f"{walls[-1]:.2f}x), CPU of the busiest {ratios[1]:.2f}x"
            )
        print(f"  of the two workers' time went into waiting: {', '.join(waited)}")
        print(f"  counts are exact: {exact(two)}")
        sequential.SHARD = len(documents.words) + 1
        alone = GibbsTraining(*settings, seed=0, executor=executor)
        alone.advance(two.passes)
        values = {
            "sequential": counts_of(alone), "shards of threads": counts_of(here),
            "two workers": counts_of(two),
        }  # fmt: skip
        for name, counts in values.items():
            print(
                f"  held-out perplexity after {two.passes} sweeps, {name}: "
                f"{perplexity(topics, counts, held):.2f}"
            )
        whole = two.topics
        one.close()
        sweeps = two.passes
        two.restore({"topics": first, "passes": 0})
        two.advance(1)
        half = medians["two workers"][0] * sweeps / 2
        took = killed(client, two, half, sweeps - 1)
        print(
            f"  a worker killed after {half:.1f} s of {took:.1f}: lost {two.layout.lost}, "
            f"members {len(two_mesh.members)}, perplexity "
            f"{perplexity(topics, counts_of(two), held):.2f}, counts exact {exact(two)}, "
            f"topics the same to the bit {np.array_equal(whole, two.topics)}"
        )
        two.close()


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=float, default=20e6)
    parser.add_argument("--topics", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--sweeps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", type=int)
    given = parser.parse_args()
    tokens = int(given.tokens)
    train = drawn(tokens, tokens // 400)
    held = drawn(tokens // 50, tokens // 400, seed=2)
    print(f"{train.shape[0]} documents, {train.sum()} tokens, {train.shape[1]} words")
    for topics in given.topics:
        compared(topics, train, held, given)


if __name__ == "__main__":
    main()
