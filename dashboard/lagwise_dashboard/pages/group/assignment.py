"""How even a group's assignment is, and what Kafka's assignors would give the same members."""

from typing import Any

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import escaping, tables
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets import grid

#: Fewer members have nothing to be compared.
_MIN_MEMBERS = 2


def show(row: Row | None) -> None:
    """Draw the current assignment and those that the assignors would produce; nothing for a single member."""
    if row is None or row["members"] < _MIN_MEMBERS:
        return
    st.subheader("Assignment", anchor=False)
    st.caption(
        f"The current assignment ({escaping.markdown(row['assignor']) or 'assignor unknown'}), compared with what "
        "Kafka's assignors would produce for the same members. Assignors count partitions and ignore traffic."
    )
    present: dict[str, Any] = {**row, "assignor": "current", "partitions_moved": None}
    shown = [present, *sorted(row["alternatives"], key=lambda a: a["assignor"])]
    columns = [
        tables.text("Assignor", [r["assignor"] for r in shown]),
        tables.share("Busiest member", [r["busiest_share"] for r in shown]).with_help(
            "The busiest member's share of the records written."
        ),
        tables.ratio("Skew by traffic", [r["skew_by_rate"] for r in shown]).with_help(
            "The busiest member over the mean of all; 1.00 is even."
        ),
        tables.ratio("Skew by partitions", [r["skew_by_count"] for r in shown]).with_help(
            "The fullest member over the mean of all; 1.00 is even."
        ),
        tables.count("Idle members", [r["idle_members"] for r in shown]).with_help("Members that own no partition."),
        tables.count("Partitions moved", [r["partitions_moved"] for r in shown]).with_help(
            "Partitions that would change owner."
        ),
    ]
    grid.show(
        columns,
        name="assignment",
        label="The group's assignment compared with those of Kafka's assignors",
        about=(row["cluster"], row["group"]),
    )
    st.caption(_bound(row))


def _bound(row: Row) -> str:
    if row["bound_share"] is None:
        return "The traffic of some partitions is unknown, so the share of each member is unknown."
    hottest = f"{escaping.markdown(row['hottest_topic'])}-{row['hottest_partition']}"
    return (
        f"The hottest partition is {hottest} with {_share(row['hottest_share'])} of the traffic. No assignment to "
        f"these {row['members']:,} members brings the busiest one below {_share(row['bound_share'])}; more than "
        f"{humanise.plural(row['useful_members'], 'member')} would not help."
    )


def _share(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.1f} %"
