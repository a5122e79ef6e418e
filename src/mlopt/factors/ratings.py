"""What `fit` is given, as ratings by user: a sparse matrix, or rows of them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from mlopt.errors import InputError
from mlopt.factors.ids import Ids
from mlopt.kernels.grouping import first_repeat, grouped
from mlopt.locking import cached_property
from mlopt.rows.block import check_unmasked
from mlopt.rows.frames import is_frame
from mlopt.rows.source import collected

Array = NDArray[Any]

POLICIES = ("error", "mean", "sum", "last")
"""What becomes of a pair of user and item that is there twice."""


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings by user, of each as they were given.

    Parameters
    ----------
    starts : int64 (users + 1,)
        Where each user's ratings begin.
    items : int32 (n,)
    values : float32 (n,)
    user_ids, item_ids : Ids
    """

    starts: Array
    items: Array
    values: Array
    user_ids: Ids
    item_ids: Ids

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        return len(self.starts) - 1, len(self.item_ids.labels)

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """Starts, items and values, as kernels take them."""
        return self.starts, self.items, self.values

    @cached_property
    def users(self) -> NDArray[np.int32]:
        """The user of each rating, (n,)."""
        count = len(self.starts) - 1
        return np.repeat(np.arange(count, dtype=np.int32), np.diff(self.starts))

    @property
    def digest(self) -> int:
        """Of the values: other ones have another, but for one in 2^32."""
        return zlib.crc32(np.ascontiguousarray(self.values).data)

    def by_item(self) -> Ratings:
        """The same with users and items in each other's place."""
        return _gathered(self.items, self.users, self.values, self.item_ids, self.user_ids)

    def told(self, counts: bool) -> tuple[Array, Array]:
        """Where those of each user begin, and their items: a count of zero is none."""
        known = self.some(self.values > 0) if counts else self
        return known.starts, known.items

    def some(self, chosen: Array) -> Ratings:
        """Those that are chosen, (n,) of bool, of the same users and items."""
        starts = np.concatenate(([0], np.cumsum(chosen)))[self.starts]
        items, values = self.items[chosen], self.values[chosen]
        return Ratings(starts, items, values, self.user_ids, self.item_ids)


def ratings_of(X: Any, y: Any, duplicates: str) -> Ratings:
    """Read and check what `fit` was given.

    Parameters
    ----------
    X : sparse matrix (users, items); or array or frame of rows (user, item[, rating])
    y : array-like of shape (n,), or None where the ratings are in X
    duplicates : one of `POLICIES`

    Raises
    ------
    InputError
        When there is no rating, one is not finite, or a pair comes twice and may not.
    """
    if sp.issparse(X):
        if y is not None:
            raise InputError(
                "y must be None where X is a sparse matrix: it has the ratings."
            )
        if max(X.shape) > np.iinfo(np.int32).max:
            raise InputError(
                f"X must have less than 2**31 users and items, got the shape {X.shape}: "
                "give rows (user, item, rating), of which only those that are there count."
            )
        given = X.tocoo()
        users, items = (part.astype(np.int32) for part in given.coords)
        values, ids = given.data, tuple(map(Ids.numbers, X.shape))
    else:
        user_column, item_column, values = columns_of(X, y)
        (user_ids, users) = Ids.of(user_column, "user")
        (item_ids, items) = Ids.of(item_column, "item")
        ids = (user_ids, item_ids)
    check_real(values)
    values = _finite(values)
    if not len(values):
        raise InputError("X must hold at least one rating, got none.")
    found = _gathered(users, items, values, *ids)
    return _each_once(found, duplicates)


def entries_of(X: Any) -> tuple[Array, Array, Array]:
    """Rows, columns and values of a sparse matrix, each as it is stored, row by row."""
    given = X.tocoo()  # of which `tocsr` would add up what is there twice
    users, items = given.coords
    order = np.argsort(users, kind="stable")
    return users[order], items[order], given.data[order]


