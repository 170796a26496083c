"""Rebalances: which groups are shaken, for how long nobody read, and of one group who came, went and owned what."""

from datetime import datetime
from typing import Any

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import literal, plot_theme, settings
from lagwise_dashboard.cache import ask
from lagwise_dashboard.components import (
    chooser,
    empty,
    freshness,
    happenings,
    member_lanes,
    page,
    tables,
    tiles,
    time_range,
)
from lagwise_dashboard.components.time_range import Span
from lagwise_dashboard.queries import group as group_queries
from lagwise_dashboard.queries import rebalances as queries
from lagwise_dashboard.queries.base import Row

_VIEW = "views/rebalances.py"


def body() -> None:
    now = settings.now()
    fresh = freshness.read(now)
    freshness.strip(fresh)
    if fresh.nothing_collected:
        empty.nothing_collected(fresh)
        return
    span = time_range.choose(now)
    if _group:
        _one(span, now)
    else:
        _all(span, now)


def _all(span: Span, now: datetime) -> None:
    """Every group that was rebalanced, storms first."""
    text = st.text_input(
        "Search", key="rebalances_q", bind="query-params", type="search", live=True, placeholder="Group",
        label_visibility="collapsed", width=320,
    )  # fmt: skip
    rows = ask(queries.groups, text or "", span.since, span.until)
    if not rows:
        st.success(f"No rebalance {span.words}.", icon=":material/check_circle:")
        return
    of, storms = rows[0]["of"], sum(bool(r["storm_hours"]) for r in rows)
    st.caption(
        f"{len(rows):,} of {humanise.plural(of, 'group')} that were rebalanced in hours that reach into this span, "
        f"those with storms ({storms:,}) first. Click a row for its members' timeline."
    )
    clicked = _table(rows, now)
    if clicked:
        st.switch_page(_VIEW, query_params={"cluster": clicked["cluster"], "group": clicked["group"]})
    chooser.among(_VIEW, [(r["cluster"], r["group"]) for r in rows], "rebalances_open")


def _table(rows: list[Row], now: datetime) -> Row | None:
    event: Any = st.dataframe(
        tables.table(
            {
                "Storm": ["▲ storm" if r["storm_hours"] else "no" for r in rows],
                "Group": [literal.shown(r["group"]) for r in rows],
                "Rebalances": [r["rebalances"] for r in rows],
                "Without reading": [
                    happenings.lasted(r["downtime_seconds"], r["downtime_seconds_at_most"]) for r in rows
                ],
                "Moved": [r["partitions_moved"] for r in rows],
                "Joined": [r["joined"] for r in rows],
                "Left": [r["left"] for r in rows],
                "Last": [f"{humanise.since(r['last_at'], now)} ago" for r in rows],
                "Why": [literal.shown(r["sentence"]) or None for r in rows],
                "What would help": [literal.shown(r["remedy"]) or None for r in rows],
                "Cluster": [literal.shown(r["cluster"]) for r in rows],
            }
        ),
        key="rebalances_groups",
        hide_index=True,
        height=tables.height(min(len(rows), 12), tables.WRAPPING_ROW_HEIGHT),
        row_height=tables.WRAPPING_ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        on_select="rerun",
        selection_mode="single-cell",
        alt="Groups that were rebalanced, storms first; select a cell for its timeline",
        column_config={
            "Storm": st.column_config.TextColumn(width=80, help="Many within a quarter of an hour."),
            "Group": st.column_config.TextColumn(width=190),
            "Without reading": tables.right_column(help="Time that they took; ≤ where only an upper bound is known."),
            "Moved": st.column_config.NumberColumn(help="Partitions that changed hands."),
            "Why": st.column_config.TextColumn(width=360),
            "What would help": st.column_config.TextColumn(width=360),
        },
    )  # fmt: skip
    cells = event.selection.cells
    return rows[cells[0][0]] if cells and cells[0][0] < len(rows) else None


