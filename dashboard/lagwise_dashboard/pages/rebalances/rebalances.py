"""Rebalances: which groups have them, how long reading stopped, and for one group who joined, left and owned what."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.links import pages, parameters
from lagwise_dashboard import address, context, escaping, tables, visibility
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.rebalances import member_lanes, timeline
from lagwise_dashboard.pages.rebalances.member_lanes import Lane
from lagwise_dashboard.pages.rebalances.timeline import Rates
from lagwise_dashboard.queries import group as group_queries
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries import rebalances as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import FIRST_PAGE
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import (
    chooser,
    empty_page,
    filters,
    list_view,
    menu,
    page,
    rebalance_hours,
    tiles,
    time_range,
)
from lagwise_dashboard.widgets.time_range import TimeRange


def body() -> None:
    now = context.now()
    if empty_page.fresh_data(now, judged=False) is None:
        return
    if _group is None:
        _all(time_range.choose(now), now)
        return
    cluster = chooser.cluster_of(overview.clusters_of, _group)
    _one(cluster, _group, _span(cluster, _group, now), now)


def _span(cluster: str, group: str, now: datetime) -> TimeRange:
    """The span that the address asks for, or else one that has the group's last rebalance."""
    if time_range.is_chosen():
        return time_range.choose(now)
    longest = max(time_range.RANGES.values())
    # From whole hours on: the answer is the same until another round of the analysis has been written.
    since = (now - longest).replace(minute=0, second=0, microsecond=0)
    fitting = time_range.shortest_since(ask(queries.last_at, cluster, group, since), now)
    span = time_range.choose(now, fitting)
    if fitting != time_range.DEFAULT_RANGE:
        usual = time_range.in_words(time_range.DEFAULT_RANGE)
        st.caption(f"No rebalances in the last {usual}: this is the shortest range that has any.")
    return span


def _all(span: TimeRange, now: datetime) -> None:
    """Every group with rebalances, storms first."""
    clusters = ask(overview.clusters)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        filters.search("Group")
        filters.cluster(clusters)
    text, cluster = address.get(parameters.SEARCH), address.get(parameters.CLUSTER)
    listing, arguments = parameters.REBALANCED_LIST, (cluster or None, span.since, span.until)
    result = ask(queries.groups, *arguments, replace(list_view.query(listing), text=text))
    if not result:
        where = " in groups that match the filters" if text or cluster else ""
        st.success(f"No rebalances{where} {span.words}.", icon=":material/check_circle:")
        return
    order = list_view.if_default_order(listing, ", storms first")
    st.caption(
        f"{result.counted('group')} with rebalances {span.words} (whole hours){order}; {result[0]['stormy']:,} with "
        "storms. Open a group to see its members' timeline."
    )
    list_view.table(
        listing,
        result,
        lambda rows: _group_columns(rows, now),
        lambda query: queries.groups(visibility.lake(), *arguments, query),
        name="rebalances",
        label=f"Groups with rebalances{order}",
        orders=queries.ORDERS,
        links=address.group_links(result, pages.REBALANCES),
        visible_rows=8,
    )


def _group_columns(rows: list[Row], now: datetime) -> list[TableColumn]:
    return [
        tables.text("Storm", ["▲ storm" if r["storm_hours"] else None for r in rows])
        .with_help("Many rebalances within 15 minutes.")
        .sorts_by("storms"),
        tables.text("Group", [r["group"] for r in rows], width=240).sorts_by("group"),
        tables.count("Rebalances", [r["rebalances"] for r in rows])
        .with_help("In whole hours. The sentence counts those of the newest hour with a known cause.")
        .sorts_by("rebalances"),
        rebalance_hours.downtime(rows).sorts_by("downtime"),
        rebalance_hours.partitions_moved(rows).sorts_by("moved"),
        tables.count("Joined", [r["joined"] for r in rows], of="members").sorts_by("joined"),
        tables.count("Left", [r["left"] for r in rows], of="members").sorts_by("left"),
        tables.ago("Last", [r["last_at"] for r in rows], now).sorts_by("last"),
        tables.text("Why", [r["sentence"] for r in rows], width=rebalance_hours.SENTENCE_WIDTH, wraps=True),
        tables.text("Remedy", [r["remedy"] for r in rows], width=rebalance_hours.SENTENCE_WIDTH, wraps=True),
        tables.text("Cluster", [r["cluster"] for r in rows]).sorts_by("cluster"),
    ]


def _one(cluster: str, group: str, span: TimeRange, now: datetime) -> None:
    """One group: its numbers, the timeline of its members, and the likely causes."""
    its = (cluster, group, span.since, span.until)
    result = ask(queries.events, *its, list_view.query(parameters.REBALANCE_LIST))
    hours = ask(group_queries.rebalances, *its, FIRST_PAGE.all_rows)
    periods = ask(queries.periods, cluster, group, span.since, span.until)
    if not (result or hours or periods):
        st.info(
            f"**No members or rebalances of “{escaping.markdown(group)}” were recorded {span.words}.** Samples are "
            f"kept for {humanise.plural(context.config().lake.retention.raw_days, 'day')}.",
            icon=":material/timeline:",
        )
        chooser.group(pages.REBALANCES, "Choose another group.")
        return
    tiles.show(_metrics(hours.rows, periods), name="rebalances")
    rebalances: list[Row] | Rates = result.rows
    if result.total > timeline.MAX_COUNTED:
        bins = ask(queries.rates, *its)
        rebalances = Rates(bins, queries.bin_width(span.since, span.until))
    _timeline(periods, rebalances, span, subject=f"{cluster}/{group}")
    rebalance_hours.show(cluster, group, span, now)
    if not result:
        st.caption(f"No rebalances {span.words}.")
        return
    st.subheader("Each rebalance", anchor=False)
    if result.pages > 1:
        st.caption(f"{result.counted('rebalance')}, newest first.")
    list_view.table(
        parameters.REBALANCE_LIST,
        result,
        lambda rows: _columns(rows, now),
        lambda query: queries.events(visibility.lake(), *its, query),
        name="rebalances-each",
        label="Rebalances of the group, newest first",
        about=(cluster, group),
        visible_rows=12,
    )


