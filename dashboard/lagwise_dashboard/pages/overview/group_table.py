"""The table of groups: one row a group, made to be read at a glance and opened."""

from datetime import datetime

from lagwise.domain.vocabulary import REBALANCING_STATES
from lagwise_dashboard import tables
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import lag_columns

_WHY_WIDTH = 360


def columns(rows: list[Row], now: datetime, *, with_cluster: bool) -> list[TableColumn]:
    """The columns; those of which nothing is known, or that would all say the same, are left out."""
    result = [
        lag_columns.statuses(rows).sorts_by("worst"),
        tables.text("Group", [r["group"] for r in rows], width=190).sorts_by("name"),
        tables.text("Why", [r["sentence"] for r in rows], width=_WHY_WIDTH, wraps=True).with_help(
            "The verdict in one sentence."
        ),
        lag_columns.oldest_unread(rows, "Age of the oldest record the group has not read."),
        tables.trend("Last hour", [r["trend"] for r in rows]).with_help(
            "Age of the oldest unread record over the last hour (or since the first sample, if that is more recent), "
            "each group on its own scale."
        ),
        lag_columns.lag(rows, "Unread records; unknown partitions and ghosts left out."),
        tables.duration("Caught up in", [lag_columns.seconds_to_catch_up(r) for r in rows], endless="never")
        .with_help("Time until the lag is gone at today's rates; never if it is not shrinking.")
        .sorts_by("catch_up"),
        tables.duration("Since", [tables.elapsed_seconds(r["since"], now) for r in rows])
        .with_help("How long the group has had this status.")
        .sorts_by("since"),
        lag_columns.written(rows),
        lag_columns.read(rows),
        tables.text("Worst partition", [_worst_partition(r) for r in rows]).with_help(
            "By status, then by age of its oldest unread record."
        ),
        tables.count("Members", [r["members"] for r in rows]).sorts_by("members"),
        tables.count("Idle", [r["idle_members"] or None for r in rows], of="members").with_help(
            "Members that own no partition."
        ),
        tables.text("State", [_state(r) for r in rows]).with_help("As the group's coordinator names it."),
    ]
    if with_cluster:
        result.append(tables.text("Cluster", [r["cluster"] for r in rows]).sorts_by("cluster"))
    return tables.without_empty(result, "Idle")


def _worst_partition(row: Row) -> str | None:
    """``topic-partition``, as Kafka's own tools write it."""
    topic, partition = row["worst_topic"], row["worst_partition"]
    return None if topic is None else f"{topic}-{partition}"


def _state(row: Row) -> str | None:
    """``Stable``, ``rebalancing``; None if unknown."""
    return "rebalancing" if row["state"] in REBALANCING_STATES else row["state"]
