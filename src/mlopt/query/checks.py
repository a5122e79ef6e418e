"""What can be known to be wrong before the first statement runs."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

from mlopt.errors import did_you_mean
from mlopt.query import ast, fitting
from mlopt.query.asking import request_of
from mlopt.query.files import Functions, check_parser
from mlopt.query.store import check_replaceable
from mlopt.query.text import Text
from mlopt.writing import check_file


def check(
    script: ast.Script, text: Text, functions: Functions, values: Mapping[str, bool]
) -> None:
    """Refuse what cannot work.

    Parameters
    ----------
    script : Script
        With a name for each RUN.
    text : Text
    functions : mapping of str to callable
    values : mapping of str to bool
        The names of the session, and whether each is a model.

    Raises
    ------
    QuerySyntaxError
        A name of a model, a function or a parser that is not known.
    UnsupportedError
        Something that cannot be done yet.
    InputError
        A model is to be written into a folder that is not there, or over other data.
    """
    known, written = dict(values), set[str]()
    for statement in script.statements:
        if isinstance(statement, ast.Persist):
            _check_name(statement.name, text, known)
            check_file(path_of(statement.path))
            check_replaceable(path_of(statement.path))
            written.add(place_of(statement.path))
        elif isinstance(statement, ast.Predict):
            _check_sources(statement, text, functions)
            _check_model(statement.model, text, known, written)
            if statement.name:
                known[statement.name.value] = False
        else:
            fitting.check(request_of(statement, text, functions))
            assert statement.name is not None
            known[statement.name.value] = True


def path_of(path: ast.Path) -> Path:
    """A file of a query, with ``~`` for the home."""
    return Path(path.value).expanduser()


def place_of(path: ast.Path) -> str:
    """Its absolute name, however it is written."""
    return str(path_of(path).absolute())


def sources_of(script: ast.Script) -> list[str]:
    """The files of data that the script reads."""
    readers = [s for s in script.statements if not isinstance(s, ast.Persist)]
    return [source.path.value for one in readers for source in one.sources]


def named(script: ast.Script, taken: Container[str] = ()) -> ast.Script:
    """The script with a name for each RUN: Q1, Q2, ... where it has none.

    What a text asks for is its own: it is ``taken`` that matters where it asks for none.
    """
    alone = _numbered(script, ())
    made = set[str]()
    for given, one in zip(script.statements, alone.statements, strict=True):
        if isinstance(one, ast.Run) and one.name and given is not one:
            made.add(one.name.value)
        asked = one.model if isinstance(one, ast.Predict) else one.name
        if given is one and asked and asked.value in made:
            return alone
    return _numbered(script, taken)


def _numbered(script: ast.Script, taken: Container[str]) -> ast.Script:
    others = [one for one in script.statements if not isinstance(one, ast.Persist)]
    own = {one.name.value for one in others if one.name}
    statements: list[ast.Statement] = []
    for one in script.statements:
        if isinstance(one, ast.Run) and one.name is None:
            names = (f"Q{number}" for number in count(1))
            name = next(name for name in names if name not in own and name not in taken)
            own.add(name)
            statements.append(replace(one, name=ast.Name(name)))
        else:
            statements.append(one)
    return ast.Script(tuple(statements))


def _check_sources(statement: ast.Predict, text: Text, functions: Functions) -> None:
    for source in statement.sources:
        if source.parser:
            check_parser(source.parser, text, functions)


def _check_name(name: ast.Name, text: Text, known: Mapping[str, bool]) -> None:
    models = [name for name, is_model in known.items() if is_model]
    if name.value in models:
        return
    has = f" Models: {', '.join(models)}." if models else " RUN something first."
    what = "holds predictions" if name.value in known else "is not known"
    raise text.error(
        name.span,
        f"expected the name of a model, but `{name.value}` {what}."
        f"{did_you_mean(name.value, models)}{has}",
    )


def _check_model(
    path: ast.Path, text: Text, known: Mapping[str, bool], written: Container[str]
) -> None:
    models = [name for name, is_model in known.items() if is_model]
    if path.value in models or place_of(path) in written or path_of(path).exists():
        return
    raise text.error(
        path.span,
        f"expected a file that PERSIST wrote, or the name of a model, but `{path.value}` "
        f"is neither.{did_you_mean(path.value, models)}",
    )
