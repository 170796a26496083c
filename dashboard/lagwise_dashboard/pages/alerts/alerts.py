"""Open alerts, silences, ended alerts, deliveries, and what operators did."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import streamlit as st

from lagwise.domain import humanise
from lagwise.links import parameters
from lagwise.links.list_parameters import ListParameters
from lagwise.platform import health as heartbeats
from lagwise_alerts.operate import Alert, AlertState, DeliveryRow, OperatorState, queries
from lagwise_dashboard import alert_reader, context, escaping
from lagwise_dashboard.pages.alerts import actions, alert_tables
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.widgets import alert_words, freshness, list_view, page


def body() -> None:
    now = context.now()
    freshness.strip(freshness.read(now))
    result = _by_operator_state(alert_reader.open_alerts(), now)
    _counts(result)
    actions.bar([a for a, _ in (*result.firing, *result.muted)], [a for a, _ in result.acknowledged])
    _open(result, now)
    _silences(now)
    _history(now)
    _deliveries(now)
    _actions(now)


@dataclass(frozen=True, slots=True)
class _OpenAlerts:
    """Open alerts by what operators did about them; each is in one list, and ``everything`` holds them all."""

    everything: list[Alert]
    firing: list[tuple[Alert, OperatorState]]
    acknowledged: list[tuple[Alert, OperatorState]]
    muted: list[tuple[Alert, OperatorState]]
    pending: list[tuple[Alert, OperatorState]]


def _by_operator_state(rows: list[Alert], now: datetime) -> _OpenAlerts:
    orders = alert_reader.orders()
    result = _OpenAlerts(rows, [], [], [], [])
    for row in rows:
        state = queries.operator_state(row, orders, now)
        if row.state is AlertState.PENDING:
            place = result.pending
        elif state.acknowledged is not None:
            place = result.acknowledged
        else:
            place = result.firing if state.muted is None else result.muted
        place.append((row, state))
    return result


def _counts(result: _OpenAlerts) -> None:
    counts = alert_reader.counts()
    with st.container(horizontal=True, gap="small"):
        st.metric("Firing", f"{len(result.firing):,}", border=True, help="Notified and not acknowledged.")
        st.metric("Acknowledged", f"{len(result.acknowledged):,}", border=True, help="An operator has taken it.")
        st.metric("Silenced", f"{len(result.muted):,}", border=True, help="By a silence, or in a maintenance window.")
        st.metric(
            "Pending",
            f"{counts.pending:,}",
            border=True,
            help="The condition holds, but not yet for the time its rule requires.",
        )
        st.metric("Messages queued", f"{counts.queued:,}", border=True, help="Waiting for their first or next attempt.")
        st.metric("Delivered", f"{counts.delivered:,}", border=True)
        st.metric("Undelivered", f"{counts.dead:,}", border=True, help="Every attempt failed.")
    if counts.dead:
        st.error(
            f"**{humanise.plural(counts.dead, 'message')} could not be delivered** and will not be retried. The "
            "last error of each is below; correct the channel's address or secret in the settings under "
            "`alerts.channels`, then send them again.",
            icon=":material/unsubscribe:",
        )
    if not context.config().alerts.channels:
        st.caption(
            "No channel is configured (`alerts.channels`): alerts are recorded and shown here, but no one is notified."
        )


def _open(result: _OpenAlerts, now: datetime) -> None:
    st.subheader("Firing", anchor=False)
    if result.firing:
        st.caption("Most severe first.")
        rows = [row for row, _ in result.firing]
        alert_tables.show_open(
            rows, now, name="firing", label="Alerts that fire", people=alert_tables.notified_columns(rows, now)
        )
    elif result.everything:
        st.caption("All open alerts are acknowledged, silenced or pending.")
    else:
        _nothing_fires(now)
    if result.acknowledged:
        st.subheader("Acknowledged", anchor=False)
        alert_tables.show_open(
            [row for row, _ in result.acknowledged],
            now,
            name="acknowledged",
            label="Acknowledged alerts",
            people=alert_tables.acknowledged_columns([s.acknowledged for _, s in result.acknowledged], now),
        )
    if result.muted:
        st.subheader("Silenced", anchor=False)
        alert_tables.show_open(
            [row for row, _ in result.muted],
            now,
            name="silenced",
            label="Alerts that are silenced",
            people=alert_tables.muted_columns([s.muted for _, s in result.muted], now),
        )
    if result.pending:
        st.subheader("Pending", anchor=False)
        rows = [row for row, _ in result.pending]
        alert_tables.show_open(
            rows, now, name="pending", label="Alerts that are pending", people=[alert_tables.pending_column(rows)]
        )


def _silences(now: datetime) -> None:
    silences = alert_reader.silences()
    windows = context.config().alerts.maintenance
    if not silences and not windows:
        return
    st.subheader("Silences", anchor=False)
    if silences:
        alert_tables.show_silences(silences, now)
        actions.end_silence(silences)
    if windows:
        names = ", ".join(escaping.markdown(window.name) for window in windows)
        st.caption(f"Maintenance windows in the settings: {names}.")


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
            f"{escaping.markdown(beat.line)}",
            icon=":material/notifications:",
        )


def _history(now: datetime) -> None:
    listing = parameters.ENDED_LIST
    st.subheader("Ended", anchor=False)
    result = alert_reader.history(list_view.query(listing))
    if _head(listing, result, "alert", "No alert has ended yet.", "Group, cluster, rule or sentence"):
        alert_tables.show_history(result, now, lambda: alert_reader.history(result.query.all_rows).rows)
        list_view.pagination(listing, result)


def _deliveries(now: datetime) -> None:
    listing = parameters.DELIVERY_LIST
    st.subheader("Deliveries", anchor=False)
    result = alert_reader.deliveries(list_view.query(listing))
    dead = alert_reader.dead()
    with st.container(horizontal=True, gap="small"):
        actions.test_channel()
        actions.send_again(dead, _subjects(dead))
    if _head(listing, result, "message", "No message has been sent yet.", "Channel, event, state, error or group"):
        alert_tables.show_deliveries(
            result, _subjects, now, all_rows=lambda: alert_reader.deliveries(result.query.all_rows).rows
        )
        list_view.pagination(listing, result)


def _subjects(rows: Sequence[DeliveryRow]) -> dict[str, str]:
    """What messages are about, by the ids of their incidents."""
    sizes = alert_reader.summary_sizes()
    return {a.incident_id: alert_words.about(a) for a in alert_reader.alerts_of(rows)} | {
        r.incident_id: f"{sizes[r.id]:,} alerts" for r in rows if r.id in sizes
    }


def _actions(now: datetime) -> None:
    listing = parameters.ACTION_LIST
    result = alert_reader.actions(list_view.query(listing))
    if result or list_view.is_searched(listing):
        fold = st.expander(
            f"Operator actions ({result.total:,})",
            icon=":material/history:",
            expanded=list_view.is_searched(listing) or result.query.page > 1,
        )
        with fold:
            if _head(listing, result, "action", "", "Who, what or comment"):
                alert_tables.show_actions(result, now, lambda: alert_reader.actions(result.query.all_rows).rows)
                list_view.pagination(listing, result)


def _head(listing: ListParameters, result: ListPage[Any], noun: str, none: str, placeholder: str) -> bool:
    """The field that looks through a list, and what of it is shown; whether there is a row to draw."""
    list_view.search(listing, result, placeholder, f"Search the {noun}s")
    if result:
        st.caption(f"{result.counted(noun)}, latest first.")
    else:
        st.caption(f"No {noun} matches." if list_view.is_searched(listing) else none)
    return bool(result)


page.show(
    "Alerts",
    body,
    help_text="One alert per group, not per partition; each is decided once and delivered at least once.",
)
