"""What a topic was sent: how the rates of its minutes are taken, and what a history is enough for.

A rate is what the high watermark rose by from the last sample of one minute to the last of the next, over the time
between the two. Across a gap of the collector, and where the log went back or is another topic's, there is no such
step: then it counts from the minute's own first sample, where that is at least half a minute before. What was written
meanwhile is unknown, and no burst. Where samples are farther apart than a minute, all minutes that a step covers have
its rate.

Compacted away or deleted records, and the markers of transactions, take offsets too: rates count these as records.
"""

import math

#: A rate over less time than this is none: a few records one after the other would make a peak.
LEAST_SECONDS = 30.0
MINUTES_OF_HOUR = 60

#: A day's shape needs two days of history, a week's two weeks: less shows nothing twice.
LEAST_DAYS, LEAST_WEEKLY_DAYS = 2, 14


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
