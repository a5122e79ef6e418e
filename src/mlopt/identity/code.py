"""Classes, functions and modules: by name and version where installed, else by their code.

The code of a function is its instructions and constants, its defaults, the cells of its
closure, and the globals that it names, these again with all they refer to. The code of a
class is what stands in it and in the classes below it.
"""

from __future__ import annotations

import builtins
import dis
import functools
import importlib.util
import os
import site
import sys
import sysconfig
import types
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlopt.identity.unknown import Unidentified

if TYPE_CHECKING:
    from mlopt.identity.walk import Walk

_LOOKS_UP = {"eval", "exec", "globals", "locals", "compile", "__import__", "importlib"}
"""Names by which a function may reach what it does not name."""
_BY_NAME = {"getattr", "vars", "__dict__"}
"""Names by which it may reach anything of a module that it names."""
_ASIDE = {
    "__module__", "__dict__", "__weakref__", "__doc__", "_abc_impl", "__firstlineno__",
    "__static_attributes__",
}  # fmt: skip
"""What stands in a class and tells nothing of what it does."""

_DESCRIPTORS = (
    types.WrapperDescriptorType, types.MethodDescriptorType,
    types.ClassMethodDescriptorType, types.GetSetDescriptorType,
    types.MemberDescriptorType,
)  # fmt: skip
_BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)


def write(walk: Walk, value: Any) -> bool:
    """Whether ``value`` is code of any kind, or wraps some."""
    if isinstance(value, types.ModuleType):
        _module(walk, value, None)
    elif isinstance(value, types.CodeType):
        _instructions(walk, value)
    elif isinstance(value, types.CellType):
        _cell(walk, value, None)
    elif isinstance(value, types.MethodType):
        walk.put("method", value.__name__)
        walk.add(value.__func__)
        walk.add(value.__self__)
    elif isinstance(value, types.MappingProxyType):
        walk.put("proxy")
        walk.add(dict(value))
    elif (parts := _wrapped(value)) is not None:
        walk.put("wrapped", type(value).__name__)
        walk.add(parts)
    elif isinstance(value, _DESCRIPTORS):
        walk.put("descriptor", value.__name__)
        walk.add(value.__objclass__)
    elif isinstance(value, np.ufunc):
        _ufunc(walk, value)
    else:
        return _named(walk, value)
    return True


def is_known(kind: type) -> bool:
    """Whether a class is scikit-learn's or mlopt's own, and not one that says so."""
    return kind.__module__.startswith(("sklearn.", "mlopt.")) and home_of(kind) is not None


def class_of(value: Any) -> type:
    """The class whose declarations hold for ``value``: its own, or `object`, of which
    nothing is known, where it has methods of its own in the place of those of its class."""
    kind = type(value)
    own = getattr(value, "__dict__", ())
    return object if any(callable(getattr(kind, name, None)) for name in own) else kind


def home_of(value: Any) -> str | None:
    """Module, name and version of an installed class or function; None of any other.

    It must be what stands there under its name: not one that a call has made, nor one that
    was put in another's place.
    """
    module = getattr(value, "__module__", None)
    path = getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(path, str):
        return None
    found: Any = sys.modules.get(module)
    if found is None or not is_installed(found):
        return None
    for name in path.split("."):
        found = getattr(found, name, None)
    return f"{module}.{path} {_version(module)}" if found is value else None


def is_installed(module: types.ModuleType) -> bool:
    """Whether a module belongs to Python or to an installed distribution."""
    name = module.__name__
    file = getattr(module, "__file__", None)
    if name == "__main__":
        return False
    if file is None:
        spec = getattr(module, "__spec__", None)
        return getattr(spec, "origin", None) in ("built-in", "frozen")
    return _is_installed(name.partition(".")[0], file)


@lru_cache(maxsize=4096)
def _is_installed(top: str, file: str) -> bool:
    path = os.path.realpath(file)
    if top == "mlopt" and path.startswith(_folder(Path(__file__).parents[1])):
        return True
    return path.startswith(_places())


