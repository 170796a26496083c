"""Is Lagwise itself well? Age of the data, errors, durations, size of the lake, and what to do when
something is off."""

from datetime import datetime, timedelta

import pyarrow as pa
import streamlit as st

from lagwise import health as heartbeats
from lagwise.domain import humanise
from lagwise.tables.maintenance import COMPACT_FROM_FILES
from lagwise_dashboard import literal, plot_theme, settings
from lagwise_dashboard.cache import ask
from lagwise_dashboard.components import advice, empty, freshness, page, tables
from lagwise_dashboard.components.freshness import Freshness
from lagwise_dashboard.queries import health as queries
from lagwise_dashboard.queries.base import Row

_SPAN = timedelta(hours=1)
#: A round leaves a file or two in a table, and goes on to do so while they are merged.
_FILES_A_ROUND = 4
#: Spans end on a whole step, so that browsers that look at the same moment share one answer.
_STEP_SECONDS = 15


def body() -> None:
    now = settings.now()
    fresh = freshness.read(now)
    freshness.strip(fresh)
    if fresh.nothing_collected:
        empty.nothing_collected(fresh)
        _parts(now)
        return
    until = datetime.fromtimestamp(-(-now.timestamp() // _STEP_SECONDS) * _STEP_SECONDS, now.tzinfo)
    since = until - _SPAN
    newest = ask(queries.newest, now.replace(hour=0, minute=0, second=0, microsecond=0))
    runs = ask(queries.runs, since, until)
    errors = ask(queries.errors, since, until)
    _verdict(advice.troubles(fresh, runs, errors, newest.tick_seconds))
    _clusters(fresh, newest.samples, runs, now)
    _errors(errors, now)
    left, right = st.columns(2)
    with left:
        _chart("How long a sample takes", ask(queries.durations, since, until), "cluster", since, until)
    with right:
        _chart("How long a round of the analysis takes", ask(queries.ticks, since, until), None, since, until)
    left, right = st.columns(2)
    with left:
        _lake()
    with right:
        _parts(now)


def _verdict(troubles: list[str]) -> None:
    for trouble in troubles:
        st.warning(trouble, icon=":material/build:")
    if not troubles:
        st.success(
            "Lagwise itself is well: the data is fresh, and the last hour had no errors.",
            icon=":material/check_circle:",
        )


def _clusters(fresh: Freshness, samples: tuple[Row, ...], runs: list[Row], now: datetime) -> None:
    st.subheader("Collection", anchor=False)
    newest = {row["cluster"]: row for row in samples}
    hour = {row["cluster"]: row for row in runs}
    nothing: Row = {}
    rows = [(s, newest.get(s.name, nothing), hour.get(s.name, nothing)) for s in fresh.collections]
    st.dataframe(
        tables.table(
            {
                "State": ["✕ stale" if s.stale else "✓ fresh" for s, _, _ in rows],
                "Cluster": [literal.shown(s.name) for s, _, _ in rows],
                "System": [literal.shown(n.get("system")) or None for _, n, _ in rows],
                "Newest sample": ["never" if s.at is None else f"{humanise.since(s.at, now)} ago" for s, _, _ in rows],
                "Every": [humanise.duration(s.interval_seconds) for s, _, _ in rows],
                "Took": [humanise.duration(n.get("wall_seconds")) for _, n, _ in rows],
                "Median, 1 h": [humanise.duration(h.get("median_seconds")) for _, _, h in rows],
                "Longest, 1 h": [humanise.duration(h.get("longest_seconds")) for _, _, h in rows],
                "CPU": [humanise.duration(n.get("cpu_seconds")) for _, n, _ in rows],
                "Groups": [n.get("groups") for _, n, _ in rows],
                "Group-partitions": [n.get("group_partitions") for _, n, _ in rows],
                "Partitions": [n.get("partitions") for _, n, _ in rows],
                "Samples, 1 h": [h.get("runs") for _, _, h in rows],
                "With errors": [h.get("runs_with_errors") for _, _, h in rows],
            }
        ),
        key="health_clusters",
        hide_index=True,
        height=tables.height(min(len(rows), 10)),
        row_height=tables.ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        alt="Collection by cluster: age, duration and counts",
        column_config={
            "Every": tables.right_column(),
            "Took": tables.right_column(help="Duration of the newest sample."),
            "Median, 1 h": tables.right_column(),
            "Longest, 1 h": tables.right_column(),
            "CPU": tables.right_column(help="Processor time of the newest sample."),
        },
    )


def _errors(errors: list[Row], now: datetime) -> None:
    if not errors:
        return
    st.subheader("Errors of the last hour", anchor=False)
    st.dataframe(
        tables.table(
            {
                "Cluster": [literal.shown(e["cluster"]) for e in errors],
                "Kind": [literal.shown(e["kind"]) for e in errors],
                "Times": [e["count"] for e in errors],
                "Samples": [e["runs"] for e in errors],
                "Last": [f"{humanise.since(e['last_at'], now)} ago" for e in errors],
                "Example": [literal.shown(e["example"]) or None for e in errors],
            }
        ),
        key="health_errors",
        hide_index=True,
        height=tables.height(min(len(errors), 10)),
        row_height=tables.ROW_HEIGHT,
        alt="Collection errors of the last hour by kind",
        column_config={"Example": st.column_config.TextColumn(width=560)},
    )
    for kind in dict.fromkeys(e["kind"] for e in errors):
        if text := advice.for_error(kind):
            st.markdown(f"**{literal.markdown(kind)}**: {text}")


def _chart(title: str, found: pa.Table, by: str | None, since: datetime, until: datetime) -> None:
    st.subheader(title, anchor=False)
    if found.num_rows == 0:
        st.caption("None in the last hour.")
        return
    made = plot_theme.figure(height=210, zoom="hour")
    rows = found.to_pylist()
    names = sorted({r[by] for r in rows}) if by else [None]
    for i, name in enumerate(names):
        own = [r for r in rows if by is None or r[by] == name]
        made.add_trace(
            plot_theme.line(
                [r["at"] for r in own],
                [r["wall_seconds"] for r in own],
                name=literal.plotly(name) if name else "round",
                line={"color": plot_theme.SERIES[i % len(plot_theme.SERIES)], "width": 1.8},
                customdata=[humanise.duration(r["wall_seconds"]) for r in own],
                hovertemplate="%{customdata}" + ("" if name else "<extra></extra>"),
                showlegend=len(names) > 1,
            )
        )
    made.update_xaxes(range=[since, until])
    made.update_yaxes(ticksuffix=" s")
    st.plotly_chart(made, key=f"health_{by or 'ticks'}", config=plot_theme.CONFIG, alt=f"{title}, last hour")


def _lake() -> None:
    sizes = ask(queries.sizes)
    total = sum(s["bytes"] or 0 for s in sizes)
    st.subheader("Lake", anchor=False)
    st.caption(
        f"{humanise.size(total)} in {humanise.plural(sum(s['files'] or 0 for s in sizes), 'file')}, newest "
        f"versions only. {_compaction(sizes)}"
    )
    st.dataframe(
        tables.table(
            {
                "Table": [s["table"] for s in sizes],
                "Size": [humanise.size(s["bytes"]) for s in sizes],
                "Rows": [s["rows"] for s in sizes],
                "Files": [s["files"] for s in sizes],
                "In a day": [_in_a_day(s) for s in sizes],
                "One row per": [s["rows_mean"] for s in sizes],
            }
        ),
        key="health_lake",
        hide_index=True,
        height=tables.height(len(sizes)),
        row_height=tables.ROW_HEIGHT,
        placeholder="not made yet",
        alt="Tables of the lake with their sizes",
        column_config={
            "Table": st.column_config.TextColumn(width=205),
            "Size": tables.right_column(),
            "Rows": st.column_config.NumberColumn(format="localized"),
            "In a day": tables.right_column(
                help=f"The most files of any day. From {COMPACT_FROM_FILES} on they are merged into larger ones."
            ),
            "One row per": st.column_config.TextColumn(width="medium"),
        },
    )


def _in_a_day(size: Row) -> str | None:
    """A dash where each round replaces the table; None where there is no table yet."""
    if size["files"] is None:
        return None
    return humanise.DASH if size["loose_files"] is None else f"{size['loose_files']:,}"


def _compaction(sizes: list[Row]) -> str:
    """Whether small files are merged as fast as they come."""
    config = settings.config()
    step = min([config.analysis.interval_seconds, *(c.interval_seconds for c in config.clusters)])
    between = config.lake.maintenance_interval_seconds / step * max(1, len(config.clusters))
    fullest = max(sizes, key=lambda s: s["loose_files"] or 0)
    every = humanise.duration(config.lake.maintenance_interval_seconds)
    if (fullest["loose_files"] or 0) <= COMPACT_FROM_FILES + _FILES_A_ROUND * between:
        return f"Compaction keeps up: it runs every {every}."
    return (
        f"**Compaction is behind**: `{fullest['table']}` has {fullest['loose_files']:,} files of one day. The analysis "
        f"runs it every {every}; its log says why it does not."
    )


def _parts(now: datetime) -> None:
    beats = heartbeats.read(settings.config().state)
    st.subheader("Processes", anchor=False)
    if not beats:
        st.caption(
            "No process has left a heartbeat in the state folder of this machine. That is normal where they "
            "run elsewhere."
        )
        return
    st.caption("What each process on this machine said last, and when.")
    st.dataframe(
        tables.table(
            {
                "Part": [literal.shown(b.part) for b in beats.values()],
                "Said": [f"{humanise.since(b.at, now)} ago" for b in beats.values()],
                "Process": [str(b.pid) for b in beats.values()],
                "What": [literal.shown(b.line) for b in beats.values()],
            }
        ),
        key="health_parts",
        hide_index=True,
        height=tables.height(len(beats)),
        row_height=tables.ROW_HEIGHT,
        alt="Processes of Lagwise on this machine and what they said last",
    )


page.show("Is Lagwise itself well?", body)
