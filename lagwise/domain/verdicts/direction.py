"""Where the lag of a group-partition is going: the rules on its trends."""

from typing import NamedTuple

import numpy as np

from lagwise.domain.verdicts.columns import NULL, Array, Columns, as_floats

#: A trend smaller than this share of the produce rate is noise, whatever its confidence interval.
TREND_SHARE_OF_PRODUCE_RATE = 0.01
#: Growth of less than that share also counts if the group will miss its objective within the risk horizon. Once it has
#: missed it, what was told goes on as long as records may get older by this share of it in that time.
SHARE_OF_OBJECTIVE = 0.25
#: What the short window is to say alone, it must say with this many margins: 99.9 % instead of 99 %, because it is
#: asked again and again.
SURE_MARGINS = 1.277
#: What was told, the longest window still shows with this many margins: 95 %.
LIKELY_MARGINS = 0.761
#: More is written than usual where it is more than so many times the rate of an hour.
RISE_OF_LOAD = 1.15
#: What the longest window says, a shorter one confirms if it says this share of it.
SHARE_OF_GROWTH = 0.5
#: A trend that changes the lag over its window by less than a record, or than this share of the lag, is noise: squares
#: of a huge lag leave no digits for more.
TREND_SHARE_OF_LAG = 1e-6
#: Records may wait for the group's objective, and for this many of its commit cadences: until then they are not late,
#: and lag that is no older is no trend.
CADENCES_OF_PATIENCE = 2.0


class _Limits(NamedTuple):
    """What a trend must exceed, in records per second: to count by itself (``band``), to be more than rounding
    (``change``), and for the objective to be missed within the horizon (``least``)."""

    band: Array
    change: Array
    least: Array


def direction(p: Columns) -> dict[str, Array]:
    """Where the lag is going: neither where it holds its level, or where nobody can tell. It ``creeps`` where it grows
    for certain, by however little.

    A trend is significant in one of three windows, and another must agree: the short one alone would take a dip for a
    recovery, the long one alone would outlive its cause. (That lag shrinks, the short one may say alone if it is very
    sure: after a long growth the long one would contradict for as long again.) To count at all it must be larger than
    noise.
    """
    limits = _limits(p)
    tells = p["is_measured"] & p["is_visible"] & ~np.isnan(p["longer_slope"])
    shrinks = (tells & _shrinks(p, limits)) | _drains(p)
    return {
        "begins_to_grow": _may_grow(p) & _begins_to_grow(p, limits),
        # Within a sawtooth, lag rises above what sampling alone explains and falls below it again.
        "goes_on_growing": p["is_measured"] & p["has_lag"] & ~shrinks & _goes_on_growing(p, limits),
        "shrinks": shrinks,
        "creeps": tells & (p["slope_low"] > 0) & (p["longer_slope"] > 0),
    }


def _limits(p: Columns) -> _Limits:
    span = np.where(p["span_seconds"] > 0, p["span_seconds"], np.nan)
    change = np.maximum(1.0, TREND_SHARE_OF_LAG * as_floats(p["lag"])) / span
    band = np.fmax(TREND_SHARE_OF_PRODUCE_RATE * p["produced"], change)
    objective = p["lag_objective_seconds"]
    left = np.maximum(objective - p["age"], SHARE_OF_OBJECTIVE * objective)
    return _Limits(band, change, np.fmin(band, np.fmax(p["produced"] * left / p["risk_horizon_seconds"], change)))


def _may_grow(p: Columns) -> Array:
    """Whether there is a trend, and more lag than sampling and committing make of none. Who commits at each sample
    commits more often than can be seen."""
    spacing = np.fmax(p["interval_seconds"], p["spacing_seconds"])
    late = CADENCES_OF_PATIENCE * np.clip(2 * (p["cadence"] - spacing), 0.0, p["cadence"])
    return p["is_measured"] & p["has_lag"] & (p["age"] > p["interval_seconds"] + late)


