"""Open alerts, silences, ended alerts, deliveries, and what operators did."""

from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.links import parameters
from lagwise.platform import health as heartbeats
from lagwise_alerts.operate import Alert, AlertKind, AlertState, queries
from lagwise_dashboard import alert_reader, context, escaping, visibility
from lagwise_dashboard.pages.alerts import alert_tables, timeline
from lagwise_dashboard.pages.alerts.alert_tables import ACKNOWLEDGED, COVERED, FIRING, PENDING, SILENCED, OpenAlert
from lagwise_dashboard.queries.listing import FIRST_PAGE
from lagwise_dashboard.widgets import alert_actions, alert_words, charts, freshness, list_view, page, tiles

#: Open alerts, shared incidents first and then the most severe, by section of the page.
_Sections = dict[str, list[OpenAlert]]
#: Firing members of shared incidents that are open, by the id of the shared incident.
_Members = dict[str, list[OpenAlert]]


def body() -> None:
    now = context.now()
    freshness.strip(freshness.read(now))
    sections, members = _sections(now)
    _counts(sections)
    folded = [one for its in members.values() for one in its]
    alert_actions.bar(
        [one.alert for one in (*sections[FIRING], *sections[SILENCED], *folded)],
        [one.alert for one in sections[ACKNOWLEDGED]],
    )
    _open(sections, members, now)
    _timeline(sections, folded, now)
    _silences(now)
    _history(now)
    _deliveries(now)
    _actions(now)


def _sections(now: datetime) -> tuple[_Sections, _Members]:
    """Open alerts by what operators did about them. Each is in one section, or folded under a shared incident."""
    mute_state = alert_reader.mute_state()
    result: _Sections = {FIRING: [], ACKNOWLEDGED: [], SILENCED: [], PENDING: [], COVERED: []}
    alerts = alert_reader.open_alerts()
    members: _Members = {alert.incident_id: [] for alert in alerts if alert.subject.kind is AlertKind.SHARED_INCIDENT}
    for alert in sorted(alerts, key=lambda one: one.incident_id not in members):
        state = queries.operator_state(alert, mute_state, now)
        if alert_tables.is_covered(alert):
            section = COVERED
        elif alert.state is AlertState.PENDING:
            section = PENDING
        elif state.acknowledged is not None:
            section = ACKNOWLEDGED
        else:
            section = FIRING if state.muted is None else SILENCED
        its = members.get(alert.shared_incident or "") if section == FIRING else None
        (result[section] if its is None else its).append(OpenAlert(alert, state))
    return result, members


def _counts(sections: _Sections) -> None:
    counts, covered = alert_reader.counts(), len(sections[COVERED])
    silenced = sections[SILENCED] + [one for one in sections[ACKNOWLEDGED] if one.state.muted is not None]
    tiles.show(
        [
            ("Firing", f"{len(sections[FIRING]):,}", "Notified and not acknowledged; a shared incident is one."),
            ("Acknowledged", f"{len(sections[ACKNOWLEDGED]):,}", "An operator has taken it."),
            ("Silenced", f"{len(silenced):,}", "By a silence or a maintenance window, acknowledged ones included."),
            (
                "Pending",
                f"{len(sections[PENDING]):,}",
                "The condition holds, but not yet for as long as its rule requires.",
            ),
            *([("Covered", f"{covered:,}", "Another alert already reports the cause.")] if covered else []),
            ("Messages queued", f"{counts.queued:,}", "Waiting for their first or next attempt."),
            ("Delivered", f"{counts.delivered:,}", None),
            ("Undelivered", f"{counts.dead:,}", "Every attempt failed."),
        ],
        name="alerts",
    )
    if counts.dead:
        st.error(
            f"**{humanise.plural(counts.dead, 'message')} could not be delivered** and will not be retried. The last "
            "error of each is listed below. Correct the channel's address or secret under `alerts.channels` in the "
            "settings, then send them again.",
            icon=":material/unsubscribe:",
        )
    if not context.config().alerts.channels:
        st.caption(
            "No channel is configured (`alerts.channels`): alerts are recorded and shown here, but no one is notified."
        )


def _open(sections: _Sections, members: _Members, now: datetime) -> None:
    for section, alerts in sections.items():
        if alerts or section == FIRING:
            st.subheader(section, anchor=False)
        if alerts:
            if section == FIRING:
                st.caption("Shared incidents first, then the most severe." if members else "Most severe first.")
            alert_tables.show_open(section, alerts, now)
            for one in alerts:
                _fold(one.alert, members.get(one.alert.incident_id, []), now)
        elif section == FIRING and any(sections.values()):
            st.caption("All open alerts are acknowledged, silenced, pending or covered by another.")
        elif section == FIRING:
            _nothing_fires(now)


