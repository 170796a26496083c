"""What will be lost, soonest first: records that retention deletes unread, and commits that expire."""

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.vocabulary import LossCause
from lagwise.links import parameters
from lagwise_dashboard import address, context, escaping, tables, visibility
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries import retention as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import (
    empty_page,
    filters,
    lag_columns,
    list_view,
    page,
    partition_names,
    tiles,
    time_range,
)
from lagwise_dashboard.widgets.partition_names import PartitionNames

_ANY = parameters.WITHIN.default
_HORIZONS: dict[str, float | None] = {
    "1h": 3600.0,
    "6h": 6 * 3600.0,
    "24h": 86400.0,
    "7d": 7 * 86400.0,
    _ANY: None,
}
#: Seconds and their labels: a minute is as good as now.
_AXIS = (
    (60.0, "now"),
    (600.0, "10 min"),
    (3600.0, "1 h"),
    (6 * 3600.0, "6 h"),
    (86400.0, "1 d"),
    (7 * 86400.0, "7 d"),
    (30 * 86400.0, "30 d"),
)
_CAUSES = {LossCause.DELETION: "deletion", LossCause.EXPIRY: "expiry"}
#: Pixels, so that the table is as wide as a window of 1280.
_NAME_WIDTH = 130


def body() -> None:
    now = context.now()
    if empty_page.fresh_data(now) is None:
        return
    clusters = ask(overview.clusters)
    _inputs(clusters)
    _counts(address.get(parameters.CLUSTER) or None, address.get(parameters.SEARCH))
    _list(now, with_cluster=len(clusters) > 1)


def _inputs(clusters: list[str]) -> None:
    """The fields above the list."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        filters.search("Group or topic")
        filters.cluster(clusters)
        st.segmented_control(
            "Lost within",
            list(_HORIZONS),
            format_func=lambda w: "All" if w == _ANY else time_range.in_words(w),
            **address.bound(parameters.WITHIN, required=True),
        )


def _counts(cluster: str | None, text: str) -> None:
    horizon = context.config().analysis.risk_horizon_seconds
    counts = ask(queries.counts, cluster, text, horizon)
    soon = f"Within {humanise.duration(horizon)}"
    tiles.show(
        [
            ("Losing now", f"{counts.now:,}", "Groups whose unread records are being deleted."),
            (soon, f"{counts.soon:,}", "Groups that will lose something within `analysis.risk_horizon_seconds`."),
            ("Later", f"{counts.later:,}", "Groups that will lose something after that if nothing changes."),
        ],
        name="losses",
    )


def _list(now: datetime, *, with_cluster: bool) -> None:
    text, cluster, within = (address.get(p) for p in (parameters.SEARCH, parameters.CLUSTER, parameters.WITHIN))
    listing, arguments = parameters.LOSS_LIST, (cluster or None, text, _HORIZONS[within])
    result = ask(queries.losses, *arguments, list_view.query(listing))
    if not result:
        where = " that matches the filters" if text or cluster or within != _ANY else ""
        st.success(f"Nothing{where} will be lost at today's rates.", icon=":material/check_circle:")
        return
    st.caption(f"{result.counted('row')}, one per group and topic, at today's rates.")
    list_view.table(
        listing,
        result,
        lambda rows: _columns(rows, now, with_cluster=with_cluster),
        lambda query: queries.losses(visibility.lake(), *arguments, query),
        name="losses",
        label="What will be lost" + list_view.if_default_order(listing, ", soonest first"),
        orders=queries.ORDERS,
        links=address.group_links(result),
    )


def _columns(rows: list[Row], now: datetime, *, with_cluster: bool) -> list[TableColumn]:
    """The columns; those that are empty throughout are left out."""
    result = [
        lag_columns.statuses(rows).sorts_by("status"),
        lag_columns.loss_in(
            "In",
            rows,
            [r["seconds_to_loss"] for r in rows],
            "Time from the data's timestamp until the first loss. ≤ marks an upper bound: it may come sooner.",
        ).sorts_by("soonest"),
        _bars(rows).sorts_by("soonest"),
        tables.text("Group", [r["group"] for r in rows], width=_NAME_WIDTH).sorts_by("group"),
        tables.text("Topic", [r["topic"] for r in rows], width=_NAME_WIDTH).sorts_by("topic"),
        tables.text("What", [_CAUSES.get(r["loss_cause"], r["loss_cause"]) for r in rows]).with_help(
            "deletion: retention deletes unread records.\n"
            "expiry: the broker deletes the commits of a group without members."
        ),
        _at(rows, now),
        _unread(rows),
        lag_columns.oldest_unread(rows, "Age of the oldest of them."),
        tables.duration("Kept for", [_kept_seconds(r) for r in rows], endless="for ever").with_help(
            "How long the topic keeps records."
        ),
        tables.size("Kept up to", [_kept_bytes(r) for r in rows]).with_help("The largest size of a partition."),
        tables.between(
            "Lost already",
            [r["lost_at_least"] or None for r in rows],
            [r["lost_at_most"] for r in rows],
            formatter=humanise.count,
            of="records",
        )
        .with_help("Records deleted before they were read, within 24 hours or still missing.")
        .sorts_by("lost"),
        _partitions(rows, _names(rows, now)),
    ]
    if with_cluster:
        result.append(tables.text("Cluster", [r["cluster"] for r in rows]).sorts_by("cluster"))
    return tables.without_empty(result, "Kept up to", "Lost already")


def _bars(rows: list[Row]) -> TableColumn:
    """From the earliest to the latest time of the first loss; from now on where only a latest is known."""
    lows = [0.0 if r["seconds_to_loss_is_upper_bound"] else r["seconds_to_loss"] for r in rows]
    highs = [
        r["seconds_to_loss"] if r["seconds_to_loss_at_latest"] is None else r["seconds_to_loss_at_latest"] for r in rows
    ]
    texts = [
        humanise.loss_in(low) if low == high else f"{humanise.loss_in(low)} to {humanise.loss_in(high)}"
        for low, high in zip(lows, highs, strict=True)
    ]
    return tables.span("Earliest to latest", lows, highs, texts, _AXIS).with_help(
        "When the first loss comes, from the data's timestamp on: now to 30 days, on a logarithmic axis. "
        "If a bar starts at the left edge, the loss may come at any moment. Whole segments are deleted, which can "
        "delay a deletion by up to segment.ms of records."
    )


def _names(rows: list[Row], now: datetime) -> dict[str, PartitionNames]:
    """What systems call the partitions of these rows' topics, by cluster."""
    topics: dict[str, list[str]] = {}
    for row in rows:
        topics.setdefault(row["cluster"], []).append(row["topic"])
    return {c: partition_names.of(c, names, now.replace(second=0, microsecond=0)) for c, names in topics.items()}


