"""SIFT and Fisher vectors on digits: mlopt beside the same program in scikit-learn's parts.

The other program is what is written without mlopt: NumPy and SciPy image by image for the
descriptors and the vectors, scikit-learn for components, mixture and classifier. Both
compute the same descriptors (printed: the largest difference) and have the same sizes.
In one run, in turn; printed are medians of seconds, by part, and accuracies.

usage: sift_fisher.py [--data DIR] [--rows 2000] [--repeats 3]

``--data`` names the folder of the USPS files; without it, scikit-learn's digits are used.
"""

from __future__ import annotations

from compared import example  # isort: skip

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
from scipy.ndimage import convolve1d, gaussian_filter
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifier
from sklearn.mixture import GaussianMixture

from mlopt.pipeline.environment import environment

EXAMPLE = example("sift_fisher")
STEP, BIN, CONTRAST, SAMPLE = 1, 2, 0.005, 20_000


def window(number):
    apart = (number - 1.5) * BIN + np.arange(1 - BIN, BIN)
    return np.exp(-0.5 * (apart / (2 * BIN)) ** 2).mean()


def descriptors(image):
    """SIFT of one image, (m, 128)."""
    smooth = gaussian_filter(image, BIN / 6, mode="nearest")
    down, across = np.gradient(smooth)
    strength = np.hypot(down, across)
    turn = np.arctan2(down, across) * 8 / (2 * np.pi)
    triangle = (BIN - np.abs(np.arange(1 - BIN, BIN))) / BIN**2
    maps = []
    for number in range(8):
        apart = np.abs((turn - number + 4) % 8 - 4)
        part = strength * np.maximum(0, 1 - apart)
        part = convolve1d(part, triangle, axis=0, mode="nearest")
        maps.append(convolve1d(part, triangle, axis=1, mode="nearest"))
    maps = np.stack(maps, axis=2)
    weights = np.array([window(number) for number in range(4)])
    found = []
    for top in range(0, image.shape[0] - 3 * BIN, STEP):
        for left in range(0, image.shape[1] - 3 * BIN, STEP):
            bins = maps[top : top + 3 * BIN + 1 : BIN, left : left + 3 * BIN + 1 : BIN]
            found.append((bins * np.outer(weights, weights)[..., None]).ravel())
    found = np.array(found)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    seen = lengths > CONTRAST
    found = np.where(seen, np.minimum(found / np.where(seen, lengths, 1), 0.2), 0)
    again = np.linalg.norm(found, axis=1, keepdims=True)
    return (found / np.where(seen, again, 1)).astype(np.float32)


def fisher_vector(x, mixture):
    """Of the descriptors of one image, rooted and of length 1."""
    shares = mixture.predict_proba(x)
    w, means, spread = mixture.weights_, mixture.means_, np.sqrt(mixture.covariances_)
    parts = []
    for k in range(len(w)):
        apart = (x - means[k]) / spread[k]
        parts.append(shares[:, k] @ apart / len(x) / np.sqrt(w[k]))
    for k in range(len(w)):
        apart = (x - means[k]) / spread[k]
        parts.append(shares[:, k] @ (apart**2 - 1) / len(x) / np.sqrt(2 * w[k]))
    vector = np.concatenate(parts)
    vector = np.sign(vector) * np.sqrt(np.abs(vector))
    return vector / max(np.linalg.norm(vector), 2.2e-16)


def by_hand(X, y, X_test, components, centres):
    """Predictions for ``X_test``, and seconds of every part."""
    seconds, rng = {}, np.random.default_rng(0)

    def clock(name, begin):
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begin

    begin = time.perf_counter()
    train = np.stack([descriptors(image) for image in X])
    clock("descriptors", begin)
    begin = time.perf_counter()
    rows = train.reshape(-1, 128)
    few = rows[rng.choice(len(rows), min(SAMPLE, len(rows)), replace=False)]
    pca = PCA(components, random_state=0).fit(few)
    clock("components", begin)
    begin = time.perf_counter()
    mixture = GaussianMixture(
        centres, covariance_type="diag", init_params="k-means++", random_state=0
    ).fit(pca.transform(few))
    clock("mixture", begin)
    begin = time.perf_counter()
    vectors = np.stack([fisher_vector(pca.transform(x), mixture) for x in train])
    clock("vectors", begin)
    begin = time.perf_counter()
    model = RidgeClassifier(alpha=0.1).fit(vectors, y)
    clock("classifier", begin)
    begin = time.perf_counter()
    test = [fisher_vector(pca.transform(descriptors(image)), mixture) for image in X_test]
    found = model.predict(np.stack(test))
    clock("predict", begin)
    return found, seconds


def by_mlopt(X, y, X_test):
    """The same by the example's pipeline; the plan says what parts took."""
    environment.clear()
    begin = time.perf_counter()
    pipeline = EXAMPLE.sift_fisher().fit(X, y)
    fitted = time.perf_counter()
    found = pipeline.predict(X_test)
    return found, {"fit": fitted - begin, "predict": time.perf_counter() - fitted}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    X, y, X_test, y_test = EXAMPLE.load(given.data, given.rows)
    print(f"{len(X)} images to learn from, {len(X_test)} to test")

    ours = EXAMPLE.SIFT(step=STEP, bin_size=BIN).transform(X[:50])
    theirs = np.stack([descriptors(image) for image in X[:50]])
    print(f"descriptors differ by {np.abs(ours - theirs).max():.1e} at most")
    by_mlopt(X, y, X_test[:10])  # compiles

    runs = {"mlopt": [], "by hand": []}
    for _ in range(given.repeats):
        for name, run in (
            ("mlopt", lambda: by_mlopt(X, y, X_test)),
            (
                "by hand",
                lambda: by_hand(X, y, X_test, EXAMPLE.COMPONENTS, EXAMPLE.CENTRES),
            ),
        ):
            found, seconds = run()
            runs[name].append((float(np.mean(found == y_test)), seconds))
    totals = {}
    for name, results in runs.items():
        accuracy = statistics.median(one for one, _ in results)
        parts = {
            part: statistics.median(seconds[part] for _, seconds in results)
            for part in results[0][1]
        }
        totals[name] = statistics.median(sum(s.values()) for _, s in results)
        listed = ", ".join(f"{part} {took:.2f}" for part, took in parts.items())
        print(f"{name:<8} accuracy {accuracy:.4f}  {totals[name]:6.2f} s  ({listed})")
    print(f"mlopt takes {totals['mlopt'] / totals['by hand']:.2f} of the time")


if __name__ == "__main__":
    main()