def columns_of(X: Any, y: Any = None) -> tuple[Array, Array, Array]:
    """Users, items and ratings of rows.

    Raises
    ------
    InputError
        When X has other columns than these, or not one of X and y has the ratings.
    """
    parts = pairs_of(X)
    if y is None and len(parts) < 3:
        raise InputError(
            "The ratings must be y, or the third column of X; X has two columns and y is "
            "None."
        )
    if y is None:
        return parts[0], parts[1], parts[2]
    if len(parts) == 3:
        raise InputError(
            "The ratings must be y, or the third column of X; both are there. Leave one "
            "out."
        )
    check_unmasked(y, "y")
    ratings = np.asarray(collected(y))
    if ratings.shape == (len(parts[0]), 1):
        ratings = column_or_1d(ratings, warn=True)
    if ratings.shape != (len(parts[0]),):
        raise InputError(
            f"y must hold one rating for each of the {len(parts[0])} rows of X, got shape "
            f"{ratings.shape}."
        )
    return parts[0], parts[1], ratings


def pairs_of(X: Any) -> list[Array]:
    """The two or three columns of rows (user, item[, rating])."""
    check_unmasked(X, "X")
    if is_frame(X):
        table = nw.from_native(X, eager_only=True)
        shape: tuple[int, ...] = table.shape
        parts = [table.get_column(name).to_numpy() for name in table.columns]
    else:
        # Of a list numpy would make texts, or floats, of all where one is.
        X = np.asarray(X, dtype=object if isinstance(X, list | tuple) else None)
        shape = X.shape
        parts = list(X.T) if X.ndim == 2 else []
    if len(shape) != 2 or shape[1] not in (2, 3):
        raise InputError(
            "X must be a sparse matrix of ratings, or rows (user, item, rating) or (user, "
            f"item); got {type(X).__name__} of shape {shape}. Of a dense matrix of ratings "
            "give scipy.sparse.csr_array(X), of a frame its two or three columns."
        )
    return parts


def check_real(values: Any) -> None:
    """Refuse ratings of which a part would be dropped, or that are no amounts.

    Raises
    ------
    InputError
    """
    kind = np.asarray(values).dtype
    if kind.kind in "cMmV":
        raise InputError(f"Ratings must be real numbers, got {kind}: give amounts.")


def _finite(values: Any) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # which is refused below
            found = np.asarray(values).astype(np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"Ratings must be numbers: {error}.") from None
    if not np.isfinite(found).all():
        place = int(np.flatnonzero(~np.isfinite(found))[0])
        raise InputError(
            f"Ratings must be finite: number {place} is {values[place]}, NaN or infinity "
            "to float32. Leave out what is not rated."
        )
    return found


def _gathered(
    users: Array, items: Array, values: Array, user_ids: Ids, item_ids: Ids
) -> Ratings:
    order, starts = grouped(users, len(user_ids.labels))
    return Ratings(starts, items[order], values[order], user_ids, item_ids)


def _each_once(ratings: Ratings, duplicates: str) -> Ratings:
    users, items = ratings.shape
    place = first_repeat(ratings.starts, ratings.items, items)
    if place < 0:
        return ratings
    if duplicates == "error":
        user = ratings.user_ids.labels[ratings.users[place]]
        item = ratings.item_ids.labels[ratings.items[place]]
        raise InputError(
            f"A user must rate an item once: user {user!s} has item {item!s} twice. Give "
            '`duplicates`="mean", "sum" or "last" to make one rating of several.'
        )
    keys = ratings.users.astype(np.int64) * items + ratings.items
    pairs, first, number = np.unique(keys[::-1], return_index=True, return_inverse=True)
    number, values = number[::-1], ratings.values[::-1][first]  # the last of each
    if duplicates != "last":
        values = np.bincount(number, ratings.values, len(pairs))
        values = values / np.bincount(number) if duplicates == "mean" else values
    starts = np.searchsorted(pairs, np.arange(users + 1, dtype=np.int64) * items)
    return Ratings(
        starts, (pairs % items).astype(np.int32), values.astype(np.float32),
        ratings.user_ids, ratings.item_ids,
    )  # fmt: skip
