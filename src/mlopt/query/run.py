"""Statements, executed; names live in a session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from mlopt.errors import ConstraintError, InputError
from mlopt.plan import Choice, Plan
from mlopt.plan.units import format_seconds
from mlopt.query import ast, fitting
from mlopt.query.asking import request_of
from mlopt.query.checks import check, free_name, path_of
from mlopt.query.data import Data, prediction_data, training_data
from mlopt.query.durations import format_duration
from mlopt.query.files import Functions, Library
from mlopt.query.format import format_source, format_term
from mlopt.query.model import Model
from mlopt.query.parser import parse
from mlopt.query.request import Request
from mlopt.query.store import read_model, write_model
from mlopt.query.text import Text


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
        script = parse(text)
        models = {name: isinstance(value, Model) for name, value in self.values.items()}
        check(script, place, functions, models)
        for statement in script.statements:
            yield statement, self._execute(statement, place, functions)

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
        data = training_data(Library(place, functions), run.sources)
        reading = time.perf_counter() - started
        planned = fitting.plan(request, data.X, data.y)
        late = _too_late(request, reading, planned)
        return _plan(run, request, data, reading, planned, (late,) if late else ())

    def _execute(self, statement: ast.Statement, text: Text, functions: Functions) -> Any:
        if isinstance(statement, ast.Persist):
            path = path_of(statement.path)
            write_model(self.values[statement.name.value], path)
            return path
        if isinstance(statement, ast.Predict):
            value = self._predict(statement, text, functions)
            if statement.name:
                self.values[statement.name.value] = value
            return value
        name = statement.name.value if statement.name else free_name(self.values)
        self.values[name] = replace(_learn(statement, text, functions), name=name)
        return self.values[name]

    def _predict(self, statement: ast.Predict, text: Text, functions: Functions) -> Any:
        model = self._model(statement.model)
        features = model.features
        # A sparse file may lack the last features; its label is no feature.
        d = features.width - 1 if features.width else len(features.names)
        library = Library(text, functions, columns=d)
        return model.predict(prediction_data(library, statement.sources, features))

    def _model(self, path: ast.Path) -> Model:
        """A name of this session, or a file."""
        value = self.values.get(path.value)
        if isinstance(value, Model):
            return value
        return read_model(path_of(path))


_SESSION = Session()
_LEAST_TIME = 1e-3


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
        shape (n,); of a PERSIST the file. A RUN without a name gets one: Q1, Q2, ...

    Raises
    ------
    QuerySyntaxError
        The query cannot be understood; the text shows the place.
    ConstraintError
        TIME is predicted to be exceeded: nothing was fitted.
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


def _learn(run: ast.Run, text: Text, functions: Functions) -> Model:
    started = time.perf_counter()
    request = request_of(run, text, functions)
    data = training_data(Library(text, functions), run.sources)
    reading = time.perf_counter() - started
    if request.time_limit is not None:
        late = _too_late(request, reading, fitting.plan(request, data.X, data.y))
        if late:
            raise ConstraintError(late)
    model = fitting.fit(_with_time_left(request, started), data.X, data.y)
    seconds = time.perf_counter() - started
    messages = [model.message] if model.message else []
    if request.time_limit is not None and seconds > request.time_limit:
        messages.append(
            f"It took {format_seconds(seconds)}, more than TIME "
            f"{format_duration(request.time_limit)}: revisit TIME."
        )
    assert model.plan is not None
    plan = replace(_plan(run, request, data, reading, model.plan), measured=seconds)
    return replace(
        model,
        features=data.features,
        plan=plan,
        seconds=seconds,
        message=" ".join(messages),
    )


def _with_time_left(request: Request, started: float) -> Request:
    """The request after reading: TIME counts from the start of the query."""
    if request.time_limit is None:
        return request
    left = request.time_limit - (time.perf_counter() - started)
    return replace(request, time_limit=max(left, _LEAST_TIME))


def _short(source: ast.Source) -> str:
    """A source without its folder."""
    name = PurePath(source.path.value).name
    return format_source(replace(source, path=ast.Path(name or source.path.value)))


def _too_late(request: Request, reading: float, plan: Plan) -> str:
    """Why TIME cannot be met, or nothing (ML4all, Appendix A)."""
    limit, predicted = request.time_limit, plan.predicted
    if limit is None or predicted is None or reading + predicted <= limit:
        return ""
    by = plan.choices[0].chosen
    way, other = f"the fastest way to fit, {by},", ""
    if request.algorithm is not None:
        way, other = f"fitting by {by}", " or ALGORITHM"
    return (
        f"TIME {format_duration(limit)} cannot be met: reading took "
        f"{format_seconds(reading)}, and {way} is predicted to take "
        f"{format_seconds(predicted)}. Revisit TIME{other}."
    )


def _plan(
    run: ast.Run,
    request: Request,
    data: Data,
    reading: float,
    fitted: Plan,
    notes: tuple[str, ...] = (),
) -> Plan:
    """Reading, then the plan of the fit; with the constraints."""
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
        predicted=fitted.predicted,
        notes=(f"constraints: {', '.join(constraints)}", *notes),
    )
