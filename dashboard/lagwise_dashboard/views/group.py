"""One consumer group: what is wrong, since when, why, whose fault, and what to do. Addressed by cluster and group."""

from datetime import datetime, timedelta

import streamlit as st

from lagwise.alerts.model import Phase
from lagwise.alerts.queries import AlertRow
from lagwise.domain import humanise
from lagwise.domain.vocabulary import REBALANCING_STATES, UnknownReason
from lagwise_dashboard import alert_reader, literal, plot_theme, settings, words
from lagwise_dashboard.cache import ask
from lagwise_dashboard.components import (
    alert_tables,
    assignment,
    commands,
    empty,
    freshness,
    group_charts,
    happenings,
    members,
    page,
    partition_table,
    verdict,
)
from lagwise_dashboard.components.boundary import boundary
from lagwise_dashboard.components.group_charts import Mark
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.base import Row

_RANGES = {
    "15 min": timedelta(minutes=15),
    "1 h": timedelta(hours=1),
    "6 h": timedelta(hours=6),
    "24 h": timedelta(hours=24),
    "7 d": timedelta(days=7),
}
_DEFAULT_RANGE = "1 h"
_SHORTEST_AXIS = timedelta(minutes=5)
_GROWTH_HELP = (
    "Up to the last whole minute, with a 99 % confidence interval: the sum over the group's partitions, ghosts and "
    "those of unknown lag left out. What is younger than a window is called by its own length."
)
#: Charts move on in steps, so that browsers that look at the same moment share one answer.
_STEP_SECONDS = 5
_MOST_CHOICES = 1000


def body() -> None:
    now = settings.now()
    fresh = freshness.read(now)
    freshness.strip(fresh)
    if fresh.nothing_collected:
        empty.nothing_collected(fresh)
    elif fresh.as_of is None:
        empty.nothing_judged(fresh)
    elif not _group:
        _choose("Choose a group.")
    else:
        row = ask(queries.verdict, _cluster, _group) if _cluster else _only_one(_group)
        if row is None:
            _unknown()
        else:
            _show(row, now)


def _only_one(group: str) -> Row | None:
    """A group named without its cluster: fine while only one cluster has it."""
    found = [r for r in ask(overview.names, group, _MOST_CHOICES) if r["group"] == group]
    return ask(queries.verdict, found[0]["cluster"], group) if len(found) == 1 else None


def _unknown() -> None:
    where = f" in the cluster **{literal.markdown(_cluster)}**" if _cluster else ""
    st.warning(
        f"**There is no group “{literal.markdown(_group)}”{where}.** It may have been deleted, it may be left out by "
        "the settings, or the address has a typo.",
        icon=":material/search_off:",
    )
    _choose("These groups are known:")


def _choose(prompt: str) -> None:
    known = [(r["cluster"], r["group"], r["status"]) for r in ask(overview.names, "", _MOST_CHOICES)]
    several = len({cluster for cluster, _, _ in known}) > 1
    chosen = st.selectbox(
        prompt,
        known,
        index=None,
        key="group_choice",
        placeholder="Type a part of its name",
        format_func=lambda k: f"{words.look(k[2]).sign}  {literal.shown(k[1])}" + (f"  ({k[0]})" if several else ""),
        width=560,
    )
    if chosen:
        st.switch_page("views/group.py", query_params={"cluster": chosen[0], "group": chosen[1]})


