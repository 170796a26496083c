"""One consumer group: what is wrong, since when, why, which member is behind, and what to do. Addressed by cluster,
group and time range."""

from datetime import datetime, timedelta

import pyarrow as pa
import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.vocabulary import REBALANCING_STATES, Status, UnknownReason
from lagwise.links import pages, parameters
from lagwise.links.pages import Values
from lagwise_alerts.operate import Alert, AlertState, OperatorState
from lagwise_alerts.operate.queries import operator_state
from lagwise_dashboard import address, alert_reader, context, escaping, time_zone
from lagwise_dashboard.cache import ask, ask_of_the_past, computed_once
from lagwise_dashboard.pages.group import (
    assignment,
    current_round,
    earlier_days,
    event_log,
    first_steps,
    group_charts,
    level_shifts,
    loss_clock,
    member_table,
    partition_charts,
    partition_table,
    tabs,
    verdict,
)
from lagwise_dashboard.pages.group.current_round import GroupSnapshot
from lagwise_dashboard.pages.group.event_log import AlertHistory, EventLog
from lagwise_dashboard.pages.group.level_shifts import Shift
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries import overview, time_per_message
from lagwise_dashboard.queries.base import Row, bucket_seconds
from lagwise_dashboard.widgets import (
    alert_actions,
    alert_words,
    charts,
    chooser,
    empty_page,
    menu,
    page,
    partition_names,
    time_range,
)
from lagwise_dashboard.widgets.error_boundary import boundary
from lagwise_dashboard.widgets.time_range import TimeRange

#: A history that begins so much later than its span is said to.
_LATE = timedelta(minutes=5)
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
    tab = tabs.shown()
    snapshot = current_round.read(cluster, _group, tab) if cluster else None
    if snapshot is None:
        _unknown(_group)
    else:
        _show(snapshot, tab, now)


def _unknown(group: str) -> None:
    where = f" in the cluster **{escaping.markdown(_cluster)}**" if _cluster else ""
    st.warning(
        f"**There is no group “{escaping.markdown(group)}”{where}.** It may have been deleted, the settings may "
        "exclude it, or the address has a typo.",
        icon=":material/search_off:",
    )
    chooser.group(pages.GROUP, "Known groups:")


def _show(snapshot: GroupSnapshot, tab: str, now: datetime) -> None:
    row = snapshot.group
    cluster, group = row["cluster"], row["group"]
    verdict.show(verdict.of(row, now, earlier_days.sentence(row, now)))
    alerts = _alerts_and_actions(row, now)
    verdict.numbers(snapshot, ask(queries.description, cluster, group, row["as_of"]))
    names = partition_names.of(cluster, row["topics"], row["as_of"])
    is_losing = row["status"] in (Status.LOSING_DATA, Status.AT_RISK)
    if is_losing:
        loss_clock.show(row, snapshot.losing, now, names)
    controls = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
    with controls:
        tabs.choose(tab, {tabs.PARTITIONS: row["partitions"], tabs.MEMBERS: row["members"]})
    if snapshot.partitions is not None:
        with controls:
            span = time_range.choose(now)
        partition_charts.show(row, span)
        partition_table.show(row, snapshot.partitions, names)
    elif snapshot.members is not None:
        rebalancing = row["state"] in REBALANCING_STATES or row["reason"] == UnknownReason.REBALANCING
        member_table.show(snapshot.members, row, now, rebalancing=rebalancing)
        assignment.show(ask(queries.assignment, cluster, group))
    elif tab == tabs.COMMANDS:
        first_steps.show(row)
    else:
        with controls:
            span = time_range.choose(now)
        _history(row, span, _alert_history(alerts, span), now)
        if not is_losing:
            loss_clock.show(row, snapshot.losing, now, names)


def _history(row: Row, span: TimeRange, alerts: AlertHistory, now: datetime) -> None:
    """The charts, and what happened meanwhile."""
    cluster, group = row["cluster"], row["group"]
    history = ask(queries.history, cluster, group, span.since, span.until)
    work = ask(time_per_message.history, cluster, group, span.since, span.until)
    shifts = computed_once(level_shifts.shifts_of, work, history)
    log = event_log.find(row, span, alerts, shifts)
    _charts(row, span, history, work, shifts, log, now)
    # A minute is complete once a round of the next one has judged the group: until then nothing of it changes.
    if growth := ask_of_the_past(queries.growth, cluster, group, row["as_of"].replace(second=0, microsecond=0)):
        st.caption(f"Its lag over {growth}", help=_GROWTH_HELP)
    event_log.show(row, log, span, now)


def _alert_history(alerts: list[Alert], span: TimeRange) -> AlertHistory:
    """With the escalations of a span; without them where the database cannot be read."""
    with boundary():
        return AlertHistory(alerts, alert_reader.escalations(alerts, span.since))
    return AlertHistory(alerts)


