"""The peer of topics.py, run by the Python of any environment that has tomotopy.

usage: peer_topics.py COUNTS.npz TOPICS ALPHA BETA SEED SWEEPS...

Prints JSON lines: seconds of this process's processor time on one worker, and the file in
which it left what each topic has of each word. Reading the counts is not timed, words as
texts and the making of documents neither.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise

import numpy as np
import tomotopy


def main(path, topics, alpha, beta, seed, *looks):
    """Train, and look on the way."""
    found = np.load(path)
    indptr, indices, data = found["indptr"], found["indices"], found["data"]
    words = int(found["shape"][1])
    model = tomotopy.LDAModel(
        k=int(topics), alpha=float(alpha), eta=float(beta), seed=int(seed) + 1
    )
    model.optim_interval = 0
    for a, b in pairwise(indptr):
        model.add_doc(
            [str(w) for w in np.repeat(indices[a:b], data[a:b].astype(int)).tolist()]
        )
    begin = time.process_time()
    model.train(0)  # draws the first topics
    taken, done = time.process_time() - begin, 0
    order = np.array([int(word) for word in model.used_vocabs])
    for look in map(int, looks):
        begin = time.process_time()
        model.train(look - done, workers=1)
        taken, done = taken + time.process_time() - begin, look
        shares = np.array([model.get_topic_word_dist(k) for k in range(int(topics))])
        all_words = np.full((int(topics), words), shares.min())
        all_words[:, order] = shares
        file = f"{path}.{look}.npy"
        np.save(file, all_words)
        print(json.dumps({"sweeps": look, "seconds": taken, "file": file}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
