"""The members of a group, what each of them owns, and how it does."""

from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import tables
from lagwise_dashboard.components import grid, lag_columns
from lagwise_dashboard.queries.base import Row

_MOST_RANGES = 12
_OWNS_NOTHING: Row = dict.fromkeys(
    ("status", "lag", "lag_seconds", "lag_seconds_is_lower_bound", "produce_rate_per_second", "consume_rate_per_second")
)


def show(
    rows: list[Row],
    standings: dict[str, Row],
    now: datetime,
    *,
    about: tuple[str, str],
    known: bool,
    rebalancing: bool,
) -> None:
    """Draw the members, if it is ``known`` who they are; ``standings`` says how each does, by member id. ``about`` are
    the names of cluster and group.

    While the group is ``rebalancing``, owning nothing means nothing.
    """
    st.subheader("Members", anchor=False)
    if not rows:
        st.caption(
            "The group has no members: nobody reads." if known else "None is known: the group could not be described."
        )
        return
    idle = sum(not r["assigned_partitions"] for r in rows)
    idle_note = f" {humanise.plural(idle, 'member')} {'owns' if idle == 1 else 'own'} nothing" if idle else ""
    if idle and rebalancing:
        idle_note += ": the group is rebalancing, and partitions are still being given out."
    elif idle:
        idle_note += ": a partition has one reader, so more members than partitions cannot help."
    st.caption(
        f"{len(rows):,} of {humanise.plural(rows[0]['of'], 'member')}, as of "
        f"{humanise.clock(rows[0]['sampled_at'], now)}." + idle_note
    )
    does = [standings.get(r["member_id"], _OWNS_NOTHING) for r in rows]
    lags = [d["lag"] if r["lag"] is None else r["lag"] for r, d in zip(rows, does, strict=True)]
    columns = [
        tables.statuses("Status", [lag_columns.labels(d["status"]) for d in does]),
        tables.text("Client", [r["client_id"] for r in rows]),
        tables.text("Host", [(r["host"] or "").removeprefix("/") for r in rows]),
        tables.count("Owns", [r["assigned_partitions"] for r in rows], of="partitions").described(
            "How many partitions it owns."
        ),
        tables.text("Partitions", [owned(r) for r in rows]),
        lag_columns.oldest_unread(does, "Of the partitions it owns."),
        # Members that read everything each have a lag of their own.
        tables.count("Lag", lags, of="records").described("Unread records of the partitions it owns."),
        lag_columns.written(does, "Written to the partitions it owns. " + lag_columns.WRITTEN_HELP),
        lag_columns.read(does),
        tables.text("Static id", [r["static_instance_id"] for r in rows]),
        tables.text("Member id", [r["member_id"] for r in rows]),
    ]
    grid.show(
        columns,
        name="members",
        label="Members of the group and what they own",
        about=about,
        rows_seen=10,
    )


def owned(row: Row) -> str:
    """``orders 0–3, 7; audit 1``: the partitions of each topic, neighbours joined."""
    return "; ".join(f"{a['topic']} {ranges(a['partitions'])}" for a in row["assignment"] or [] if a["partitions"])


def ranges(numbers: list[int]) -> str:
    """``0–3, 7``."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    shown = [str(a) if a == b else f"{a}–{b}" if b > a + 1 else f"{a}, {b}" for a, b in found[:_MOST_RANGES]]
    return ", ".join(shown) + (" …" if len(found) > _MOST_RANGES else "")
