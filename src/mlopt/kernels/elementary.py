"""exp and log that LLVM turns into SIMD instructions, in float32 as in float64.

Powers of two are split off by integer arithmetic on the bits of a number; the rest is a
polynomial: the interpolation of exp, or of ``2 atanh(sqrt(u)) / sqrt(u)``, at the
Chebyshev nodes of the interval needed. Errors are a few units in the last place, which
the tests hold against NumPy. A nan stays a nan.

The plain functions are what runs with ``NUMBA_DISABLE_JIT=1``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, overload

# No reordering here: adding a large number and taking it away rounds on purpose.
_EXACT = {"error_model": "numpy", "fastmath": {"contract"}, "forceinline": True}

# Constant term first. exp(r) for |r| <= log(2) / 2.
_EXP = {
    np.float64: (
        1.0, 1.0000000000000067, 0.5000000000000006, 0.16666666666554406,
        0.04166666666657314, 0.008333333385667782, 0.0013888888932488599,
        0.00019841170270440067, 2.4801504346997686e-05, 2.764018079620985e-06,
        2.7626357241447223e-07,
    ),
    np.float32: (
        1.0, 1.000000037716214, 0.5000000047117757, 0.16666415514653277,
        0.04166635289677516, 0.008375126398153335, 0.0013941108433972674,
    ),
}  # fmt: skip

# 2 atanh(sqrt(u)) / sqrt(u) for 0 <= u <= 1/9.
_ATANH = {
    np.float64: (
        2.0, 0.6666666666668257, 0.399999999952876, 0.2857142911165716,
        0.22222190861346283, 0.1818285980047391, 0.15363676248891633,
        0.13591305485579894, 0.09880789048764786, 0.17780763826113302,
    ),
    np.float32: (
        2.000000007681759, 0.6666632164137777, 0.40024595230703747,
        0.27965157745197267, 0.2815777836310908,
    ),
}  # fmt: skip

_BITS = {np.float64: 52, np.float32: 23}
"""Bits of the mantissa."""
_LOWEST = {np.float64: -708.0, np.float32: -87.0}
"""Exponents of e below give numbers that are not normal."""
# log(2) as a number with few bits, which times an exponent is exact, and the rest of it.
_LOG2 = {
    np.float64: (0.693147180369123816490, 1.90821492927058770002e-10),
    np.float32: (0.693359375, -2.12194440e-4),
}


def _real(kind: Any) -> Any:
    return np.float32 if kind == types.float32 else np.float64


def _words(context: Any, kind: Any) -> tuple[Any, Any, int]:
    """LLVM's types for a real number and for its bits, and the bits of the mantissa."""
    mantissa = _BITS[_real(kind)]
    return context.get_value_type(kind), ir.IntType(64 if mantissa == 52 else 32), mantissa


@intrinsic
def _times_power(typing: Any, p: Any, k: Any) -> tuple[Any, Callable[..., Any]]:
    """``p * 2**k`` for an integer ``k`` in the lowest bits of the mantissa of ``k``."""

    def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
        real, word, mantissa = _words(context, p)
        bits, power = (build.bitcast(a, word) for a in args)
        return build.bitcast(build.add(bits, build.shl(power, word(mantissa))), real)

    return p(p, k), generate


@intrinsic
def _split(typing: Any, x: Any) -> tuple[Any, Callable[..., Any]]:
    """``(m, k)`` with ``x = m * 2**k`` and ``m`` in [sqrt(1/2), sqrt(2)); ``x >= m``."""

    def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
        real, word, mantissa = _words(context, x)
        root = {52: 0x3FE6A09E667F3BCD, 23: 0x3F3504F3}[mantissa]
        bits = build.bitcast(args[0], word)
        k = build.lshr(build.sub(bits, word(root)), word(mantissa))
        m = build.bitcast(build.sub(bits, build.shl(k, word(mantissa))), real)
        # AVX2 cannot convert 64-bit integers: as mantissa of 2**52 (2**23) it is a number.
        base = {52: 0x4330000000000000, 23: 0x4B000000}[mantissa]
        number = build.bitcast(build.or_(k, word(base)), real)
        number = build.fsub(number, real(float(2**mantissa)))
        return context.make_tuple(build, types.UniTuple(x, 2), (m, number))

    return types.UniTuple(x, 2)(x), generate


