"""What will be lost, as a table: one row a group, topic and cause."""

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from lagwise.domain import humanise
from lagwise.domain.vocabulary import LossCause
from lagwise.links import parameters
from lagwise_dashboard import address, tables
from lagwise_dashboard.queries import retention as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import grid, lag_columns, list_view, partition_names
from lagwise_dashboard.widgets.partition_names import PartitionNames

_CAUSES = {LossCause.DELETION: "records deleted", LossCause.EXPIRY: "commits expire"}


#: Orders of :data:`queries.retention.ORDERS` by the title of the column whose heading asks for them.
SORTS = {
    "Status": "status",
    "In": "soonest",
    "At": "soonest",
    "Group": "group",
    "Topic": "topic",
    "Unread": "unread",
    "Oldest unread": "age",
    "In/s": "in",
    "Out/s": "out",
    "Lost already": "lost",
    "Partitions": "partitions",
    "Cluster": "cluster",
}


def show(result: ListPage[Row], now: datetime, *, all_rows: Callable[[], list[Row]], with_cluster: bool) -> None:
    """Draw the table, a page of the ``all_rows``."""
    listing = parameters.LOSS_LIST
    grid.show(
        columns(result.rows, now, with_cluster=with_cluster),
        name="losses",
        label="What will be lost" + list_view.if_default_order(listing, ", soonest first"),
        links=address.group_links(result.rows),
        sorting=list_view.sorting(listing, SORTS, queries.ORDERS),
        all_rows=lambda: columns(all_rows(), now, with_cluster=with_cluster),
    )
    list_view.pagination(listing, result)


def columns(rows: list[Row], now: datetime, *, with_cluster: bool) -> list[TableColumn]:
    """The columns; those that are empty throughout are left out."""
    names = _names(rows, now)
    result = [
        tables.statuses("Status", [lag_columns.labels(r["status"]) for r in rows]),
        lag_columns.loss_in(
            "In",
            rows,
            [r["seconds_to_loss"] for r in rows],
            "Time until the first loss, from the moment of the data on. ≤ marks an upper bound: it may come sooner.",
        ),
        tables.moment("At", [at(r) for r in rows], now).with_help("The same by the clock: at the earliest."),
        tables.moment("At the latest", [_at_latest(r) for r in rows], now).with_help(
            "Whole segments are deleted, which delays a deletion by age by up to segment.ms of records."
        ),
        tables.text("Group", [r["group"] for r in rows], width=240),
        tables.text("Topic", [r["topic"] for r in rows], width=240),
        tables.text("What", [_CAUSES.get(r["loss_cause"], r["loss_cause"]) for r in rows]).with_help(
            "records deleted: retention deletes what is unread.\n"
            "commits expire: the broker deletes the commits of a group without members."
        ),
        lag_columns.lag(rows, "Unread records of the partitions that lose something.", title="Unread"),
        lag_columns.oldest_unread(rows, "Age of the oldest of them."),
        tables.duration("Kept for", [_kept_seconds(r) for r in rows], endless="for ever").with_help(
            "How long the topic keeps records."
        ),
        tables.size("Kept up to", [_kept_bytes(r) for r in rows]).with_help("The largest size of a partition."),
        lag_columns.written(rows),
        lag_columns.read(rows),
        tables.between(
            "Lost already",
            [r["lost_at_least"] or None for r in rows],
            [r["lost_at_most"] for r in rows],
            formatter=humanise.count,
            of="records",
        ).with_help("Records deleted before they were read, within a day or missing now."),
        tables.count("Partitions", [r["partitions"] for r in rows]).with_help("Partitions that lose something."),
        _soonest(rows, names),
    ]
    if with_cluster:
        result.append(tables.text("Cluster", [r["cluster"] for r in rows]))
    return tables.without_empty(result, "At the latest", "Kept up to", "Lost already")


def _names(rows: list[Row], now: datetime) -> dict[str, PartitionNames]:
    """What systems call the partitions of these rows' topics, by cluster."""
    topics: dict[str, list[str]] = {}
    for row in rows:
        topics.setdefault(row["cluster"], []).append(row["topic"])
    return {c: partition_names.of(c, listing, now.replace(second=0, microsecond=0)) for c, listing in topics.items()}


def at(row: Row) -> datetime:
    """When the first loss comes."""
    moment: datetime = row["as_of"] + timedelta(seconds=row["seconds_to_loss"])
    return moment


def _at_latest(row: Row) -> datetime | None:
    seconds = row["seconds_to_loss_at_latest"]
    if seconds is None:
        return None
    moment: datetime = row["as_of"] + timedelta(seconds=seconds)
    return moment


def _soonest(rows: list[Row], names: Mapping[str, PartitionNames]) -> TableColumn:
    """Numbers of partitions, or names where a system has its own."""
    if not any(names.values()):
        result = tables.number("Soonest", [r["partition"] for r in rows])
    else:
        result = tables.text(
            "Soonest", [names[r["cluster"]].get((r["topic"], r["partition"]), r["partition"]) for r in rows]
        )
    return result.with_help("The partition that loses something first.")


def _kept_seconds(row: Row) -> float | None:
    """A topic's retention by time; infinite without one, None where it is not known."""
    if row["retention_ms"] is None:
        return None
    return math.inf if row["retention_ms"] < 0 else row["retention_ms"] / 1000


def _kept_bytes(row: Row) -> float | None:
    """A topic's retention by size; None without one."""
    return None if (row["retention_bytes"] or -1) < 0 else float(row["retention_bytes"])