def _after(row: Row, seconds: float | None) -> datetime | None:
    """So long after the data's timestamp."""
    if seconds is None:
        return None
    at: datetime = row["as_of"] + timedelta(seconds=seconds)
    return at


def _at(rows: list[Row], now: datetime) -> TableColumn:
    """The earliest time of the first loss; in a CSV also the latest, which the bars show."""
    made = tables.moment("At", [_after(r, r["seconds_to_loss"]) for r in rows], now)
    latest = [_after(r, r["seconds_to_loss_at_latest"]) for r in rows]
    return (
        replace(made, raw={**made.raw, "at_the_latest": latest})
        .with_help("The earliest time of the first loss.")
        .sorts_by("soonest")
    )


def _unread(rows: list[Row]) -> TableColumn:
    """Unread records; in a CSV also the rates, which the page of the group shows."""
    made = tables.count("Unread", [r["lag"] for r in rows], of="records")
    rates = {**lag_columns.written(rows).raw, **lag_columns.read(rows).raw}
    return (
        replace(made, raw={**made.raw, **rates})
        .with_help("Unread records of the partitions that lose something.")
        .sorts_by("unread")
    )


def _partitions(rows: list[Row], names: Mapping[str, PartitionNames]) -> TableColumn:
    """How many partitions, and which is the soonest: by its number, or by name where a system has its own."""
    soonest = [names[r["cluster"]].get((r["topic"], r["partition"]), r["partition"]) for r in rows]
    made = tables.count("Partitions", [r["partitions"] for r in rows])
    shown = [
        f"{count}, soonest {escaping.visible(str(first))}" for count, first in zip(made.cells, soonest, strict=True)
    ]
    return (
        replace(made, cells=shown, raw={**made.raw, "soonest": soonest})
        .with_help("How many partitions lose something, and which of them is the soonest.")
        .sorts_by("partitions")
    )


def _kept_seconds(row: Row) -> float | None:
    """A topic's retention by time; infinite without one, None if unknown."""
    if row["retention_ms"] is None:
        return None
    return math.inf if row["retention_ms"] < 0 else row["retention_ms"] / 1000


def _kept_bytes(row: Row) -> float | None:
    """A topic's retention by size; None without one."""
    return None if (row["retention_bytes"] or -1) < 0 else float(row["retention_bytes"])


page.show("What will be lost?", body, help_text="Unread records and committed offsets, the soonest loss first.")