def _fold(shared: Alert, members: list[OpenAlert], now: datetime) -> None:
    """The firing members of a shared incident, behind a line that says how many they are."""
    if not members:
        return
    about = alert_words.about(shared)
    label = f"{humanise.plural(len(members), 'group')} of the {escaping.markdown(about)}"
    with st.expander(label, icon=":material/hub:"):
        st.caption("Notified as one. Each can be acknowledged or silenced by itself.")
        name, label = f"members-{shared.fingerprint}", f"Groups of the {about}, most severe first"
        alert_tables.show_open(FIRING, members, now, name=name, label=label)


def _nothing_fires(now: datetime) -> None:
    beat = heartbeats.read(context.config().state).get(heartbeats.ALERTS)
    if beat is None:
        st.info(
            "**No open alerts.** No alert process has left a heartbeat on this machine. If none runs on another "
            "machine, start one with `lagwise alert` (`lagwise up` does).",
            icon=":material/notifications_off:",
        )
    else:
        st.success(
            f"No open alerts. The rules were evaluated {humanise.since(beat.at, now)} ago: "
            f"{escaping.markdown(beat.line) if visibility.sees_everything() else ''}",
            icon=":material/notifications:",
        )


def _timeline(sections: _Sections, folded: list[OpenAlert], now: datetime) -> None:
    """The incidents of the last hours and the messages about them; nothing where there was none."""
    open_ones = [*(one for section in sections.values() for one in section), *folded]
    ended = alert_reader.history(FIRST_PAGE)
    span = timeline.span(open_ones, ended, now)
    lanes = timeline.lanes(open_ones, ended, alert_reader.silences(), now - span)
    if not lanes:
        return
    st.subheader(f"Timeline, last {humanise.duration(span.total_seconds())}", anchor=False)
    if len(lanes) > timeline.MAX_LANES:
        st.caption(f"The first {timeline.MAX_LANES} of {len(lanes):,}: open ones first, then those that ended last.")
    shown = lanes[: timeline.MAX_LANES]
    messages = alert_reader.messages_of(frozenset().union(*(lane.incident_ids for lane in shown)), now - span)
    made = timeline.chart(shown, messages, now - span, now)
    charts.draw(made, key="alerts_timeline", alt="Incidents and messages over time")


def _silences(now: datetime) -> None:
    silences = alert_reader.silences()
    # Their names may name any group.
    windows = context.config().alerts.maintenance if visibility.sees_everything() else ()
    if not silences and not windows:
        return
    st.subheader("Silences", anchor=False)
    if silences:
        alert_tables.show_silences(silences, now)
        alert_actions.end_silence(silences)
    if windows:
        names = ", ".join(escaping.markdown(window.name) for window in windows)
        st.caption(f"Maintenance windows in the settings: {names}.")


def _history(now: datetime) -> None:
    listing = parameters.ENDED_LIST
    result = alert_reader.history(list_view.query(listing))
    if result or list_view.is_searched(listing):
        st.subheader("Ended", anchor=False)
    if list_view.has_rows(listing, result, "alert", "Group, cluster, rule or sentence", "No alert has ended yet."):
        st.caption(f"{result.counted('alert')}, latest first.")
        alert_tables.show_history(result, now)


def _deliveries(now: datetime) -> None:
    listing = parameters.DELIVERY_LIST
    result = alert_reader.deliveries(list_view.query(listing))
    if result or list_view.is_searched(listing):
        st.subheader("Deliveries", anchor=False)
    dead = alert_reader.dead()
    with st.container(horizontal=True, gap="small"):
        alert_actions.test_channel()
        alert_actions.send_again(dead, alert_tables.subjects(dead))
    placeholder = "Channel, event, state, error or group"
    if list_view.has_rows(listing, result, "message", placeholder, "No message has been sent yet."):
        st.caption(f"{result.counted('message')}, latest first.")
        alert_tables.show_deliveries(result, now)


def _actions(now: datetime) -> None:
    listing = parameters.ACTION_LIST
    result = alert_reader.actions(list_view.query(listing))
    is_searched = list_view.is_searched(listing)
    if not result and not is_searched:
        return
    with st.expander(
        f"Operator actions ({result.total:,})",
        icon=":material/history:",
        expanded=is_searched or result.query.page > 1,
    ):
        if list_view.has_rows(listing, result, "action", "Who, what or comment", ""):
            st.caption(f"{result.counted('action')}, latest first.")
            alert_tables.show_actions(result, now)


page.show(
    "Alerts",
    body,
    help_text="One alert per group, not per partition; each is decided once and delivered at least once.",
)
