"""Digits by random cosine features: mlopt beside the same program in scikit-learn's parts.

The other program is ``make_pipeline(RBFSampler(...), RidgeClassifier(...))`` with as many
features, the same gamma and alpha, in float32 as well; it holds all features at once. In
one run, in turn, each in a process of its own, every repeat with other random features for
both; printed are medians of the seconds to fit and to predict, mean accuracies, and peaks
of resident memory.

usage: digits.py [--data DIR] [--rows 20000] [--features 8192] [--repeats 3]

``--data`` names the folder of the four files of MNIST; without it, scikit-learn's digits.
"""

from __future__ import annotations

from compared import example  # isort: skip

import argparse
import multiprocessing
import resource
import statistics
import time
from pathlib import Path

from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

EXAMPLE = example("digits_random_features")


def theirs(setting):
    """scikit-learn's parts with the same settings."""
    sampler = RBFSampler(gamma=setting.gamma, n_components=setting.features, random_state=0)
    return make_pipeline(sampler, RidgeClassifier(setting.alpha))


def one(name, folder, settings, seed, answer):
    """Fit and predict once; seconds of both, cores' seconds, accuracy and peak bytes."""
    setting = EXAMPLE.Setting(**settings)
    X, y, X_test, y_test = EXAMPLE.load(folder, setting.rows)
    if name == "mlopt":
        model = EXAMPLE.digits_model(setting).set_params(features__random_state=seed)
    else:
        model = theirs(setting).set_params(rbfsampler__random_state=seed)
    started, cores = time.perf_counter(), time.process_time()
    model.fit(X, y)
    fitted, cores = time.perf_counter() - started, time.process_time() - cores
    started = time.perf_counter()
    accuracy = float((model.predict(X_test) == y_test).mean())
    predicted = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    answer.put((fitted, predicted, cores, accuracy, peak))


def main():
    """Both in turn; medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--features", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    setting = EXAMPLE.CUT if given.data else EXAMPLE.SMALL
    asked = {"rows": given.rows, "features": given.features}
    setting = setting._replace(**{name: n for name, n in asked.items() if n})
    print(setting)
    spawn, found = multiprocessing.get_context("spawn"), {"mlopt": [], "scikit-learn": []}
    for seed in range(given.repeats):
        for name, runs in found.items():
            answer = spawn.Queue()
            child = spawn.Process(
                target=one, args=(name, given.data, setting._asdict(), seed, answer)
            )
            child.start()
            runs.append(answer.get())
            child.join()
    print(f"{'':<14}{'fit s':>8}{'predict s':>11}{'cores s':>9}{'accuracy':>10}{'GiB':>7}")
    medians = {}
    for name, runs in found.items():
        fit, predict, cores, _, peak = map(statistics.median, zip(*runs, strict=True))
        accuracy = statistics.mean(run[3] for run in runs)
        medians[name] = fit, predict
        print(
            f"{name:<14}{fit:8.1f}{predict:11.2f}{cores:9.1f}{accuracy:10.4f}"
            f"{peak / 2**30:7.2f}"
        )
    pairs = zip(medians["scikit-learn"], medians["mlopt"], strict=True)
    fit, predict = (b / a for b, a in pairs)
    print(f"scikit-learn / mlopt: fit {fit:.1f}, predict {predict:.1f}")


if __name__ == "__main__":
    main()
