"""Alerts and deliveries, read through the alerts room, and kept for a moment for everybody who looks."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

import streamlit as st
from sqlalchemy import Engine

from lagwise_alerts.operate import ActionRow, Alert, AlertCounts, DeliveryRow, MuteState, Silence, queries
from lagwise_dashboard import context
from lagwise_dashboard.queries.listing import ListPage, ListQuery

T = TypeVar("T")

#: The database has no versions to go by; a page is at most this much behind it.
_TTL_SECONDS = 2
MAX_ROWS = 200


def counts() -> AlertCounts:
    """How many alerts and messages are in which state. Raises DatabaseError."""
    result: AlertCounts = _counts(context.config().database_url)
    return result


def open_alerts() -> list[Alert]:
    """Firing and pending alerts, most severe first. Raises DatabaseError."""
    result: list[Alert] = _open_alerts(context.config().database_url)
    return result


def history_of(cluster: str, group: str) -> list[Alert]:
    """The group's alerts that ended last, latest first. Raises DatabaseError."""
    result: list[Alert] = _history_of(context.config().database_url, cluster, group)
    return result


def history(query: ListQuery) -> ListPage[Alert]:
    """Alerts that ended, latest first. Raises DatabaseError."""
    result: ListPage[Alert] = _history(context.config().database_url, query)
    return result


def deliveries(query: ListQuery) -> ListPage[DeliveryRow]:
    """Messages, latest first. Raises DatabaseError."""
    result: ListPage[DeliveryRow] = _deliveries(context.config().database_url, query)
    return result


def alerts_of(rows: Iterable[DeliveryRow]) -> list[Alert]:
    """What messages are about. Raises DatabaseError."""
    result: list[Alert] = _alerts_of(context.config().database_url, tuple(sorted({r.incident_id for r in rows})))
    return result


def orders() -> MuteState:
    """What operators and settings say about telling, now. Raises DatabaseError."""
    config = context.config()
    result: MuteState = _orders(config.database_url)
    return result


def silences() -> list[Silence]:
    """Silences in force or to come. Raises DatabaseError."""
    result: list[Silence] = _silences(context.config().database_url)
    return result


def actions(query: ListQuery) -> ListPage[ActionRow]:
    """What operators did, latest first. Raises DatabaseError."""
    result: ListPage[ActionRow] = _actions(context.config().database_url, query)
    return result


def dead() -> list[DeliveryRow]:
    """Undelivered messages, latest first. Raises DatabaseError."""
    result: list[DeliveryRow] = _dead(context.config().database_url)
    return result


def summary_sizes() -> dict[int, int]:
    """How many messages each summary holds. Raises DatabaseError."""
    result: dict[int, int] = _summary_sizes(context.config().database_url)
    return result


def engine() -> Engine:
    """Where operators' orders go."""
    made: Engine = _engine(context.config().database_url)
    return made


def clear_cache() -> None:
    """Read anew: something was done."""
    for kept in (
        _counts,
        _open_alerts,
        _history_of,
        _history,
        _deliveries,
        _alerts_of,
        _orders,
        _silences,
        _actions,
        _dead,
        _summary_sizes,
    ):
        kept.clear()


class _Rows(Protocol[T]):
    def __call__(self, engine: Engine, *, text: str, limit: int, offset: int) -> list[T]: ...


class _Number(Protocol):
    def __call__(self, engine: Engine, *, text: str) -> int: ...


def _page(engine: Engine, query: ListQuery, rows: _Rows[T], number: _Number) -> ListPage[T]:
    """One page of a list; beyond the last it is the last."""
    of = number(engine, text=query.text)
    query = query.within(of)
    return ListPage(rows(engine, text=query.text, limit=query.page_rows, offset=query.offset), of, query)


@st.cache_resource(max_entries=1, show_spinner=False, on_release=lambda engine: engine.dispose())
def _engine(url: str) -> Engine:
    return queries.connect(context.config())


@st.cache_data(ttl=_TTL_SECONDS, max_entries=1, show_spinner=False)
def _counts(url: str) -> AlertCounts:
    return queries.counts(_engine(url))


@st.cache_data(ttl=_TTL_SECONDS, max_entries=1, show_spinner=False)
def _open_alerts(url: str) -> list[Alert]:
    return queries.open_alerts(_engine(url))


@st.cache_data(ttl=_TTL_SECONDS, max_entries=50, show_spinner=False)
def _history_of(url: str, cluster: str, group: str) -> list[Alert]:
    return queries.history(_engine(url), cluster=cluster, group=group, limit=MAX_ROWS)


@st.cache_data(ttl=_TTL_SECONDS, max_entries=50, show_spinner=False)
def _history(url: str, query: ListQuery) -> ListPage[Alert]:
    return _page(_engine(url), query, queries.history, queries.count_history)


@st.cache_data(ttl=_TTL_SECONDS, max_entries=50, show_spinner=False)
def _deliveries(url: str, query: ListQuery) -> ListPage[DeliveryRow]:
    return _page(_engine(url), query, queries.deliveries, queries.count_deliveries)


@st.cache_data(ttl=_TTL_SECONDS, max_entries=50, show_spinner=False)
def _alerts_of(url: str, incident_ids: tuple[str, ...]) -> list[Alert]:
    return queries.alerts_of(_engine(url), incident_ids)


@st.cache_data(ttl=_TTL_SECONDS, max_entries=1, show_spinner=False)
def _orders(url: str) -> MuteState:
    return queries.mute_state(_engine(url), context.config().alerts.maintenance, context.now())


@st.cache_data(ttl=_TTL_SECONDS, max_entries=1, show_spinner=False)
def _silences(url: str) -> list[Silence]:
    return queries.silences(_engine(url), context.now())


@st.cache_data(ttl=_TTL_SECONDS, max_entries=50, show_spinner=False)
def _actions(url: str, query: ListQuery) -> ListPage[ActionRow]:
    return _page(_engine(url), query, queries.actions, queries.count_actions)


@st.cache_data(ttl=_TTL_SECONDS, max_entries=1, show_spinner=False)
def _dead(url: str) -> list[DeliveryRow]:
    return queries.deliveries(_engine(url), state="dead", limit=MAX_ROWS)


@st.cache_data(ttl=_TTL_SECONDS, max_entries=1, show_spinner=False)
def _summary_sizes(url: str) -> dict[int, int]:
    return queries.summary_sizes(_engine(url))
