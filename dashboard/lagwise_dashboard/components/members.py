"""The members of a group, what each of them owns, and how it does."""

from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import literal
from lagwise_dashboard.components import tables
from lagwise_dashboard.queries.base import Row

_MOST_RANGES = 12
_OWNS_NOTHING: Row = dict.fromkeys(
    ("status", "lag", "lag_seconds", "lag_seconds_is_lower_bound", "produce_rate_per_second", "consume_rate_per_second")
)


def show(rows: list[Row], standings: dict[str, Row], now: datetime, *, known: bool, rebalancing: bool) -> None:
    """Draw the members, if it is ``known`` who they are; ``standings`` says how each does, by member id.

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
    st.dataframe(
        tables.table(
            {
                "Status": [tables.badges([d["status"]]) if d["status"] else [] for d in does],
                "Client": [literal.shown(r["client_id"]) or None for r in rows],
                "Host": [literal.shown(r["host"]).removeprefix("/") or None for r in rows],
                "Owns": [r["assigned_partitions"] for r in rows],
                "Partitions": [owned(r) for r in rows],
                "Oldest unread": [
                    humanise.duration(d["lag_seconds"], lower_bound=bool(d["lag_seconds_is_lower_bound"])) for d in does
                ],
                # Members that read everything each have a lag of their own.
                "Lag": [d["lag"] if r["lag"] is None else r["lag"] for r, d in zip(rows, does, strict=True)],
                "In/s": [humanise.rate(d["produce_rate_per_second"]) for d in does],
                "Out/s": [humanise.rate(d["consume_rate_per_second"]) for d in does],
                "Static id": [literal.shown(r["static_instance_id"]) or None for r in rows],
                "Member id": [literal.shown(r["member_id"]) for r in rows],
            }
        ),
        key="group_members",
        hide_index=True,
        height=tables.height(min(len(rows), 10)),
        row_height=tables.ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        alt="Members of the group and what they own",
        column_config={
            "Status": tables.status_column(width=128),
            "Oldest unread": tables.right_column(help="Of the partitions it owns."),
            "In/s": tables.right_column(help="Written to the partitions it owns. " + tables.WRITTEN_HELP),
            "Out/s": tables.right_column(help=tables.READ_HELP),
            "Owns": st.column_config.NumberColumn(help="How many partitions it owns."),
            "Partitions": st.column_config.TextColumn(width=320),
            "Lag": st.column_config.NumberColumn(format="localized", help="Unread records of the partitions it owns."),
        },
    )


def owned(row: Row) -> str:
    """``orders 0–3, 7; audit 1``: the partitions of each topic, neighbours joined."""
    return "; ".join(
        f"{literal.shown(a['topic'])} {ranges(a['partitions'])}" for a in row["assignment"] or [] if a["partitions"]
    )


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
