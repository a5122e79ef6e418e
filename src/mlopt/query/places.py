"""Where the files of a query are, for who runs it elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlopt.query import ast
from mlopt.query.checks import named, place_of
from mlopt.query.parser import parse
from mlopt.readers import BUNDLED

_BUNDLED_PARSER = "sklearn"


def anywhere(text: str) -> str:
    """The same query with files by their absolute names.

    >>> anywhere("RUN regression ON /data/a.csv;")
    'RUN regression ON /data/a.csv;'

    Raises
    ------
    QuerySyntaxError
    """
    script = parse(text)
    models = dict(_models(script))
    statements = tuple(
        _placed(one, models.get(i, False)) for i, one in enumerate(script.statements)
    )
    return str(ast.Script(statements))


def files_read(text: str) -> list[str]:
    """The files that a query reads, models among them, which it does not write itself."""
    script = parse(text)
    kept = [one.path for one in script.statements if isinstance(one, ast.Persist)]
    written = set(map(place_of, kept))
    sources = [
        source.path
        for one in script.statements
        if not isinstance(one, ast.Persist)
        for source in one.sources
        if not _is_bundled(source)
    ]
    models = [
        one.model
        for i, one in enumerate(script.statements)
        if isinstance(one, ast.Predict) and dict(_models(script)).get(i)
    ]
    found = [path.value for path in [*sources, *models] if place_of(path) not in written]
    return [*dict.fromkeys(found)]


def _models(script: ast.Script) -> Iterator[tuple[int, bool]]:
    """Of each PREDICT by its place: whether its model is a file rather than a name."""
    known = set[str]()
    for i, one in enumerate(named(script).statements):
        if isinstance(one, ast.Run):
            known |= {one.name.value} if one.name else set()
        elif isinstance(one, ast.Predict):
            yield i, one.model.value not in known


def _placed(statement: ast.Statement, file: bool) -> ast.Statement:
    if isinstance(statement, ast.Persist):
        return replace(statement, path=_absolute(statement.path))
    sources = tuple(
        source if _is_bundled(source) else replace(source, path=_absolute(source.path))
        for source in statement.sources
    )
    if isinstance(statement, ast.Predict) and file:
        return replace(statement, sources=sources, model=_absolute(statement.model))
    return replace(statement, sources=sources)


def _is_bundled(source: ast.Source) -> bool:
    parser = source.parser and source.parser.value.lower()
    return parser == _BUNDLED_PARSER or source.path.value.startswith(BUNDLED)


def _absolute(path: ast.Path) -> ast.Path:
    return replace(path, value=place_of(path))