def _alerts_and_actions(row: Row, now: datetime) -> list[Alert]:
    """Draw what can be done about the group: its firing alerts with their forms, and links. Returns its alerts, open
    ones first; without the database the rest of the page still stands."""
    cluster, group = row["cluster"], row["group"]
    result: list[Alert] = []
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        with boundary():
            mutes = alert_reader.mute_state()
            alerts = alert_reader.open_alerts()
            own = [a for a in alerts if (a.subject.cluster, a.subject.group) == (cluster, group)]
            firing = [(a, operator_state(a, mutes, now)) for a in own if a.state is AlertState.FIRING]
            for alert, state in firing:
                shared = next((a for a in alerts if a.incident_id == alert.shared_incident), None)
                address.page_link(pages.ALERTS, _alert_words(alert, state, shared, now, named=len(firing) > 1))
            alert_actions.bar_of_group(
                cluster,
                group,
                [alert for alert, state in firing if state.acknowledged is None],
                [alert for alert, state in firing if state.acknowledged is not None],
            )
            result = [*own, *alert_reader.history_of(cluster, group)]
        _links(row)
    return result


def _alert_words(alert: Alert, state: OperatorState, shared: Alert | None, now: datetime, *, named: bool) -> str:
    """That an alert fires, in Markdown; ``shared`` is the shared incident that it is part of. What it is about is
    ``named`` where there are several."""
    words = f":red-badge[{alert_words.severity_label(alert.severity)}] "
    words += f"{escaping.markdown(alert.status)} " if named else ""
    words += f"firing for {humanise.since(alert.fired_at, now)}"
    if state.acknowledged is not None:
        words += f", acknowledged by {escaping.markdown(state.acknowledged.by)}"
    if state.muted is not None:
        words += f", silenced until {time_zone.clock_markdown(state.muted.until, now)}"
    return words if shared is None else f"{words}, part of a {escaping.markdown(alert_words.about(shared))}"


def _charts(
    row: Row, span: TimeRange, history: pa.Table, work: pa.Table, shifts: list[Shift], log: EventLog, now: datetime
) -> None:
    cluster, group, since, until = row["cluster"], row["group"], span.since, span.until
    if history.num_rows == 0:
        st.info(f"There is no history of this group {span.words}.", icon=":material/timeline:")
        return
    first = min(history["at"].to_pylist())
    begins = time_range.axis_start(span, first)
    configured = next((c for c in context.config().clusters if c.name == cluster), None)
    marks = [mark for mark in log.marks() if mark.at >= begins]
    made = charts.made_once(
        group_charts.chart,
        history,
        marks,
        begins,
        until,
        bucket_seconds=bucket_seconds(since, until),
        objective_seconds=configured.lag_objective_of(group) if configured else None,
        work=work,
        before=earlier_days.before(cluster, group, span),
        zoom=f"{cluster}/{group}/{span.name}",
    )
    time_range.chart(
        made,
        name="group_history",
        alt="Status, age of the oldest unread record, and records written and read per second over time"
        + (", and the time per message" if work.num_rows else ""),
    )
    # A point stands for its bucket, so that the first one of a whole span is later than its beginning, too.
    if first - since > max(_LATE, timedelta(seconds=2 * bucket_seconds(since, until))):
        st.caption(
            f"The charts begin at {time_zone.clock_markdown(first, now)}: before that, no round of the analysis in "
            "this span judged the group, even if there are samples of it."
        )
    hidden = len(marks) - group_charts.MAX_MARKS + log.unmarked
    st.caption(
        "Triangles mark events: hover over one for details. Vertical lines are status changes (solid), alerts "
        "(dashed), rebalances and other events (dotted; omitted when there are many). Drag to zoom; the address then "
        "shows others the same range."
        + (f" {humanise.plural(hidden, 'older event')} of this span are listed below, not drawn." if hidden > 0 else "")
    )


def _links(row: Row) -> None:
    """Links to the runbook, the capacity, the rebalances and the topics of the group."""
    its: Values = {parameters.CLUSTER: row["cluster"], parameters.GROUP: row["group"]}
    if written := first_steps.runbook_url(context.config().dashboard.runbook_url, row):
        st.link_button("Runbook", written, icon=":material/menu_book:")
    for page_, label in ((pages.CAPACITY, "Capacity"), (pages.REBALANCES, "Members and rebalances")):
        address.page_link(page_, label, icon=menu.ICONS[page_], values={**its, parameters.TOPIC: None})
    worst_first = sorted(row["topics"], key=lambda t: t != row["worst_topic"])
    for topic in worst_first[:_MAX_TOPICS]:
        address.page_link(
            pages.TOPIC,
            f"Topic {escaping.markdown(topic)}",
            icon=menu.ICONS[pages.TOPIC],
            values={**its, parameters.TOPIC: topic},
        )


_cluster, _group = address.get(parameters.CLUSTER), address.get(parameters.GROUP)
with st.container(horizontal=True, key="way_back"):
    address.page_link(pages.OVERVIEW, "All groups", icon=":material/arrow_back:", values={parameters.CLUSTER: None})
page.show("Group" if _group is None else escaping.heading(_group), body, tab=escaping.visible(_group) or None)
