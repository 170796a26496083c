"""One consumer group: what is wrong, since when, why, which member is behind, and what to do. Addressed by cluster,
group and time range."""

from datetime import datetime, timedelta

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.vocabulary import REBALANCING_STATES, UnknownReason
from lagwise.links import pages, parameters
from lagwise_alerts.operate import Alert, AlertState
from lagwise_dashboard import address, alert_reader, context, escaping, plot_theme
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.group import (
    assignment,
    current_round,
    event_log,
    first_steps,
    group_charts,
    heat_map,
    level_shifts,
    loss_clock,
    member_table,
    partition_table,
    verdict,
)
from lagwise_dashboard.pages.group.current_round import GroupSnapshot
from lagwise_dashboard.pages.group.group_charts import ChartMark
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries import overview, time_per_message
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets import (
    alert_words,
    chooser,
    empty_page,
    menu,
    page,
    partition_names,
    time_range,
)
from lagwise_dashboard.widgets.error_boundary import boundary
from lagwise_dashboard.widgets.time_range import TimeRange

_MIN_AXIS = timedelta(minutes=5)
_GROWTH_HELP = (
    "Change of the lag up to the last whole minute, with a 99 % confidence interval. Ghosts and partitions of unknown "
    "lag are left out. If there is less history than a window, its own length is shown."
)
#: Links to more topics than these push the rest of the page away.
_MAX_TOPICS = 3


def body() -> None:
    now = context.now()
    if empty_page.fresh_data(now) is None:
        return
    if _group is None:
        chooser.group(pages.GROUP, "Choose a group.")
        return
    cluster = chooser.cluster_of(overview.clusters_of, _group)
    snapshot = current_round.read(cluster, _group) if cluster else None
    if snapshot is None:
        _unknown(_group)
    else:
        _show(snapshot, now)


def _unknown(group: str) -> None:
    where = f" in the cluster **{escaping.markdown(_cluster)}**" if _cluster else ""
    st.warning(
        f"**There is no group “{escaping.markdown(group)}”{where}.** It may have been deleted, the settings may "
        "exclude it, or the address has a typo.",
        icon=":material/search_off:",
    )
    chooser.group(pages.GROUP, "Known groups:")


def _show(snapshot: GroupSnapshot, now: datetime) -> None:
    row = snapshot.group
    cluster, group = row["cluster"], row["group"]
    verdict.show(snapshot, ask(queries.description, cluster, group, row["as_of"]), now)
    _links(row)
    growth = ask(queries.growth, cluster, group, row["as_of"])
    if growth:
        st.caption(f"Its lag over {growth}", help=_GROWTH_HELP)
    alerts = _alerts(cluster, group)
    names = partition_names.of(cluster, row["topics"], row["as_of"])
    loss_clock.show(row, snapshot.losing, now, names)
    span = time_range.choose(now)
    _charts(row, alerts, span)
    partition_table.show(row, snapshot.partitions, names)
    rebalancing = row["state"] in REBALANCING_STATES or row["reason"] == UnknownReason.REBALANCING
    member_table.show(snapshot.members, row, now, rebalancing=rebalancing)
    assignment.show(ask(queries.assignment, cluster, group))
    event_log.show(row, span, now)
    first_steps.show(row)


def _alerts(cluster: str, group: str) -> list[Alert]:
    """The group's alerts, open ones first. Without the database the rest of the page still stands."""
    with boundary():
        alerts = alert_reader.open_alerts()
        own = [a for a in alerts if (a.subject.cluster, a.subject.group) == (cluster, group)]
        for alert in own:
            if alert.state is AlertState.FIRING:
                badge = f":red-badge[{alert_words.severity_label(alert.severity)}]"
                lasted = humanise.since(alert.fired_at, context.now())
                shared = next((a for a in alerts if a.incident_id == alert.shared_incident), None)
                part = "" if shared is None else f" It is part of a {escaping.markdown(alert_words.about(shared))}."
                address.page_link(pages.ALERTS, f"{badge} An alert has been firing for {lasted}.{part}")
        return [*own, *alert_reader.history_of(cluster, group)]
    return []


