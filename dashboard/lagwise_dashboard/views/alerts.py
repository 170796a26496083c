"""What fires now, what fired before, and whether anybody was told."""

from datetime import datetime

import streamlit as st

from lagwise import health as heartbeats
from lagwise.alerts.queries import AlertRow
from lagwise.domain import humanise
from lagwise_dashboard import alert_reader, literal, settings
from lagwise_dashboard.components import alert_tables, freshness, page


def body() -> None:
    now = settings.now()
    freshness.strip(freshness.read(now))
    found = alert_reader.open_alerts()
    ended = alert_reader.history()
    _counts()
    _open(found, now)
    _history(ended, now)
    _deliveries({a.incident_id: alert_tables.about(a) for a in (*found, *ended)}, now)


def _counts() -> None:
    counts = alert_reader.counts()
    with st.container(horizontal=True, gap="small"):
        st.metric("Firing", f"{counts.firing:,}", border=True, help="Somebody was told, and it is not over.")
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
            "`alerts.channels`.",
            icon=":material/unsubscribe:",
        )
    if not settings.config().alerts.channels:
        st.caption(
            "No channel is configured (`alerts.channels`): alerts are decided, kept and shown, but nobody is told."
        )


def _open(rows: list[AlertRow], now: datetime) -> None:
    st.subheader("Open", anchor=False)
    if not rows:
        _nothing_fires(now)
        return
    st.caption("The loudest first. Click a row to open the group.")
    clicked = alert_tables.show_open(rows, now)
    if clicked is not None:
        if clicked.group is not None:
            st.switch_page(
                "views/group.py", query_params={"cluster": clicked.cluster or "", "group": clicked.group or ""}
            )
        st.switch_page("views/health.py")


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
    if not rows:
        st.caption("No message has been sent yet.")
        return
    st.caption(f"{humanise.plural(len(rows), 'message')}, the latest first.")
    alert_tables.show_deliveries(rows, subjects, now)


page.show(
    "Alerts",
    body,
    help_text="One alert per group, not per partition; each is decided once and delivered at least once.",
)
