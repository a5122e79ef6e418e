"""The command line: parse, call, print. What is imported here slows every start."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from cyclopts.config import Env

from mlopt.errors import ConfigError
from mlopt.statuses import DONE, FAILED, interrupted, status_of

app = App(
    name="mlopt",
    help="A query optimizer for machine learning: predicts, chooses, runs, and says why.",
    config=Env("MLOPT_", command=True),
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
)

Source = Annotated[
    str,
    Parameter(
        help="A TOML file, or data: CSV, TSV, Parquet, LIBSVM, .npz (also compressed), "
        "sklearn:NAME."
    ),
]
Json = Annotated[bool, Parameter(name="--json", negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class Settings:
    """What a configuration says, said on the command line. Flags win over the file.

    Parameters
    ----------
    target
        Column to predict: its name, its number, or "last".
    test
        File to test on. [default: a fifth of the rows is set aside]
    drop
        Columns that must not be used, separated by commas.
    task
        classification, regression or auto. [default: auto]
    rare_classes
        What becomes of classes with too few rows: keep (refuse them), drop or merge.
        [default: keep]
    timeout
        Seconds in all, the final fit included; or 90s, 1m, 1h30m. [default: 60]
    n_trials
        Configurations to try. [default: as many as the time allows]
    scoring
        One of scikit-learn's scorers. [default: accuracy or r2]
    families
        Families to search, separated by commas. [default: all]
    cv
        Folds, or "auto". [default: auto]
    sampler
        random, grid or tpe. [default: tpe]
    bandit
        action-elimination, successive-halving, hyperband or none.
    seed
        [default: 0]
    n_jobs
        Threads. [default: all]
    storage
        Optuna storage URL, also from OPTUNA_STORAGE. [default: SQLite in the output]
    scheduler
        Address of a Dask scheduler to run on.
    """

    target: str | None = None
    test: str | None = None
    drop: str | None = None
    task: str | None = None
    rare_classes: str | None = None
    timeout: str | None = None
    n_trials: int | None = None
    scoring: str | None = None
    families: str | None = None
    cv: str | None = None
    sampler: str | None = None
    bandit: str | None = None
    seed: int | None = None
    n_jobs: int | None = None
    storage: str | None = None
    scheduler: str | None = None

    @property
    def names(self) -> list[str]:
        """The families by name."""
        return _listed(self.families)


DEFAULTS = Settings()


@app.command
def sweep(
    source: Source,
    *,
    output: Path | None = None,
    json_: Json = False,
    settings: Settings = DEFAULTS,
) -> int:
    """Search model families for the best model of a table.

    Parameters
    ----------
    output
        Directory for the results. [default: sweep-NAME]
    json_
        Print result.json to stdout, and nothing else there.
    """
    from mlopt.report.progress import progress
    from mlopt.sweep.outputs import summary
    from mlopt.sweep.result import SweepInterrupted
    from mlopt.sweep.run import sweep as run

    config = _config(source, settings, directory=output and str(output))
    folder = Path(config.output.directory or f"sweep-{_stem(config.data.path)}")
    limits = config.search
    with (
        progress(sys.stderr, limits.timeout, limits.n_trials) as tell,
        _client(limits.scheduler) as client,
    ):
        stopped = False
        try:
            result = run(
                config=config,
                output=folder,
                families=settings.names,
                client=client,
                observer=tell,
            )
        except SweepInterrupted as error:
            result, stopped = error.result, True
    _print(json.dumps(summary(result), indent=2) if json_ else result.describe(folder))
    return interrupted() if stopped else DONE


@app.command
def explain(
    source: Source,
    *,
    json_: Json = False,
    verbose: bool = False,
    settings: Settings = DEFAULTS,
) -> int:
    """Show the plan of a sweep, or of a query: RUN ... ON ...; fits nothing.

    Parameters
    ----------
    json_
        Print the plan as JSON.
    verbose
        Show every rejected alternative.
    """
    plan = _plan_of(source, settings)
    _print(json.dumps(plan.to_dict(), indent=2) if json_ else plan.explain(verbose=verbose))
    return DONE


@app.command
def fit(
    source: Source, *, output: Path, family: str = "linear", settings: Settings = DEFAULTS
) -> int:
    """Fit one model with its default settings, and save it.

    Parameters
    ----------
    output
        The .skops file to write.
    family
        linear, random_features, hist_gradient_boosting, random_forest, extra_trees, or one
        that the configuration names.
    """
    from mlopt.sweep.fit import fit_one
    from mlopt.sweep.models import dump_model
    from mlopt.writing import check_file, write_files

    config = _config(source, settings)
    check_file(output, [source, config.data.path, config.data.test])
    fitted = fit_one(config, family)
    write_files({output: dump_model(fitted.model)})
    _print(f"{fitted.plan.explain()}\n\ntest {fitted.scoring}: {fitted.score:.5g}")
    _print(f"model: {output}")
    return DONE


@app.command
def predict(
    model: Path,
    *data: str,
    output: str | None = None,
    proba: bool = False,
    memory: str | None = None,
    scheduler: str | None = None,
) -> int:
    """Predict with a saved model: CSV with a column `prediction`.

    Of several files, a pattern or a folder, or with a folder for its output, each file gets
    one of its own, in bounded memory; the same command goes on where it was.

    Parameters
    ----------
    model
        A .skops file, or the output folder of a sweep.
    data
        Rows to predict: a file, or files, patterns and folders.
    output
        File to write, or folder. [default: stdout]
    proba
        Add a column probability_<class> for each class.
    memory
        Bytes that rows of files may take, as 1GiB. [default: a quarter of what there is]
    scheduler
        Address of a Dask scheduler: its workers read, predict and write a file each.
    """
    if not data:
        raise ConfigError("`predict` needs rows: mlopt predict MODEL DATA.")
    if _many(data, output):
        return _predict_files(model, data, output, proba, memory, scheduler)
    if memory is not None or scheduler is not None:
        raise ConfigError(
            "`--memory` and `--scheduler` are for files with an output each: name a folder "
            "as `--output`."
        )
    return _predict_file(model, data[0], None if output is None else Path(output), proba)


def _many(data: tuple[str, ...], output: str | None) -> bool:
    """Whether files get an output each."""
    if len(data) > 1 or Path(data[0]).expanduser().is_dir():
        return True
    if any(sign in data[0] for sign in "*?[") and not Path(data[0]).exists():
        return True
    return output is not None and (output.endswith(os.sep) or Path(output).is_dir())


def _predict_files(
    model: Path,
    data: tuple[str, ...],
    output: str | None,
    proba: bool,
    memory: str | None,
    scheduler: str | None,
) -> int:
    if output is None:
        raise ConfigError("Several files need `--output DIR`: a folder for predictions.")
    from mlopt.report.files import files_progress
    from mlopt.scoring.predict import predict as predict_files

    with files_progress(sys.stderr) as observer, _client(scheduler) as client:
        found = predict_files(
            model, data, output=output, memory=memory, proba=proba, client=client,
            observer=observer, tell=_tell,
        )  # fmt: skip
    there = f", {len(found.skipped)} were there" if found.skipped else ""
    rows = sum(found.rows.values())
    _print(f"{len(found.rows)} files, {rows:,} rows, in {found.seconds:.1f} s{there}")
    for source, reason in found.failed.items():
        _tell(f"{source} failed: {reason}")
    return FAILED if found.failed else DONE


def _predict_file(model: Path, data: str, output: Path | None, proba: bool) -> int:
    from mlopt.sweep.models import model_file
    from mlopt.sweep.outputs import csv_of
    from mlopt.sweep.predict import predict_file
    from mlopt.writing import check_file, write_files

    model = model_file(model)
    if output is not None:
        check_file(output, [model, data])
    content = csv_of(predict_file(model, data, proba=proba, tell=_tell))
    if output is None:
        sys.stdout.write(content.decode())
    else:
        write_files({output: content})
    return DONE


@app.command
def serve(
    model: Path,
    *,
    port: int = 8000,
    host: str = "127.0.0.1",
    token_file: Path | None = None,
    deadline: float = 10.0,
    latency: float = 0.1,
    body: str = "8MiB",
    memory: str = "64MiB",
) -> int:
    """Answer requests for predictions over HTTP, many clients' rows in one call.

    Parameters
    ----------
    model
        A .skops file, or the output folder of a sweep; a new one there replaces it.
    port
        0 takes any that is free.
    host
        Other addresses than loopback need a token.
    token_file
        File of the token that requests must send; or MLOPT_TOKEN in the environment.
    deadline
        Seconds that a request may take.
    latency
        Seconds within which what is let in should be answered; beyond that, 503.
    body
        Largest body of a request.
    memory
        For the bodies of all open requests.
    """
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        needed = " and ".join(missing)
        raise ConfigError(f"`mlopt serve` needs {needed}: pip install 'mlopt[serve]'.")
    from mlopt.serving.app import Limits
    from mlopt.serving.server import Where, read_token
    from mlopt.serving.server import serve as run
    from mlopt.serving.service import Service

    limits = Limits(_seconds("deadline", deadline), _bytes("body", body))
    where = Where(host, port, read_token(token_file))
    service = Service(
        model,
        latency=_seconds("latency", latency),
        most_bytes=_bytes("memory", memory),
        tell=_tell,
    )
    run(service, where, limits, _tell)
    return DONE


@app.command
def run(query: str, *, output: Path | None = None) -> int:
    """Run a query: RUN classification ON data.csv HAVING TIME 5m, EPSILON 0.01

    Parameters
    ----------
    query
        RUN, PERSIST and PREDICT statements, with ; between them. See docs/language.md.
    output
        File for the predictions, one a line. [default: stdout]
    """
    from mlopt.query.parser import parse

    parse(query)  # a query that cannot be read says so before anything is imported
    from mlopt.query.printing import run_and_print

    run_and_print(query, output)
    return DONE


@app.command
def resources(
    *,
    refresh: bool = False,
    calibrate: bool = False,
    operators: str | None = None,
    forget: bool = False,
    tiny: Annotated[bool, Parameter(show=False)] = False,
) -> int:
    """Measure what this machine can do, in about a second, and show it.

    Then comes what is remembered of the fits that ran here.

    Parameters
    ----------
    refresh
        Measure again, even if there is a result of an earlier time.
    calibrate
        Also run the implementations of operators, in a few minutes, and keep how far their
        costs are off here: later choices take it into account.
    operators
        Operators to calibrate, separated by commas. [default: all]
    forget
        Forget how long fits have taken here, beside what was predicted.
    """
    from mlopt.report.machine import describe
    from mlopt.resources import Resources
    from mlopt.resources.experience import forget as forget_fits

    if forget:
        forget_fits()
    machine = Resources.probe(refresh=refresh)
    _print(describe(machine))
    if calibrate:
        from mlopt.report.calibration import calibrate as run_calibration

        run_calibration(machine, _listed(operators), tiny, show=_print, tell=_tell)
    return DONE


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 bad input, 130 interrupted."""
    sys.exit(status_of(lambda: run_arguments(arguments)))


