"""Alerts, deliveries and saved views, read through the alerts room. Answers are kept for a moment, for every open
browser.

Whatever is read here raises DatabaseError where the database cannot be read.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

import streamlit as st
from sqlalchemy import Engine

from lagwise_alerts.operate import (
    ActionRow,
    Alert,
    AlertCounts,
    DeliveryRow,
    IncidentMessage,
    MuteState,
    SavedView,
    Silence,
    queries,
)
from lagwise_dashboard import context
from lagwise_dashboard.queries.listing import ListPage, ListQuery

P = ParamSpec("P")
T = TypeVar("T")

#: The database has no versions to go by; a page is at most this much behind it.
_TTL_SECONDS = 2
_MAX_ANSWERS = 500
MAX_ROWS = 200


def counts() -> AlertCounts:
    """How many alerts and messages are in which state."""
    return _ask(queries.counts)


def open_alerts() -> list[Alert]:
    """Firing and pending alerts, most severe first."""
    return _ask(queries.open_alerts)


def history_of(cluster: str, group: str) -> list[Alert]:
    """The group's alerts that ended last, latest first."""
    return _ask(queries.history, cluster=cluster, group=group, limit=MAX_ROWS)


def history(query: ListQuery) -> ListPage[Alert]:
    """Alerts that ended, latest first."""
    return _page(queries.history, queries.count_history, query)


def deliveries(query: ListQuery) -> ListPage[DeliveryRow]:
    """Messages, latest first."""
    return _page(queries.deliveries, queries.count_deliveries, query)


def messages_of(incident_ids: Iterable[str], since: datetime) -> list[IncidentMessage]:
    """All messages about incidents since the minute of that time, in order."""
    return _ask(queries.messages_of, tuple(sorted(incident_ids)), since.replace(second=0, microsecond=0))


def alerts_of(rows: Iterable[DeliveryRow]) -> list[Alert]:
    """The alerts that messages are about."""
    return _ask(queries.alerts_of, tuple(sorted({r.incident_id for r in rows})))


def mute_state() -> MuteState:
    """What operators and settings mute now."""

    def read(engine: Engine) -> MuteState:
        return queries.mute_state(engine, context.config().alerts.maintenance, context.now())

    return _ask(read)


def silences() -> list[Silence]:
    """Silences in force or to come."""

    def read(engine: Engine) -> list[Silence]:
        return queries.silences(engine, context.now())

    return _ask(read)


def saved_views() -> list[SavedView]:
    """All saved views by name."""
    return _ask(queries.saved_views)


def actions(query: ListQuery) -> ListPage[ActionRow]:
    """What operators did, latest first."""
    return _page(queries.actions, queries.count_actions, query)


def dead() -> list[DeliveryRow]:
    """Undelivered messages, latest first."""
    return _ask(queries.deliveries, state="dead", limit=MAX_ROWS)


def summary_sizes() -> dict[int, int]:
    """How many messages each summary holds."""
    return _ask(queries.summary_sizes)


def engine() -> Engine:
    """The database, for operators' actions."""
    made: Engine = _engine(context.config().database_url)
    return made


def clear_cache() -> None:
    """Forget all answers: an action has changed something."""
    _answer.clear()


def _page(rows: Callable[..., list[T]], count: Callable[..., int], query: ListQuery) -> ListPage[T]:
    """One page of a list; beyond the last it is the last. Rows and their count are one cached answer."""

    def read(engine: Engine, query: ListQuery) -> ListPage[T]:
        total = count(engine, text=query.text)
        query = query.within(total)
        return ListPage(rows(engine, text=query.text, limit=query.page_rows, offset=query.offset), total, query)

    return _cached(read, _name_of(rows), query)


def _ask(read: Callable[Concatenate[Engine, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The answer of a function, cached under the function's name."""
    return _cached(read, _name_of(read), *args, **kwargs)


def _name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _cached(read: Callable[Concatenate[Engine, P], T], name: str, *args: P.args, **kwargs: P.kwargs) -> T:
    answer: T = _answer(read, context.config().database_url, name, args, tuple(sorted(kwargs.items())))
    return answer


@st.cache_data(ttl=_TTL_SECONDS, max_entries=_MAX_ANSWERS, show_spinner=False)
def _answer(
    _read: Callable[..., Any], url: str, name: str, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]
) -> Any:
    return _read(_engine(url), *args, **dict(kwargs))


@st.cache_resource(max_entries=1, show_spinner=False, on_release=lambda engine: engine.dispose())
def _engine(url: str) -> Engine:
    return queries.connect(context.config())
