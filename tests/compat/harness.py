"""Loads scikit-learn's own tests, as installed, with other classes in place of theirs.

The tests' source runs again as a module of its own; while it does, names that it imports
from scikit-learn stand for the substitutes. Modules that it reaches names through
(``svm.LinearSVC``) are replaced by copies that hold the substitutes.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from types import ModuleType
from typing import Any
from unittest import mock

import cloudpickle
import pytest

Substitutes = Mapping[str, Mapping[str, Any]]
"""Module of scikit-learn, to its names and what stands for them."""


def borrowed(name: str, substitutes: Substitutes) -> dict[str, Any]:
    """The tests of a module of scikit-learn, for the namespace of one of ours.

    Those alone that name a substitute: in their source, or in that of a function of their
    module that they call or are given.

    Parameters
    ----------
    name : str
        Such as "sklearn.tests.test_pipeline".
    substitutes : mapping
    """
    module = _load(name, substitutes)
    names = {key for own in substitutes.values() for key in own}
    members = vars(module).items()
    tests = {
        key: value
        for key, value in members
        if key.startswith("test_") and _uses(key, module, names, set())
    }
    for test in tests.values():
        _list_parameters(test)
    fixtures = {
        key: value
        for key, value in members
        if type(value).__name__ == "FixtureFunctionDefinition"
    }
    own = getattr(module, "pytestmark", [])
    # Theirs come first, for the first wins: warnings are none of these tests' business
    # unless the tests say so.
    marks = own if isinstance(own, list) else [own]
    return {
        **fixtures,
        **tests,
        "pytestmark": [*marks, pytest.mark.filterwarnings("ignore")],
    }


def _load(name: str, substitutes: Substitutes) -> ModuleType:
    original = importlib.import_module(name)  # what it imports must see scikit-learn's own
    ours = "compat_" + name.replace(".", "_")
    spec = importlib.util.spec_from_file_location(ours, str(original.__file__))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__package__ = original.__package__
    sys.modules[ours] = module
    with ExitStack() as stack:
        for path, names in substitutes.items():
            home = importlib.import_module(path)
            for key, value in names.items():
                stack.enter_context(mock.patch.object(home, key, value))
        spec.loader.exec_module(module)
    for key, value in list(vars(module).items()):
        if isinstance(value, ModuleType) and value.__name__ in substitutes:
            setattr(module, key, _with(value, substitutes[value.__name__]))
    # Processes of joblib cannot import it.
    cloudpickle.register_pickle_by_value(module)
    return module


def _with(module: ModuleType, names: Mapping[str, Any]) -> ModuleType:
    copy = ModuleType(module.__name__)
    vars(copy).update({**vars(module), **names})
    return copy


def _uses(key: str, module: ModuleType, names: set[str], seen: set[str]) -> bool:
    """Whether a function, or one of its module that it names, names a substitute."""
    words = set(re.findall(r"\w+", inspect.getsource(inspect.unwrap(getattr(module, key)))))
    if words & names:
        return True
    seen.add(key)
    more = [word for word in words - seen if _is_own(getattr(module, word, None), module)]
    return any(_uses(word, module, names, seen) for word in more)


def _is_own(value: Any, module: ModuleType) -> bool:
    return inspect.isfunction(value) and value.__module__ == module.__name__


def _list_parameters(test: Any) -> None:
    """Generators of parameters become lists: newer versions of pytest want them so."""
    marks = getattr(test, "pytestmark", [])
    for number, mark in enumerate(marks):
        if mark.name == "parametrize" and len(mark.args) > 1:
            names, values, *rest = mark.args
            listed = pytest.mark.parametrize(names, list(values), *rest, **mark.kwargs)
            marks[number] = listed.mark
