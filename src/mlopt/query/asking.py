"""From a RUN statement to a `Request`: names become losses, algorithms and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mlopt.errors import did_you_mean
from mlopt.query import ast
from mlopt.query.files import Functions, check_parser
from mlopt.query.request import Function, Request
from mlopt.query.text import Text
from mlopt.query.words import DEFAULT_EPSILON, TASKS


def request_of(run: ast.Run, text: Text, functions: Functions) -> Request:
    """What a statement asks for.

    Raises
    ------
    QuerySyntaxError
        It names a function or a parser that is not known.
    """
    for source in run.sources:
        if source.parser:
            check_parser(source.parser, text, functions)
    having, using = run.having, run.using
    task, gradient = _task(run.task, text, functions)
    return Request(
        task=task,
        gradient=gradient,
        tolerance=DEFAULT_EPSILON if having.epsilon is None else having.epsilon,
        time_limit=having.time,
        max_iter=having.max_iter,
        algorithm=using.algorithm.value if using.algorithm else None,
        step=_resolved(using.step, text, functions),
        sampler=_resolved(using.sampler, text, functions),
        convergence=_resolved(using.convergence, text, functions),
    )


def _task(task: ast.Name | ast.Call, text: Text, functions: Functions) -> tuple[Any, Any]:
    if isinstance(task, ast.Name):
        return TASKS[task.value]
    if task.name not in functions and task.name.lower() in TASKS:
        return TASKS[task.name.lower()]
    return None, _function(task, text, functions, TASKS)


def _resolved(
    value: ast.Name | ast.Call | float | None, text: Text, functions: Functions
) -> Any:
    if isinstance(value, ast.Call):
        return _function(value, text, functions)
    return value.value if isinstance(value, ast.Name) else value


def _function(
    call: ast.Call,
    text: Text,
    functions: Mapping[str, Callable[..., Any]],
    built_in: Iterable[str] = (),
) -> Function:
    if call.name in functions:
        return Function(call.name, functions[call.name])
    near = did_you_mean(call.name, [*built_in, *functions])
    own = f" Those given: {', '.join(functions)}." if functions else ""
    raise text.error(
        call.span,
        f"there is no function `{call.name}`.{near}{own} A function of your own is given "
        f'from Python, as `mlopt.run(text, functions={{"{call.name}": f}})`.',
    )
