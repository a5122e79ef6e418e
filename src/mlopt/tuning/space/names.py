"""Names of hyperparameters: checked against the estimator, found without ``__``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from sklearn.base import BaseEstimator, clone

from mlopt.errors import InputError, did_you_mean

# They change where and how loudly it runs, not what comes out.
WITHOUT_EFFECT = ("n_jobs", "verbose", "memory")


@runtime_checkable
class Tunable(Protocol):
    """An estimator, as far as a search needs to know one."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, with those of nested estimators."""
        ...

    def set_params(self, **params: Any) -> Any:
        """Change parameters."""
        ...


def resolve(space: Mapping[str, Any], estimator: Any, where: str = "") -> dict[str, str]:
    """The full name of each parameter in ``space``.

    Parameters
    ----------
    space : mapping of str to values
    estimator : estimator or None
        Without one, names stay as they are.
    where : str
        Ends "The space ..." in messages.

    Raises
    ------
    InputError
        A name that no parameter has, or that several nested ones end with.
    """
    known = None if estimator is None else _known(space, estimator)
    names = {
        given: given if _may_know(estimator, given) else _full_name(given, known, where)
        for given in space
    }
    for given, name in names.items():
        twins = [other for other in names if names[other] == name and other != given]
        if twins:
            raise InputError(
                f"The space{where} names one parameter twice: `{given}` and `{twins[0]}`."
            )
    return names


def _may_know(estimator: Any, name: str) -> bool:
    """Whether ``set_params`` of an estimator may take a ``name`` it does not list.

    Boosting has other names for some of its parameters, and takes more than it lists.
    """
    if estimator is None:
        return False
    params = estimator.get_params(deep=True)
    path, _, last = name.rpartition("__")
    owner = params.get(path) if path else estimator
    if name in params or isinstance(owner, type) or not hasattr(owner, "set_params"):
        return False
    if not isinstance(owner, BaseEstimator):
        return True
    if type(owner).set_params is BaseEstimator.set_params or _ends(name, params):
        return False
    try:
        clone(owner).set_params(**{last: None})
    except Exception:
        return False
    return True


def fixed_parameters(estimator: Any, varied: Collection[str]) -> dict[str, Any]:
    """The parameters of ``estimator`` that are not ``varied``."""
    if not isinstance(estimator, Tunable):
        return {}
    return {
        name: value
        for name, value in sorted(estimator.get_params(deep=True).items())
        if name not in varied
        and name.rpartition("__")[2] not in WITHOUT_EFFECT
        and not _composite(value)
    }


def bare(estimator: Tunable, without: Collection[str]) -> Tunable:
    """A copy, blank where it is in ``without`` or changes no result: code and steps."""
    copied: Tunable = clone(estimator, safe=False)
    for name in sorted(copied.get_params(deep=True)):
        blank = name in without or name.rpartition("__")[2] in WITHOUT_EFFECT
        # shorter names come first: what is nested in a parameter goes with it
        if blank and name in copied.get_params(deep=True):
            copied.set_params(**{name: None})
    return copied


def _composite(value: Any) -> bool:
    """Whether ``value`` is or lists estimators, which are there by their parameters."""
    items = value if isinstance(value, (list, tuple)) else ()
    return isinstance(value, Tunable) or any(isinstance(i, (tuple, Tunable)) for i in items)


def _known(space: Mapping[str, Any], estimator: Any) -> list[str]:
    """Parameters of the estimator, and of estimators that the space puts into it."""
    known = set(estimator.get_params(deep=True))
    for name, values in space.items():
        choices = values if isinstance(values, (list, tuple)) else ()
        # A protocol is asked once a type: grids have many numbers.
        kinds = {kind for kind in map(type, choices) if issubclass(kind, Tunable)}
        for choice in choices:
            if type(choice) in kinds and not isinstance(choice, type):
                known |= {f"{name}__{nested}" for nested in choice.get_params(deep=True)}
    return sorted(known)


def _full_name(given: str, known: list[str] | None, where: str) -> str:
    if known is None or given in known:
        return given
    endings = _ends(given, known)
    if len(endings) == 1:
        return endings[0]
    if endings:
        raise InputError(
            f"`{given}` in the space{where} must name one parameter, "
            f"and {len(endings)} end so. Write one of {endings}."
        )
    raise InputError(
        f"`{given}` in the space{where} must be a parameter of the estimator."
        f"{_hint(given, known)}"
    )


def _ends(given: str, known: Iterable[str]) -> list[str]:
    """Parameters of what is nested that end so."""
    return [name for name in known if name.endswith(f"__{given}")]


def _hint(given: str, known: list[str]) -> str:
    """The parameter that was probably meant, in whole or by its last part."""
    return (
        did_you_mean(given, known)
        or did_you_mean(given, known, lambda name: name.rpartition("__")[2])
        or f" Its parameters are: {', '.join(known)}."
    )
