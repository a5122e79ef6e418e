"""The command line: parse, call, print. What is imported here slows every start."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from cyclopts.config import Env

from mlopt.errors import ConfigError
from mlopt.settings import (
    FITTING,
    HERE,
    HIDDEN,
    SEARCHING,
    SETTINGS,
    Fitting,
    Json,
    Searching,
    Settings,
    Source,
    Where,
    check_fit,
    config_of,
    listed,
    stem_of,
)
from mlopt.statuses import DONE, FAILED, interrupted, status_of

app = App(
    name="mlopt",
    help="A query optimizer for machine learning: predicts, chooses, runs, and says why.",
    config=Env("MLOPT_", command=True),
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
)


@app.command
def sweep(
    source: Source,
    *,
    output: Path | None = None,
    json_: Json = False,
    settings: Settings = SETTINGS,
    where: Where = HERE,
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

    config = config_of(source, settings, directory=output and str(output), **where.given)
    folder = Path(config.output.directory or f"sweep-{stem_of(config.data.path)}")
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
    settings: Settings = SETTINGS,
    where: Where = HERE,
) -> int:
    """Show the plan of a sweep, or of a query: RUN ... or SELECT ...; fits samples alone.

    Parameters
    ----------
    json_
        Print the plan as JSON.
    verbose
        Show every rejected alternative.
    """
    plan = _plan_of(source, settings, where)
    _print(json.dumps(plan.to_dict(), indent=2) if json_ else plan.explain(verbose=verbose))
    return DONE


@app.command
def fit(
    source: Source,
    *,
    output: Path,
    family: str | None = None,
    settings: Fitting = FITTING,
    search: Annotated[Searching, HIDDEN] = SEARCHING,
    where: Annotated[Where, HIDDEN] = HERE,
) -> int:
    """Fit one model with its default settings, and save it.

    Parameters
    ----------
    output
        The .skops file to write.
    family
        linear, random_features, hist_gradient_boosting, random_forest, extra_trees, or one
        that the configuration names. Default: the first of these, or linear.
    """
    from mlopt.sweep.fit import fit_one, only_family
    from mlopt.sweep.models import dump_model
    from mlopt.writing import check_file, write_files

    check_fit(search, where)
    config = config_of(source, settings)
    check_file(output, [source, config.data.path, config.data.test])
    fitted = fit_one(config, only_family(config, family))
    write_files({output: dump_model(fitted.model)})
    _print(fitted.describe(output))
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
    from mlopt.scoring.commands import many, predict_file, predict_files

    if many(data, output):
        with _client(scheduler) as client:
            whole = predict_files(model, data, output, proba, memory, client, _tell)
        return DONE if whole else FAILED
    if memory is not None or scheduler is not None:
        raise ConfigError(
            "`--memory` and `--scheduler` are for files with an output each: name a folder "
            "as `--output`."
        )
    predict_file(model, data[0], None if output is None else Path(output), proba, _tell)
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
        Seconds that what is let in should take at most; 503 comes to the others.
    body
        Largest body of a request.
    memory
        For the bodies of all open requests.
    """
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        needed = " and ".join(missing)
        raise ConfigError(f"`mlopt serve` needs {needed}: pip install 'mlopt[serve]'.")
    from mlopt.parameters import bytes_of
    from mlopt.serving.app import Limits
    from mlopt.serving.server import Where, read_token
    from mlopt.serving.server import serve as run
    from mlopt.serving.service import Service

    limits = Limits(_seconds("deadline", deadline), bytes_of("--body", body, least=1))
    where = Where(host, port, read_token(token_file))
    service = Service(
        model,
        latency=_seconds("latency", latency),
        most_bytes=bytes_of("--memory", memory, least=1),
        apart=True,
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
def sql(
    query: str,
    *,
    table: tuple[str, ...] = (),
    output: Path | None = None,
    catalogue: Path | None = None,
    scheduler: str | None = None,
    settings: Settings = SETTINGS,
) -> int:
    """Answer SELECT ... PREDICT(tag, photo) GIVEN Labelled ... FROM ...: CSV.

    Parameters
    ----------
    query
        One SELECT; EXPLAIN SELECT shows its plan. See docs/sql.md.
    table
        NAME=FILE; may be said often. A NAME without is NAME.parquet or NAME.csv here.
    output
        File for the rows. [default: stdout]
    catalogue
        Folder of models. [default: MLOPT_CATALOGUE, or one in the user's home]
    scheduler
        Address of a Dask scheduler, for what must be searched.
    """
    from mlopt.predictive.commands import answer

    with _client(scheduler) as client:
        answer(query, table, output, catalogue, settings.names, settings.said, client)
    return DONE


@app.command
def catalogue(
    *words: str, folder: Path | None = None, unused: str | None = None, json_: Json = False
) -> int:
    """List models of SQL queries; or show or drop one: mlopt catalogue [ACTION] [NAME].

    Parameters
    ----------
    words
        list, show or drop, and the name of a model; or prune: drop all that no query of
        these versions can find.
    folder
        As `--catalogue` of `mlopt sql`.
    unused
        For prune: also models that were not used for so long, as 30d.
    json_
        Print a list as JSON.
    """
    from mlopt.predictive.commands import about

    about(words, folder, unused, json_)
    return DONE


@app.command
def submit(
    source: str,
    *files: str,
    scheduler: str,
    storage: Path | None = None,
    name: str | None = None,
    output: str | None = None,
    family: str | None = None,
    proba: bool = False,
    memory: str | None = None,
    settings: Settings = SETTINGS,
) -> int:
    """Have it done by a Dask cluster, and print the name of the job at once.

    A sweep of CONFIG.toml or DATA; with `--family` a fit; a query, RUN ... ON ...; or
    predictions: MODEL FILES... --output DIR.

    Parameters
    ----------
    source
        What `sweep`, `fit`, `run` or `predict` takes first.
    files
        Rows to predict by the model that `source` is.
    scheduler
        Address of a Dask scheduler. Its workers read the data: they must see these paths.
    storage
        A folder that they share with this machine, for jobs. [default: MLOPT_JOBS_STORAGE,
        or one in the user's home]
    name
        Of the job. [default: one that says what it is]
    output
        Folder, or file, for the results. [default: one in the storage]
    family
        Fit one model of this family, as `mlopt fit`.
    proba
        As of `mlopt predict`.
    memory
        As of `mlopt predict`.
    """
    from mlopt.detached.commands import submitted, work_of

    work = work_of(
        source, files, settings, family=family, output=output, proba=proba, memory=memory
    )
    _print(submitted(work, scheduler, storage, name))
    return DONE


@app.command
def jobs(
    *words: str,
    scheduler: str,
    storage: Path | None = None,
    output: Path | None = None,
    json_: Json = False,
) -> int:
    """List jobs; or follow, fetch, cancel or resume one: mlopt jobs [ACTION] [NAME].

    A name alone is followed to its end, as if it were done here.

    Parameters
    ----------
    words
        list, follow, fetch, cancel or resume, and the name of a job.
    scheduler
        Address of the Dask scheduler.
    storage
        As of `mlopt submit`.
    output
        Where to fetch results to.
    json_
        Print the list, or the result of a job that is followed, as JSON.
    """
    from mlopt.detached.commands import about

    return about(words, scheduler, storage, output, json_)


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

        run_calibration(machine, listed(operators), tiny, show=_print, tell=_tell)
    return DONE


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 bad input, 130 interrupted."""
    sys.exit(status_of(lambda: run_arguments(arguments)))


def run_arguments(arguments: list[str] | None = None) -> Any:
    """The status of a command line, or None where all went well."""
    return app(
        arguments, exit_on_error=False, print_error=False, result_action="return_value"
    )


def _plan_of(source: str, settings: Settings, where: Where) -> Any:
    from mlopt.query.parser import is_query, parse

    if re.match(r"\s*(select|with)\s", source, re.IGNORECASE):
        from mlopt.predictive.answering import sql

        if where != HERE:
            raise ConfigError(
                "Nothing runs, and models are kept in a catalogue: leave out `--storage` "
                "and `--scheduler`."
            )
        return sql(f"EXPLAIN {source}", families=settings.names, **settings.said)
    if not is_query(source):
        from mlopt.sweep.run import explain as plan_of

        config = config_of(source, settings, **where.given)
        return plan_of(config=config, families=settings.names)
    parse(source)
    if (settings, where) != (SETTINGS, HERE):
        raise ConfigError("A query says everything itself: leave the settings out.")
    from mlopt.query.run import Session

    return Session().explain(source)


def _seconds(name: str, value: float) -> float:
    if not 0 < value < float("inf"):
        raise ConfigError(f"--{name} must be seconds above 0, got {value}.")
    return value


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