def _columns(events: list[Row], now: datetime) -> list[TableColumn]:
    return [
        tables.moment("At", [r["at"] for r in events], now),
        tables.duration("Took", [r["duration_seconds"] for r in events]),
        rebalance_hours.partitions_moved(events),
        tables.count("Members after", [r["members"] for r in events]),
        tables.text("What", [rebalance_hours.details(r) for r in events], width=420, wraps=True),
        tables.text("Source", [r["source"] for r in events]).with_help(
            "offsets_topic: every rebalance is recorded. samples: rebalances between two samples may be missing."
        ),
    ]


def _metrics(hours: list[Row], periods: list[Row]) -> list[tiles.Tile]:
    """Sums over the hours of the table below, so that the two agree."""
    moved = [r["partitions_moved"] for r in hours if r["partitions_moved"] is not None]
    return [
        ("Rebalances", humanise.count(sum(r["rebalances"] for r in hours)), "In the hours listed below."),
        ("Downtime", rebalance_hours.total_downtime(hours), rebalance_hours.DOWNTIME_HELP),
        ("Partitions moved", humanise.count(sum(moved)) if moved else humanise.DASH, "Where known."),
        ("Storm hours", f"{sum(r['is_storm'] for r in hours):,}", "Hours with many rebalances within 15 minutes."),
        ("Members seen", f"{len({r['member_id'] for r in periods}):,}", "A member that restarts counts again."),
    ]


def _timeline(periods: list[Row], rebalances: list[Row] | Rates, span: TimeRange, *, subject: str) -> None:
    lanes = member_lanes.lanes(periods)
    if not lanes and isinstance(rebalances, list):
        st.caption(f"No member was seen {span.words}.")
        return
    stay = member_lanes.that_stay(lanes) if isinstance(rebalances, Rates) else lanes
    shown = member_lanes.most_changed(stay)
    if len(shown) < len(lanes) and st.toggle(
        f"Draw all {humanise.plural(len(lanes), 'member')}", **address.bound(parameters.ALL_LANES)
    ):
        shown = stay = lanes
    times = [r["at"] for r in (rebalances.bins if isinstance(rebalances, Rates) else rebalances)]
    begins = time_range.axis_start(span, min([*times, *(p["from_at"] for p in periods)], default=None))
    time_range.chart(
        timeline.chart(shown, rebalances, begins, span.until, zoom=f"{subject}/{span.name}"),
        name="rebalances_timeline",
        alt="How many rebalances there were when, and a lane for each member: when it was in the group and how many "
        "partitions it owned",
    )
    st.caption(" ".join(_explained(rebalances, shown, stay, lanes, periods)))


def _explained(
    rebalances: list[Row] | Rates, shown: list[Lane], stay: list[Lane], lanes: list[Lane], periods: list[Row]
) -> Iterator[str]:
    """How to read the chart, and what is not drawn, in sentences. Of all ``lanes``, those that ``stay`` could be
    ``shown``."""
    if isinstance(rebalances, Rates):
        width = humanise.duration(rebalances.width.total_seconds())
        yield f"Bars stand for {width} each. Members are counted each time they join or leave."
    else:
        yield "The bars at the top count rebalances."
    if shown:
        yield (
            "Each bar of a lane is a member in the group, with the number of partitions it owned; grey means none. A "
            "new bar starts at each change; a bar marked 51× stands for that many changes in quick succession."
        )
    yield "Drag to zoom."
    if len(stay) < len(lanes):
        yield (
            f"{len(lanes) - len(stay):,} of {humanise.plural(len(lanes), 'member')} have no lane: they were in the "
            "group for less than half of the time, stays shorter than a tenth of it left out."
        )
    if len(shown) < len(stay):
        yield f"The {len(shown):,} of {len(stay):,} members that changed most are drawn."
    if len(periods) == queries.MAX_PERIODS:
        yield f"Only the newest {len(periods):,} assignments are drawn: choose a shorter span to see earlier ones."


_group = address.get(parameters.GROUP)
if _group is not None:
    with st.container(horizontal=True, key="way_back"):
        address.page_link(
            pages.REBALANCES,
            "All rebalances",
            icon=":material/arrow_back:",
            values={parameters.CLUSTER: None, parameters.GROUP: None},
        )
        address.page_link(pages.GROUP, "The group", icon=menu.ICONS[pages.GROUP])
page.show(
    "Who is being rebalanced?" if _group is None else f"Rebalances of {escaping.heading(_group)}",
    body,
    tab=None if _group is None else f"Rebalances of {escaping.visible(_group)}",
)
