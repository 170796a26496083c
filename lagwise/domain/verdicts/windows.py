"""From the buckets of group-partitions to how each moves: cadence, rewinds, losses, the trend of its lag, its rate.

A case is a group-partition at a moment (``as_of``). Windows consist of whole buckets and end at the moment; a day
consists of whole hours, whose sum changes once an hour, and of what came after them. A topic that is re-created is
another log under the same name: rates, trends and rewinds count from the first whole bucket after it, because the one
in which it happened holds samples of both.
"""

import numpy as np

from lagwise.domain.verdicts.buckets import (
    FIVE_MINUTES,
    HOUR,
    MINUTE,
    MINUTE_SECONDS,
    STATISTICS,
    last_progress_before,
    shifted,
)
from lagwise.domain.verdicts.changes import COARSE_AFTER_SECONDS, bucket_of, changes, next_bucket
from lagwise.domain.verdicts.columns import (
    MICROS,
    NEVER,
    NULL,
    Array,
    Columns,
    Ranges,
    last_index,
    micros,
    picked,
    ranges_of,
    ratio,
    seconds_between,
    start_of,
    taken,
)
from lagwise.domain.verdicts.trend import margin_over_blocks, slope_and_margin
from lagwise.domain.verdicts.troughs import troughs
from lagwise.domain.verdicts.turns import absence_seconds
from lagwise.domain.verdicts.usual_pauses import pauses_of_hours, usual_pause

#: Windows on which a trend is judged, each confirmed by the next longer one (the longest by itself).
WINDOWS_SECONDS = (300.0, 900.0, 3600.0)
#: Window for those that commit too rarely for a trend over an hour; it is confirmed by itself. Groups that commit often
#: do not use it: the ups and downs of a day say nothing about their last minutes.
DAY_SECONDS = 86_400.0
#: The window of a day consists of this many whole hours and of what came after them.
HOURS_OF_DAY = 23
#: The last hour counts as whole this long after its end.
HOUR_IS_WHOLE_AFTER_SECONDS = 600.0
#: A window must hold this many commit cadences, or the sawtooth of a slow committer looks like a trend.
CADENCES_PER_WINDOW = 4
#: A window must hold this many sampling intervals, or a slow collector never sees a trend.
INTERVALS_PER_WINDOW = 5

#: Index of the longest of ``WINDOWS_SECONDS``, and of the day.
HOUR_WINDOW = len(WINDOWS_SECONDS) - 1
DAY = len(WINDOWS_SECONDS)
#: Rewinds and commit cadence are looked for in the longest of them.
LOOKBACK_SECONDS = WINDOWS_SECONDS[HOUR_WINDOW]
#: A trend is tried on blocks of a minute, too; of five in the longest window, and where a minute holds fewer cadences.
CADENCES_PER_BLOCK = 2
_ENDS = ("first_at", "first_committed", "last_at", "last_committed")


def first_bucket(window_seconds: float, as_of: Array) -> Array:
    """Start of the first bucket that belongs to a window: the first one that begins within it."""
    length = MINUTE if window_seconds <= COARSE_AFTER_SECONDS else FIVE_MINUTES
    return start_of(length, as_of - micros(window_seconds)) + length


def whole_hours_until(as_of: Array) -> Array:
    """End of the last whole hour of the day that ends at ``as_of``."""
    return start_of(HOUR, as_of - micros(HOUR_IS_WHOLE_AFTER_SECONDS))