def _alert_marks(alerts: list[Alert], span: TimeRange) -> list[ChartMark]:
    return [
        ChartMark(at, alert_words.mark_text(alert, resolved=resolved), "dash", plot_theme.SERIES[4], minor=False)
        for alert in alerts
        for at, resolved in ((alert.fired_at, False), (alert.resolved_at, True))
        if at is not None and span.since <= at <= span.until
    ]


def _charts(row: Row, alerts: list[Alert], span: TimeRange) -> None:
    cluster, group, since, until = row["cluster"], row["group"], span.since, span.until
    changes = ask(queries.changes, cluster, group, since, until)
    events = ask(queries.events, cluster, group, tuple(row["topics"]), since, until)
    marks = [*event_log.marks(changes, events), *_alert_marks(alerts, span)]
    unread = changes.total - len(changes) + events.total - len(events)
    history = ask(queries.history, cluster, group, since, until)
    if history.num_rows == 0:
        st.info(f"There is no history of this group {span.words}.", icon=":material/timeline:")
        return
    work = ask(time_per_message.history, cluster, group, since, until)
    shifts = level_shifts.shifts_of(work, history)
    marks += level_shifts.marks(shifts)
    # Of a group that is new the axis begins with its history: minutes at the end of an empty hour cannot be read.
    begins = since if span.is_zoom else max(since, min(*history["at"].to_pylist(), until - _MIN_AXIS))
    configured = next((c for c in context.config().clusters if c.name == cluster), None)
    cells = heat_map.find(cluster, group, row["partitions"], span)
    marks = sorted((mark for mark in marks if mark.at >= begins), key=lambda m: m.at, reverse=True)
    made = group_charts.chart(
        history,
        marks,
        begins,
        until,
        objective_seconds=configured.lag_objective_of(group) if configured else None,
        work=work,
        cells=cells,
        zoom=f"{cluster}/{group}/{span.name}",
    )
    time_range.chart(
        made,
        span,
        name="group_history",
        alt="Status, age of the oldest unread record, and records written and read per second over time"
        + (", and the time per message" if work.num_rows else "")
        + ("" if cells is None else ", and a heat map of the lag of each partition"),
    )
    if told := level_shifts.sentence(shifts, until):
        st.caption(told)
    hidden = len(marks) - group_charts.MAX_MARKS + unread
    st.caption(
        "Times are UTC. Triangles mark events: hover over one for details. Solid lines are status changes, dashed "
        "lines alerts, dotted lines rebalances and other events (omitted when there are many). Drag to zoom; the "
        "address then shows others the same range."
        + (f" {humanise.plural(hidden, 'older event')} of this span are listed below, not drawn." if hidden > 0 else "")
        + ("" if cells is None else f" {heat_map.caption(cells)}")
    )


def _links(row: Row) -> None:
    """Links to the runbook, the rebalances and the topics of the group."""
    cluster, group = row["cluster"], row["group"]
    with st.container(horizontal=True):
        if written := first_steps.runbook_url(context.config().dashboard.runbook_url, row):
            st.link_button("Runbook", written, icon=":material/menu_book:")
        address.page_link(
            pages.REBALANCES,
            "Members and rebalances over time",
            icon=menu.ICONS[pages.REBALANCES],
            values={parameters.CLUSTER: cluster, parameters.GROUP: group},
        )
        worst_first = sorted(row["topics"], key=lambda t: t != row["worst_topic"])
        for topic in worst_first[:_MAX_TOPICS]:
            address.page_link(
                pages.TOPIC,
                f"Topic {escaping.markdown(topic)}",
                icon=menu.ICONS[pages.TOPIC],
                values={parameters.CLUSTER: cluster, parameters.GROUP: group, parameters.TOPIC: topic},
            )


_cluster, _group = address.get(parameters.CLUSTER), address.get(parameters.GROUP)
address.page_link(pages.OVERVIEW, "All groups", icon=":material/arrow_back:", values={parameters.CLUSTER: None})
page.show("Group" if _group is None else escaping.heading(_group), body, tab=escaping.visible(_group) or None)
