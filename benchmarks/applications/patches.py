"""7291 digits learnt from, 2007 judged: 128 filters learnt from patches, then linear.

The other program is what NumPy and scikit-learn offer: views of windows, a batch of images
at a time, so that what is made on the way fits in memory.

usage: patches.py [--data DIR] [--repeats 3] [--rows N]
"""

from __future__ import annotations

from compared import arguments, compare, example  # isort: skip

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

EXAMPLE = example("patches")

FILTERS, SIZE, PATCHES, BATCH = 128, 6, 20_000, 250
EPS, VARIANCE, ALPHA = 0.1, 0.1, 0.25


def normalized(patches):
    """Rows of mean 0, divided by the root of their variance and a little."""
    centred = patches - patches.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(patches.var(axis=-1, ddof=1, keepdims=True) + VARIANCE)


def learnt(X, seed):
    """Filters and offsets: centroids of normalised, whitened patches."""
    rng = np.random.default_rng(seed)
    windows = sliding_window_view(X, (SIZE, SIZE), axis=(1, 2))
    which = [rng.integers(0, size, PATCHES) for size in windows.shape[:3]]
    patches = normalized(windows[tuple(which)].reshape(PATCHES, -1))
    mean = patches.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(patches.T))
    whitener = ((vectors / np.sqrt(values + EPS)) @ vectors.T).astype(np.float32)
    found = KMeans(FILTERS, n_init=1, max_iter=50, random_state=seed)
    atoms = found.fit((patches - mean) @ whitener).cluster_centers_
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    filters = whitener @ atoms.T
    return filters, mean @ filters


def features(X, filters, offset):
    """What the filters see, both signs, summed over windows of 5 x 5."""
    found = []
    for start in range(0, len(X), BATCH):
        windows = sliding_window_view(X[start : start + BATCH], (SIZE, SIZE), axis=(1, 2))
        patches = windows.reshape(*windows.shape[:3], -1)
        seen = normalized(patches) @ filters - offset
        both = np.concatenate([seen, -seen], axis=3) - np.float32(ALPHA)
        np.maximum(both, 0, out=both)
        pools = sliding_window_view(both, (5, 5), axis=(1, 2))[:, ::3, ::3]
        found.append(pools.sum(axis=(4, 5)).reshape(len(both), -1))
    return np.concatenate(found)


def main():
    given = arguments(__doc__)
    (Xa, ya), (Xb, yb) = (EXAMPLE.envelopes(given.data, part) for part in ("train", "test"))
    Xa, ya = Xa[: given.rows], ya[: given.rows]

    def ours(seed):
        model = EXAMPLE.pipeline().set_params(learnedconvolver__random_state=seed)
        model.fit(Xa, ya)
        return float((model.predict(Xb) == yb).mean())

    def theirs(seed):
        bank = learnt(Xa, seed)
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300))
        model.fit(features(Xa, *bank), ya)
        return float((model.predict(features(Xb, *bank)) == yb).mean())

    compare(f"patches, {len(Xa)} and {len(Xb)} images", ours, theirs, given.repeats)


if __name__ == "__main__":
    main()
