"""What a way of fitting is: KeystoneML's physical operators, one class each.

A *block* is what scikit-learn would be given, with fewer rows: an ndarray, a CSR matrix, a
data frame, or a list of documents.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.identity import SETTINGS, parameters
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats

if TYPE_CHECKING:
    from mlopt.pipeline.fits.few import Few

Layout = Literal["any", "dense", "sparse"]
SEEN = price("speculation.doubt.one")
"""By which factor passes may be off that a fit to a sample took."""


class Fit(ABC):
    """One way of fitting estimators of one kind.

    A way has no state: the estimator comes as an argument and is left alone, what is
    learnt goes to a copy.

    Attributes
    ----------
    name : str
        As plans show it.
    kinds : tuple of type
        The estimators that it can fit, subclasses not included: they may do anything. Not
        needed of ways that are given to `mlopt.register`.
    needs : {"any", "dense", "sparse"}
        How numbers must be laid out.
    """

    name: str
    kinds: tuple[type, ...] = ()
    needs: Layout = "any"

    def refuses(self, estimator: Any, stats: Stats) -> str:
        """Why this way cannot fit ``estimator`` with its parameters; "" when it can."""
        del estimator, stats
        return ""

    def refusal(self, estimator: Any, stats: Stats, *, weighted: bool = False) -> str:
        """As `refuses`, and rows without columns: scikit-learn says what is wrong there;
        and ``weighted`` rows, of a way that takes no weights."""
        if weighted and not self.weighs(estimator):
            return "it takes no weights of rows"
        return self.refuses(estimator, stats) if stats.columns else "there is no column"

    def beyond(self, estimator: Any, stats: Stats, resources: Resources) -> str:
        """Why ``resources`` do not suffice; "" where they do, as far as a formula tells."""
        del estimator, stats, resources
        return ""

    def weighs(self, estimator: Any) -> bool:
        """Whether rows may have weights."""
        del estimator
        return True

    def passes(self, estimator: Any, stats: Stats) -> float:
        """How many times the input is read: KeystoneML's weight of an operator."""
        del estimator, stats
        return 1.0

    def doubt(self, estimator: Any) -> float:
        """By which factor `passes` may be off; 1 where they are counted."""
        del estimator
        return 1.0

    def most(self, estimator: Any) -> float:
        """Passes after which it ends wherever it is."""
        del estimator
        return math.inf

    def cost(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | None:
        """The work of all passes, or None where only a trial on a sample can tell.

        ``passes`` says how many there are, where that is known better than by the shape.
        """
        del estimator, stats, resources, passes
        return None


class OnePass(Fit):
    """Statistics of blocks, added up in any grouping.

    Laws: `merge` is associative up to rounding, and ``finish`` of the statistics of all
    blocks is what scikit-learn fits to all rows.

    Attributes
    ----------
    panels : bool
        Whether `merge` is cheap: large dense blocks then are gone through panel by panel.
    by_columns : bool
        Whether nothing but the columns counts: what one block gives is what all do.
    """

    panels: bool = False
    by_columns: bool = False

    @abstractmethod
    def part(self, estimator: Any, X: Any, y: Any, weight: Any) -> Any:
        """Statistics of one block.

        Parameters
        ----------
        estimator : BaseEstimator, not fitted
        X : block of n rows
        y : ndarray of shape (n,) or (n, T), or None
        weight : ndarray of shape (n,), or None
        """

    @abstractmethod
    def merge(self, left: Any, right: Any) -> Any:
        """Statistics of two neighbours together; changes neither."""

    @abstractmethod
    def finish(self, estimator: Any, statistics: Any) -> Any:
        """A fitted copy of ``estimator``, of its own class."""


class ManyPasses(Fit):
    """An algorithm that reads its input again and again.

    Attributes
    ----------
    flattens : bool
        Whether descriptors of images, (n, m, d), are read as n m rows of d columns.
    sampled : bool
        Whether `cost` may be None: fits to samples of the rows then tell what it takes.
    gathers : bool
        Whether ``fit`` brings all rows to one place: they must fit what may be kept.
    """

    flattens: bool = False
    sampled: bool = False
    gathers: bool = False

    def speculate(
        self, estimator: Any, few: Few, stats: Stats
    ) -> tuple[float, float] | None:
        """Passes that a sample lets expect, and by which factor they may be off.

        By what the sample looks like, or by a fit to it (ML4all, section 5: such methods
        take about as many passes on few rows as on all of them). None where that tells
        nothing.

        Parameters
        ----------
        estimator : BaseEstimator, not fitted
        few : Few
            The sample.
        stats : Stats
            Of all rows.
        """
        del estimator, few, stats
        return None

    @abstractmethod
    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        """A fitted copy of ``estimator``, of its own class.

        Parameters
        ----------
        estimator : BaseEstimator, not fitted
        rows : Rows, of shape (n, d)
            Blocks that are not kept are made anew whenever they are read.
        y : ndarray of shape (n,) or (n, T), or None
        weight : ndarray of shape (n,), or None
        """


class PartialFit(Fit):
    """The estimator's own ``partial_fit``, of one block after the other.

    Law: of any blocks of the rows, in their order, it learns what ``fit`` learns from all
    of them. What samples take tells what it costs.
    """

    name = "partial_fit in turn"

    def refuses(self, estimator: Any, stats: Stats) -> str:
        del stats
        try:
            self.start(estimator)
        except Exception as error:
            return f"it cannot be made anew: {error}"
        return ""

    def weighs(self, estimator: Any) -> bool:
        return "sample_weight" in signature(estimator.partial_fit).parameters

    def start(self, estimator: Any) -> Any:
        """What the first block goes to: ``estimator`` as it was made.

        No name tells what ``partial_fit`` goes on from. With a warm start, ``fit`` goes on
        as well.

        Raises
        ------
        InputError
            When it does not tell its parameters.
        """
        kind, tells = type(estimator), hasattr(estimator, "get_params")
        given = parameters(estimator) if tells else {}
        if given.get("warm_start"):
            return estimator
        if not tells and signature(kind).parameters:
            raise InputError(f"`{kind.__name__}` has no `get_params`.")
        fresh = kind(**given)
        kept = vars(estimator).keys() & SETTINGS
        vars(fresh).update({name: vars(estimator)[name] for name in kept})
        return fresh

    def turn(self, model: Any, X: Any, y: Any, weight: Any, classes: Any) -> Any:
        """A copy of ``model`` that has learnt from one block more.

        Parameters
        ----------
        model : BaseEstimator
            `start`, before the first block.
        X : block of n rows
        y : ndarray of shape (n,) or (n, T), or None
        weight : ndarray of shape (n,), or None
        classes : ndarray of shape (K,), or None
            Of all rows; None for what is no classifier.
        """
        fresh = copy.deepcopy(model)  # a block that is worked on again counts once
        beside = {"sample_weight": weight, "classes": classes}
        known = signature(fresh.partial_fit).parameters
        if weight is not None and not self.weighs(fresh):
            raise InputError(
                f"`partial_fit` of `{type(model).__name__}` takes no weights of rows: "
                "leave them out."
            )
        beside = {name: v for name, v in beside.items() if v is not None and name in known}
        fresh.partial_fit(X, y, **beside)
        return fresh
