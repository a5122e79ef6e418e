"""`LatentDirichletAllocation`: topics that documents are mixtures of."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils._param_validation import (
    Interval,
    Options,
    StrOptions,
)
from sklearn.utils.validation import (
    _get_feature_names,
    check_array,
    check_is_fitted,
    validate_data,
)

from mlopt.errors import InputError
from mlopt.kernels.gibbs import infer
from mlopt.parameters import check_count, check_parameters, seed_of
from mlopt.rows.block import check_unmasked
from mlopt.rows.source import collected
from mlopt.server.layouts.places import Places
from mlopt.topics.counting import Priors, check_priors, table
from mlopt.topics.documents import Documents, check_topics, counts_of, halves, in_full
from mlopt.topics.pricing import Sweeps
from mlopt.topics.training import first_topics, likely_topics

Array = NDArray[Any]


class LatentDirichletAllocation(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Topics of documents, drawn token by token (collapsed Gibbs sampling).

    Each token of a document belongs to one topic: a topic is a distribution over words, a
    document one over topics, both with Dirichlet priors. scikit-learn's estimator of this
    name bounds the same model from below (variational Bayes); sampling comes to topics that
    predict words better, and takes less time for it.

    Parameters
    ----------
    n_components : int, default=10
        Topics.
    doc_topic_prior, topic_word_prior : float, optional
        Of each topic in a document, and of each word in a topic. Default: one over
        ``n_components``.
    learning_method : {"gibbs"}, default="gibbs"
    sampler : {"auto", "dense", "sparse"}, default="auto"
        For each token all topics are looked at, or those that its word and its document
        have; "auto" goes by how many topics there are. Both draw from the same.
    layout : {"auto", "threads", "rotate"}, default="auto"
        "threads" of this process; or "rotate": on the workers of the active client, where
        documents stay and counts of words go from worker to worker. "auto" is "threads" for
        fewer than two million tokens, and "rotate" for more, in this process or on the
        workers, whichever takes the least predicted time: topics are the same.
    max_iter : int, default=100
        Sweeps over all tokens, those of earlier fits under ``warm_start`` among them.
    max_doc_update_iter : int, default=100
        Rounds in which `transform` finds the topics of a document, at most.
    mean_change_tol : float, default=1e-3
        The sum of changes of its shares below which these are found.
    warm_start : bool, default=False
        Go on from the last fit: of the same documents exactly; of others, from topics as
        likely as their words make them, for which there must be a sweep left.
    random_state : int, RandomState or None, default=None
        The result depends on it and on ``layout``, not on the number of threads or workers.
    n_jobs : int, optional
        Threads. Default: all cores.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, words)
        How many tokens of a word are of a topic, and ``topic_word_prior``.
    doc_topic_prior_, topic_word_prior_ : float
    n_iter_ : int
        Sweeps that are behind the topics.
    plan_ : Plan
        The layout that was chosen, and rejected ones, with predicted and measured seconds
        of all sweeps.
    n_features_in_, feature_names_in_
        Words, and what they are called.

    Notes
    -----
    A document without words has all topics alike. Documents are cut into shards when there
    are many tokens; each is swept with the counts of the others as they were at the
    beginning of the sweep (Newman et al.).

    References
    ----------
    Blei, Ng, Jordan, "Latent Dirichlet allocation", JMLR 3, 2003. Griffiths, Steyvers,
    "Finding scientific topics", PNAS 101, 2004. Yao, Mimno, McCallum, KDD 2009. Newman,
    Asuncion, Smyth, Welling, JMLR 10, 2009.

    Examples
    --------
    >>> import mlopt
    >>> counts = [[4, 3, 0, 0], [2, 5, 0, 0], [0, 0, 6, 2], [0, 1, 3, 5]]
    >>> model = mlopt.LatentDirichletAllocation(2, random_state=0).fit(counts)
    >>> sorted(sorted(words) for words in model.top_words(2, ["tea", "milk", "rum", "ale"]))
    [['ale', 'rum'], ['milk', 'tea']]
    >>> bool(model.transform([[1, 1, 0, 0]]).max() > 0.7)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "doc_topic_prior": [Interval(Real, 0, None, closed="neither"), None],
        "topic_word_prior": [Interval(Real, 0, None, closed="neither"), None],
        "learning_method": [StrOptions({"gibbs"})],
        "sampler": [Options(str, {"auto", "dense", "sparse"})],
        "layout": [StrOptions({"auto", "threads", "rotate"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_doc_update_iter": [Interval(Integral, 1, None, closed="left")],
        "mean_change_tol": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    components_: Array
    n_iter_: int
    _seed: int
    _trained: tuple[Documents, Mapping[str, Any]]

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: float | None = None,
        topic_word_prior: float | None = None,
        learning_method: str = "gibbs",
        sampler: str = "auto",
        layout: str = "auto",
        max_iter: int = 100,
        max_doc_update_iter: int = 100,
        mean_change_tol: float = 1e-3,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learning_method = learning_method
        self.sampler = sampler
        self.layout = layout
        self.max_iter = max_iter
        self.max_doc_update_iter = max_doc_update_iter
        self.mean_change_tol = mean_change_tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the topics of all tokens, ``max_iter`` times.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (documents, words)
            How often each word is in each document. Dask collections are gathered here.
        y : None
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        InputError
            When a parameter is out of range, a count is negative or not whole, or there
            are no words at all, or more tokens than memory holds.
        """
        del y
        check_parameters(self)
        self._check_warm()
        check_unmasked(X, "X")
        X = collected(X)
        _get_feature_names(X)  # or raise, before anything is trained
        counts = self._counts(X, reset=True)
        documents = Documents.of(counts)
        if not len(documents.words):
            raise InputError(
                f"X must have a word in some document; all {documents.count} are empty."
            )
        number = int(self.n_components)  # NumPy's small integers overflow
        check_topics(documents, number)
        priors = self._priors()
        check_priors(priors, documents, number, self.sampler)
        state, seed = self._start(documents)
        with Places(self.layout, self.n_jobs) as places:
            training = Sweeps(
                documents, state, number, priors, self.sampler, seed, int(self.max_iter)
            ).training(places)
            training.advance(int(self.max_iter) - state["passes"])
            state = training.state()
            self.plan_ = places.plan(self)
        counts = table(documents, state["topics"], number)
        self.components_ = counts.T + priors.beta
        self.doc_topic_prior_, self.topic_word_prior_ = priors.alpha, priors.beta
        self.n_iter_, self._seed = training.passes, seed
        self._trained = documents, state
        # sets ``n_features_in_``, and ``feature_names_in_`` where X has names
        validate_data(self, X, skip_check_array=True, reset=True)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """What documents have of each topic.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (documents, words)

        Returns
        -------
        ndarray of shape (documents, n_components)
            Shares that add up to 1: the most likely ones for ``components_``, with the
            prior. No chance is in them.
        """
        check_is_fitted(self)
        return self._infer(self._counts(X, reset=False))

    def perplexity(self, X: Any) -> float:
        """How many words a token is as good as drawn from: the least is best.

        From one half of all tokens, drawn at random but always the same way, the topics of
        documents are found, and the other half is predicted. (scikit-learn's bounds the
        likelihood of tokens that the topics of a document were found from.)

        Parameters
        ----------
        X : array-like or sparse matrix of shape (documents, words)
            Documents that `fit` has not seen.

        Returns
        -------
        float
        """
        return float(np.exp(-self.score(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean logarithm of how likely held-out tokens are: see `perplexity`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (documents, words)
        y : None
            Ignored.

        Returns
        -------
        float
            At most 0; the largest is best.
        """
        del y
        check_is_fitted(self)
        known, asked = halves(self._counts(X, reset=False))
        if not asked.nnz:
            raise InputError(
                "X must have two words in all at least: one to learn from, one to predict."
            )
        mine, shares = self._infer(known), self._shares()
        likely, starts = 0.0, asked.indptr
        for row in np.flatnonzero(np.diff(starts)):
            own = slice(starts[row], starts[row + 1])
            chances = mine[row] @ shares[:, asked.indices[own]]
            likely += float(asked.data[own] @ np.log(chances))
        return likely / float(asked.sum())

    def top_words(self, n_words: int = 10, feature_names: Any = None) -> list[list[Any]]:
        """The words of each topic that it has most tokens of, most first.

        Parameters
        ----------
        n_words : int, default=10
            At least 1; beyond all words it is all of them.
        feature_names : sequence of str, optional
            What words are called, such as ``get_feature_names_out()`` of the vectorizer.
            Default: ``feature_names_in_``, or numbers of columns.

        Returns
        -------
        list of lists
        """
        check_is_fitted(self)
        check_count("n_words", n_words)
        words = self.components_.shape[1]
        names = getattr(self, "feature_names_in_", range(words))
        names = list(names if feature_names is None else feature_names)
        if len(names) != words:
            raise InputError(
                f"`feature_names` must name the {words} words, got {len(names)}."
            )
        order = np.argsort(-self.components_, axis=1, kind="stable")[:, :n_words]
        return [[names[word] for word in row] for row in order]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _check_warm(self) -> None:
        if not (self.warm_start and hasattr(self, "components_")):
            return
        if len(self.components_) != self.n_components:
            raise InputError(
                f"`n_components` must stay {len(self.components_)} with `warm_start`, got "
                f"{self.n_components}."
            )
        if self.max_iter < self.n_iter_:
            raise InputError(
                f"`max_iter` must be at least {self.n_iter_} with `warm_start`: it counts "
                f"the sweeps of earlier fits too; got {self.max_iter}."
            )

    def _counts(self, X: Any, *, reset: bool) -> sp.csr_array:
        check_unmasked(X, "X")
        X = in_full(collected(X))
        if reset:  # what words there are is kept when the fit has come to its end
            return counts_of(check_array(X, accept_sparse="csr", estimator=self))
        counts = counts_of(validate_data(self, X, accept_sparse="csr", reset=False))
        if counts.shape[1] != self.components_.shape[1]:
            raise InputError(
                f"X must have the words of the topics: it has {counts.shape[1]}, and "
                f"`components_` has {self.components_.shape[1]} columns."
            )
        return counts

    def _priors(self) -> Priors:
        usual = 1.0 / int(self.n_components)
        alpha, beta = self.doc_topic_prior, self.topic_word_prior
        return Priors(
            usual if alpha is None else float(alpha), usual if beta is None else float(beta)
        )

    def _start(self, documents: Documents) -> tuple[Mapping[str, Any], int]:
        """The `state` of a training to begin with, and the seed."""
        n = len(documents.words)
        if not (self.warm_start and hasattr(self, "components_")):
            seed = seed_of(self.random_state)
            topics = first_topics(n, int(self.n_components), seed)
            return {"topics": topics, "passes": 0}, seed
        known, state = self._trained
        if documents.vocabulary != known.vocabulary:
            raise InputError(
                f"X must have the {known.vocabulary} words of the last fit with "
                f"`warm_start`, got {documents.vocabulary}."
            )
        if not known.same(documents):
            if self.max_iter == self.n_iter_:
                raise InputError(
                    f"`max_iter` must be above {self.n_iter_} with `warm_start` and other "
                    "documents: it counts the sweeps of earlier fits too, so none is left "
                    "to learn these."
                )
            topics = likely_topics(documents, self._shares(), self._seed)
            state = {"topics": topics, "passes": self.n_iter_}
        return state, self._seed

    def _shares(self) -> Array:
        """Of each word in a topic (topics, words)."""
        shares: Array = self.components_ / self.components_.sum(axis=1, keepdims=True)
        return shares

    def _infer(self, counts: sp.csr_array) -> NDArray[np.float64]:
        out = np.empty((counts.shape[0], self.components_.shape[0]))
        infer(
            counts.indices.astype(np.int32), counts.data.astype(np.float64),
            counts.indptr.astype(np.int64), np.ascontiguousarray(self._shares().T),
            # of the types that kernels are compiled for ahead
            float(self.doc_topic_prior_), int(self.max_doc_update_iter),
            float(self.mean_change_tol), out,
        )  # fmt: skip
        return out
