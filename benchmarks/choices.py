"""The choice of an implementation: what was chosen beside everything that could have been.

KeystoneML, Figure 6 (linear solvers), Table III (PCA) and Figure 7 (convolution): every
implementation that can be used runs on every problem, on one thread, timed by the processor
time of the process; the shortest of its runs counts. Costs are those of this machine as
`mlopt resources --calibrate` left them; `--uncalibrated` takes the built-in constants.

Equal work: linear solvers must reach an objective within 1e-6 of the least of the cell, PCA
the variance of the best within 1%; others do not count as best ("!"). Solvers that "auto"
takes by name only are shown, and count in a line of their own ("*").

usage: choices.py [--part linear|pca|convolution] [--quick] [--limit 6] [--output DIR]

An implementation that is predicted to take longer than twice the limit (seconds) is not run
("-").
"""

from __future__ import annotations

import argparse
import itertools
import os
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
warnings.filterwarnings("ignore")

import numpy as np

from mlopt.gd.least_squares import Ridge
from mlopt.pipeline.calibration import components, convolution, linear
from mlopt.pipeline.calibration.cases import Case
from mlopt.pipeline.calibration.running import warm_up
from mlopt.pipeline.library.pca import PCA, shape_of_fit
from mlopt.resources import Calibration, Resources

TIE, GAP, VARIANCE = 1.3, 1e-6, 0.01
NAMES_ONLY = {("Ridge", "dense"): ("sparse_cg",), ("PCA", "exact"): ("randomized",)}


@dataclass
class Cell:
    """What became of one problem."""

    series: str
    x: float
    chosen: str
    counted: str
    seconds: dict = field(default_factory=dict)
    missed: set = field(default_factory=set)
    by_name: tuple = ()

    def regret(self, *, all_names=False, counted=False):
        """Seconds of the chosen implementation over those of the best.

        ``counted``: of what would be chosen without a calibration; infinite if not run.
        """
        took = self.seconds.get(self.counted if counted else self.chosen, np.inf)
        return took / min(self.counting(all_names).values())

    def counting(self, all_names=False):
        """Seconds of the implementations that did the work and might have been chosen."""
        aside = self.missed | (set() if all_names else set(self.by_name))
        return {
            name: took
            for name, took in self.seconds.items()
            if name not in aside or name == self.chosen
        }

    @property
    def spread(self):
        """Worst over best."""
        values = self.counting().values()
        return max(values) / min(values)

    @property
    def is_worst(self):
        """Whether the worst was chosen where that takes twice as long as the best."""
        values = self.counting()
        return self.spread >= 2 and self.seconds[self.chosen] == max(values.values())


def run(case: Case, cell: Cell, machine: Resources, limit: float) -> None:
    """Every implementation, in turn; short ones up to five times."""
    results: dict[str, list[float]] = {}
    for turn in range(5):
        for name in case.options:
            predicted = case.seconds(name, machine)
            if predicted is None or (predicted > 2 * limit and name != cell.chosen):
                continue
            before = results.setdefault(name, [])
            if turn and (sum(before) > limit / 4 or turn * min(before) > 2.0):
                continue
            before.append(case.run(name)[0])
    cell.seconds = {name: min(times) for name, times in results.items()}


def show(case: Case, cell: Cell) -> None:
    """One line a cell."""
    parts = []
    for name in case.options:
        mark = "!" if name in cell.missed else "*" if name in cell.by_name else ""
        mark += "<" if name == cell.chosen else ""
        took = f"{cell.seconds[name]:.4f}" if name in cell.seconds else "-"
        parts.append(f"{name} {took}{mark}")
    print(
        f"{case.label:45} {'  '.join(parts)}  | {cell.chosen}, "
        f"{cell.regret():.2f} of best, worst/best {cell.spread:.1f}",
        flush=True,
    )


def linear_cells(quick):
    """(series, x, n, d, targets, density); figure 6."""
    dense = [(256, 20_000), (512, 20_000), (1024, 8192), (2048, 8192), (4096, 8192)]
    found = [
        (f"dense, {k} targets", d, n, d, k, 1.0)
        for k in (1, 16)
        for d, n in (dense[:2] if quick else dense)
    ]
    if not quick:
        found.append(("dense, 1 targets", 16_384, 2048, 16_384, 1, 1.0))
    wide = (256, 1024) if quick else (256, 1024, 4096, 16_384)
    rows = 20_000 if quick else 60_000
    return [
        (f"0.1% sparse, {k} targets", d, rows, d, k, 0.001) for k in (1, 16) for d in wide
    ] + found


def run_linear(machine, quick, limit):
    """Ridge, to a tolerance of 1e-6."""
    cells = []
    for series, x, n, d, k, density in linear_cells(quick):
        X, y = linear.problem(n, d, k, density)
        models = {}
        case = linear.case(Ridge(tol=1e-6, max_iter=150), X, y, machine, models)
        kind = "dense" if density >= 1 else "sparse"
        by_name = NAMES_ONLY.get(("Ridge", kind), ())
        cell = Cell(series, x, *picks(case, machine), by_name=by_name)
        run(case, cell, machine, limit)
        objectives = {name: objective(model, X, y) for name, model in models.items()}
        least = min(objectives.values())
        cell.missed = {m for m, f in objectives.items() if f > least * (1 + GAP)}
        show(case, cell)
        cells.append(cell)
    return cells


