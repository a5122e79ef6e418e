"""The kinds of jobs: each calls what its command, or Python, calls here."""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlopt import events
from mlopt.detached.work import (
    GIVEN,
    RETURNED,
    STATE,
    Outcome,
    Place,
    Work,
    made,
    plain,
    stem,
)  # fmt: skip
from mlopt.errors import InputError
from mlopt.readers import check_table
from mlopt.sweep.config import Config, override
from mlopt.writing import check_file, check_writable, write_files

SAVING = 5.0
"""Seconds between two states that are kept: what a worker that dies may cost."""


class Sweep(Work, frozen=True, kw_only=True, tag="sweep"):
    """`mlopt sweep`."""

    config: Config
    families: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return stem(self.config.data.path)

    @property
    def limits(self) -> tuple[float | None, int | None]:
        return self.config.search.timeout, self.config.search.n_trials

    def check(self) -> None:
        _check_config(self.config, self.families)
        if self.config.output.directory is not None:
            check_writable(Path(self.config.output.directory))

    def run(self, place: Place) -> Outcome:
        from mlopt.sweep.outputs import summary
        from mlopt.sweep.run import sweep

        search = self.config.search
        output = Path(self.config.output.directory or place.output)
        config = override(
            self.config,
            storage=place.remembers(search.storage),
            timeout=place.left(search.timeout),
        )
        found = sweep(
            config=config, output=output, families=self.families, observer=place.observer
        )
        return Outcome(plain(summary(found)), found.describe(output), str(output))


class Fit(Work, frozen=True, kw_only=True, tag="fit"):
    """`mlopt fit`."""

    config: Config
    family: str
    output: str | None = None

    @property
    def title(self) -> str:
        return f"{stem(self.config.data.path)}-{self.family}"

    def check(self) -> None:
        _check_config(self.config, [self.family])
        if self.output is not None:
            check_file(Path(self.output), [self.config.data.path, self.config.data.test])

    def run(self, place: Place) -> Outcome:
        from mlopt.sweep.fit import fit_one
        from mlopt.sweep.models import MODEL, dump_model

        config = override(self.config, n_jobs=self.config.search.n_jobs or place.threads)
        fitted = fit_one(config, self.family, place.observer)
        output = Path(self.output) if self.output else made(place.output) / MODEL
        write_files({output: dump_model(fitted.model)})
        found = {"scoring": fitted.scoring, "test_score": fitted.score}
        return Outcome(plain(found), fitted.describe(output), str(output))


class Query(Work, frozen=True, kw_only=True, tag="query"):
    """`mlopt run`."""

    text: str
    output: str | None = None

    @property
    def title(self) -> str:
        return "query"

    def check(self) -> None:
        from mlopt.query.places import files_read

        for path in files_read(self.text):
            check_table(path)

    def run(self, place: Place) -> Outcome:
        from mlopt.cluster import pack
        from mlopt.query.printing import run_and_print

        said = io.StringIO()
        output = None if self.output is None else Path(self.output)
        value = run_and_print(self.text, output, said, said)
        place.kept.write(RETURNED, pack(value))
        return Outcome(text=said.getvalue().rstrip("\n"), output=self.output)


class Predict(Work, frozen=True, kw_only=True, tag="predict"):
    """`mlopt predict` of files."""

    model: str
    paths: tuple[str, ...]
    output: str
    memory: str | None = None
    proba: bool = False

    @property
    def title(self) -> str:
        return f"predict-{stem(self.model)}"

    def check(self) -> None:
        from mlopt.readers.files import File
        from mlopt.scoring.files import files_of
        from mlopt.sweep.models import model_file

        File.at(str(model_file(Path(self.model))))
        for path in files_of(self.paths, Path(self.output)):
            if not path.exists():
                raise InputError(f"`{path}` does not exist.")
        check_writable(Path(self.output))

    def run(self, place: Place) -> Outcome:
        from mlopt.scoring.predict import predict

        found = predict(
            self.model, self.paths, output=self.output, memory=self.memory,
            proba=self.proba, client=place.client, observer=place.observer,
            tell=lambda text: place.observer(events.Message(0.0, text)),
        )  # fmt: skip
        result = {
            "files": len(found.rows),
            "rows": sum(found.rows.values()),
            "skipped": len(found.skipped),
            "failed": {str(path): reason for path, reason in found.failed.items()},
        }
        return Outcome(result, found.describe(), self.output, not found.failed)


