"""What sizing buys, in hindsight: by the lag objective and by the highest minute, on made series of minutes.

Each series is cut in two. The product's own code sees the first part: it makes the row of `demand`, with the forecast
and what objectives take. Of the second part it is known which capacity would have been just enough to keep every record
under the objective (:func:`lagwise.domain.sizing.objective.least_capacity`). Printed per kind: what is planned with as
a multiple of that, by the objective and by the peak, before slack and with the default one (restart and target
utilisation), and how often the objective would have been kept. Also: how far the least capacities for objectives that
are not kept are above the exact ones, and the time.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from benchmarks.common import options_parser
from benchmarks.forecast import KINDS, made
from lagwise.domain.capacity.verdict import busy_hours
from lagwise.domain.sizing.formulas import catch_up_factor
from lagwise.domain.sizing.objective import Rates, least_capacity
from lagwise.domain.sizing.workload import (
    DEFAULT_CATCH_UP_SECONDS,
    DEFAULT_RESTART_SECONDS,
    DEFAULT_TARGET_UTILISATION,
)
from lagwise.tables.capacity import MINUTE_RATES
from lagwise.tables.schema import TIMESTAMP
from lagwise.tables.topic_facts import objective_takes
from lagwise_spark.tasks.demand import demand_of
from lagwise_spark.tasks.forecasting import DAY

#: Days of history, and days ahead.
CUTS = ((28, 28), (60, 30), (180, 90))
SERIES = 20
OBJECTIVES_SECONDS = (300.0, 1_800.0)
#: Of none of these is the least capacity kept.
BETWEEN_SECONDS = (45.0, 90.0, 200.0, 420.0, 750.0, 1_200.0, 2_700.0, 10_000.0, 50_000.0)
_UNTIL = datetime(2026, 3, 1, tzinfo=UTC)
SLACK = catch_up_factor(catch_up_seconds=DEFAULT_CATCH_UP_SECONDS, restart_seconds=DEFAULT_RESTART_SECONDS) / (
    DEFAULT_TARGET_UTILISATION
)


def minutes_of(hours: Rates, seed: int) -> Rates:
    """The minutes of the hours: they differ by a tenth or by half, and every other day on average a burst of one to
    fifteen minutes has twice to twenty times the usual rate."""
    rng = np.random.default_rng([seed, 7])
    minutes = np.repeat(hours, 60) * np.exp(rng.normal(0, rng.uniform(0.1, 0.5), 60 * len(hours)))
    for start in np.flatnonzero(rng.random(len(minutes)) < 1 / (2 * DAY * 60)):
        minutes[start : start + rng.integers(1, 16)] *= min(20.0, 2.0 * (1.0 + rng.pareto(1.5)))
    return minutes


def history_of(minutes: Rates) -> pa.Table:
    """The minutes as rows of `topic_hours`."""
    rates = minutes.reshape(-1, 60)
    hours = len(rates)
    first = _UNTIL - timedelta(hours=hours)
    starts = [first + timedelta(hours=hour) for hour in range(hours)]
    return pa.table(
        {
            "hour": pa.array(starts, TIMESTAMP),
            "minutes": pa.array(np.full(hours, 60, np.int32)),
            "records": pa.array((rates.sum(axis=1) * 60).astype(np.int64)),
            "seconds": pa.array(np.full(hours, 3600.0)),
            "max_rate_per_second": pa.array(rates.max(axis=1)),
            "max_at": pa.array(starts, TIMESTAMP),
            "minute_rates_per_second": pa.array(list(rates.astype(np.float32)), MINUTE_RATES),
        }
    )


@dataclass(frozen=True)
class Outcome:
    """One series and objective: what is planned with, as a multiple of what would have been just enough."""

    by_objective: float
    by_peak: float
    #: The most that an objective between the kept ones is given above the exact least capacity of the history.
    excess: float
    seconds: float


def outcomes(hours: Rates, history_days: int, ahead_days: int, seed: int) -> list[Outcome]:
    """For each objective."""
    minutes = minutes_of(hours, seed)
    known, came = np.split(minutes[: (history_days + ahead_days) * DAY * 60], [history_days * DAY * 60])
    table = history_of(known)
    began = time.process_time()
    row = demand_of(table, _UNTIL, ahead_days)
    seconds = time.process_time() - began
    ahead = busy_hours([(one["at"], one["busiest_per_second"], one["busiest_high_per_second"]) for one in row["ahead"]])
    peak = max(row["peak_per_second"], row["forecast_peak_per_second"] or 0.0)
    made_of = []
    for objective in OBJECTIVES_SECONDS:
        takes = objective_takes(row, objective, ahead)
        assert takes is not None
        enough = least_capacity(came, objective).rate_per_second
        made_of.append(Outcome(takes.planned_per_second / enough, peak / enough, _excess(row, known), seconds))
    return made_of


def _excess(row: dict[str, object], known: Rates) -> float:
    exact = [least_capacity(known.astype(np.float32).astype(np.float64), s).rate_per_second for s in BETWEEN_SECONDS]
    given = [objective_takes(row, seconds, ()) for seconds in BETWEEN_SECONDS]
    return max(one.recorded.rate_per_second / rate for one, rate in zip(given, exact, strict=True) if one is not None)


def line(name: str, objective_seconds: float, its: Sequence[Outcome]) -> str:
    """One row of the table."""
    cells = [name, f"{objective_seconds / 60:.0f} min"]
    for values in ([o.by_objective for o in its], [o.by_peak for o in its]):
        array = np.array(values)
        cells += [
            f"{np.median(array):.1f} ({array.min():.2f} to {array.max():.1f})",
            f"{(array >= 1).mean():.0%}",
            f"{(array * SLACK >= 1).mean():.0%}",
        ]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    options = options_parser(__doc__, "a smoke test: few and short series").parse_args()
    series, cuts = (2, CUTS[:1]) if options.small else (SERIES, CUTS)
    its: Sequence[Outcome]
    print(
        "| kind, days known + ahead | objective | planned by it / just enough, median (least to most) | kept | kept "
        "with slack | planned by the peak / just enough | kept | kept with slack |"
    )
    print("|---|---|---|---|---|---|---|---|")
    every: dict[float, list[Outcome]] = {objective: [] for objective in OBJECTIVES_SECONDS}
    seconds: dict[int, list[float]] = {history: [] for history, _ in cuts}
    for history, ahead in cuts:
        for kind in KINDS:
            found = [outcomes(made(kind, history + ahead, seed), history, ahead, seed) for seed in range(series)]
            for objective, its in zip(OBJECTIVES_SECONDS, zip(*found, strict=True), strict=True):
                every[objective] += its
                seconds[history] += [o.seconds for o in its]
                print(line(f"{kind}, {history} + {ahead}", objective, its), flush=True)
    for objective, its in every.items():
        print(line(f"all {len(its)}", objective, its))
    both = [one for its in every.values() for one in its]
    print(
        f"\nobjectives that are not kept: at most {max(o.excess for o in both) - 1:.1%} above the exact capacity, "
        f"{np.median([o.excess for o in both]) - 1:.1%} in the median series"
    )
    by_history = ", ".join(f"{np.mean(its):.2f} s with {history} days" for history, its in seconds.items())
    print(f"CPU for a row of `demand`, forecast included: {by_history}")
    # With the default slack, the objective must be kept nearly always, and for less than by the peak.
    kept = np.mean([o.by_objective * SLACK >= 1 for o in both])
    dearer = np.median([o.by_objective / o.by_peak for o in both]) >= 1
    return int(kept < 0.95 or dearer)


if __name__ == "__main__":
    sys.exit(main())
