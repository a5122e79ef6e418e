"""Correlation of one image with filters that are outer products, channel by channel."""

from __future__ import annotations

from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel, part


@part
def _add_taps(source: NDArray, step: int, taps: NDArray, out: NDArray, clear: bool) -> None:
    """``out[x] (+)= sum_t taps[t] source[t * step + x]``, four taps a sweep.

    A sweep reads and writes ``out`` once, so fewer sweeps than taps are made.
    """
    n, k = out.shape[0], taps.shape[0]
    if clear:
        out[:] = 0
    t = 0
    while t + 4 <= k:
        a, b, c, d = taps[t], taps[t + 1], taps[t + 2], taps[t + 3]
        p = source[t * step : t * step + n]
        q = source[(t + 1) * step : (t + 1) * step + n]
        r = source[(t + 2) * step : (t + 2) * step + n]
        s = source[(t + 3) * step : (t + 3) * step + n]
        for x in range(n):
            out[x] += (a * p[x] + b * q[x]) + (c * r[x] + d * s[x])
        t += 4
    while t < k:
        a, p = taps[t], source[t * step : t * step + n]
        for x in range(n):
            out[x] += a * p[x]
        t += 1


@kernel
def separable(
    image: NDArray, across: NDArray, down: NDArray, rows: NDArray, out: NDArray
) -> None:
    """Rows of every filter first, then its columns.

    Parameters
    ----------
    image : (channels, height, width)
    across, down : (b, channels, k)
        The filter of channel c is the outer product of its column and its row.
    rows : (height * (width - k + 1),)
        Room for an image after its rows.
    out : (b, (height - k + 1) * (width - k + 1))
    """
    channels, height, width = image.shape
    m = width - across.shape[2] + 1
    for b in range(out.shape[0]):
        for c in range(channels):
            for y in range(height):
                _add_taps(image[c, y], 1, across[b, c], rows[y * m : (y + 1) * m], True)
            for y in range(height - down.shape[2] + 1):
                _add_taps(rows[y * m :], m, down[b, c], out[b, y * m : (y + 1) * m], c == 0)
