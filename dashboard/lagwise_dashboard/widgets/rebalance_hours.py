"""Rebalances of a group by the hour, columns that all tables of rebalances share, and an event in words."""

from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.links import parameters
from lagwise_dashboard import escaping, tables, visibility
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import grid, list_view
from lagwise_dashboard.widgets.time_range import TimeRange

#: Pixels.
SENTENCE_WIDTH = 360
DOWNTIME_HELP = "How much of the hours listed partitions were not read; ≤ marks an upper bound."


def show(cluster: str, group: str, span: TimeRange, now: datetime) -> None:
    """Draw the hours of a span in which a group was rebalanced, with the likely causes; nothing where there are
    none."""
    listing, arguments = parameters.HOUR_LIST, (cluster, group, span.since, span.until)
    hours = ask(queries.rebalances, *arguments, list_view.query(listing))
    if not hours:
        return
    st.subheader("Rebalances by hour", anchor=False)
    inexact = not all(r["exact"] for r in hours)
    st.caption(
        (f"{hours.counted('hour')}, newest first. " if hours.pages > 1 else "")
        + "Hours are counted in full, and a rebalance that was seen under way counts once, so the list of events may "
        "differ. The likely cause follows from who joined and left, how long they had "
        "been silent, and their timeouts."
        + (" Some rebalances were inferred from samples; others between samples may be missing." if inexact else "")
    )

    def columns(rows: list[Row]) -> list[TableColumn]:
        made = [
            tables.moment("Hour from", [r["hour"] for r in rows], now),
            tables.count("Rebalances", [r["rebalances"] for r in rows]),
            tables.text("Storm", ["▲ storm" if r["is_storm"] else None for r in rows]),
            downtime(rows),
            partitions_moved(rows),
            tables.count(
                "Read again", [r["reread_records_at_most"] for r in rows], of="records_at_most", formatter=_at_most
            ).with_help(
                "Upper bound of the records that were read but not committed, so that the next owner read them again."
            ),
            tables.text("Why", [r["sentence"] for r in rows], width=SENTENCE_WIDTH, wraps=True),
            tables.text("Remedy", [r["remedy"] for r in rows], width=SENTENCE_WIDTH, wraps=True),
        ]
        return tables.without_empty(made, "Storm", "Read again")

    grid.show(
        columns(hours.rows),
        name="rebalances-by-hour",
        label="Rebalances of the group by hour, with their likely cause",
        about=(cluster, group),
        visible_rows=6,
        sorts=hours.pages == 1,
        all_rows=lambda: columns(queries.rebalances(visibility.lake(), *arguments, hours.query.all_rows).rows),
    )
    list_view.pagination(listing, hours)


def downtime(rows: list[Row]) -> TableColumn:
    """How long rebalances took, or at most."""
    taken = [_taken(r) for r in rows]
    return tables.duration(
        "Downtime", [seconds for seconds, _ in taken], at_most=[is_bound for _, is_bound in taken]
    ).with_help(DOWNTIME_HELP)


def total_downtime(rows: list[Row]) -> str:
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


def partitions_moved(rows: list[Row]) -> TableColumn:
    """Partitions that changed owner."""
    return tables.count("Partitions moved", [r["partitions_moved"] for r in rows]).with_help(
        "Partitions that changed owner."
    )


def _at_most(records: float) -> str:
    return f"≤ {humanise.count(records)}"


def details(row: Row) -> str:
    """What an event changed, in one line of plain text."""
    parts: list[str] = []
    if row["topic"] is not None:
        place = escaping.visible(row["topic"])
        parts.append(place if row["partition"] is None else f"{place}-{row['partition']}")
    if row["before"] is not None or row["after"] is not None:
        parts.append(
            f"{escaping.visible(row['before']) or humanise.DASH} → {escaping.visible(row['after']) or humanise.DASH}"
        )
    if row["cause"]:
        parts.append(escaping.visible(row["cause"]).replace("_", " "))
    for verb, who in (("joined", row["joined"]), ("left", row["left"])):
        if who:
            parts.append(f"{verb}: {', '.join(escaping.visible(w) for w in who[:5])}{' …' if len(who) > 5 else ''}")
    if row["partitions_moved"] is not None:
        parts.append(f"{humanise.plural(row['partitions_moved'], 'partition')} moved")
    if row["duration_seconds"] is not None:
        parts.append(f"took {humanise.duration(row['duration_seconds'])}")
    return "; ".join(parts)
