"""What happened to a group: changes of its status, rebalances and other events, as tables and as marks in
the charts."""

from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import literal, plot_theme, tables, words
from lagwise_dashboard.components import grid, lag_columns
from lagwise_dashboard.components.group_charts import Mark
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.group import MOST_EVENTS
from lagwise_dashboard.tables import Column

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
WITHOUT_READING_HELP = "Time that they took; ≤ where only an upper bound is known."
#: Pixels.
_DETAILS_WIDTH, SENTENCE_WIDTH = 300, 360


def marks(changes: list[Row], events: list[Row]) -> list[Mark]:
    """Changes of status and events as marks."""
    return [
        Mark(r["at"], _status_change(r), dash="solid", colour=words.look(r["after"]).colour, minor=False)
        for r in changes
    ] + [Mark(r["at"], f"{kind(r)}: {details(r)}" if details(r) else kind(r)) for r in events]


def alert_mark(at: datetime, text: str) -> Mark:
    """An alert as a mark."""
    return Mark(at, text, dash="dash", colour=plot_theme.SERIES[4], minor=False)


def show_changes(rows: list[Row], as_of: datetime, now: datetime, span: str, about: tuple[str, str]) -> None:
    """The history of the status. The one that it still has is counted up to ``as_of``, the moment of the verdict.
    ``span`` is a phrase: ``in the last 1 h``; ``about`` are cluster and group."""
    st.subheader("Status history", anchor=False)
    if not rows:
        st.caption(f"The status has not changed {span}.")
        return
    ends = [as_of, *(r["at"] for r in rows)]
    columns = [
        tables.moment("At", [r["at"] for r in rows], now),
        tables.duration(
            "For",
            [tables.lasted(r["at"], end) for r, end in zip(rows, ends, strict=False)],
            at_least=[end is as_of for end in ends[: len(rows)]],
        ).described("How long it had the status; ≥ for the one that it still has."),
        tables.statuses("Was", [lag_columns.labels(r["before"]) or ["first seen"] for r in rows]),
        tables.statuses("Became", [_became(r) for r in rows]),
    ]
    grid.show(
        columns,
        name="status-history",
        label="Changes of the group's status, the newest first",
        about=about,
        rows_seen=8,
    )


def show_events(rows: list[Row], now: datetime, span: str, about: tuple[str, str]) -> None:
    """Rebalances and other events. ``span`` is a phrase: ``in the last 1 h``."""
    st.subheader("Events", anchor=False)
    if not rows:
        st.caption(f"No rebalance and no other event {span}.")
        return
    newest = "The newest " if len(rows) == MOST_EVENTS else ""
    st.caption(f"{newest}{humanise.plural(len(rows), 'event')} {span}.")
    columns = [
        tables.moment("At", [r["at"] for r in rows], now),
        tables.text("What", [kind(r) for r in rows]),
        tables.text("Details", [details(r) for r in rows], width=_DETAILS_WIDTH, wraps=True),
    ]
    grid.show(
        columns,
        name="events",
        label="Events of the group and its topics, the newest first",
        about=about,
        rows_seen=8,
    )


def show_rebalances(rows: list[Row], now: datetime, about: tuple[str, str]) -> None:
    """Each hour's rebalances with their likely cause; nothing where there were none."""
    if not rows:
        return
    st.subheader("Rebalances by hour", anchor=False)
    inexact = not all(r["exact"] for r in rows)
    st.caption(
        "The likely cause is concluded from who came and went, how long they had been silent, and their time-outs."
        + (" Some were told from samples, between which others may have been missed." if inexact else "")
    )
    columns = [
        tables.moment("Hour from", [r["hour"] for r in rows], now),
        tables.count("Rebalances", [r["rebalances"] for r in rows]),
        tables.text("Storm", ["▲ storm" if r["is_storm"] else None for r in rows]),
        without_reading(rows),
        partitions_moved(rows),
        tables.count(
            "Read again", [r["reread_records_at_most"] for r in rows], of="records_at_most", say=_at_most
        ).described("Records that had been read and not committed, so that the next owner read them again: at most."),
        tables.text("Why", [r["sentence"] for r in rows], width=SENTENCE_WIDTH, wraps=True),
        tables.text("What would help", [r["remedy"] for r in rows], width=SENTENCE_WIDTH, wraps=True),
    ]
    grid.show(
        tables.without_empty(columns, "Storm", "Read again"),
        name="rebalances-by-hour",
        label="Rebalances of the group by hour, with their likely cause",
        about=about,
        rows_seen=6,
    )


def without_reading(rows: list[Row]) -> Column:
    """How long rebalances took, or at most."""
    taken = [_taken(r) for r in rows]
    return tables.duration(
        "Without reading", [seconds for seconds, _ in taken], at_most=[is_bound for _, is_bound in taken]
    ).described(WITHOUT_READING_HELP)


def without_reading_in_all(rows: list[Row]) -> str:
    """The sum of that column, in words; a dash where none of it is known."""
    known = [(seconds, is_bound) for seconds, is_bound in map(_taken, rows) if seconds is not None]
    if not known:
        return humanise.DASH
    is_bound = any(is_bound for _, is_bound in known)
    return ("≤ " if is_bound else "") + humanise.duration(sum(seconds for seconds, _ in known))


def _taken(row: Row) -> tuple[float | None, bool]:
    """Seconds without reading, and whether that is an upper bound."""
    known, most = row["downtime_seconds"], row["downtime_seconds_at_most"]
    return (known, False) if most is None else (most, most != known)


def partitions_moved(rows: list[Row]) -> Column:
    """Partitions that changed hands."""
    return tables.count("Moved", [r["partitions_moved"] for r in rows], of="partitions").described(
        "Partitions that changed hands."
    )


def _at_most(records: float) -> str:
    return f"≤ {humanise.count(records)}"


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
    shown = lag_columns.labels(row["after"])
    return [*shown, reason] if reason else shown


def _status_change(row: Row) -> str:
    before = words.look(row["before"]).word if row["before"] else "first seen"
    return f"Status: {before} → {words.label(row['after'], row['reason'])}"