def whole_hours(hours: Columns, wanted: Columns) -> dict[str, Array]:
    """The whole hours of a day, merged: one row for each of ``wanted`` (pair, until, recreated_at).

    ``hours`` are in order of pair and time. t counts from the start of the first of the hours.
    A pause lasts from one sample at which the group had got on to the next. A job that cron starts every hour commits
    every few seconds for three minutes and then not at all: the mean of its last hour is no rhythm, its pauses are, as
    far as a day shows them again and again. Which is usual, the rest of the day after these hours has a say in (see
    :func:`lagwise.domain.verdicts.usual_pauses.usual_pause`): ``usual_pause_seconds`` is the longest without a pause in
    that rest, ``usual_pause_at_least`` and ``usual_pause_at_most`` if it held a short, or a long one; NaN is none.
    Whether ``long_pauses`` and those of the rest are enough, is asked there, too.
    """
    until = wanted["until"]
    begins = until - HOURS_OF_DAY * HOUR
    of_pair = ranges_of(wanted["pair"], hours["pair"])
    recreated = wanted["recreated_at"]
    same_log = np.where(recreated == NULL, begins, start_of(HOUR, np.maximum(recreated, 0)) + HOUR)
    part = Ranges(
        of_pair.bisect_left(hours["minute"], np.maximum(begins, same_log)), of_pair.bisect_left(hours["minute"], until)
    )
    number, row = part.rows()
    sums = shifted(taken(hours, row), (hours["minute"][row] - begins[number]) / MICROS)
    own = Ranges(np.cumsum(part.sizes) - part.sizes, np.cumsum(part.sizes))
    lost = hours["lost_at_least"][row]
    return {
        **{name: own.sum(sums[name]) for name in STATISTICS},
        **{name: (part.first if name.startswith("first") else part.last)(hours[name]) for name in _ENDS},
        "moves": part.sum(hours["moves"]),
        "backlog_seconds": part.sum(hours["backlog_seconds"]),
        "lost_at_least": own.sum(lost),
        "lost_at_most": own.sum(np.where(lost > 0, hours["lost_at_most"][row], 0)),
        "first_lost_at": part.min(hours["first_lost_at"]),
        "last_lost_at": part.max(hours["last_lost_at"]),
        **pauses_of_hours(hours, part, number, row),
    }


def windows_for(
    moves: Array, backlog_seconds: Array, interval_seconds: Array, usual_pause_seconds: Array
) -> tuple[Array, Array, Array]:
    """The window a trend is judged on, the one that must agree, and whether there is a trend at all: where even a day
    is too short, the window is the hour, for the rate alone."""
    with np.errstate(divide="ignore", invalid="ignore"):
        cadence = np.where(moves > 0, backlog_seconds / moves, 0.0)
    needed = np.maximum(
        INTERVALS_PER_WINDOW * interval_seconds, CADENCES_PER_WINDOW * np.fmax(cadence, usual_pause_seconds)
    )
    window = np.searchsorted([*WINDOWS_SECONDS, DAY_SECONDS], needed)
    is_measurable = window <= DAY
    window = np.where(is_measurable, window, HOUR_WINDOW)
    # The hour and the day are each confirmed by themselves.
    return window, np.where(window < HOUR_WINDOW, window + 1, window), is_measurable


