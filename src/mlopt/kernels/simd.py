"""Vectors of a few numbers, a machine register each, for loops that compilers get wrong.

`Lanes` have 32 bytes: 4 float64 or 8 float32. They add, subtract, multiply, divide and
compare like numbers, and `like` and `select` work on both, so a formula that uses
`select` in place of ``if`` is written once for a number and for lanes.

Arrays are addressed by flat index, without a check of bounds. The bodies of the functions
are what runs with ``NUMBA_DISABLE_JIT=1``, on small NumPy arrays; for Numba each has a
type and LLVM instructions.
"""

from __future__ import annotations

import math
import operator
import platform
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import lower_builtin, models, register_model, type_callable
from numpy.typing import NDArray

Array = NDArray[Any]


def _fuses() -> bool:
    """Whether the processor multiplies and adds in one instruction.

    Otherwise ``llvm.fma`` is a slow call.
    """
    if platform.machine().lower() in ("arm64", "aarch64"):
        return True
    return bool(binding.get_host_cpu_features().get("fma", False))


_FUSES = _fuses()


def lane_count(itemsize: int) -> int:
    """Return how many numbers of ``itemsize`` bytes make lanes."""
    return 32 // itemsize


def aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return zeros that begin with a cache line, so that no lanes straddle two of them.

    NumPy's arrays need not; a store to two lines takes twice as long.
    """
    kind, line = np.dtype(dtype), 64
    count = math.prod(shape) * kind.itemsize
    room = np.zeros(count + line, np.uint8)
    start = -room.ctypes.data % line
    return np.asarray(room[start : start + count].view(kind).reshape(shape))


class Lanes(types.Type):
    """Numba's type of numbers of one kind, in one register or in several."""

    def __init__(self, kind: Any, registers: int = 1) -> None:
        self.kind = kind
        self.count = registers * lane_count(kind.bitwidth // 8)
        super().__init__(name=f"Lanes({kind}, {self.count})")


class Mask(types.Type):
    """Numba's type of what a comparison of lanes gives."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(name=f"Mask({count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        number = ir.FloatType() if kind.kind == types.float32 else ir.DoubleType()
        super().__init__(manager, kind, ir.VectorType(number, kind.count))


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Mask) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.IntType(1), kind.count))


def constant(kind: Any, value: Any) -> Any:
    """Return LLVM's constant of type ``kind``, in every lane if that is a vector."""
    if isinstance(kind, ir.VectorType):
        return ir.Constant(kind, [kind.element(value)] * kind.count)
    return kind(value)


def fused(build: Any, x: Any, y: Any, z: Any) -> Any:
    """Return LLVM's value ``x * y + z``."""
    if not _FUSES:
        return build.fadd(build.fmul(x, y), z)
    return _intrinsic(build, "llvm.fma", x, y, z)


def _intrinsic(build: Any, name: str, *args: Any) -> Any:
    """Call LLVM's function ``name`` of numbers, or vectors, of one type."""
    kind = args[0].type
    number = kind.element if isinstance(kind, ir.VectorType) else kind
    name += f".v{kind.count}" if number is not kind else "."
    name += "f32" if isinstance(number, ir.FloatType) else "f64"
    function = build.module.globals.get(name) or ir.Function(
        build.module, ir.FunctionType(kind, [kind] * len(args)), name
    )
    return build.call(function, args)


def _spread(build: Any, value: Any, vector: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = build.insert_element(undefined, value, ir.IntType(32)(0))
    return build.shuffle_vector(
        first, undefined, constant(ir.VectorType(ir.IntType(32), vector.count), 0)
    )


def load(A: Array, i: int) -> Any:
    """Return the lanes at ``A.flat[i]`` and after."""
    return A.reshape(-1)[i : i + lane_count(A.itemsize)].copy()


def load_like(v: Any, A: Array, i: int) -> Any:
    """Return as many lanes as ``v`` has, at ``A.flat[i]`` and after."""
    return A.reshape(-1)[i : i + len(v)].copy()


def store(A: Array, i: int, v: Any) -> None:
    """Write lanes to ``A.flat[i]`` and after."""
    A.reshape(-1)[i : i + len(v)] = v


def splat(x: Any) -> Any:
    """Return lanes that all are ``x``."""
    return np.full(lane_count(np.asarray(x).itemsize), x)


def number_at(A: Array, i: int) -> Any:
    """Return ``A.flat[i]``; indexing would look whether ``i`` is negative."""
    return A.reshape(-1)[i]


def put_number(A: Array, i: int, x: Any) -> None:
    """Write ``x`` to ``A.flat[i]``."""
    A.reshape(-1)[i] = x


def splat_at(A: Array, i: int) -> Any:
    """Return lanes that all are ``A.flat[i]``."""
    return splat(A.reshape(-1)[i])


def splat_wide(x: Any) -> Any:
    """Return twice as many lanes that all are ``x``: two registers."""
    return np.full(2 * lane_count(np.asarray(x).itemsize), x)


def turn(A: Array, i: int, step: int, T: Array, j: int, stride: int) -> None:
    """Transpose a square of lanes.

    Line k of it, at ``A.flat[i + k * step]``, becomes element k of the lines at
    ``T.flat[j]``, ``T.flat[j + stride]`` and so on.
    """
    L = lane_count(A.itemsize)
    lines = [A.reshape(-1)[i + k * step : i + k * step + L].copy() for k in range(L)]
    for k, line in enumerate(np.transpose(lines)):
        T.reshape(-1)[j + k * stride : j + k * stride + L] = line


def prefetch(A: Array, i: int) -> None:
    """Ask for the cache line of ``A.flat[i]``, without waiting for it."""


def muladd(x: Any, y: Any, z: Any) -> Any:
    """Return ``x * y + z``, rounded once where the processor has an instruction for it."""
    return x * y + z


def total(v: Any) -> Any:
    """Return the sum over lanes."""
    return v.sum()


def some(mask: Any) -> Any:
    """Return whether any lane of a comparison is true."""
    return mask.any()


def select(condition: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` where the condition holds, otherwise ``no``."""
    chosen = np.where(condition, yes, no)
    return chosen if chosen.ndim else chosen[()]


def like(x: Any, value: Any) -> Any:
    """Return ``value`` in the dtype, and in all lanes, of ``x``.

    A Python float would turn float32 into float64.
    """
    same = np.full_like(x, value)
    return same if same.ndim else same[()]


def magnitude(x: Any) -> Any:
    """Return ``abs(x)``."""
    return np.abs(x)


def _typed(function: Any, result: Callable[..., Any]) -> None:
    """Give ``function`` the type that ``result`` returns; None: not for these arguments."""

    @type_callable(function)
    def typer(context: Any) -> Callable[..., Any]:
        return result


def _same_lanes(*kinds: Any) -> Any:
    lanes = isinstance(kinds[0], Lanes) and all(k == kinds[0] for k in kinds)
    return kinds[0] if lanes else None


_ARITHMETIC = {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
}
_COMPARISONS = {operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.eq: "=="}


def _define_arithmetic(symbol: Any, name: str) -> None:
    _typed(symbol, lambda a, b: _same_lanes(a, b))

    @lower_builtin(symbol, Lanes, Lanes)
    def lower(context: Any, build: Any, signature: Any, args: Any) -> Any:
        return getattr(build, name)(*args)


def _define_comparison(symbol: Any, name: str) -> None:
    _typed(symbol, lambda a, b: Mask(a.count) if _same_lanes(a, b) else None)

    @lower_builtin(symbol, Lanes, Lanes)
    def lower(context: Any, build: Any, signature: Any, args: Any) -> Any:
        return build.fcmp_ordered(name, *args)


for _symbol, _name in _ARITHMETIC.items():
    _define_arithmetic(_symbol, _name)
for _symbol, _name in _COMPARISONS.items():
    _define_comparison(_symbol, _name)

_typed(lane_count, lambda itemsize: types.intp)
_typed(operator.neg, lambda a: _same_lanes(a))
_typed(load, lambda A, i: Lanes(A.dtype))
_typed(store, lambda A, i, v: types.none)
_typed(load_like, lambda v, A, i: v)
_typed(splat, lambda x: Lanes(x))
_typed(number_at, lambda A, i: A.dtype)
_typed(put_number, lambda A, i, x: types.none)
_typed(splat_at, lambda A, i: Lanes(A.dtype))
_typed(splat_wide, lambda x: Lanes(x, 2))
_typed(turn, lambda A, i, step, T, j, stride: types.none)
_typed(prefetch, lambda A, i: types.none)
_typed(muladd, lambda x, y, z: z)
_typed(total, lambda v: v.kind)
_typed(some, lambda mask: types.boolean)
_typed(select, lambda condition, yes, no: yes if yes == no else None)
_typed(like, lambda x, value: x)
_typed(magnitude, lambda x: x)


@lower_builtin(lane_count, types.Integer)
def _lower_lane_count(context: Any, build: Any, signature: Any, args: Any) -> Any:
    return build.sdiv(args[0].type(32), args[0])


@lower_builtin(operator.neg, Lanes)
def _lower_neg(context: Any, build: Any, signature: Any, args: Any) -> Any:
    return build.fneg(args[0])


def _place(context: Any, build: Any, kind: Any, array: Any, i: Any) -> Any:
    return build.gep(context.make_array(kind)(context, build, array).data, [i])


def _read(context: Any, build: Any, kind: Any, array: Any, i: Any, lanes: Any) -> Any:
    vector = context.get_value_type(lanes).as_pointer()
    value = build.load(build.bitcast(_place(context, build, kind, array, i), vector))
    value.align = kind.dtype.bitwidth // 8
    return value


def _write(context: Any, build: Any, kind: Any, array: Any, i: Any, value: Any) -> Any:
    vector = value.type.as_pointer()
    place = build.bitcast(_place(context, build, kind, array, i), vector)
    build.store(value, place).align = kind.dtype.bitwidth // 8
    return context.get_dummy_value()


@lower_builtin(load, types.Array, types.Integer)
@lower_builtin(load_like, Lanes, types.Array, types.Integer)
def _lower_load(context: Any, build: Any, signature: Any, args: Any) -> Any:
    kind, (array, i) = signature.args[-2], args[-2:]
    return _read(context, build, kind, array, i, signature.return_type)


@lower_builtin(store, types.Array, types.Integer, Lanes)
def _lower_store(context: Any, build: Any, signature: Any, args: Any) -> Any:
    return _write(context, build, signature.args[0], *args)


@lower_builtin(splat, types.Float)
@lower_builtin(splat_wide, types.Float)
def _lower_splat(context: Any, build: Any, signature: Any, args: Any) -> Any:
    return _spread(build, args[0], context.get_value_type(signature.return_type))


@lower_builtin(number_at, types.Array, types.Integer)
def _lower_number_at(context: Any, build: Any, signature: Any, args: Any) -> Any:
    return build.load(_place(context, build, signature.args[0], *args))


@lower_builtin(put_number, types.Array, types.Integer, types.Float)
def _lower_put_number(context: Any, build: Any, signature: Any, args: Any) -> Any:
    build.store(args[2], _place(context, build, signature.args[0], *args[:2]))
    return context.get_dummy_value()


@lower_builtin(splat_at, types.Array, types.Integer)
def _lower_splat_at(context: Any, build: Any, signature: Any, args: Any) -> Any:
    value = _lower_number_at(context, build, signature, args)
    return _spread(build, value, context.get_value_type(signature.return_type))


@lower_builtin(prefetch, types.Array, types.Integer)
def _lower_prefetch(context: Any, build: Any, signature: Any, args: Any) -> Any:
    word, place = ir.IntType(32), ir.IntType(8).as_pointer()
    kind, name = ir.FunctionType(ir.VoidType(), [place, *[word] * 3]), "llvm.prefetch.p0i8"
    function = build.module.globals.get(name) or ir.Function(build.module, kind, name)
    at = build.bitcast(_place(context, build, signature.args[0], *args), place)
    build.call(function, [at, word(0), word(3), word(1)])  # to read, often, data
    return context.get_dummy_value()


@lower_builtin(muladd, Lanes, Lanes, Lanes)
@lower_builtin(muladd, types.Float, types.Float, types.Float)
def _lower_muladd(context: Any, build: Any, signature: Any, args: Any) -> Any:
    return fused(build, *args)


@lower_builtin(turn, *[types.Array, types.Integer, types.Integer] * 2)
def _lower_turn(context: Any, build: Any, signature: Any, args: Any) -> Any:
    A, i, step, T, j, stride = args
    source, target = signature.args[0], signature.args[3]
    lanes, lines = Lanes(source.dtype), []
    for k in range(lanes.count):
        at = build.add(i, build.mul(step, step.type(k)))
        lines.append(_read(context, build, source, A, at, lanes))
    for k, line in enumerate(_transposed(build, lines)):
        at = build.add(j, build.mul(stride, stride.type(k)))
        _write(context, build, target, T, at, line)
    return context.get_dummy_value()


def _transposed(build: Any, lines: list[Any]) -> list[Any]:
    """Swap the halves of pairs of lines, then their quarters, and so on."""
    n, index = len(lines), ir.IntType(32)
    span = n // 2
    while span:
        for k in (k for k in range(n) if not k & span):
            a, b = lines[k], lines[k + span]
            low = [q if not q & span else n + q - span for q in range(n)]
            high = [q + span if not q & span else n + q for q in range(n)]
            for line, mask in ((k, low), (k + span, high)):
                places = ir.Constant(ir.VectorType(index, n), mask)
                lines[line] = build.shuffle_vector(a, b, places)
        span //= 2
    return lines


@lower_builtin(total, Lanes)
def _lower_total(context: Any, build: Any, signature: Any, args: Any) -> Any:
    value, index = args[0], ir.IntType(32)
    while (count := value.type.count) > 1:
        halves = (range(count // 2), range(count // 2, count))
        places = [ir.Constant(ir.VectorType(index, count // 2), list(h)) for h in halves]
        value = build.fadd(*(build.shuffle_vector(value, value, p) for p in places))
    return build.extract_element(value, index(0))


@lower_builtin(some, Mask)
def _lower_some(context: Any, build: Any, signature: Any, args: Any) -> Any:
    word = ir.IntType(args[0].type.count)
    return build.icmp_unsigned("!=", build.bitcast(args[0], word), word(0))


@lower_builtin(select, Mask, Lanes, Lanes)
@lower_builtin(select, types.Boolean, types.Float, types.Float)
def _lower_select(context: Any, build: Any, signature: Any, args: Any) -> Any:
    return build.select(*args)


@lower_builtin(like, types.Float, types.Number)
@lower_builtin(like, Lanes, types.Number)
def _lower_like(context: Any, build: Any, signature: Any, args: Any) -> Any:
    kind, given = signature.args
    number = kind.kind if isinstance(kind, Lanes) else kind
    value = context.cast(build, args[1], given, number)
    if isinstance(kind, Lanes):
        return _spread(build, value, context.get_value_type(kind))
    return value


@lower_builtin(magnitude, types.Float)
@lower_builtin(magnitude, Lanes)
def _lower_magnitude(context: Any, build: Any, signature: Any, args: Any) -> Any:
    return _intrinsic(build, "llvm.fabs", args[0])
