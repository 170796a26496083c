"""What happened to a group: changes of its status, rebalances and other events, as tables and as marks in
the charts."""

from datetime import datetime
from typing import Any

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import literal, plot_theme, words
from lagwise_dashboard.components import tables
from lagwise_dashboard.components.group_charts import Mark
from lagwise_dashboard.queries.base import Row

_KINDS = {
    "rebalance": "Rebalance",
    "state_changed": "State changed",
    "commit_rewound": "Commit went back",
    "commit_skipped": "Commit skipped records",
    "offsets_gone": "Commits gone",
    "group_gone": "Group gone",
    "topic_recreated": "Topic re-created",
    "topic_gone": "Topic gone",
    "partitions_added": "Partitions added",
    "config_changed": "Setting changed",
}
_REBALANCE = "rebalance"
#: Pixels: who joined and left may be a long list, which can be scrolled to.
_DETAILS_WIDTH = 900


def marks(changes: list[Row], events: list[Row]) -> list[Mark]:
    """Changes of status and events as marks."""
    return [
        Mark(r["at"], _status_change(r), dash="solid", colour=words.look(r["after"]).colour, minor=False)
        for r in changes
    ] + [Mark(r["at"], f"{kind(r)}: {details(r)}" if details(r) else kind(r)) for r in events]


def alert_mark(at: datetime, text: str) -> Mark:
    """An alert as a mark."""
    return Mark(at, text, dash="dash", colour=plot_theme.SERIES[4], minor=False)


def show_changes(rows: list[Row], now: datetime, span: str) -> None:
    """The history of the status. ``span`` is a phrase: ``in the last 1 h``."""
    st.subheader("Status history", anchor=False)
    if not rows:
        st.caption(f"The status has not changed {span}.")
        return
    ends = [None, *(r["at"] for r in rows)]
    st.dataframe(
        tables.table(
            {
                "At": [humanise.clock(r["at"], now) for r in rows],
                "For": [
                    humanise.duration(round(((end or now) - r["at"]).total_seconds())) + ("" if end else " so far")
                    for r, end in zip(rows, ends, strict=False)
                ],
                "Was": [tables.badges([r["before"]]) if r["before"] else [] for r in rows],
                "Became": [_became(r) for r in rows],
            }
        ),
        key="group_changes",
        hide_index=True,
        height=tables.height(min(len(rows), 8)),
        row_height=tables.ROW_HEIGHT,
        placeholder="first seen",
        alt="Changes of the group's status, the newest first",
        column_config={
            "Was": tables.status_column("Was"),
            "Became": tables.status_column("Became"),
            "For": tables.right_column(),
        },
    )


def show_events(rows: list[Row], now: datetime, span: str) -> None:
    """Rebalances and other events. ``span`` is a phrase: ``in the last 1 h``."""
    st.subheader("Events", anchor=False)
    if not rows:
        st.caption(f"No rebalance and no other event {span}.")
        return
    rebalances = sum(r["kind"] == _REBALANCE for r in rows)
    if rebalances:
        st.caption(f"{humanise.plural(rebalances, 'rebalance')} {span}.")
    st.dataframe(
        tables.table(
            {
                "At": [humanise.clock(r["at"], now) for r in rows],
                "What": [kind(r) for r in rows],
                "Details": [details(r) for r in rows],
            }
        ),
        key="group_events",
        hide_index=True,
        height=tables.height(min(len(rows), 8)),
        row_height=tables.ROW_HEIGHT,
        placeholder="",
        alt="Events of the group and its topics, the newest first",
        column_config={"Details": st.column_config.TextColumn(width=_DETAILS_WIDTH)},
    )


def show_rebalances(rows: list[Row], now: datetime) -> None:
    """Each hour's rebalances with their likely cause; nothing where there were none."""
    if not rows:
        return
    st.subheader("Rebalances by hour", anchor=False)
    inexact = not all(r["exact"] for r in rows)
    st.caption(
        "The likely cause is concluded from who came and went, how long they had been silent, and their time-outs."
        + (" Some were told from samples, between which others may have been missed." if inexact else "")
    )
    st.dataframe(
        tables.table(
            {
                "Hour from": [humanise.clock(r["hour"], now) for r in rows],
                "Rebalances": [f"{r['rebalances']:,}{' (storm)' if r['is_storm'] else ''}" for r in rows],
                "Without reading": [lasted(r["downtime_seconds"], r["downtime_seconds_at_most"]) for r in rows],
                "Moved": [r["partitions_moved"] for r in rows],
                "Read again": [_at_most(r["reread_records_at_most"]) for r in rows],
                "Why": [literal.shown(r["sentence"]) for r in rows],
                "What would help": [literal.shown(r["remedy"]) or None for r in rows],
            }
        ),
        key="group_rebalances",
        hide_index=True,
        height=tables.height(min(len(rows), 6), tables.WRAPPING_ROW_HEIGHT),
        row_height=tables.WRAPPING_ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        alt="Rebalances of the group by hour, with their likely cause",
        column_config={
            "Rebalances": tables.right_column(),
            "Without reading": tables.right_column(help="Time that they took; ≤ where only an upper bound is known."),
            "Moved": st.column_config.NumberColumn(help="Partitions that changed hands."),
            "Read again": tables.right_column(
                help="Records that had been read and not committed, so that the next owner read them again: at most."
            ),
            "Why": st.column_config.TextColumn(width=380),
            "What would help": st.column_config.TextColumn(width=380),
        },
    )


def lasted(seconds: float | None, at_most: float | None) -> str | None:
    """How long rebalances took, or at most; None where nobody knows."""
    if at_most is None or seconds == at_most:
        return None if seconds is None else humanise.duration(seconds)
    return f"≤ {humanise.duration(at_most)}"


def _at_most(records: int | None) -> str | None:
    return None if records is None else f"≤ {humanise.count(records)}"


def kind(row: Row) -> str:
    """The kind of an event in words."""
    return _KINDS.get(row["kind"], literal.shown(row["kind"]).replace("_", " "))


def details(row: Row) -> str:
    """What an event changed, in one line of plain text."""
    parts: list[str] = []
    if row["topic"] is not None:
        place = literal.shown(row["topic"])
        parts.append(place if row["partition"] is None else f"{place}-{row['partition']}")
    if row["before"] is not None or row["after"] is not None:
        parts.append(
            f"{literal.shown(row['before']) or humanise.DASH} → {literal.shown(row['after']) or humanise.DASH}"
        )
    if row["cause"]:
        parts.append(literal.shown(row["cause"]).replace("_", " "))
    for verb, who in (("joined", row["joined"]), ("left", row["left"])):
        if who:
            parts.append(f"{verb}: {', '.join(literal.shown(w) for w in who[:5])}{' …' if len(who) > 5 else ''}")
    if row["partitions_moved"] is not None:
        parts.append(f"{humanise.plural(row['partitions_moved'], 'partition')} moved")
    if row["duration_seconds"] is not None:
        parts.append(f"took {humanise.duration(row['duration_seconds'])}")
    return "; ".join(parts)


def _became(row: Row) -> list[str]:
    reason = words.reason_in_words(row["reason"])
    shown: list[Any] = tables.badges([row["after"]])
    return [*shown, reason] if reason else shown


def _status_change(row: Row) -> str:
    before = words.look(row["before"]).word if row["before"] else "first seen"
    return f"Status: {before} → {words.label(row['after'], row['reason'])}"
