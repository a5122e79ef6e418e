"""The planner of workers and servers against trying all, and against the simulator.

Prints, with fresh draws each time unless --seed is given:
* closed forms against every number of workers: random homogeneous cases;
* roles of up to 12 machines of 3 kinds against every role of every machine, by formulas,
  enumerated and by integer programs;
* regret of the formulas' choice in simulated time, and their error, for N = 4..32 machines
  and eight ratios of pull to compute seconds, noise of 5%; beside equation (5) of Cruise;
* the same for pools of two kinds, where the simulator decides among the best;
* seconds of a plan.

usage: server_planner.py [--cases 20000] [--seed S] [--quick]
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np

from mlopt.server.autoconfig import best, predicted, shared
from mlopt.server.model import Kind, Work, balance, seconds
from mlopt.server.simulate import simulate

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.server.rehearsal import epoch_seconds

LINK = 1e8
WAYS = [("lockstep", "in turn"), ("lockstep", "at once"), ("bounded", "auto"),
        ("async", "auto"), ("prefetch", "auto")]  # fmt: skip
RATIOS = (0.034, 0.1, 0.153, 0.3, 0.605, 1.0, 2.0, 3.0)


def pool(kinds, of):
    return {f"m{number}": kinds[kind] for number, kind in enumerate(of)}


def drawn(random, k):
    return [Kind(*(random.uniform(0.25, 1, 2) * (1, LINK))) for _ in range(k)]


def closed_forms(cases, random):
    """Cases in which no neighbour of the closed form is the best number of workers."""
    wrong = dict.fromkeys(WAYS, 0)
    for case in range(cases):
        way = WAYS[case % len(WAYS)]
        n = int(random.integers(2, 200))
        compute, pull, applying = 10 ** random.uniform(-4, 1, 3)
        applying *= random.random() < 0.5
        work = Work(pull * LINK, applying=applying, mode=way[0], pulls=way[1])
        w = np.arange(1, n)
        every = seconds([Kind(compute, LINK)], w[:, None], n - w[:, None], work)
        at = balance(n, compute, pull, work)
        near = np.clip([math.floor(at), math.ceil(at)], 1, n - 1)
        wrong[way] += every[near - 1].min() > every.min() * (1 + 1e-9)
    print(f"closed forms: {sum(wrong.values())} of {cases} are not the best of all")


def roles(cases, random):
    """By how much the planner is above the best of all roles."""
    worst = {"enumerated": 0.0, "integer programs": 0.0}
    for case in range(cases):
        members = pool(drawn(random, 3), random.integers(3, size=random.integers(3, 13)))
        mode, pulls = WAYS[case % len(WAYS)]
        work = Work(
            LINK * 10 ** random.uniform(-2, 0.5), 1.0, random.choice([0, 0.002]),
            random.choice([0, 0.05]), mode, pulls,
        )  # fmt: skip
        groups = [[*g] for _, g in itertools.groupby(sorted(members.values()))]
        each = [
            [(w, s) for w in range(len(g) + 1) for s in range(len(g) - w + 1)]
            for g in groups
        ]
        every = np.array([*itertools.product(*each)], float)
        kinds = np.array([g[0] for g in groups])
        least = seconds(kinds, every[..., 0], every[..., 1], work).min()
        for how, most in (("enumerated", 50_000), ("integer programs", 0)):
            found = best(members, work, enumerated=most, judged=1).seconds
            worst[how] = max(worst[how], found / least - 1)
    print(f"up to 12 machines of 3 kinds, {cases} cases: above the best of all at most "
          + ", ".join(f"{above:.2%} {how}" for how, above in worst.items()))  # fmt: skip


def regrets(sizes):
    """Regret of the choice in simulated time, N = 4..32, and errors of the seconds."""
    machine = Kind(1.0, LINK)
    for mode, pulls in WAYS:
        rows = {"ours": [0.0, 0.0], "equation (5)": [0.0, 0.0]}
        for n, ratio in itertools.product(sizes, RATIOS):
            work = Work(ratio * LINK, mode=mode, pulls=pulls, noise=0.05)
            paper = replace(work, mode="lockstep", pulls="in turn", noise=0.0)
            w = np.arange(1, n)
            said = {
                "ours": seconds([machine], w[:, None], n - w[:, None], work),
                "equation (5)": seconds([machine], w[:, None], n - w[:, None], paper),
            }
            chosen = {"equation (5)": int(w[said["equation (5)"].argmin()])}
            members = pool([machine], [0] * n)
            chosen["ours"] = len(best(members, work).configuration.workers)
            near = {x for one in said.values() for x in w[one <= 1.2 * one.min()]}
            seen = {
                int(x): simulate([machine] * x, [machine] * (n - x), work).seconds
                for x in near | {*chosen.values()}
            }
            least = min(seen.values())
            for who, row in rows.items():
                row[0] = max(row[0], seen[chosen[who]] / least - 1)
                errors = [abs(said[who][x - 1] / seen[x] - 1) for x in seen]
                row[1] = max(row[1], *errors)
        print(f"{mode}, pulls {'at once' if not work.in_turn else 'in turn'}: " + "; ".join(
            f"{who}: regret {regret:.1%}, error {error:.0%}"
            for who, (regret, error) in rows.items()))  # fmt: skip


def mixed(cases, random):
    """The same where two kinds of machines are there: all roles simulated."""
    for mode, pulls in WAYS:
        regret, error = [], []
        for _ in range(cases):
            kinds, n = drawn(random, 2), int(random.integers(4, 10))
            of = np.sort(random.integers(2, size=n))
            members, counts = pool(kinds, of), np.bincount(of, minlength=2)
            work = Work(
                LINK * 10 ** random.uniform(-1.5, 0.3), mode=mode, pulls=pulls, noise=0.05
            )
            chosen = best(members, work).configuration
            seen = []
            names = [*members]
            for w in itertools.product(*(range(count + 1) for count in counts)):
                first, second = w[0], counts[0] + w[1]
                workers = names[:first] + names[counts[0] : second]
                servers = [name for name in names if name not in workers]
                if workers and servers:
                    seen.append(
                        epoch_seconds(
                            members, shared(members, workers, servers, work), work
                        )
                    )
            mine = epoch_seconds(members, chosen, work)
            again = epoch_seconds(members, chosen, work, seed=1)
            regret.append(mine / min(seen) - 1)
            error.append(abs(predicted(members, chosen, work) / again - 1))
        pulls = "in turn" if work.in_turn else "at once"
        print(
            f"two kinds, {mode}, pulls {pulls}: regret {np.mean(regret):.2%} on average, "
            f"{np.max(regret):.1%} at most; error {np.max(error):.1%} at most"
        )


def timed(name, members, work, **options):
    took = []
    for _ in range(3):
        begin = time.perf_counter()
        found = best(members, work, **options)
        took.append(time.perf_counter() - begin)
    print(f"plan of {name}, {work.mode}: {min(took) * 1e3:.0f} ms ({found.configuration})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    closed_forms(options.cases, random)
    roles(50 if options.quick else 300, random)
    regrets((4, 8, 32) if options.quick else (4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 28, 32))
    mixed(5 if options.quick else 40, random)
    for mode in ("lockstep", "async"):
        work = Work(0.3 * LINK, mode=mode)
        timed("32 machines of 1 kind", pool([Kind(1.0, LINK)], [0] * 32), work)
        timed("32 machines of 4 kinds", pool(drawn(random, 4), [*range(4)] * 8), work)
        timed("32 machines of 32 kinds", pool(drawn(random, 32), range(32)), work)


if __name__ == "__main__":
    main()
