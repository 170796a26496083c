"""Is Lagwise itself healthy? Age of the data, errors, durations, size of the lake, and what to do when
something is off."""

import contextlib
import socket
from datetime import datetime, timedelta

import pyarrow as pa
import streamlit as st

from lagwise.domain import humanise
from lagwise.operational.heartbeats import SILENT_SECONDS, SharedBeat
from lagwise.operational.lease import Process
from lagwise.platform import health as heartbeats
from lagwise.platform.errors import DatabaseError
from lagwise.platform.logs import clean
from lagwise.tables.maintenance import COMPACT_FROM_FILES
from lagwise.tables.quarantine import DAMAGED_FILES, QUARANTINE, QuarantinedFiles
from lagwise_dashboard import alert_reader, context, escaping, plot_theme, tables, visibility
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.health import clusters, troubles
from lagwise_dashboard.queries import health as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets import charts, collection_errors, empty_page, grid, page
from lagwise_dashboard.widgets.error_boundary import LAKE_ADVICE, boundary
from lagwise_dashboard.widgets.freshness import DataSource, Freshness

_SPAN = timedelta(hours=1)
#: A round leaves a file or two in a table, and goes on to do so while they are merged.
_FILES_A_ROUND = 4
#: Spans end on a whole step, so that browsers that look at the same moment share one answer.
_STEP_SECONDS = 15


def body() -> None:
    """Sections fail one by one: this is the page to open when something cannot be read."""
    now = context.now()
    with boundary():
        if not _collected(now):
            _processes(now)
            return
    if not visibility.sees_everything():
        return  # the rest counts what is of all groups
    left, right = st.columns([3, 2])
    with left, boundary():
        _lake()
    with right, boundary():
        _damaged(ask(queries.damaged), now)
        _processes(now)


def _collected(now: datetime) -> bool:
    """Show the state of the collection and the analysis; returns whether anything was collected."""
    fresh = empty_page.fresh_data(now, judged=False)
    if fresh is None:
        return False
    until = context.rounded_up(now, _STEP_SECONDS)
    since = until - _SPAN
    newest = ask(queries.newest, now.replace(hour=0, minute=0, second=0, microsecond=0))
    runs = ask(queries.runs, since, until)
    errors = ask(queries.errors, since, until)
    result = troubles.find(fresh, runs, errors, newest.tick_seconds, ask(queries.damaged))
    for trouble in result:
        st.warning(trouble, icon=":material/build:")
    if not result and not fresh.starting:
        st.success(
            "Lagwise is healthy: the data is fresh, and the last hour had no errors.", icon=":material/check_circle:"
        )
    clusters.findings(newest.samples)
    _clusters(fresh, newest.samples, runs, now)
    clusters.brokers(newest.samples, now)
    _errors(errors, now)
    left, right = st.columns(2)
    with left:
        _chart("How long a sample takes", ask(queries.durations, since, until), "cluster", since, until)
    with right:
        _chart("How long a round of the analysis takes", ask(queries.ticks, since, until), None, since, until)
    return True


