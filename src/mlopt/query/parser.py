"""From tokens to statements, by recursive descent.

::

    script    = statement { ";" statement } [ ";" ]
    statement = [ name "=" ] ( run | predict ) | persist
    run       = "RUN" task { "ON" sources | "HAVING" items | "USING" items }
    predict   = "PREDICT" { "ON" sources | "WITH" file }
    persist   = "PERSIST" name "ON" file
    task      = name [ "(" ")" ]
    sources   = source { "," source } [ "," ]
    source    = ( file | name "(" file ")" ) [ ":" columns ]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from mlopt.errors import did_you_mean
from mlopt.query import ast
from mlopt.query.cursor import Cursor
from mlopt.query.format import looks_like_columns
from mlopt.query.items import having, using
from mlopt.query.text import Span, Text
from mlopt.query.words import RESERVED, TASKS

_STARTS = ("RUN", "PREDICT", "PERSIST")
_QUERY = re.compile(r"(\s|--[^\n]*\n)*(\w+\s*=\s*)?RUN\s", re.IGNORECASE)


def parse(text: str) -> ast.Script:
    """The statements of a query.

    Parameters
    ----------
    text : str

    Raises
    ------
    QuerySyntaxError
        With line, column, the source line and a caret under the place.
    """
    cursor = Cursor(Text(text))
    statements: list[ast.Statement] = []
    while cursor.token.kind != "end" or not statements:
        statements.append(_statement(cursor))
        if cursor.token.kind != "end":
            _end_of_statement(cursor)
    return ast.Script(tuple(statements))


def is_query(text: str) -> bool:
    """Whether a text begins like a RUN statement, rather than being the name of a file."""
    return bool(_QUERY.match(text))


def _statement(cursor: Cursor) -> ast.Statement:
    name = None
    if cursor.token.kind == "word" and cursor.following.is_symbol("="):
        name = cursor.name("a name for the result")
        cursor.advance()
    start = name.span if name else cursor.token.span
    if cursor.accept("RUN"):
        return _run(cursor, name, start)
    if cursor.accept("PREDICT"):
        return _predict(cursor, name, start)
    if name:
        raise cursor.unexpected("RUN or PREDICT", _STARTS[:2])
    if cursor.accept("PERSIST"):
        return _persist(cursor, start)
    if cursor.following.is_symbol("="):
        raise cursor.unexpected("a name for the result")
    raise cursor.unexpected("RUN, PREDICT or PERSIST", _STARTS)


def _run(cursor: Cursor, name: ast.Name | None, start: Span) -> ast.Run:
    task = _task(cursor)
    sources, constraints, control = _clauses(
        cursor, {"ON": _sources, "HAVING": having, "USING": using}
    )
    if sources is None:
        raise cursor.unexpected("ON and a file", ("ON", "HAVING", "USING"))
    return ast.Run(
        task,
        sources,
        constraints or ast.Having(),
        control or ast.Using(),
        name,
        span=start.to(cursor.last),
    )


def _predict(cursor: Cursor, name: ast.Name | None, start: Span) -> ast.Predict:
    sources, model = _clauses(cursor, {"ON": _sources, "WITH": _model})
    for found, wanted in ((sources, "ON and a file"), (model, "WITH and a model")):
        if found is None:
            raise cursor.unexpected(wanted, ("ON", "WITH"))
    return ast.Predict(sources, model, name, span=start.to(cursor.last))


def _persist(cursor: Cursor, start: Span) -> ast.Persist:
    name = cursor.name("the name of a model")
    if not cursor.accept("ON"):
        raise cursor.unexpected("ON and the file to write", ("ON",))
    path = _path(cursor, "the file to write")
    return ast.Persist(name, path, span=start.to(cursor.last))


def _clauses(cursor: Cursor, known: Mapping[str, Callable[[Cursor], Any]]) -> list[Any]:
    """Each clause at most once, in any order; in the order of ``known``."""
    found: dict[str, Any] = {}
    while (word := cursor.keyword) in known:
        if word in found:
            raise cursor.error(f"{word} stands twice: give all its items after one {word}.")
        cursor.advance()
        found[word] = known[word](cursor)
    return [found.get(word) for word in known]


def _task(cursor: Cursor) -> ast.Name | ast.Call:
    token = cursor.token
    name = cursor.name("a task, such as classification or regression")
    if cursor.accept("("):
        cursor.expect(")", "`)`: the function is given from Python, without arguments here")
        return ast.Call(name.value, span=token.span.to(cursor.last))
    if name.value.lower() not in TASKS:
        raise cursor.error(
            f"expected a task, found {token}.{did_you_mean(token.value, TASKS)} Tasks: "
            f"{', '.join(TASKS)}. A gradient function of your own is written with "
            f"parentheses: `{token.value}()`.",
            token.span,
        )
    return ast.Name(name.value.lower(), span=token.span)


def _sources(cursor: Cursor) -> tuple[ast.Source, ...]:
    found = [_source(cursor)]
    while cursor.accept(","):
        # The paper's own query has a comma before HAVING.
        if cursor.at_end or cursor.keyword in RESERVED:
            break
        found.append(_source(cursor))
    return tuple(found)


def _source(cursor: Cursor) -> ast.Source:
    token, parser = cursor.token, None
    if token.kind == "word" and cursor.following.is_symbol("("):
        parser = cursor.name("a parser")
        cursor.advance()
        path = _path(cursor, "a file")
        cursor.expect(")", "`)` after the file")
    else:
        path = _path(cursor, "a file")
    columns = _columns(cursor) if cursor.accept(":") else None
    return ast.Source(path, columns, parser, span=token.span.to(cursor.last))


def _columns(cursor: Cursor) -> ast.Columns:
    token = cursor.token
    if token.kind != "word" or not looks_like_columns(token.value):
        hint = ""
        if token.kind == "word" and cursor.text.content[: token.span.start].endswith(
            "sklearn:"
        ):
            hint = f" A data set of scikit-learn is written `sklearn({token.value})`."
        raise cursor.error(
            "expected a column or a range of columns, such as 2 or 4-20, found "
            f"{token}.{hint}"
        )
    cursor.advance()
    numbers = [int(part) for part in token.value.split("-")]
    first, last = numbers[0], numbers[-1]
    if first < 1:
        raise cursor.error(f"columns count from 1, got {first}.", token.span)
    if last < first:
        raise cursor.error(
            f"a range of columns goes upwards, got {token}: write `{last}-{first}`.",
            token.span,
        )
    return ast.Columns(first, last, span=token.span)


def _model(cursor: Cursor) -> ast.Path:
    return _path(cursor, "a model: its file, or the name of a result")


def _path(cursor: Cursor, wanted: str) -> ast.Path:
    token = cursor.token
    if token.kind == "string" and token.value:
        cursor.advance()
        return ast.Path(token.value, span=token.span)
    if token.kind != "word" or cursor.keyword in RESERVED:
        raise cursor.unexpected(wanted)
    if looks_like_columns(token.value):
        raise cursor.error(
            f"expected {wanted}, found {token}. Columns follow their file: "
            f"`data.csv:{token.value}`; a file of this name is written in quotes."
        )
    cursor.advance()
    # "PERSIST Q1 ON my_model.txt." in the paper: a full stop, not a part of the name.
    value = token.value.rstrip(".") if cursor.at_end else token.value
    if not value:
        raise cursor.error(f"expected {wanted}, found {token}.", token.span)
    return ast.Path(value, span=Span(token.span.start, token.span.start + len(value)))


def _end_of_statement(cursor: Cursor) -> None:
    if cursor.accept(";"):
        return
    words = ("ON", "HAVING", "USING", "WITH")
    if cursor.keyword in _STARTS or cursor.following.is_symbol("="):
        raise cursor.error(f"expected `;` between statements, found {cursor.token}.")
    raise cursor.unexpected("`,`, `;` or another clause", words)
