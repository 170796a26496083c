"""How a group stands against the same hours of an earlier day: a week before, or the day before where there is no more
history."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from statistics import fmean

import pyarrow as pa

from lagwise.domain import humanise
from lagwise_dashboard import context, time_zone
from lagwise_dashboard.cache import ask_of_the_past
from lagwise_dashboard.pages.group import group_charts
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries.base import Row, bucket_seconds
from lagwise_dashboard.widgets.time_range import TimeRange

#: Days before; the first one of which there is history is compared with.
_WORDS = {7: "a week before", 1: "a day before"}
#: Spans of earlier days end on a whole step of this, so that browsers and refreshes share one answer.
_STEP_SECONDS = 300
#: The present is compared with so long before and after its time of day.
_AROUND = timedelta(minutes=15)
#: What differs by less is not worth a sentence.
_MIN_TIMES = 2.0
#: From here on no fraction of a multiple is told.
_WHOLE_FROM = 100.0
#: What was less is taken to be this: nothing is a hundred times next to nothing.
_MIN_RATE_PER_SECOND, _MIN_LAG = 1.0, 100.0


def before(cluster: str, group: str, span: TimeRange) -> group_charts.Before | None:
    """The same hours of an earlier day, as the clocks of the shown zone have them at the end of the span; None without
    history, and for spans that reach into that day."""
    length = span.until - span.since
    for days, words in _WORDS.items():
        ago = time_zone.shown().days_before(span.until, days)
        if length <= ago and (history := _history(cluster, group, span.until - ago, length)).num_rows:
            return group_charts.before_of(history, ago, words, bucket_seconds(*_ends(span.until - ago, length)))
    return None


def sentence(row: Row, now: datetime) -> str:
    """What of the group of a row of `group_status` differs much from the same time of an earlier day, in a sentence;
    empty where nothing does, or nothing is known."""
    for days in _WORDS:
        then = row["as_of"] - time_zone.shown().days_before(row["as_of"], days)
        history = _history(row["cluster"], row["group"], then + _AROUND, 2 * _AROUND)
        if history.num_rows:
            told = list(_differences(row, history))
            day = "yesterday" if days == 1 else f"last {time_zone.local(then):%A}"
            return f"Against {day} at this time: {', '.join(told)}." if told else ""
    return ""


def _history(cluster: str, group: str, until: datetime, length: timedelta) -> pa.Table:
    return ask_of_the_past(queries.history, cluster, group, *_ends(until, length))


def _ends(until: datetime, length: timedelta) -> tuple[datetime, datetime]:
    """The ends of what is asked for, so that a span of this length up to ``until`` is in it."""
    until = context.rounded_up(until, _STEP_SECONDS)
    return until - length - timedelta(seconds=_STEP_SECONDS), until


def _differences(row: Row, history: pa.Table) -> Iterator[str]:
    for column, least, words in (
        ("produce_rate_per_second", _MIN_RATE_PER_SECOND, "the write rate"),
        ("lag", _MIN_LAG, "the lag"),
    ):
        known = [value for value in history[column].to_pylist() if value is not None]
        if row[column] is None or not known:
            continue
        times = max(row[column], least) / max(fmean(known), least)
        if times >= _MIN_TIMES or times <= 1 / _MIN_TIMES:
            yield f"{humanise.count(times) if times >= _WHOLE_FROM else f'{times:.2g}'} × {words}"
