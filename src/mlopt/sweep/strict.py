"""Strict structures from plain values; errors name the key and what is allowed there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from mlopt.errors import ConfigError, did_you_mean, masked

T = TypeVar("T", bound=msgspec.Struct)


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section of a configuration: keys that are not fields are refused."""


def convert(tree: Any, struct: type[T], where: str) -> T:
    """``tree`` as a ``struct``; ``where`` begins every error, as in ``"sweep.toml: "``.

    Raises
    ------
    ConfigError
        An unknown key, a value of the wrong type or out of range.
    """
    _check_keys(tree, struct, where, ())
    try:
        return msgspec.convert(tree, struct, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigError(masked(where + _sentence(str(error), tree, struct))) from None


def _check_keys(tree: Any, struct: Any, where: str, path: tuple[str, ...]) -> None:
    """Refuse unknown keys with a hint: msgspec knows the key, but not the nearest one."""
    if not isinstance(tree, Mapping):
        return
    fields = _fields(struct)
    for key, value in tree.items():
        here = (*path, key)
        if key not in fields:
            raise ConfigError(
                f"{where}unknown key `{'.'.join(here)}`.{did_you_mean(key, list(fields))} "
                f"Allowed here: {', '.join(fields)}."
            )
        if _is_struct(fields[key]):
            _check_keys(value, fields[key], where, here)
        elif get_origin(fields[key]) is dict and _is_struct(get_args(fields[key])[1]):
            for name, inner in value.items() if isinstance(value, Mapping) else ():
                _check_keys(inner, get_args(fields[key])[1], where, (*here, name))


def _fields(struct: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(struct)}


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _sentence(message: str, tree: Any, struct: type[msgspec.Struct]) -> str:
    """msgspec's message with the key, what was given, and the choices there are."""
    match = re.fullmatch(r"(.*) - at `\$\.?(.*)`", message)
    if match is None:
        return f"{message}."
    expected, key = match.groups()
    value, kind = _look_up(tree, struct, key.split("."))
    choices = _choices(kind)
    if choices and (isinstance(value, str) or len(choices) > 1):
        hint = did_you_mean(str(value), choices)
        plain = _plain_types(kind)
        allowed = ", ".join([*(f'"{c}"' for c in choices), *plain])
        return f"`{key}` must be one of {allowed}; got {value!r}.{hint}"
    expected = expected[0].lower() + expected[1:].replace("`", "").replace(" | null", "")
    given = "" if "[...]" in key else f"; got {value!r}"
    return f"`{key}`: {expected}{given}."


def _look_up(tree: Any, struct: Any, keys: list[str]) -> tuple[Any, Any]:
    """The value at a dotted key, and the type that is expected there."""
    kind: Any = struct
    for key in keys:
        key = re.sub(r"\[.*\]", "", key)
        tree = tree.get(key) if isinstance(tree, Mapping) else None
        if _is_struct(kind):
            kind = _fields(kind).get(key)
        elif get_origin(kind) is dict:
            kind = get_args(kind)[1]
    return tree, kind


def _choices(kind: Any) -> list[str]:
    """The strings a type allows by name; empty when it is not about names."""
    if get_origin(kind) is Literal:
        return [str(arg) for arg in get_args(kind)]
    if get_origin(kind) in (Union, UnionType):
        return [choice for arg in get_args(kind) for choice in _choices(arg)]
    return []


def _plain_types(kind: Any) -> list[str]:
    """The other types that a union with names allows, in words."""
    if get_origin(kind) not in (Union, UnionType):
        return []
    words = []
    for arg in get_args(kind):
        bounds = [m.ge for m in getattr(arg, "__metadata__", ()) if m.ge is not None]
        if arg is int or (bounds and get_args(arg)[0] is int):
            words.append("a whole number" + (f" of at least {bounds[0]}" if bounds else ""))
    return words
