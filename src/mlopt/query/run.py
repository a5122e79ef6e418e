"""Statements, executed; names live in a session."""

from __future__ import annotations

import sys
import time
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from mlopt.errors import ConstraintError, InputError
from mlopt.plan import Choice, Plan
from mlopt.plan.units import format_seconds
from mlopt.query import ast, fitting
from mlopt.query.asking import request_of
from mlopt.query.checks import check, named, path_of
from mlopt.query.data import Data, prediction_data, training_data
from mlopt.query.durations import format_duration
from mlopt.query.files import Functions, Library
from mlopt.query.format import format_source, format_term
from mlopt.query.model import Model
from mlopt.query.parser import parse
from mlopt.query.request import Request
from mlopt.query.store import read_model, write_model
from mlopt.query.text import Text

Known = Mapping[str, Any]


class Session:
    """Executes queries, and remembers what they found by its name.

    Attributes
    ----------
    values : dict of str to Model or ndarray
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def run(self, text: str, functions: Functions | None = None) -> Any:
        """See `run`."""
        return list(self.steps(text, functions))[-1][1]

    def steps(
        self, text: str, functions: Functions | None = None
    ) -> Iterator[tuple[ast.Statement, Any]]:
        """Execute one statement after the other; each with its value.

        All statements are checked before the first one runs.
        """
        place, functions = _checked(text, functions)
        script = named(parse(text), self.values)
        models = {name: isinstance(value, Model) for name, value in self.values.items()}
        check(script, place, functions, models)
        # What a text finds is what it goes on with: a thread beside may take the same name.
        known = ChainMap[str, Any]({}, self.values)
        for statement in script.statements:
            value = _execute(statement, place, functions, known)
            if not isinstance(statement, ast.Persist) and statement.name:
                known[statement.name.value] = self.values[statement.name.value] = value
            yield statement, value

    def explain(self, text: str, functions: Functions | None = None) -> Plan:
        """The plan of the only RUN of a query; reads its files, and fits nothing.

        Raises
        ------
        InputError
            The query has not one statement, a RUN.
        """
        place, functions = _checked(text, functions)
        script = parse(text)
        run = script.statements[0]
        if len(script.statements) > 1 or not isinstance(run, ast.Run):
            raise InputError("A plan is made for one RUN statement: give it alone.")
        request = request_of(run, place, functions)
        fitting.check(request)
        started = time.perf_counter()
        data = training_data(Library(place, functions), run.sources, request.task)
        reading = time.perf_counter() - started
        ready = fitting.ready(request, data.X, data.y, keeps=False)
        late, before = _too_late(request, reading, ready), reading + ready.seconds
        notes = (late,) if late else ()
        return _plan(run, request, data, reading, ready.plan, before, notes)


_SESSION = Session()


def run(text: str, functions: Functions | None = None) -> Any:
    """Execute a query in ML4all's declarative language.

    Names are remembered: a later call may use those of an earlier one.

    Parameters
    ----------
    text : str
        One statement or several, with ``;`` between them: ``RUN classification ON
        data.csv HAVING TIME 5m``, ``PERSIST Q1 ON model.txt``, ``PREDICT ON test.csv WITH
        model.txt``. See docs/language.md.
    functions : mapping of str to callable, optional
        Functions of yours that the query names.

    Returns
    -------
    Model, ndarray or Path
        The value of the last statement: of a RUN a model with ``coef``, ``intercept``,
        ``plan``, ``seconds``, ``converged`` and ``predict(X)``; of a PREDICT predictions of
        shape (n,); of a PERSIST the file. A RUN without a name gets one: Q1, Q2, ...,
        counted within ``text`` where it asks for one of them, or else the next free one.

    Raises
    ------
    QuerySyntaxError
        The query cannot be understood; the text shows the place.
    ConstraintError
        TIME is predicted to be exceeded, MAX_ITER is below what any method needs, or
        EPSILON below what rounding allows: nothing was fitted.
    UnsupportedError
        The query asks for something that cannot be done yet.
    InputError
        A file cannot be read, or its data cannot work.

    References
    ----------
    Kaoudi et al., "A Cost-based Optimizer for Gradient Descent Optimization", 2017,
    Appendix A.
    """
    return _SESSION.run(text, functions)


def _checked(text: str, functions: Functions | None) -> tuple[Text, Functions]:
    if not isinstance(text, str):
        raise InputError(f"A query must be a text, got {type(text).__name__}.")
    for name, function in (functions or {}).items():
        if not callable(function):
            raise InputError(f"`functions` must hold functions, but `{name}` is none.")
    return Text(text), functions or {}


def _execute(
    statement: ast.Statement, text: Text, functions: Functions, known: Known
) -> Any:
    if isinstance(statement, ast.Persist):
        path = path_of(statement.path)
        write_model(known[statement.name.value], path)
        return path
    if isinstance(statement, ast.Predict):
        return _predict(statement, text, functions, known)
    assert statement.name is not None
    return replace(_learn(statement, text, functions), name=statement.name.value)


def _predict(statement: ast.Predict, text: Text, functions: Functions, known: Known) -> Any:
    model = _model(statement.model, known)
    features = model.features
    # A sparse file may lack the last features; its label is no feature. How many it has
    # is known of one file: of several each has some.
    d = features.width - 1 if features.width else None
    library = Library(text, functions, d, features.numbered_from, features.known)
    return model.predict(prediction_data(library, statement.sources, features))


def _model(path: ast.Path, known: Known) -> Model:
    """A name that is known, or a file."""
    value = known.get(path.value)
    return value if isinstance(value, Model) else read_model(path_of(path))


def _learn(run: ast.Run, text: Text, functions: Functions) -> Model:
    started = time.perf_counter()
    request = request_of(run, text, functions)
    data = training_data(Library(text, functions), run.sources, request.task)
    reading = time.perf_counter() - started
    ready = None
    if request.time_limit is not None:
        ready = fitting.ready(request, data.X, data.y)
        if late := _too_late(request, reading, ready):
            raise ConstraintError(late)
    model = fitting.fit(_with_time_left(request, started), data.X, data.y, ready)
    seconds = time.perf_counter() - started
    messages = [model.message] if model.message else []
    if request.time_limit is not None and seconds > request.time_limit:
        messages.append(
            f"It took {format_seconds(seconds)}, more than TIME "
            f"{format_duration(request.time_limit)}: revisit TIME."
        )
    assert model.plan is not None
    before = seconds - (model.plan.measured or 0.0)
    plan = _plan(run, request, data, reading, model.plan, before)
    plan = replace(plan, measured=seconds)
    return replace(
        model,
        features=data.features,
        plan=plan,
        seconds=seconds,
        message=" ".join(messages),
    )


def _with_time_left(request: Request, started: float) -> Request:
    """The request after reading: TIME counts from the start of the query.

    A limit is more than 0; what is over ends a run at its first look.
    """
    if request.time_limit is None:
        return request
    left = request.time_limit - (time.perf_counter() - started)
    return replace(request, time_limit=max(left, sys.float_info.min))


def _short(source: ast.Source) -> str:
    """A source without its folder."""
    name = PurePath(source.path.value).name
    return format_source(replace(source, path=ast.Path(name or source.path.value)))


def _too_late(request: Request, reading: float, ready: fitting.Ready) -> str:
    """Why TIME cannot be met, or nothing (ML4all, Appendix A)."""
    limit, plan = request.time_limit, ready.plan
    predicted, before = plan.predicted, reading + ready.seconds
    if limit is None or predicted is None or before + predicted <= limit:
        return ""
    by = plan.choices[0].chosen
    way, other = f"the fastest way to fit, {by},", ""
    if request.algorithm is not None:
        way, other = f"fitting by {by}", " or ALGORITHM"
    return (
        f"TIME {format_duration(limit)} cannot be met: reading and planning took "
        f"{format_seconds(before)}, and {way} is predicted to take "
        f"{format_seconds(predicted)}. Revisit TIME{other}."
    )


def _plan(
    run: ast.Run,
    request: Request,
    data: Data,
    reading: float,
    fitted: Plan,
    before: float,
    notes: tuple[str, ...] = (),
) -> Plan:
    """Reading, then the plan of the fit; with the constraints.

    What it all is predicted to take is the fit, and the seconds ``before`` it.
    """
    files = ", ".join(map(_short, run.sources))
    shape = f"{data.X.shape[0]:,} rows, {data.X.shape[1]:,} features, label: {data.label}"
    constraints = [f"EPSILON {request.tolerance:g}"]
    if request.time_limit is not None:
        constraints.insert(0, f"TIME {format_duration(request.time_limit)}")
    if request.max_iter is not None:
        constraints.append(f"MAX_ITER {request.max_iter}")
    return Plan(
        f"RUN {format_term(run.task)} ON {files}",
        (Choice("read", files, shape, measured=reading), *fitted.choices),
        predicted=None if fitted.predicted is None else before + fitted.predicted,
        notes=(f"constraints: {', '.join(constraints)}", *notes),
    )
