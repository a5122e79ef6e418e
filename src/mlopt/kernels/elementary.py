"""exp, log and log1p of numbers and of lanes, in float32 as in float64.

Powers of two are split off by integer arithmetic on the bits of a number; the rest is a
polynomial: the interpolation of exp, or of ``2 atanh(sqrt(u)) / sqrt(u)``, at the
Chebyshev nodes of the interval needed. Errors are a few units in the last place, which
the tests hold against NumPy. A nan stays a nan.

There is no branch and no call in them, so that LLVM turns a loop over numbers into SIMD
instructions. The bodies of the functions are what runs with ``NUMBA_DISABLE_JIT=1``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, overload

from mlopt.kernels.simd import Lanes, constant, fused, like, muladd, select

_OPTIONS = {"error_model": "numpy", "forceinline": True}

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
_ROOT_HALF = {52: 0x3FE6A09E667F3BCD, 23: 0x3F3504F3}
"""sqrt(1/2) as bits."""
_LOWEST = {np.float64: -708.0, np.float32: -87.0}
"""Exponents of e below give numbers that are not normal."""
# log(2) as a number with few bits, which times an exponent is exact, and the rest of it.
_LOG2 = {
    np.float64: (0.693147180369123816490, 1.90821492927058770002e-10),
    np.float32: (0.693359375, -2.12194440e-4),
}


def _real(kind: Any) -> Any:
    number = kind.kind if isinstance(kind, Lanes) else kind
    return np.float32 if number == types.float32 else np.float64


def _word(kind: Any, mantissa: int) -> Any:
    """LLVM's integer that has as many bits as a number, one a lane."""
    word = ir.IntType(64 if mantissa == 52 else 32)
    return ir.VectorType(word, kind.count) if isinstance(kind, ir.VectorType) else word


@intrinsic
def _times_power(typing: Any, p: Any, k: Any) -> tuple[Any, Callable[..., Any]]:
    """``p * 2**k`` for an integer ``k`` in the lowest bits of the mantissa of ``k``."""
    mantissa = _BITS[_real(p)]

    def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
        word = _word(args[0].type, mantissa)
        bits, power = (build.bitcast(a, word) for a in args)
        scaled = build.add(bits, build.shl(power, constant(word, mantissa)))
        return build.bitcast(scaled, args[0].type)

    return p(p, k), generate


@intrinsic
def _split(typing: Any, x: Any) -> tuple[Any, Callable[..., Any]]:
    """``(m, k)``: ``x = m * 2**k`` with ``m`` in [sqrt(1/2), sqrt(2)), for ``x >= 1``."""
    mantissa = _BITS[_real(x)]

    def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
        real, word = args[0].type, _word(args[0].type, mantissa)
        shift = constant(word, mantissa)
        bits = build.bitcast(args[0], word)
        k = build.lshr(build.sub(bits, constant(word, _ROOT_HALF[mantissa])), shift)
        m = build.bitcast(build.sub(bits, build.shl(k, shift)), real)
        # AVX2 cannot convert 64-bit integers: as mantissa of 2**52 (2**23) it is a number.
        base = constant(real, float(2**mantissa))
        number = build.bitcast(build.or_(k, build.bitcast(base, word)), real)
        return context.make_tuple(
            build, types.UniTuple(x, 2), (m, build.fsub(number, base))
        )

    return types.UniTuple(x, 2)(x), generate


def _polynomial(table: dict[Any, tuple[float, ...]]) -> Any:
    """Return a polynomial for kernels, in pairs of pairs of terms (Estrin, 1960).

    Horner's rule is one chain of operations that each wait for the last.
    """

    @intrinsic
    def polynomial(typing: Any, x: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
            power = args[0]
            terms = [constant(power.type, c) for c in table[_real(x)]]
            while len(terms) > 1:
                pairs = zip(terms[::2], terms[1::2], strict=False)
                rest = terms[-1:] if len(terms) % 2 else []
                terms = [fused(build, power, b, a) for a, b in pairs] + rest
                power = build.fmul(power, power)
            return terms[0]

        return x(x), generate

    return polynomial


_exp_of_rest = _polynomial(_EXP)
_atanh_by_square = _polynomial(_ATANH)


def exp(x: Any) -> Any:
    """Return e**x for ``x < 88`` (float64: 709); never 0, but a small normal number."""
    return np.exp(np.maximum(x, _LOWEST[np.asarray(x).dtype.type]))


@overload(exp, jit_options=_OPTIONS)
def _exp(x: Any) -> Callable[..., Any]:
    real = _real(x)
    lowest, (log2_high, log2_low) = _LOWEST[real], _LOG2[real]
    # Numbers of this size have no bits behind the point: adding it rounds to an integer.
    rounder = 1.5 * 2.0 ** _BITS[real]

    def implementation(x: Any) -> Any:
        x = select(x < like(x, lowest), like(x, lowest), x)
        shifted = muladd(x, like(x, 1.4426950408889634), like(x, rounder))
        k = shifted - like(x, rounder)
        r = muladd(k, like(x, -log2_low), muladd(k, like(x, -log2_high), x))
        return _times_power(_exp_of_rest(r), shifted)

    return implementation


def twice_atanh(s: Any) -> Any:
    """Return ``2 atanh(s)``, ``0 <= s <= 1/3``: ``log(1 + e)`` at ``s = e / (2 + e)``."""
    return 2 * np.arctanh(s)


@overload(twice_atanh, jit_options=_OPTIONS)
def _twice_atanh(s: Any) -> Callable[..., Any]:
    def implementation(s: Any) -> Any:
        return s * _atanh_by_square(s * s)

    return implementation


def log(x: Any) -> Any:
    """Return the natural logarithm of ``x >= 1``."""
    return np.log(x)


@overload(log, jit_options=_OPTIONS)
def _log(x: Any) -> Callable[..., Any]:
    log2_high, log2_low = _LOG2[_real(x)]

    def implementation(x: Any) -> Any:
        m, k = _split(x)
        s = twice_atanh((m - like(x, 1.0)) / (m + like(x, 1.0)))
        # x - x is nan for nan and inf, whose bits would give some number.
        low = muladd(k, like(x, log2_low), s)
        return muladd(k, like(x, log2_high), low) + (x - x)

    return implementation


def log1p(x: Any) -> Any:
    """Return ``log(1 + x)`` of ``x >= 0``, right relative to small ``x`` too."""
    return np.log1p(x)


@overload(log1p, jit_options=_OPTIONS)
def _log1p(x: Any) -> Callable[..., Any]:
    log2_high, log2_low = _LOG2[_real(x)]

    def implementation(x: Any) -> Any:
        zero, one = like(x, 0.0), like(x, 1.0)
        m, k = _split(one + x)
        # What 1 + x has lost of x counts as long as no power of two is split off.
        s = twice_atanh(select(k == zero, x, m - one) / (m + one))
        low = muladd(k, like(x, log2_low), s)
        return muladd(k, like(x, log2_high), low) + (x - x)

    return implementation