class Call(Work, frozen=True, kw_only=True, tag="call"):
    """``estimator.fit(X, y)`` from Python; the estimator and what is no path are kept.

    Parameters
    ----------
    what : str
        The class of the estimator.
    path : str, optional
        Where X is, and y in the column ``target``.
    target : str, optional
    seconds, trials : optional
        Limits of a search.
    """

    what: str
    path: str | None = None
    target: str | None = None
    seconds: float | None = None
    trials: int | None = None

    @property
    def title(self) -> str:
        return self.what

    @property
    def limits(self) -> tuple[float | None, int | None]:
        return self.seconds, self.trials

    def check(self) -> None:
        if self.path is not None:
            from mlopt.sweep.loading import check_source

            check_source(self.path, self.target)

    def run(self, place: Place) -> Outcome:
        from mlopt.cluster import pack, unpack
        from mlopt.sweep.loading import from_file
        from mlopt.tuning.search import ModelSearchCV

        estimator, X, y, fit_params = unpack(place.kept.read(GIVEN))
        if self.path is not None:
            source = from_file(self.path, self.target)
            X, y = source.X, source.y
        if isinstance(estimator, ModelSearchCV):
            fitted = _searched(estimator, place, X, y, fit_params)
        else:
            fitted = estimator.fit(X, y, **fit_params)
        place.kept.write(RETURNED, pack(fitted))
        named = ("best_score_", "best_params_")
        found = {name.strip("_"): getattr(fitted, name, None) for name in named}
        plan = getattr(fitted, "plan_", None)
        return Outcome(plain(found), plan.explain() if plan is not None else "")


class Train(Work, frozen=True, kw_only=True, tag="train"):
    """``job.run()`` of a `mlopt.server.Job`, or of what a function makes on the worker.

    Parameters
    ----------
    what : str
        The name of the step, or of the function.
    """

    what: str

    @property
    def title(self) -> str:
        return self.what

    def run(self, place: Place) -> Outcome:
        from mlopt.cluster import pack, unpack
        from mlopt.server.given import is_finite, parts_of

        job = self._made(unpack(place.kept.read(GIVEN)))
        if STATE in place.kept:
            job.restore(unpack(place.kept.read(STATE)))
        began, first = time.monotonic(), job.passes
        try:
            while not job.done:
                # Between two states workers need not wait for each other.
                seconds = (time.monotonic() - began) / max(1, job.passes - first)
                most = int(SAVING / seconds) if job.passes > first else 1
                job.advance(min(max(1, most), job.limit - job.passes))
                place.kept.write(STATE, pack(job.state()))
                text = f"pass {job.passes} of {job.limit}"
                place.observer(events.Message(time.monotonic() - began, text))
            found = job.run()  # nothing is left to do: what came of it
        finally:
            job.close()
        seconds = place.spent + time.monotonic() - began
        if not is_finite(parts_of(found.model)):
            place.observer(events.Message(seconds, "the model has NaN or infinity"))
        place.kept.write(RETURNED, pack(replace(found, seconds=seconds)))
        return Outcome({"passes": found.passes, "layout": found.layout})

    def _made(self, given: Any) -> Any:
        """The job that is given, or what a function makes."""
        from mlopt.server.job import Job

        job = given if isinstance(given, Job) else given()
        if not isinstance(job, Job):
            raise InputError(
                f"`{self.what}` must make a `mlopt.server.Job`, got {job!r:.80}. Have it "
                "return the job; of an estimator submit the estimator."
            )
        return job


AnyWork = Sweep | Fit | Query | Predict | Call | Train


def _searched(
    search: Any, place: Place, X: Any, y: Any, fit_params: Mapping[str, Any]
) -> Any:
    """A search, with a storage of the job's where it has none, told to who follows."""
    own = search.get_params(deep=False)

    def observe(event: events.Event) -> None:
        place.observer(event)
        (own["observer"] or events.ignore)(event)

    try:
        search.set_params(
            storage=place.remembers(own["storage"]),
            observer=observe,
            timeout=place.left(own["timeout"]),
        )
        return search.fit(X, y, **fit_params)
    finally:
        search.set_params(**{n: own[n] for n in ("storage", "observer", "timeout")})


def _check_config(config: Config, families: Iterable[str]) -> None:
    from mlopt.sweep.loading import check_source
    from mlopt.sweep.registry import check_names

    check_names(families, config.families)
    check_source(config.data.path, config.data.target)
    if config.data.test is not None:
        check_table(config.data.test)