def _show(row: Row, now: datetime) -> None:
    cluster, group = row["cluster"], row["group"]
    verdict.show(row, now)
    growth = ask(queries.growth, cluster, group, row["as_of"])
    if growth:
        st.caption(f"Its lag over {growth}", help=_GROWTH_HELP)
    alerts = _alerts(cluster, group)
    span = _range()
    until = datetime.fromtimestamp(-(-now.timestamp() // _STEP_SECONDS) * _STEP_SECONDS, now.tzinfo)
    since = until - _RANGES[span]
    changes = ask(queries.changes, cluster, group, since, until)
    events = ask(queries.events, cluster, group, tuple(row["topics"]), since, until)
    marks = [*happenings.marks(changes, events), *_alert_marks(alerts, since)]
    _charts(row, marks, since, until, span)
    partitions = ask(queries.partitions, cluster, group)
    partition_table.show(partitions, readable=row["reason"] != UnknownReason.UNREADABLE)
    found = ask(queries.members, cluster, group, row["as_of"])
    rebalancing = row["state"] in REBALANCING_STATES or row["reason"] == UnknownReason.REBALANCING
    members.show(
        found,
        partition_table.lag_by_owner(partitions),
        now,
        known=row["members"] is not None,
        rebalancing=rebalancing,
    )
    assignment.show(ask(queries.assignment, cluster, group))
    happenings.show_rebalances(ask(queries.rebalances, cluster, group, since, until), now)
    left, right = st.columns(2)
    with left:
        happenings.show_changes(changes, now, span)
    with right:
        happenings.show_events(events, now, span)
    _what_to_do(row)


def _range() -> str:
    chosen = st.segmented_control(
        "Time range",
        list(_RANGES),
        default=_DEFAULT_RANGE,
        required=True,
        key="range",
        bind="query-params",
        label_visibility="collapsed",
    )
    return chosen or _DEFAULT_RANGE


def _alerts(cluster: str, group: str) -> list[AlertRow]:
    """The group's alerts, open ones first. Without the database the rest of the page still stands."""
    with boundary():
        own = [a for a in alert_reader.open_alerts() if (a.cluster, a.group) == (cluster, group)]
        for alert in own:
            if alert.state is Phase.FIRING:
                badge = f":red-badge[{alert_tables.severity_words(alert.severity)}]"
                lasted = humanise.since(alert.fired_at, settings.now())
                st.page_link(
                    "views/alerts.py",
                    label=f"{badge} An alert has been firing for {lasted}.",
                )
        return [*own, *alert_reader.history(cluster, group)]
    return []


def _alert_marks(alerts: list[AlertRow], since: datetime) -> list[Mark]:
    return [
        happenings.alert_mark(at, alert_tables.mark_text(alert, resolved=resolved))
        for alert in alerts
        for at, resolved in ((alert.fired_at, False), (alert.resolved_at, True))
        if at is not None and at >= since
    ]


def _charts(row: Row, marks: list[Mark], since: datetime, until: datetime, span: str) -> None:
    cluster, group = row["cluster"], row["group"]
    history = ask(queries.history, cluster, group, since, until)
    if history.num_rows == 0:
        st.info(f"There is no history of this group in the last {span}.", icon=":material/timeline:")
        return
    # Of a group that is new the axis begins with its history: minutes at the end of an empty hour cannot be read.
    begins = max(since, min(*history["at"].to_pylist(), until - _SHORTEST_AXIS))
    configured = next((c for c in settings.config().clusters if c.name == cluster), None)
    marks = sorted((mark for mark in marks if mark.at >= begins), key=lambda m: m.at, reverse=True)
    made = group_charts.chart(
        history,
        marks,
        begins,
        until,
        objective_seconds=configured.lag_objective_of(group) if configured else None,
        zoom=f"{cluster}/{group}/{span}",
    )
    st.plotly_chart(
        made,
        key="group_history",
        config=plot_theme.CONFIG,
        alt="Status, age of the oldest unread record, and records written and read per second over time",
    )
    hidden = len(marks) - group_charts.MOST_MARKS
    st.caption(
        "Times are UTC. Triangles are things that happened: point at one to read it. Solid lines are changes of "
        "status, dashed ones alerts, dotted ones rebalances and other events, which have none where there are many. "
        "Drag to zoom, double-click to go back."
        + (
            f" The {humanise.plural(hidden, 'older mark')} of this span are listed below, not drawn."
            if hidden > 0
            else ""
        )
    )


def _what_to_do(row: Row) -> None:
    st.subheader("Commands", anchor=False)
    st.caption("To look with Kafka's own tools, and to plan a repair. None of them changes anything as it stands here.")
    for command in commands.for_group(settings.config(), row):
        st.caption(f"{command.purpose}:")
        st.code(command.text, language="bash", wrap_lines=True)


_cluster = st.query_params.get("cluster", "")
_group = st.query_params.get("group", "")
st.page_link("views/overview.py", label="All groups", icon=":material/arrow_back:")
page.show(literal.markdown(_group) if _group else "Group", body, tab=literal.shown(_group) or None)
