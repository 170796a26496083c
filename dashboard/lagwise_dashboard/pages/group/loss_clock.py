"""The clock of a loss to come: what will be gone, when by the clock, and how much of the time is used up."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import groupby

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.vocabulary import LossCause
from lagwise_dashboard import time_zone
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import topic as topic_queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets import lag_columns, partition_names
from lagwise_dashboard.widgets.partition_names import PartitionNames

#: The partitions that come next are named up to these.
_NEXT = 4


def show(row: Row, losing: list[Row], now: datetime, names: PartitionNames) -> None:
    """Draw the clock of the group of a row of `group_status`; nothing where nothing will be lost. ``losing`` are its
    partitions that lose something, soonest first."""
    if not losing:
        return
    with st.container(border=True, key="loss_clock"):
        if row["loss_cause"] == LossCause.EXPIRY:
            st.markdown(_expiry(losing[0], now))
            return
        first = losing[0]
        settings = ask(topic_queries.settings, first["cluster"], first["topic"])
        st.markdown(deletion(losing, now, names))
        share = lag_columns.used_share(first, settings)
        if share is not None:
            age = ("at least " if first["lag_seconds_is_lower_bound"] else "") + humanise.duration(first["lag_seconds"])
            kept = humanise.duration(settings["retention_ms"] / 1000) if settings else humanise.DASH
            st.progress(min(1.0, share), text=f"The oldest unread record is {age} old; the topic keeps {kept}.")


def deletion(losing: list[Row], now: datetime, names: PartitionNames) -> str:
    """Markdown: which partition first, at what time, and which come next. ``losing`` is in order of time."""
    first = losing[0]
    place = f"**{partition_names.place(first['topic'], first['partition'], names)}**"
    noun = "queue" if names else "partition"
    if first["seconds_to_loss"] <= 0:
        gone = [p for p in losing if p["seconds_to_loss"] <= 0]
        others = f" and {humanise.plural(len(gone) - 1, f'other {noun}')}" if len(gone) > 1 else ""
        text = f":material/hourglass_disabled: Records of {place}{others} **are being deleted unread now**."
        rest = [p for p in losing if p["seconds_to_loss"] > 0]
    else:
        is_bound = bool(first["seconds_to_loss_is_upper_bound"])
        text = (
            f":material/hourglass_bottom: Unread records of {place} are deleted **{'by' if is_bound else 'from'} "
            f"{_at(first, now)}**{' at the latest' if is_bound else ' on'}, in {_left(first)}"
            f"{_at_latest(first, now)}."
        )
        rest = losing[1:]
    following = [f"{_listed(its, names)} in {left}" for left, its in groupby(rest[:_NEXT], key=_left)]
    if following:
        more = f", and {len(rest) - _NEXT:,} more" if len(rest) > _NEXT else ""
        text += f" Then {'; '.join(following)}{more}."
    return text


def _listed(partitions: Iterable[Row], names: PartitionNames) -> str:
    """``clicks-8, clicks-9 and clicks-10``."""
    *first, last = (partition_names.place(one["topic"], one["partition"], names) for one in partitions)
    return f"{', '.join(first)} and {last}" if first else last


def _expiry(first: Row, now: datetime) -> str:
    return (
        f":material/hourglass_bottom: The broker deletes the committed offsets of this group **at {_at(first, now)}**, "
        f"in {_left(first)}, unless a member joins. After that, `auto.offset.reset` decides where it continues."
    )


def _at(partition: Row, now: datetime) -> str:
    return time_zone.clock_markdown(partition["as_of"] + timedelta(seconds=partition["seconds_to_loss"]), now)


def _left(partition: Row) -> str:
    """From the moment that was judged on, as in the verdict's sentence; the clock time is right at any moment."""
    return humanise.duration(partition["seconds_to_loss"])


def _at_latest(partition: Row, now: datetime) -> str:
    seconds = partition["seconds_to_loss_at_latest"]
    if seconds is None or partition["seconds_to_loss_is_upper_bound"]:
        return ""
    return (
        f" (at the latest at {time_zone.clock_markdown(partition['as_of'] + timedelta(seconds=seconds), now)}, "
        "as whole segments are deleted)"
    )