def run_arguments(arguments: list[str] | None = None) -> Any:
    """The status of a command line, or None where all went well."""
    return app(
        arguments, exit_on_error=False, print_error=False, result_action="return_value"
    )


def _config(source: str, settings: Settings, **given: Any) -> Any:
    from mlopt.sweep.config import Config, load, override

    given |= vars(settings)
    given["storage"] = given["storage"] or os.environ.get("OPTUNA_STORAGE") or None
    with suppress(TypeError, ValueError):  # seconds; or a duration, or neither
        given["timeout"] = float(given["timeout"])
    given["drop"] = _listed(given["drop"]) or None
    given["cv"] = int(given["cv"]) if (given["cv"] or "").isdigit() else given["cv"]
    if source.endswith(".toml"):
        return override(load(Path(source)), **given)
    return override(Config(), path=source, **given)


def _plan_of(source: str, settings: Settings) -> Any:
    from mlopt.query.parser import is_query, parse

    if not is_query(source):
        from mlopt.sweep.run import explain as plan_of

        return plan_of(config=_config(source, settings), families=settings.names)
    parse(source)
    if settings != DEFAULTS:
        raise ConfigError("A query says everything itself: leave the settings out.")
    from mlopt.query.run import Session

    return Session().explain(source)


def _seconds(name: str, value: float) -> float:
    if not 0 < value < float("inf"):
        raise ConfigError(f"--{name} must be seconds above 0, got {value}.")
    return value


def _bytes(name: str, text: str) -> int:
    from dask.utils import parse_bytes

    with suppress(ValueError):
        number = int(parse_bytes(text))
        if number > 0:
            return number
    raise ConfigError(f'--{name} must be bytes, as in "8MiB", got {text!r}.')


def _listed(names: str | None) -> list[str]:
    """Names that commas separate."""
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def _stem(path: str) -> str:
    """``data/adult.data.gz`` and ``sklearn:adult`` are both "adult"."""
    return path.partition("sklearn:")[2] or Path(path).name.partition(".")[0]


def _client(scheduler: str | None) -> Any:
    from contextlib import nullcontext

    if scheduler is None:
        return nullcontext()
    from mlopt.cluster.connect import connect

    return connect(scheduler)


def _tell(text: str) -> None:
    sys.stderr.write(f"mlopt: {text}\n")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