def _clusters(fresh: Freshness, samples: tuple[Row, ...], runs: list[Row], now: datetime) -> None:
    st.subheader("Collection", anchor=False)
    newest = {row["cluster"]: row for row in samples}
    hour = {row["cluster"]: row for row in runs}
    nothing: Row = {}
    rows = [(s, newest.get(s.name, nothing), hour.get(s.name, nothing)) for s in fresh.collections]
    columns = [
        tables.text("State", [_state(s) for s, _, _ in rows]),
        tables.text("Cluster", [s.name for s, _, _ in rows]),
        tables.text("System", [n.get("system") for _, n, _ in rows]),
        tables.ago("Newest sample", [s.at for s, _, _ in rows], now, never="never"),
        tables.duration("Every", [s.interval_seconds for s, _, _ in rows]),
        tables.duration("Took", [n.get("wall_seconds") for _, n, _ in rows]).with_help(
            "Duration of the newest sample."
        ),
        tables.duration("Median, 1 h", [h.get("median_seconds") for _, _, h in rows]),
        tables.duration("Longest, 1 h", [h.get("longest_seconds") for _, _, h in rows]),
        tables.duration("CPU", [n.get("cpu_seconds") for _, n, _ in rows]).with_help(
            "Processor time of the newest sample."
        ),
        tables.count("Groups", [n.get("groups") for _, n, _ in rows]),
        tables.count("Group-partitions", [n.get("group_partitions") for _, n, _ in rows]),
        tables.count("Partitions", [n.get("partitions") for _, n, _ in rows]),
        tables.text("Offset replicas", [clusters.offset_replicas(n) for _, n, _ in rows]).with_help(
            "Replicas of Kafka's topic `__consumer_offsets`, which holds the committed offsets, and its "
            "min.insync.replicas."
        ),
        tables.count("Samples, 1 h", [h.get("runs") for _, _, h in rows]),
        tables.count("Missing", [h.get("missing") for _, _, h in rows], of="samples").with_help(
            "Samples that were due between the first and the last of this hour and are not there: skipped because the "
            "one before took too long, or the collector did not run."
        ),
        tables.count("With errors", [h.get("runs_with_errors") for _, _, h in rows], of="samples"),
    ]
    columns = tables.without_empty(columns, "Offset replicas")
    grid.show(columns, name="collection", label="Collection by cluster: age, duration and counts", visible_rows=10)


def _state(source: DataSource) -> str:
    return "✕ stale" if source.stale else "… starting" if source.starting else "✓ fresh"


def _errors(errors: list[Row], now: datetime) -> None:
    if not errors:
        return
    st.subheader("Errors of the last hour", anchor=False)
    columns = [
        tables.text("Cluster", [e["cluster"] for e in errors]),
        tables.text("Kind", [e["kind"] for e in errors]),
        tables.count("Times", [e["count"] for e in errors]),
        tables.count("Samples", [e["runs"] for e in errors]),
        tables.ago("Last", [e["last_at"] for e in errors], now),
        tables.text("Example", [e["example"] for e in errors], width=560, wraps=True),
    ]
    grid.show(columns, name="errors", label="Collection errors of the last hour by kind", visible_rows=10)
    for kind in dict.fromkeys(e["kind"] for e in errors):
        if text := collection_errors.advice(kind):
            st.markdown(f"**{escaping.markdown(kind)}**: {text}")


def _chart(title: str, result: pa.Table, by: str | None, since: datetime, until: datetime) -> None:
    st.subheader(title, anchor=False)
    if result.num_rows == 0:
        st.caption("None in the last hour.")
        return
    made = plot_theme.figure(height=210, zoom="hour")
    rows = result.to_pylist()
    names = sorted({r[by] for r in rows}) if by else [None]
    for i, name in enumerate(names):
        own = [r for r in rows if by is None or r[by] == name]
        made.add_trace(
            plot_theme.line(
                [r["at"] for r in own],
                [r["wall_seconds"] for r in own],
                name=escaping.plotly(name) if name else "round",
                line={"color": plot_theme.SERIES[i % len(plot_theme.SERIES)], "width": 1.8},
                customdata=[humanise.duration(r["wall_seconds"]) for r in own],
                hovertemplate="%{customdata}" + ("" if name else "<extra></extra>"),
                showlegend=len(names) > 1,
            )
        )
    made.update_xaxes(range=[since, until])
    made.update_yaxes(ticksuffix=" s")
    charts.draw(made, key=f"health_{by or 'ticks'}", alt=f"{title}, last hour")


