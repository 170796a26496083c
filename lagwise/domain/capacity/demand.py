"""What a topic was sent: how the rates of its minutes are counted, their quantiles, and what a history is enough for.

A rate is what the high watermark rose by from the last sample of one minute to the last of the next, over the time
between the two. Across a gap of the collector, and where the log went back or is another topic's, there is no such
step: then it counts from the minute's own first sample, where that is at least half a minute before. What was written
meanwhile is unknown, and no burst.

Compacted away or deleted records, and the markers of transactions, take offsets too: rates count these as records.
"""

import math
from collections.abc import Mapping

#: A rate over less time than this is none: a few records one after the other would make a peak.
LEAST_SECONDS = 30.0
#: Rates are counted in buckets, each this much wider than the one before: a quantile is exact to within 2 %. DDSketch,
#: Masson, Rim and Lee, VLDB 2019.
RELATIVE_ERROR = 0.02
LOG_WIDTH = math.log((1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR))

#: A day's shape needs two days of history, a week's two weeks: less shows nothing twice.
LEAST_DAYS, LEAST_WEEKLY_DAYS = 2, 14


def rate_of_bucket(bucket: int) -> float:
    """The rate that is within 2 % of every rate in the bucket."""
    return math.exp(bucket * LOG_WIDTH) * (1 - RELATIVE_ERROR)


def quantile_of(zeros: int, counts: Mapping[int, int], share: float) -> float:
    """The least rate that at least this share of the minutes do not exceed."""
    wanted = math.ceil(share * (zeros + sum(counts.values())))
    seen = zeros
    for bucket, minutes in sorted(counts.items()):
        if seen >= wanted:
            break
        seen += minutes
        if seen >= wanted:
            return rate_of_bucket(bucket)
    return 0.0


def too_little(history_hours: int, horizon_days: int) -> str | None:
    """Why so much history is too little for a forecast at the horizon; None where it is enough."""
    days = history_hours / 24
    if days >= LEAST_WEEKLY_DAYS:
        return None
    so_far = f"too little history: {math.floor(days * 10) / 10:.1f} days"
    ahead = f"a forecast {horizon_days} days ahead needs {LEAST_WEEKLY_DAYS}, to have seen the week twice"
    if days >= LEAST_DAYS:
        return f"{so_far}; {ahead} (until then it reaches as far ahead as the history back)"
    return f"{so_far}; {ahead}, and one of the next days needs {LEAST_DAYS}"