@lru_cache(maxsize=1)
def _places() -> tuple[str, ...]:
    """Folders of what is installed."""
    named = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    places = {*named, *site.getsitepackages(), site.getusersitepackages()}
    return tuple(_folder(place) for place in places if place)


def _folder(path: str | Path) -> str:
    """As every real path in it begins."""
    return f"{os.path.realpath(path)}{os.sep}"


@lru_cache(maxsize=512)
def _version(module: str) -> str:
    """Of the distribution of a module; of Python; or the state of a file by itself."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return sys.version.split()[0]
    version = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return metadata.version(top)
    except metadata.PackageNotFoundError:
        file = getattr(sys.modules.get(module), "__file__", None)
        state = Path(file).stat() if file else None
        return f"{state.st_size} {state.st_mtime_ns}" if state else ""


def _named(walk: Walk, value: Any) -> bool:
    """What goes by a name of its own, if it is installed; else functions and classes."""
    if (home := home_of(value)) is not None:
        walk.put("installed", home)
        return True
    if isinstance(value, _BOUND):
        walk.put("bound", value.__name__)
        walk.add(value.__self__)
    elif isinstance(value, types.FunctionType):
        if walk.first(value):
            _function(walk, value)
    elif isinstance(value, type):
        if walk.first(value):
            _class(walk, value)
    elif type(value).__module__.startswith("numba.") and hasattr(value, "py_func"):
        walk.put("compiled", type(value).__qualname__)
        walk.add(value.py_func)
        walk.add(getattr(value, "targetoptions", None))
    else:
        return False
    return True


def _wrapped(value: Any) -> list[Any] | None:
    """The functions within something that only hands them on."""
    if isinstance(value, classmethod | staticmethod):
        return [value.__func__]
    if type(value) is property:
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, functools.cached_property):
        return [value.func]
    if type(value) is _LRU:
        return [value.__wrapped__, value.cache_parameters()]
    return None


_LRU = type(lru_cache(maxsize=1)(len))


def _ufunc(walk: Walk, value: np.ufunc) -> None:
    """One that NumPy or SciPy has; of others nobody can look inside."""
    for module in ("numpy", "scipy.special"):
        if getattr(sys.modules.get(module), value.__name__, None) is value:
            walk.put("ufunc", f"{module}.{value.__name__} {_version(module)}")
            return
    raise Unidentified(f"the function {value.__name__}")


def _class(walk: Walk, kind: type) -> None:
    walk.put("class", kind.__qualname__)
    walk.add(type(kind))
    walk.add(kind.__bases__)
    held = {name: item for name, item in vars(kind).items() if name not in _ASIDE}
    walk.pairs("attributes", held.items())


def _function(walk: Walk, function: types.FunctionType) -> None:
    walk.put("function", function.__name__)
    _instructions(walk, function.__code__)
    walk.add([function.__defaults__, function.__kwdefaults__])
    walk.pairs("attributes", vars(function).items())
    names = _names(function.__code__)
    for name, cell in zip(
        function.__code__.co_freevars, function.__closure__ or (), strict=True
    ):
        walk.put("cell", name)
        _cell(walk, cell, names.of(name))
    known = function.__globals__
    for name in sorted(names.used):
        _global(walk, name, known, names)
    for name in sorted(names.imported):
        _import(walk, name, known, names)


def _global(walk: Walk, name: str, known: dict[str, Any], names: _Names) -> None:
    if name in _LOOKS_UP and (name not in known or name == "importlib"):
        raise Unidentified(f"a function that calls {name}")
    if name in known:
        walk.put("global", name)
        if isinstance(known[name], types.ModuleType):
            _module(walk, known[name], names.of(name))
        else:
            walk.add(known[name])
    else:
        walk.put("builtin" if hasattr(builtins, name) else "missing", name)


def _import(walk: Walk, name: str, known: dict[str, Any], names: _Names) -> None:
    """A module that the function imports when it is called."""
    whole = any(part in names.handed_on for part in (name, *name.split(".")))
    name = importlib.util.resolve_name(name, known.get("__package__"))
    top = name.partition(".")[0]
    if top in _LOOKS_UP:
        raise Unidentified("a function that imports by name")
    if name in sys.modules:
        for one in dict.fromkeys((top, name)):  # `import a.b` gives it both
            _module(walk, sys.modules[one], None if whole else names)
        return
    spec = importlib.util.find_spec(top)
    origin = spec.origin if spec is not None else None
    if top not in sys.stdlib_module_names and (
        origin is None or not _is_installed(top, origin)
    ):
        raise Unidentified(f"the module {name}, which is not loaded")
    walk.put("module", f"{name} {_version(name)}")


def _cell(walk: Walk, cell: types.CellType, names: _Names | None) -> None:
    try:
        content = cell.cell_contents
    except ValueError:
        walk.put("empty")
        return
    if isinstance(content, types.ModuleType):
        _module(walk, content, names)
    else:
        walk.add(content)


def _module(walk: Walk, module: types.ModuleType, names: _Names | None) -> None:
    """A module of the user by those of its values that may be reached; None: by all."""
    if is_installed(module):
        walk.put("module", f"{module.__name__} {_version(module.__name__)}")
        return
    if names is not None and names.attributes & _BY_NAME:
        names = None
    held = {
        name: item
        for name, item in vars(module).items()
        if (not name.startswith("__") if names is None else name in names.attributes)
    }
    # One module may be reached from two functions that look at other parts of it.
    if not walk.first(module, *sorted(held)):
        return
    walk.put("module of the user")
    for name in sorted(held):
        walk.put("name", name)
        if isinstance(held[name], types.ModuleType):
            _module(walk, held[name], None if names is None else names.of(name))
        else:
            walk.add(held[name])


def _instructions(walk: Walk, code: types.CodeType) -> None:
    walk.put("code", code.co_code)
    walk.put("exceptions", getattr(code, "co_exceptiontable", b""))
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    walk.add([*counts, code.co_flags])
    walk.add([code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars])
    walk.add(code.co_consts)


@dataclass(frozen=True)
class _Names:
    """What code reads by name.

    Attributes
    ----------
    used : frozenset of str
        Globals.
    imported : frozenset of str
        Modules that it imports, with a dot for each level upwards.
    attributes : frozenset of str
        All names, among them those that it looks up in what it reads.
    handed_on : frozenset of str
        Names of which it takes more than an attribute: it may pass a module to others.
    """

    used: frozenset[str]
    imported: frozenset[str]
    attributes: frozenset[str]
    handed_on: frozenset[str]

    def of(self, name: str) -> _Names | None:
        """What is looked up in the module of this name; None: perhaps all of it."""
        return None if name in self.handed_on else self

    def __or__(self, other: _Names) -> _Names:
        return _Names(
            self.used | other.used, self.imported | other.imported,
            self.attributes | other.attributes, self.handed_on | other.handed_on,
        )  # fmt: skip


def _names(code: types.CodeType) -> _Names:
    used, imported, handed_on = set(), set(), set()
    constants: list[Any] = []
    module, stored = "", {}
    steps = list(dis.get_instructions(code))
    for step, following in zip_longest(steps, steps[1:]):
        after = following.opname if following is not None else ""
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            used.add(str(step.argval))
        elif step.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):  # the latter from 3.14 on
            constants.append(step.argval)
        if step.opname == "IMPORT_NAME":
            # What comes before are the levels upwards, and the names to take.
            module = "." * constants[-2] + str(step.argval)
            imported.add(module)
        if step.opname in ("IMPORT_NAME", "IMPORT_FROM"):
            name = module if step.opname == "IMPORT_NAME" else str(step.argval)
            if after in ("STORE_FAST", "STORE_NAME"):
                stored[str(following.argval)] = name
            elif after != "IMPORT_FROM":
                handed_on.add(name)
        elif step.opname.startswith("LOAD_") and after not in ("LOAD_ATTR", "LOAD_METHOD"):
            taken = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            handed_on |= {name for name in taken if isinstance(name, str)}
    handed_on |= {name for alias, name in stored.items() if alias in handed_on}
    found = _Names(
        frozenset(used), frozenset(imported), frozenset(code.co_names),
        frozenset(handed_on),
    )  # fmt: skip
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found