def _one(span: Span, now: datetime) -> None:
    """One group: its numbers, the timeline of its members, and what is concluded from them."""
    events = ask(queries.events, _cluster, _group, span.since, span.until)
    hours = ask(group_queries.rebalances, _cluster, _group, span.since, span.until)
    stretches = ask(queries.stretches, _cluster, _group, span.since, span.until)
    if not (events or hours or stretches):
        st.info(
            f"**Neither members nor rebalances of “{literal.markdown(_group)}” are known {span.words}.** Samples are "
            f"kept for {humanise.plural(settings.config().lake.retention.raw_days, 'day')}.",
            icon=":material/timeline:",
        )
        chooser.group(_VIEW, "Choose another group.")
        return
    tiles.show(_metrics(events, hours, stretches, span))
    _timeline(stretches, events, span)
    happenings.show_rebalances(hours, now)
    if not events:
        st.caption(f"No rebalance {span.words}.")
        return
    st.subheader("Each rebalance", anchor=False)
    st.dataframe(
        tables.table(
            {
                "At": [humanise.clock(r["at"], now) for r in events],
                "Took": [humanise.duration(r["duration_seconds"]) for r in events],
                "Moved": [r["partitions_moved"] for r in events],
                "Members after": [r["members"] for r in events],
                "What": [happenings.details(r) for r in events],
                "Seen in": [literal.shown(r["source"]) or None for r in events],
            }
        ),
        key="rebalances_each",
        hide_index=True,
        height=tables.height(min(len(events), 12)),
        row_height=tables.ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        alt="Rebalances of the group, the newest first",
        column_config={
            "Took": tables.right_column(),
            "Moved": st.column_config.NumberColumn(help="Partitions that changed hands."),
            "What": st.column_config.TextColumn(width=620),
            "Seen in": st.column_config.TextColumn(
                help="offsets_topic: every one, exactly. samples: some between two samples may be missed."
            ),
        },
    )


def _metrics(events: list[Row], hours: list[Row], stretches: list[Row], span: Span) -> list[tiles.Tile]:
    known = [r["duration_seconds"] for r in events if r["duration_seconds"] is not None]
    moved = [r["partitions_moved"] for r in events if r["partitions_moved"] is not None]
    counted = f"{len(events):,}" + ("+" if len(events) == queries.MOST_EVENTS else "")
    return [
        ("Rebalances", counted, f"{span.words.capitalize()}."),
        (
            "Without reading",
            humanise.duration(sum(known)) if known else humanise.DASH,
            "Sum of what they took, as far as that is known.",
        ),
        ("Partitions moved", humanise.count(sum(moved)) if moved else humanise.DASH, "As far as that is known."),
        ("Storm hours", f"{sum(r['is_storm'] for r in hours):,}", "Hours with many within a quarter of an hour."),
        ("Members seen", f"{len({r['member_id'] for r in stretches}):,}", "Every start of a member counts anew."),
    ]  # fmt: skip


def _timeline(stretches: list[Row], events: list[Row], span: Span) -> None:
    st.subheader("Members", anchor=False)
    lanes = member_lanes.lanes(stretches)
    if not lanes:
        st.caption(f"No member was seen {span.words}.")
        return
    shown = lanes[: member_lanes.MOST_LANES]
    hidden = f" {len(shown):,} of {len(lanes):,} lanes are drawn." if len(shown) < len(lanes) else ""
    key = f"rebalances_timeline/{span.name if span.is_zoom else ''}"
    st.plotly_chart(
        member_lanes.chart(shown, events, span.since, span.until, zoom=f"{_cluster}/{_group}/{span.name}"),
        key=key,
        config=plot_theme.CONFIG,
        on_select=time_range.to_selection(key),
        selection_mode="box",
        alt="A lane for each member: when it was in the group and how many partitions it owned",
    )
    st.caption(
        "A bar is a member in the group, with the number of partitions it owned; hatched is none. A new bar begins "
        "where that changed. Triangles are rebalances, as wide below as they took. Times are UTC. Drag to zoom."
        + hidden
    )


_cluster = st.query_params.get("cluster", "")
_group = st.query_params.get("group", "")
if _group:
    with st.container(horizontal=True):
        st.page_link(_VIEW, label="All rebalances", icon=":material/arrow_back:")
        st.page_link(
            "views/group.py",
            label="The group",
            icon=":material/monitoring:",
            query_params={"cluster": _cluster, "group": _group},
        )
page.show(
    f"Rebalances of {literal.markdown(_group)}" if _group else "Who is being rebalanced?",
    body,
    tab=f"Rebalances of {literal.shown(_group)}" if _group else None,
)