def objective(model, X, y):
    """What Ridge minimises, with its penalty of 1."""
    return float(((y - model.predict(X)) ** 2).sum() + (model.coef_**2).sum())


def pca_cells(quick):
    """(n, d, k); table III at the size of one machine."""
    if quick:
        return [(1000, 256, 1), (1000, 256, 64), (10_000, 256, 16)]
    small = [(n, d, k) for n in (1000, 10_000) for d in (256, 1024) for k in (1, 16, 64)]
    return [
        *small,
        *((100_000, 256, k) for k in (1, 64)),
        (2000, 4096, 16),
        (2000, 4096, 512),
    ]


def run_pca(machine, quick, limit):
    """PCA; the variance that the components explain says whether they are found."""
    cells, X, before = [], None, None
    for n, d, k in pca_cells(quick):
        if before != (n, d):
            X, before = components.problem(n, d), (n, d)
        models = {}
        case = components.case(PCA(k, random_state=0), X, machine, models)
        free = shape_of_fit(PCA(k), X).may_approximate
        by_name = () if free else NAMES_ONLY["PCA", "exact"]
        cell = Cell(f"{n} rows, {k} components", d, *picks(case, machine), by_name=by_name)
        run(case, cell, machine, limit)
        found = {name: one.explained_variance_.sum() for name, one in models.items()}
        best = max(found.values())
        cell.missed = {name for name, v in found.items() if v < (1 - VARIANCE) * best}
        show(case, cell)
        cells.append(cell)
    return cells


def run_convolution(machine, quick, limit):
    """Convolver: 256 x 256 images of 3 channels, 50 filters; figure 7."""
    cells = []
    sides = (2, 6, 30) if quick else (2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 21, 24, 27, 30)
    for outer in (True, False):
        for k in sides:
            images, filters = convolution.problem(1, 256, 3, 50, k, outer=outer)
            case = convolution.case(images, filters, machine)
            series = "separable filters" if outer else "filters of any rank"
            cell = Cell(series, k, *picks(case, machine))
            run(case, cell, machine, limit)
            show(case, cell)
            cells.append(cell)
    return cells


def picks(case: Case, machine: Resources) -> tuple[str, str]:
    """What is chosen, and what would be without a calibration."""
    return case.choose(machine), case.choose(replace(machine, calibration=Calibration()))


def summarize(part, cells):
    """The two promises, and how far the worst choice is from the best."""
    for all_names in (False, True):
        regrets = np.array([cell.regret(all_names=all_names) for cell in cells])
        print(
            f"{part}{' (and those by name only)' if all_names else ''}: "
            f"{len(cells)} cells, {(regrets <= TIE).mean():.0%} within 30% of the best, "
            f"greatest chosen/best {regrets.max():.2f}, mean {regrets.mean():.2f}"
        )
        if not any(cell.by_name for cell in cells):
            break
    counted = np.array([cell.regret(counted=True) for cell in cells])
    share = (counted <= TIE).mean()
    print(f"{part}: {share:.0%} within 30% of the best without a calibration")
    worst = sum(cell.is_worst for cell in cells)
    print(f"{part}: the worst was chosen, at twice the best or more, in {worst} cells")


def plot(part, cells, folder):
    """Seconds over the size of the problem, a panel a series, as a page of its own."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    series = list(dict.fromkeys(cell.series for cell in cells))
    names = list(dict.fromkeys(name for cell in cells for name in cell.seconds))
    figure = make_subplots(rows=1, cols=len(series), subplot_titles=series)
    palette = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2", "#97bbf5")
    colours = dict(zip(names, itertools.cycle(palette), strict=False))
    for column, one in enumerate(series, 1):
        here = [cell for cell in cells if cell.series == one]
        for name in names:
            points = [(c.x, c.seconds[name]) for c in here if name in c.seconds]
            if points:
                x, y = zip(*points, strict=True)
                figure.add_scatter(
                    x=x, y=y, name=name, legendgroup=name, showlegend=column == 1,
                    line_color=colours[name], row=1, col=column,
                )  # fmt: skip
        chosen = [(c.x, c.seconds[c.chosen]) for c in here]
        x, y = zip(*chosen, strict=True)
        figure.add_trace(
            go.Scatter(
                x=x, y=y, name="chosen", mode="markers", showlegend=column == 1,
                marker={"symbol": "circle-open", "size": 14, "color": "black"},
            ), row=1, col=column,
        )  # fmt: skip
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log", title="seconds", col=1)
    folder.mkdir(parents=True, exist_ok=True)
    figure.write_html(folder / f"choices-{part}.html", include_plotlyjs=True)


OPERATORS = {"convolution": "Convolver", "pca": "PCA", "linear": "Ridge"}
PARTS = {"convolution": run_convolution, "pca": run_pca, "linear": run_linear}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--limit", type=float, default=6.0)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--uncalibrated", action="store_true")
    args = parser.parse_args()
    machine = replace(Resources.probe(), threads=1)
    if args.uncalibrated:
        machine = replace(machine, calibration=Calibration())
    print(machine, f"calibrated: {len(machine.calibration.entries)} implementations")
    for part, measure in PARTS.items():
        if args.part in (None, part):
            warm_up(OPERATORS[part], machine)
            cells = measure(machine, args.quick, args.limit)
            summarize(part, cells)
            if args.output:
                plot(part, cells, args.output)


if __name__ == "__main__":
    main()