def _lake() -> None:
    sizes = ask(queries.sizes)
    total = sum(s["bytes"] or 0 for s in sizes)
    st.subheader("Lake", anchor=False)
    st.caption(
        f"{humanise.size(total)} in {humanise.plural(sum(s['files'] or 0 for s in sizes), 'file')}, newest "
        f"versions only. {_compaction(sizes)}"
    )
    for unreadable in sizes:
        if unreadable["trouble"]:
            st.error(f"{escaping.markdown(clean(unreadable['trouble']))}\n\n{LAKE_ADVICE}", icon=":material/error:")
    columns = [
        tables.text("Table", [s["table"] for s in sizes]),
        tables.size("Size", [s["bytes"] for s in sizes]),
        tables.count("Rows", [s["rows"] for s in sizes]),
        tables.count("Files", [s["files"] for s in sizes]),
        tables.count("In a day", [s["loose_files"] for s in sizes], of="files").with_help(
            f"The most files of any day. From {COMPACT_FROM_FILES} on they are merged into larger ones. Tables that "
            "each round replaces have no number."
        ),
        tables.text("One row per", [s["rows_mean"].replace("`", "") for s in sizes], width=180, wraps=True),
    ]
    grid.show(columns, name="lake", label="Tables of the lake with their sizes")


def _damaged(quarantined: list[QuarantinedFiles], now: datetime) -> None:
    """Damaged files by table, if there are any."""
    if not quarantined:
        return
    st.subheader("Damaged files", anchor=False)
    st.caption(
        f"Files that were missing or unreadable. They were removed from their tables, and what is left of them is in "
        f"`{QUARANTINE}/` in the lake. The table `{DAMAGED_FILES.name}` lists each file and what was wrong with it."
    )
    columns = [
        tables.text("Table", [one.table for one in quarantined]),
        tables.count("Files", [one.files for one in quarantined]),
        tables.count("Rows", [one.rows for one in quarantined]).with_help("Rows that these files held, if known."),
        tables.ago("Last", [one.newest_at for one in quarantined], now),
    ]
    grid.show(columns, name="damaged", label="Quarantined files, by table")


def _compaction(sizes: list[Row]) -> str:
    """Whether small files are merged as fast as they come."""
    config = context.config()
    step = min([config.analysis.interval_seconds, *(c.interval_seconds for c in config.clusters)])
    between = config.lake.maintenance_interval_seconds / step * max(1, len(config.clusters))
    fullest = max(sizes, key=lambda s: s["loose_files"] or 0)
    every = humanise.duration(config.lake.maintenance_interval_seconds)
    if (fullest["loose_files"] or 0) <= COMPACT_FROM_FILES + _FILES_A_ROUND * between:
        return f"Compaction keeps up: it runs every {every}."
    return (
        f"**Compaction is behind**: `{fullest['table']}` has {fullest['loose_files']:,} files of one day. The analysis "
        f"runs it every {every}; its log says why it falls behind."
    )


def _processes(now: datetime) -> None:
    if not visibility.sees_everything():
        return
    st.subheader("Processes", anchor=False)
    beats = _beats(now)
    if not beats:
        st.caption("No process has reported to the operational database, or to the state folder of this machine.")
        return
    st.caption(
        "The last report of each process, on whatever machine. One that has reported nothing for "
        f"{humanise.duration(SILENT_SECONDS)} was killed, or hangs."
    )
    columns = [
        tables.text("State", ["✕ silent" if b.is_silent(now) else "✓ reports" for b in beats]),
        tables.text("Process", [b.process for b in beats]),
        tables.text("Host", [b.where.host for b in beats]),
        tables.ago("Reported", [b.at for b in beats], now),
        tables.number("PID", [b.where.pid for b in beats]),
        tables.text("Report", [b.line for b in beats], width=200, wraps=True),
    ]
    grid.show(columns, name="processes", label="Processes of Lagwise and their last reports")


def _beats(now: datetime) -> list[SharedBeat]:
    """Those of the database; of this machine also those that could not be written there."""
    shared: list[SharedBeat] = []
    with contextlib.suppress(DatabaseError):  # which every page reports
        shared = alert_reader.heartbeats(now)
    host = socket.gethostname()
    known = {(beat.process, beat.where.host, beat.where.pid) for beat in shared}
    local = [
        SharedBeat(beat.process, beat.at, beat.line, Process(host, beat.pid, None, None))
        for beat in heartbeats.read(context.config().state).values()
        if (beat.process, host, beat.pid) not in known
    ]
    return sorted([*shared, *local], key=lambda beat: (beat.process, beat.where.host, beat.at))


page.show("Is Lagwise itself healthy?", body)
