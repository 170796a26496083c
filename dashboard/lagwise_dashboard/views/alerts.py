"""What fires now, who has it, what is silenced, what fired before, and whether anybody was told."""

from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from lagwise import health as heartbeats
from lagwise.alerts import queries
from lagwise.alerts.model import Phase
from lagwise.alerts.queries import AlertRow, Standing
from lagwise.domain import humanise
from lagwise_dashboard import alert_reader, literal, settings
from lagwise_dashboard.components import alert_actions, alert_tables, freshness, page


def body() -> None:
    now = settings.now()
    freshness.strip(freshness.read(now))
    found = _sorted_out(alert_reader.open_alerts(), now)
    ended = alert_reader.history()
    _counts(found)
    alert_actions.bar([a for a, _ in (*found.firing, *found.muted)], [a for a, _ in found.taken])
    _open(found, now)
    _silences(now)
    _history(ended, now)
    _deliveries({a.incident_id: alert_tables.about(a) for a in (*found.everything, *ended)}, now)
    _actions(now)


@dataclass(frozen=True, slots=True)
class _Open:
    """Open alerts by how they stand with people; each stands in one place. ``everything`` is all of them."""

    everything: list[AlertRow]
    firing: list[tuple[AlertRow, Standing]]
    taken: list[tuple[AlertRow, Standing]]
    muted: list[tuple[AlertRow, Standing]]
    pending: list[tuple[AlertRow, Standing]]


def _sorted_out(rows: list[AlertRow], now: datetime) -> _Open:
    orders = alert_reader.orders()
    found = _Open(rows, [], [], [], [])
    for row in rows:
        standing = queries.standing(row, orders, now)
        if row.state is Phase.PENDING:
            place = found.pending
        elif standing.acknowledged is not None:
            place = found.taken
        else:
            place = found.firing if standing.muted is None else found.muted
        place.append((row, standing))
    return found


def _counts(found: _Open) -> None:
    counts = alert_reader.counts()
    with st.container(horizontal=True, gap="small"):
        st.metric("Firing", f"{len(found.firing):,}", border=True, help="Somebody was told, and nobody has it.")
        st.metric("Acknowledged", f"{len(found.taken):,}", border=True, help="Somebody has it.")
        st.metric("Silenced", f"{len(found.muted):,}", border=True, help="By a silence, or in a maintenance window.")
        st.metric(
            "Pending", f"{counts.pending:,}", border=True, help="It holds, but not yet for as long as its rule asks."
        )
        st.metric("Messages queued", f"{counts.queued:,}", border=True, help="Waiting for their first or next attempt.")
        st.metric("Delivered", f"{counts.delivered:,}", border=True)
        st.metric("Given up", f"{counts.dead:,}", border=True, help="Never delivered: every attempt failed.")
    if counts.dead:
        st.error(
            f"**{humanise.plural(counts.dead, 'message')} could not be delivered** and will not be tried again. The "
            "last error of each is below; correct the channel's address or secret in the settings under "
            "`alerts.channels`, then send them again.",
            icon=":material/unsubscribe:",
        )
    if not settings.config().alerts.channels:
        st.caption(
            "No channel is configured (`alerts.channels`): alerts are decided, kept and shown, but nobody is told."
        )


def _open(found: _Open, now: datetime) -> None:
    st.subheader("Firing", anchor=False)
    if found.firing:
        st.caption("The loudest first.")
        rows = [row for row, _ in found.firing]
        alert_tables.show_open(
            rows, now, name="firing", label="Alerts that fire", people=alert_tables.notified(rows, now)
        )
    elif found.everything:
        st.caption("Nothing fires that nobody has and nothing mutes.")
    else:
        _nothing_fires(now)
    if found.taken:
        st.subheader("Acknowledged", anchor=False)
        alert_tables.show_open(
            [row for row, _ in found.taken],
            now,
            name="acknowledged",
            label="Alerts that somebody has",
            people=alert_tables.taken([s.acknowledged for _, s in found.taken], now),
        )
    if found.muted:
        st.subheader("Silenced", anchor=False)
        alert_tables.show_open(
            [row for row, _ in found.muted],
            now,
            name="silenced",
            label="Alerts that are silenced",
            people=alert_tables.muted([s.muted for _, s in found.muted], now),
        )
    if found.pending:
        st.subheader("Pending", anchor=False)
        rows = [row for row, _ in found.pending]
        alert_tables.show_open(
            rows, now, name="pending", label="Alerts that are pending", people=[alert_tables.pending(rows)]
        )


def _silences(now: datetime) -> None:
    silences = alert_reader.silences()
    windows = settings.config().alerts.maintenance
    if not silences and not windows:
        return
    st.subheader("Silences", anchor=False)
    if silences:
        alert_tables.show_silences(silences, now)
        alert_actions.end_silence(silences)
    if windows:
        names = ", ".join(literal.markdown(window.name) for window in windows)
        st.caption(f"Maintenance windows in the settings: {names}.")


def _nothing_fires(now: datetime) -> None:
    beat = heartbeats.read(settings.config().state).get(heartbeats.ALERTS)
    if beat is None:
        st.info(
            "**Nothing fires.** No alert process has left a heartbeat on this machine: if none runs elsewhere, start "
            "one with `lagwise alert` (`lagwise up` does).",
            icon=":material/notifications_off:",
        )
    else:
        st.success(
            f"Nothing fires. The rules were looked at {humanise.since(beat.at, now)} ago: "
            f"{literal.markdown(beat.line)}",
            icon=":material/notifications:",
        )


def _history(rows: list[AlertRow], now: datetime) -> None:
    st.subheader("Ended", anchor=False)
    if not rows:
        st.caption("No alert has ended yet.")
        return
    st.caption(f"{humanise.plural(len(rows), 'alert')}, the latest first.")
    alert_tables.show_history(rows, now)


def _deliveries(subjects: dict[str, str], now: datetime) -> None:
    st.subheader("Deliveries", anchor=False)
    rows = alert_reader.deliveries()
    with st.container(horizontal=True, gap="small"):
        alert_actions.try_channel()
        alert_actions.send_again(alert_reader.dead(), subjects)
    if not rows:
        st.caption("No message has been sent yet.")
        return
    st.caption(f"{humanise.plural(len(rows), 'message')}, the latest first.")
    sizes = alert_reader.summary_sizes()
    subjects = subjects | {r.incident_id: f"{sizes[r.id]:,} alerts" for r in rows if r.id in sizes}
    alert_tables.show_deliveries(rows, subjects, now)


def _actions(now: datetime) -> None:
    rows = alert_reader.actions()
    if rows:
        with st.expander(f"What people did ({len(rows):,})", icon=":material/history:"):
            alert_tables.show_actions(rows, now)


page.show(
    "Alerts",
    body,
    help_text="One alert per group, not per partition; each is decided once and delivered at least once.",
)