def _begins_to_grow(p: Columns, limits: _Limits) -> Array:
    """Growth matters if it is more than a share of what is written, or if the objective will be missed in time. The
    short window must be very sure, or a longer one sure that the shorter ones confirm. As long as sampling could
    explain the lag, both must be sure, or no rise of the load explain it."""
    band, change, least = limits
    short, longer, longest = (p[name] for name in ("slope", "longer_slope", "longest_slope"))

    def is_sure(low: Array, slope: Array) -> Array:
        will_miss = (p["age"] <= p["lag_objective_seconds"]) & (low > change) & (slope > least)
        return (low > band) | will_miss

    surely_above = _surely(p, "", "slope_low")
    by_short = is_sure(surely_above, short) & (longer > least)
    by_longer = is_sure(p["longer_low"], longer) & (short > least)
    confirms = (longer > np.fmax(least, SHARE_OF_GROWTH * longest)) & (short > least) & ~_has_slowed(p)
    by_longer |= is_sure(p["longest_low"], longest) & confirms
    # What swings with every commit or crash says little; what is left unread at the end of each swing says all.
    at_troughs, of_late = p["trough_slope"], p["recent_trough_slope"]
    goes_on = of_late > np.fmax(least, SHARE_OF_GROWTH * at_troughs)
    by_longer |= is_sure(_surely(p, "recent_trough_", "low"), of_late) & (longest > least)
    by_longer |= is_sure(_surely(p, "trough_", "low"), at_troughs) & goes_on
    # What is read at once waits for the next commit: where more is written, more of it waits.
    is_even = ~(p["produced"] > RISE_OF_LOAD * p["steady_produce_rate_per_second"])
    is_clear = (surely_above > least) & (p["longer_low"] > least)
    grows = np.where(p["is_visible"], by_short | by_longer, is_clear | (by_longer & is_even))
    return grows & ~_fell(p) & ~_is_level_at_troughs(p)


def _goes_on_growing(p: Columns, limits: _Limits) -> Array:
    """Growth that was told is told as long as a longer window shows it, until there is as much evidence against it:
    until the windows say for certain that lag does not grow by so much, or more slowly than before, or what was unread
    of late is less than it was over the longest."""
    at_least = p["longest_slope"] - LIKELY_MARGINS * (p["longest_slope"] - p["longest_low"])
    lowest = np.fmax(p["longer_low"], np.fmax(p["trough_low"], p["recent_trough_low"]))
    is_shown = (lowest > 0) | (at_least > 0)
    is_over = (_surely(p, "", "slope_high") < limits.least) & ~(lowest > limits.least)
    return is_shown & ~is_over & ~(p["mean_lag"] < p["longest_mean_lag"]) & ~_has_slowed(p) & ~_fell(p)


def _shrinks(p: Columns, limits: _Limits) -> Array:
    band = limits.band
    by_short = (_surely(p, "", "slope_high") < -band) | ((p["slope_high"] < -band) & (p["longer_high"] < 0))
    by_short |= (p["trough_high"] < -band) & (p["recent_trough_slope"] < -band)
    by_short |= _surely(p, "recent_trough_", "high") < -band
    return by_short | ((p["longer_high"] < -band) & (p["slope"] < -band))


def _has_slowed(p: Columns) -> Array:
    """Whether lag certainly grows more slowly than in the hour before, where the difference of two slopes is as sure as
    both together; or is level at its troughs."""
    margin = np.hypot(p["longer_high"] - p["longer_slope"], p["earlier_slope"] - p["earlier_low"])
    return (p["longer_slope"] + SURE_MARGINS * margin < p["earlier_slope"]) | _is_level_at_troughs(p)


def _is_level_at_troughs(p: Columns) -> Array:
    """Whether lag, at its troughs of late, certainly grows less than half as fast as at all of the hour."""
    return p["recent_trough_high"] < SHARE_OF_GROWTH * np.maximum(p["trough_slope"], 0.0)


def _surely(p: Columns, trend: str, end: str) -> Array:
    """An ``end`` of a trend's interval at 99.9 % instead of 99 %; their columns are named after the ``trend``."""
    slope = p[f"{trend}slope"]
    return slope + SURE_MARGINS * (p[f"{trend}{end}"] - slope)


def _fell(p: Columns) -> Array:
    """Whether lag is far below where it was within the window."""
    highest = p["highest_lag_of_window"]
    return (highest != NULL) & (highest - p["lag"] > _made_up(p))


def _drains(p: Columns) -> Array:
    """Whether less is unread than when an outage ended, as long as windows begin there, or than at a trough after any
    change, unless the trend is certain of the contrary."""
    has_fallen = p["has_resumed"] & (p["highest_lag"] - p["lag"] > _made_up(p))
    has_fallen |= p["trough_drop"] > 2 * p["produced"] * p["interval_seconds"]
    return has_fallen & p["is_visible"] & ~(p["slope_low"] > 0)


def _made_up(p: Columns) -> Array:
    """The most records by which sampling and committing make lag look different."""
    return p["produced"] * (p["interval_seconds"] + CADENCES_OF_PATIENCE * p["cadence"])