def pace_of(buckets: Columns, days: Columns, cases: Columns) -> dict[str, Array]:
    """How each case moves: the columns of the result, which are explained there.

    Args:
        buckets: in order of pair and time, at least those of the longest window and since the last whole hour.
        days: the result of :func:`whole_hours` for each case.
        cases: pair, as_of, recreated_at, interval_seconds.
    """
    as_of, interval = cases["as_of"], cases["interval_seconds"]
    of_pair = ranges_of(cases["pair"], buckets["pair"])
    seen = Ranges(of_pair.start, of_pair.bisect_right(buckets["last_at"], as_of))
    same_log = seen.bisect_left(buckets["minute"], next_bucket(cases["recreated_at"], as_of))
    recent = [Ranges(seen.bisect_left(buckets["minute"], first_bucket(w, as_of)), seen.stop) for w in WINDOWS_SECONDS]
    of_day = Ranges(seen.bisect_left(buckets["minute"], whole_hours_until(as_of)), seen.stop)
    of_log = [part.since(same_log) for part in (*recent, of_day)]
    hour, hour_of_log = recent[HOUR_WINDOW], of_log[HOUR_WINDOW]
    usual_pause_seconds = usual_pause(buckets, hour_of_log, of_log[DAY], days, interval)
    change = changes(buckets, hour_of_log, days, usual_pause_seconds, as_of)
    same_pace = seen.bisect_left(buckets["minute"], next_bucket(change.changed_at, as_of))
    parts = [*(part.since(same_pace) for part in of_log[:DAY]), of_log[DAY]]

    since_outage = hour.since(seen.bisect_left(buckets["minute"], next_bucket(change.resumed_at, as_of)))
    moves = since_outage.sum(buckets["moves"])
    backlog = np.round(since_outage.sum(buckets["backlog_seconds"]), 6)
    window, longer, is_measurable = windows_for(moves, backlog, interval, usual_pause_seconds)
    longest = np.maximum(longer, HOUR_WINDOW)

    origin = int(as_of.max(initial=0))
    sums = shifted(buckets, (buckets["minute"] - origin) / MICROS)
    statistics = [{name: part.sum(sums[name]) for name in STATISTICS} for part in parts]
    statistics[DAY] = _with_whole_hours(statistics[DAY], days, as_of, origin)
    ends = [_ends_of(part, buckets) for part in parts]
    ends[DAY] = _with_ends_of_whole_hours(ends[DAY], days)
    its_ends = {name: np.choose(window, [its[name] for its in ends]) for name in _ENDS}
    with np.errstate(divide="ignore", invalid="ignore"):
        is_slow = CADENCES_PER_BLOCK * backlog > MINUTE_SECONDS * moves
    block = np.where(is_slow, FIVE_MINUTES, MINUTE)

    def trend_over(part: Ranges, its: Columns, blocks: Array) -> tuple[Array, Array]:
        slope, margin = slope_and_margin(its)
        return slope, np.fmin(margin, margin_over_blocks(buckets, part, blocks, slope, margin))

    fives = np.full(len(as_of), FIVE_MINUTES)
    trends = [
        trend_over(part, its, blocks)
        for part, its, blocks in zip(parts[:DAY], statistics, (block, block, fives), strict=False)
    ]
    trends.append(slope_and_margin(statistics[DAY]))
    # What the hour shows before the window that confirms the shortest.
    earlier = Ranges(parts[HOUR_WINDOW].start, parts[1].start)
    before = trend_over(earlier, {name: earlier.sum(sums[name]) for name in STATISTICS}, fives)

    def trend(of: Array, names: tuple[str, str, str]) -> dict[str, Array]:
        slope, margin = (np.where(is_measurable, np.choose(of, [its[n] for its in trends]), np.nan) for n in (0, 1))
        return dict(zip(names, (slope, slope - margin, slope + margin), strict=True))

    is_cut = np.choose(
        window, [*(part.start > its.start for part, its in zip(parts[:DAY], of_log, strict=False)), False]
    )
    span = np.nan_to_num(seconds_between(its_ends["first_at"], its_ends["last_at"]))
    read = np.maximum(its_ends["last_committed"] - its_ends["first_committed"], 0)
    rate = ratio(read, span)
    if (change.changed_at != NULL).any():
        rate = np.where(np.isnan(rate), _rate_before(buckets, of_log, window), rate)

    def mean_lag(of: Array) -> Array:
        sum_lag, count = (np.choose(of, [its[name] for its in statistics]) for name in ("sum_lag", "samples"))
        return ratio(sum_lag, count)

    moved_at = _last_known(buckets, "last_moved_at", seen)
    progress_before = last_progress_before(buckets)
    return {
        # When the offset was first seen where it is now (null: never seen), and whether it was seen to get there.
        "moved_at": np.where(moved_at == NULL, seen.first(buckets["first_at"]), moved_at),
        "was_seen_moving": moved_at != NULL,
        # When nothing was last unread.
        "drained_at": _last_known(buckets, "last_drained_at", seen),
        # How often the offset was seen to move within the hour, and for how much of it there was something to commit.
        "moves": moves,
        "backlog_seconds": backlog,
        "usual_pause_seconds": usual_pause_seconds,
        # The longest pause that ended in the last minutes; 0 is none.
        "absence_seconds": absence_seconds(buckets, progress_before, hour, recent[0], interval),
        # The highest offset before a rewind within the hour, by how many records it was rewound, and when last.
        "rewound_from": hour_of_log.max(buckets["rewound_from"]),
        "rewound_records": hour_of_log.sum(buckets["rewound_records"]),
        "rewound_at": hour_of_log.max(buckets["rewound_at"]),
        # Records that were deleted unread, as seen within the shortest window, and within a day.
        "lost_lately": of_log[0].sum(buckets["lost_at_least"]),
        **_lost_of_day(buckets, days, of_log, of_day),
        # The window that suits the commit cadence; where even a day is too short, that of an hour, without a trend.
        "window": window,
        "trend_is_measurable": is_measurable,
        # Samples of it, also those before the last change.
        "samples": np.choose(
            window, [part.sum(buckets["samples"]) for part in of_log[:DAY]] + [statistics[DAY]["samples"]]
        ),
        "span_seconds": span,
        "spacing_seconds": ratio(span, np.choose(window, [its["samples"] for its in statistics]) - 1),
        "consume_rate_per_second": rate,
        # The trend on the window, on the one that must agree, and on the longest of those that suit who commits often.
        **trend(window, ("slope", "slope_low", "slope_high")),
        **trend(longer, ("longer_slope", "longer_low", "longer_high")),
        **trend(longest, ("longest_slope", "longest_low", "longest_high")),
        # The trend of the hour before the window that must agree, where that is shorter than the hour.
        "earlier_slope": np.where(longer < HOUR_WINDOW, before[0], np.nan),
        "earlier_low": np.where(longer < HOUR_WINDOW, before[0] - before[1], np.nan),
        # The mean lag on the window and on the longest.
        "mean_lag": mean_lag(window),
        "longest_mean_lag": mean_lag(longest),
        **troughs(buckets, progress_before, parts[HOUR_WINDOW], parts[1], hour_of_log.start, as_of, interval),
        # Whether the window begins where it began to move in another way, and whether an outage ended there; the
        # highest lag in the window (null: a day), and since then.
        "has_changed": is_cut,
        "has_resumed": is_cut & (change.resumed_at == change.changed_at),
        "highest_lag_of_window": np.choose(
            window, [*(part.max(buckets["max_lag"]) for part in parts[:DAY]), np.full(len(as_of), NULL)]
        ),
        "highest_lag": seen.since(
            seen.bisect_left(buckets["minute"], bucket_of(np.maximum(change.changed_at, 0), as_of))
        ).max(buckets["max_lag"]),
    }


