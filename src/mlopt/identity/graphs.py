"""Dask collections by their tasks: what is called, and on what, down to the data.

The names of tasks do not count: some hold a number that was drawn. Files count by path,
size and time of change, folders by those of the files in them; what comes from another
machine cannot be told, nor what is behind a future, of which there is the name alone.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlopt.identity.unknown import Unidentified

if TYPE_CHECKING:
    from mlopt.identity.walk import Walk

_LONGEST_PATH = 4096
"""Characters that a path may have on Linux."""
_MOST_FILES = 10_000
"""In a folder: to look at so many takes about a tenth of a second."""
_SCHEME = re.compile(r"[A-Za-z][\w+.-]*(::[A-Za-z][\w+.-]*)*")
_MAGIC = re.compile(r"[*?[]")
"""What makes a name a pattern of names."""


def write(walk: Walk, value: Any) -> bool:
    """Whether ``value`` is a Dask collection, or a task of one."""
    if "dask" not in sys.modules:
        return False
    import dask
    from dask.task_spec import GraphNode

    if isinstance(value, GraphNode):
        _node(walk, value)
        return True
    if dask.is_dask_collection(value) and not isinstance(value, type):
        _graph(walk, value)
        return True
    if isinstance(value, os.PathLike) and walk.tasks is not None:
        walk.put("path", type(value).__qualname__)
        walk.add(os.fspath(value))
        return True
    _check_near(value)
    return _reference(walk, value)


def file(walk: Walk, text: str) -> None:
    """A string that names a file, or a folder, counts with the state of that."""
    # Of dots and slashes alone are the separators that code splits texts by.
    if len(text) > _LONGEST_PATH or "\0" in text or not text.strip("./"):
        return
    scheme, found, rest = text.partition("://")
    if found and _SCHEME.fullmatch(scheme) and scheme != "file":
        raise Unidentified("a file on another machine")
    path = rest if found else text
    if path not in walk.files:
        walk.files[path] = _state(path)
    if walk.files[path]:
        walk.put("file", walk.files[path])


def files(walk: Walk, texts: Iterable[str]) -> None:
    """The same of many strings, most of which may be anything but names."""
    # To ask for each of a million documents whether it is a file would take seconds.
    here = {"", ".", "..", "~", *(path.name for path in Path().iterdir())}
    for text in texts:
        if "://" in text or text.partition("/")[0] in here:
            file(walk, text)


def rows(walk: Walk, texts: Iterable[str]) -> None:
    """Rows outside of a graph, each of which names a file, as ``input="filename"`` takes
    them, count with the state of these.
    """
    files: dict[str, str] = {}
    for text in texts:
        if text not in files:
            if not _is_file(text):  # as the first document is none
                return
            files[text] = _state(text)
    for state in files.values():
        walk.put("file", state)


def _is_file(path: str) -> bool:
    try:
        return Path(path).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):
        return False


def _state(path: str) -> str:
    """Size and time of change, also of the files in a folder, and of those that a pattern
    matches; empty if nothing is there.
    """
    try:
        place = Path(path).expanduser()
        if _MAGIC.search(path) and not place.exists():
            return " ".join(sorted(map(_entry, _matches(str(place)))))
        state = place.stat()
        told = [f"{state.st_size} {state.st_mtime_ns}"]
        if stat.S_ISDIR(state.st_mode):
            told += sorted(map(_entry, _few(place.rglob("*"))))
    except (OSError, ValueError, RuntimeError):  # RuntimeError: no home directory
        return ""
    return " ".join(told)


def _matches(pattern: str) -> list[Path]:
    """What a pattern stands for, in a folder that is there and is not the root of all."""
    folder, slash, _ = _MAGIC.split(pattern, maxsplit=1)[0].rpartition("/")
    if not folder or not Path(folder).is_dir():  # of `*.csv` nobody knows that it is a name
        return []
    if "**" in pattern.split("/"):
        raise Unidentified("a pattern of folders within folders")
    return _few(Path(folder).glob(pattern[len(folder + slash) :]))


def _few(found: Iterator[Path]) -> list[Path]:
    """All of them; too many take longer to look at than what they tell is worth."""
    several = [*islice(found, _MOST_FILES + 1)]
    if len(several) > _MOST_FILES:
        raise Unidentified("a folder of many files")
    return several


def _entry(path: Path) -> str:
    if not path.is_file():
        return str(path)
    state = path.stat()
    return f"{path} {state.st_size} {state.st_mtime_ns}"


def _graph(walk: Walk, value: Any) -> None:
    from dask._task_spec import convert_legacy_graph
    from dask.core import flatten, toposort

    graph = convert_legacy_graph(dict(value.__dask_graph__()))
    needs = {key: set(node.dependencies) for key, node in graph.items()}
    if not graph.keys() >= set().union(*needs.values(), flatten(value.__dask_keys__())):
        raise Unidentified("a future")
    outer, walk.tasks = walk.tasks, {}
    try:
        for key in toposort(graph, dependencies=needs):
            walk.tasks[key] = walk.apart(graph[key])
        wanted = [walk.tasks[key] for key in flatten(value.__dask_keys__())]
    finally:
        walk.tasks = outer
    walk.put("dask", type(value).__qualname__)
    walk.add(wanted)


def _node(walk: Walk, node: Any) -> None:
    from dask.task_spec import Alias, DataNode, Task, TaskRef

    if isinstance(node, Alias):
        walk.add(TaskRef(node.target))
    elif isinstance(node, DataNode):
        walk.add(node.value)
    elif isinstance(node, Task):
        walk.put("task", type(node).__qualname__)
        walk.add(node.func)
        walk.add(tuple(node.args))
        walk.add(dict(node.kwargs))
    else:
        walk.by_parts(node)


def _reference(walk: Walk, value: Any) -> bool:
    from dask.task_spec import TaskRef

    if not isinstance(value, TaskRef):
        return False
    known = (walk.tasks or {}).get(value.key)
    if known is None and type(value) is not TaskRef:
        raise Unidentified("a future")
    if known is None:  # of a graph within a task
        walk.put("reference", repr(value.key))
    else:
        walk.put("result", known)
    return True


def _check_near(value: Any) -> None:
    """Raise for a file system of another machine."""
    fsspec, arrow = sys.modules.get("fsspec"), sys.modules.get("pyarrow.fs")
    far = fsspec is not None and isinstance(value, fsspec.AbstractFileSystem)
    if far and "file" not in value.protocol:
        raise Unidentified("a file system of another machine")
    if arrow is None or not isinstance(value, arrow.FileSystem):
        return
    if not isinstance(value, arrow.LocalFileSystem):
        raise Unidentified("a file system of another machine")
