"""The table of groups: one row a group, made to be read at a glance and opened."""

from collections.abc import Callable
from datetime import datetime

from lagwise.domain.vocabulary import REBALANCING_STATES
from lagwise_dashboard import address, tables
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import grid, lag_columns
from lagwise_dashboard.widgets.grid import Sorting

#: Columns whose heading sorts the list, and the order that a click on it asks for (:data:`queries.overview.ORDERS`).
SORTS: dict[str, str] = {
    "Status": "worst",
    "Group": "name",
    "Oldest unread": "age",
    "Lag": "lag",
    "Caught up in": "catch_up",
    "In/s": "in",
    "Out/s": "out",
    "Since": "since",
    "Members": "members",
    "Cluster": "cluster",
}
_WHY_WIDTH = 360


def show(
    rows: list[Row],
    now: datetime,
    *,
    name: str,
    with_cluster: bool,
    sorting: Sorting,
    all_rows: Callable[[], list[Row]],
) -> None:
    """Draw the table. ``rows`` may be a page of the ``all_rows``."""
    grid.show(
        columns(rows, now, with_cluster=with_cluster),
        name=name,
        label="Consumer groups",
        links=address.group_links(rows),
        sorting=sorting,
        all_rows=lambda: columns(all_rows(), now, with_cluster=with_cluster),
    )


def columns(rows: list[Row], now: datetime, *, with_cluster: bool) -> list[TableColumn]:
    """The columns; those of which nothing is known, or that would all say the same, are left out."""
    result = [
        tables.statuses("Status", [lag_columns.labels(r["status"]) for r in rows]),
        tables.text("Group", [r["group"] for r in rows], width=190),
        tables.text("Why", [r["sentence"] for r in rows], width=_WHY_WIDTH, wraps=True).with_help(
            "The verdict in one sentence."
        ),
        lag_columns.oldest_unread(rows, "Age of the oldest record the group has not read."),
        tables.trend("Last hour", [r["trend"] for r in rows]).with_help(
            "Age of the oldest unread record over the last hour of data (or since the first, where that is less than "
            "an hour ago), each group on its own scale."
        ),
        lag_columns.lag(rows, "Unread records; unknown partitions and ghosts left out."),
        tables.duration("Caught up in", [lag_columns.seconds_to_catch_up(r) for r in rows], endless="never").with_help(
            "Time until the lag is gone at today's rates; never, where it does not shrink."
        ),
        tables.duration("Since", [tables.elapsed_seconds(r["since"], now) for r in rows]).with_help(
            "How long the status has been shown."
        ),
        lag_columns.written(rows),
        lag_columns.read(rows),
        tables.text("Worst partition", [worst_partition(r) for r in rows]).with_help(
            "By status, then by age of its oldest unread record."
        ),
        tables.count("Members", [r["members"] for r in rows]),
        tables.count("Idle", [r["idle_members"] or None for r in rows], of="members").with_help(
            "Members that own no partition."
        ),
        tables.text("State", [state(r) for r in rows]).with_help("As the group's coordinator names it."),
    ]
    if with_cluster:
        result.append(tables.text("Cluster", [r["cluster"] for r in rows]))
    return tables.without_empty(result, "Idle")


def worst_partition(row: Row) -> str | None:
    """``topic-partition``, as Kafka's own tools write it."""
    topic, partition = row["worst_topic"], row["worst_partition"]
    return None if topic is None else f"{topic}-{partition}"


def state(row: Row) -> str | None:
    """``Stable``, ``rebalancing``; None where nobody knows."""
    return "rebalancing" if row["state"] in REBALANCING_STATES else row["state"]