def _rate_before(buckets: Columns, parts: list[Ranges], window: Array) -> Array:
    """Records read per second over the windows, also before the last change; null for that of a day."""
    rates = []
    for part in parts[:DAY]:
        ends = _ends_of(part, buckets)
        read = np.maximum(ends["last_committed"] - ends["first_committed"], 0)
        rates.append(ratio(read, np.nan_to_num(seconds_between(ends["first_at"], ends["last_at"]))))
    return np.choose(window, [*rates, np.full(len(window), np.nan)])


def _last_known(buckets: Columns, name: str, seen: Ranges) -> Array:
    """The latest time in a column of all that was seen."""
    index = last_index(buckets[name] != NULL)
    last = picked(index, seen.stop - 1, ~seen.is_empty, -1)
    return picked(buckets[name], last, last >= seen.start)


def _ends_of(part: Ranges, buckets: Columns) -> dict[str, Array]:
    return {
        "first_at": part.first(buckets["first_at"]),
        "first_committed": part.first(buckets["first_committed"]),
        "last_at": part.last(buckets["last_at"]),
        "last_committed": part.last(buckets["last_committed"]),
    }


def _with_whole_hours(rest: Columns, days: Columns, as_of: Array, origin: int) -> dict[str, Array]:
    """The statistics of a day from those of its whole hours and of the rest."""
    begins = whole_hours_until(as_of) - HOURS_OF_DAY * HOUR
    of_hours = shifted(days, (begins - origin) / MICROS)
    return {name: rest[name] + of_hours[name] for name in STATISTICS}


def _with_ends_of_whole_hours(rest: Columns, days: Columns) -> dict[str, Array]:
    has_hours, has_rest = days["first_at"] != NULL, rest["last_at"] != NULL
    return {
        name: np.where(has_hours, days[name], rest[name])
        if name.startswith("first")
        else np.where(has_rest, rest[name], days[name])
        for name in _ENDS
    }


def _lost_of_day(buckets: Columns, days: Columns, parts: list[Ranges], of_day: Ranges) -> dict[str, Array]:
    """What was lost within a day, by stretches: the whole hours, and since then what belongs to a window but not to a
    shorter one. A stretch in which no loss shows adds nothing: a group that reads at the edge of what is kept, or
    deletes what it has read, is passed by the log start all the time, and the upper number would go on growing."""
    lost = {
        "lost_at_least": days["lost_at_least"],
        "lost_at_most": days["lost_at_most"],
        "first_lost_at": days["first_lost_at"],
        "last_lost_at": days["last_lost_at"],
    }
    stop = of_day.stop
    for part in parts:
        start = np.maximum(part.start, of_day.start)
        stretch = Ranges(start, stop)
        at_least = stretch.sum(buckets["lost_at_least"])
        lost["lost_at_least"] = lost["lost_at_least"] + at_least
        lost["lost_at_most"] = lost["lost_at_most"] + np.where(at_least > 0, stretch.sum(buckets["lost_at_most"]), 0)
        lost["first_lost_at"] = np.minimum(lost["first_lost_at"], stretch.min(buckets["first_lost_at"]))
        lost["last_lost_at"] = np.maximum(lost["last_lost_at"], stretch.max(buckets["last_lost_at"]))
        stop = np.minimum(stop, start)
    lost["first_lost_at"] = np.where(lost["first_lost_at"] == NEVER, NULL, lost["first_lost_at"])
    return lost