def _polynomial(table: dict[Any, tuple[float, ...]]) -> Any:
    """Return a jitted polynomial in pairs of pairs of terms (Estrin, 1960).

    Horner's rule is one chain of operations that each wait for the last.
    """

    @intrinsic
    def polynomial(typing: Any, x: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
            power = args[0]
            terms = [power.type(c) for c in table[_real(x)]]
            while len(terms) > 1:
                pairs = zip(terms[::2], terms[1::2], strict=False)
                rest = terms[-1:] if len(terms) % 2 else []
                terms = [_fused(build, power, b, a) for a, b in pairs] + rest
                power = build.fmul(power, power)
            return terms[0]

        return x(x), generate

    return polynomial


def _fused(build: Any, x: Any, y: Any, z: Any) -> Any:
    """``x * y + z``, in one instruction where the machine has it."""
    return build.fadd(build.fmul(x, y, flags=("contract",)), z, flags=("contract",))


_exp_of_rest = _polynomial(_EXP)
_atanh_by_square = _polynomial(_ATANH)


def like(x: Any, value: float) -> Any:
    """Return ``value`` in the dtype of ``x``: a Python float would widen float32."""
    return np.asarray(x).dtype.type(value)


@overload(like, jit_options={"forceinline": True})
def _like(x: Any, value: Any) -> Callable[..., Any]:
    real = _real(x)

    def implementation(x: Any, value: Any) -> Any:
        return real(value)

    return implementation


def exp(x: Any) -> Any:
    """Return e**x for ``x < 88`` (float64: 709); never 0, but a small normal number."""
    return np.exp(np.maximum(x, _LOWEST[np.asarray(x).dtype.type]))


@overload(exp, jit_options=_EXACT)
def _exp(x: Any) -> Callable[..., Any]:
    real = _real(x)
    lowest = real(_LOWEST[real])
    log2_high, log2_low = (real(part) for part in _LOG2[real])
    per_log2 = real(1.4426950408889634)
    # Numbers of this size have no bits behind the point: adding it rounds to an integer.
    rounder = real(1.5 * 2.0 ** _BITS[real])

    def implementation(x: Any) -> Any:
        x = lowest if x < lowest else x
        shifted = x * per_log2 + rounder
        k = shifted - rounder
        r = (x - k * log2_high) - k * log2_low
        return _times_power(_exp_of_rest(r), shifted)

    return implementation


def twice_atanh(s: Any) -> Any:
    """Return ``2 atanh(s)``, ``0 <= s <= 1/3``: ``log(1 + e)`` at ``s = e / (2 + e)``."""
    return 2 * np.arctanh(s)


@overload(twice_atanh, jit_options=_EXACT)
def _twice_atanh(s: Any) -> Callable[..., Any]:
    def implementation(s: Any) -> Any:
        return s * _atanh_by_square(s * s)

    return implementation


def log(x: Any) -> Any:
    """Return the natural logarithm of ``x >= 1``."""
    return np.log(x)


@overload(log, jit_options=_EXACT)
def _log(x: Any) -> Callable[..., Any]:
    real = _real(x)
    log2_high, log2_low = (real(part) for part in _LOG2[real])
    one = real(1.0)

    def implementation(x: Any) -> Any:
        m, k = _split(x)
        s = twice_atanh((m - one) / (m + one))
        # x - x is nan for nan and inf, whose bits would give some number.
        return (k * log2_high + (s + k * log2_low)) + (x - x)

    return implementation
