"""Alerts and deliveries, read through the alerts room, and kept for a moment for everybody who looks."""

import streamlit as st
from sqlalchemy import Engine

from lagwise.alerts import queries
from lagwise.alerts.muting import Orders, Silence
from lagwise.alerts.queries import ActionRow, AlertRow, Counts, DeliveryRow
from lagwise_dashboard import settings

#: The database has no versions to go by; a page is at most this much behind it.
_KEEP_SECONDS = 2
MOST_ROWS = 200


def counts() -> Counts:
    """How many alerts and messages are in which state. Raises DatabaseError."""
    found: Counts = _counts(settings.config().database_url)
    return found


def open_alerts() -> list[AlertRow]:
    """Firing and pending alerts, the loudest first. Raises DatabaseError."""
    found: list[AlertRow] = _open_alerts(settings.config().database_url)
    return found


def history(cluster: str | None = None, group: str | None = None) -> list[AlertRow]:
    """Alerts that ended, the latest first. Raises DatabaseError."""
    found: list[AlertRow] = _history(settings.config().database_url, cluster, group)
    return found


def deliveries() -> list[DeliveryRow]:
    """Messages, the latest first. Raises DatabaseError."""
    found: list[DeliveryRow] = _deliveries(settings.config().database_url)
    return found


def orders() -> Orders:
    """What operators and settings say about telling, now. Raises DatabaseError."""
    config = settings.config()
    found: Orders = _orders(config.database_url)
    return found


def silences() -> list[Silence]:
    """Silences in force or to come. Raises DatabaseError."""
    found: list[Silence] = _silences(settings.config().database_url)
    return found


def actions() -> list[ActionRow]:
    """What operators did, the latest first. Raises DatabaseError."""
    found: list[ActionRow] = _actions(settings.config().database_url)
    return found


def dead() -> list[DeliveryRow]:
    """Messages that were given up, the latest first. Raises DatabaseError."""
    found: list[DeliveryRow] = _dead(settings.config().database_url)
    return found


def summary_sizes() -> dict[int, int]:
    """How many messages each summary holds. Raises DatabaseError."""
    found: dict[int, int] = _summary_sizes(settings.config().database_url)
    return found


def engine() -> Engine:
    """Where operators' orders go."""
    made: Engine = _engine(settings.config().database_url)
    return made


def forget() -> None:
    """Read anew: something was done."""
    for kept in (_counts, _open_alerts, _history, _deliveries, _orders, _silences, _actions, _dead, _summary_sizes):
        kept.clear()


@st.cache_resource(max_entries=1, show_spinner=False, on_release=lambda engine: engine.dispose())
def _engine(url: str) -> Engine:
    return queries.connect(settings.config())


@st.cache_data(ttl=_KEEP_SECONDS, max_entries=1, show_spinner=False)
def _counts(url: str) -> Counts:
    return queries.counts(_engine(url))


@st.cache_data(ttl=_KEEP_SECONDS, max_entries=1, show_spinner=False)
def _open_alerts(url: str) -> list[AlertRow]:
    return queries.open_alerts(_engine(url))


@st.cache_data(ttl=_KEEP_SECONDS, max_entries=50, show_spinner=False)
def _history(url: str, cluster: str | None, group: str | None) -> list[AlertRow]:
    return queries.history(_engine(url), cluster=cluster, group=group, limit=MOST_ROWS)


@st.cache_data(ttl=_KEEP_SECONDS, max_entries=1, show_spinner=False)
def _deliveries(url: str) -> list[DeliveryRow]:
    return queries.deliveries(_engine(url), limit=MOST_ROWS)


@st.cache_data(ttl=_KEEP_SECONDS, max_entries=1, show_spinner=False)
def _orders(url: str) -> Orders:
    return queries.orders(_engine(url), settings.config().alerts.maintenance, settings.now())


@st.cache_data(ttl=_KEEP_SECONDS, max_entries=1, show_spinner=False)
def _silences(url: str) -> list[Silence]:
    return queries.silences(_engine(url), settings.now())


@st.cache_data(ttl=_KEEP_SECONDS, max_entries=1, show_spinner=False)
def _actions(url: str) -> list[ActionRow]:
    return queries.actions(_engine(url), limit=MOST_ROWS)


@st.cache_data(ttl=_KEEP_SECONDS, max_entries=1, show_spinner=False)
def _dead(url: str) -> list[DeliveryRow]:
    return queries.deliveries(_engine(url), state="dead", limit=MOST_ROWS)


@st.cache_data(ttl=_KEEP_SECONDS, max_entries=1, show_spinner=False)
def _summary_sizes(url: str) -> dict[int, int]:
    return queries.summary_sizes(_engine(url))
