"""Alerts, deliveries, saved views and heartbeats, read from the operational database: what the reader may see of them.
Answers are kept for a moment, for every open browser.

Whatever is read here raises DatabaseError where the database cannot be read.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import parse_qs

import streamlit as st
from sqlalchemy import Engine

from lagwise.config.visibility import Visibilities
from lagwise.links import parameters
from lagwise.operational.heartbeats import SharedBeat, read_heartbeats
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
from lagwise_dashboard import context, identity, visibility
from lagwise_dashboard.queries.listing import ListPage, ListQuery

P = ParamSpec("P")
T = TypeVar("T")

#: The database has no versions to go by; a page is at most this much behind it.
_TTL_SECONDS = 2
_MAX_ANSWERS = 500
MAX_ROWS = 200
#: The event of a message about an alert that became louder, or got a worse rule.
ESCALATED = "escalated"


def counts() -> AlertCounts:
    """How many alerts and messages are in which state."""
    return _ask(queries.counts, _groups())


def open_alerts() -> list[Alert]:
    """Firing and pending alerts, most severe first."""
    return _seen(_ask(queries.open_alerts))


def history_of(cluster: str, group: str) -> list[Alert]:
    """The group's alerts that ended last, latest first."""
    return _seen(_ask(queries.history, cluster=cluster, group=group, limit=MAX_ROWS))


def history(query: ListQuery) -> ListPage[Alert]:
    """Alerts that ended, latest first."""
    return _page(queries.history, queries.count_history, query, among=_groups())


def deliveries(query: ListQuery) -> ListPage[DeliveryRow]:
    """Messages, latest first."""
    return _page(queries.deliveries, queries.count_deliveries, query, among=_groups())


def messages_of(incident_ids: Iterable[str], since: datetime) -> list[IncidentMessage]:
    """All messages about incidents since the minute of that time, in order."""
    ids = [alert.incident_id for alert in _alerts(incident_ids)]
    return _ask(queries.messages_of, tuple(ids), since.replace(second=0, microsecond=0))


def escalations(alerts: Iterable[Alert], since: datetime) -> dict[str, list[datetime]]:
    """When these alerts were escalated, by incident, oldest first: as far as messages say so."""
    ids = {alert.incident_id for alert in alerts if len(alert.notified_rules) > 1}
    found: dict[str, set[datetime]] = {}
    for message in messages_of(ids, since) if ids else ():
        if message.event == ESCALATED:
            found.setdefault(message.incident_id, set()).add(message.created_at)
    return {incident: sorted(times) for incident, times in found.items()}


def alerts_of(rows: Iterable[DeliveryRow]) -> list[Alert]:
    """The alerts that messages are about."""
    return _alerts({row.incident_id for row in rows})


def mute_state() -> MuteState:
    """What operators and settings mute now: to be asked about alerts, never to be shown."""

    def read(engine: Engine) -> MuteState:
        return queries.mute_state(engine, context.config().alerts.maintenance, context.now())

    return _ask(read)


def silences() -> list[Silence]:
    """Silences in force or to come. Who sees some groups only sees those of one group: other patterns name any."""

    def read(engine: Engine) -> list[Silence]:
        return queries.silences(engine, context.now())

    seen = visibility.of_reader()
    return [one for one in _ask(read) if seen.shows(*one.matcher.one_group)]


def saved_views() -> list[SavedView]:
    """All saved views by name. Who sees some groups only sees their own, and those of one group: the name or the
    address of another may name any."""
    seen, person = visibility.of_reader(), identity.current()
    return [
        view
        for view in _ask(queries.saved_views)
        if seen.is_unlimited or (person is not None and view.saved_by == person.name) or _is_of_a_group(view, seen)
    ]


def _is_of_a_group(view: SavedView, seen: Visibilities) -> bool:
    texts = parse_qs(view.query)
    its = [texts.get(parameter.name, []) for parameter in (parameters.CLUSTER, parameters.GROUP)]
    return all(len(given) == 1 for given in its) and seen.shows(its[0][0], its[1][0])


def actions(query: ListQuery) -> ListPage[ActionRow]:
    """What operators did, latest first. Who sees some groups only sees what they did themselves."""
    person = identity.current()
    who = None if visibility.sees_everything() else person.name if person is not None else ""
    return _page(queries.actions, queries.count_actions, query, who=who)


def dead() -> list[DeliveryRow]:
    """Undelivered messages, latest first."""
    return _ask(queries.deliveries, state="dead", among=_groups(), limit=MAX_ROWS)


def summary_sizes() -> dict[int, int]:
    """How many messages each summary holds; a summary may be about any group."""
    return _ask(queries.summary_sizes) if visibility.sees_everything() else {}


def heartbeats(now: datetime) -> list[SharedBeat]:
    """The last report of every process, on whatever machine; their words may name any cluster, so that readers of some
    groups get none."""
    return read_heartbeats(engine(), now) if visibility.sees_everything() else []


def _groups() -> queries.Groups | None:
    """The groups that alerts are about and the reader sees; None is all, and also what is about no group."""
    seen = visibility.of_reader()
    return None if seen.is_unlimited else tuple(sorted(one for one in _ask(queries.groups) if seen.shows(*one)))


def _alerts(incident_ids: Iterable[str]) -> list[Alert]:
    return _seen(_ask(queries.alerts_of, tuple(sorted(incident_ids))))


def _seen(alerts: list[Alert]) -> list[Alert]:
    """Those of the alerts that the reader sees. What is about no group, or about several, takes seeing everything."""
    seen = visibility.of_reader()
    return [alert for alert in alerts if seen.shows(alert.subject.cluster, alert.subject.group)]


def engine() -> Engine:
    """The database, for operators' actions."""
    made: Engine = _engine(context.config().database_url)
    return made


def clear_cache() -> None:
    """Forget all answers: an action has changed something."""
    _answer.clear()


def _page(rows: Callable[..., list[T]], count: Callable[..., int], query: ListQuery, **limit: Any) -> ListPage[T]:
    """One page of a list; beyond the last it is the last. Rows and their count are one cached answer."""

    def read(engine: Engine, query: ListQuery, /, **limit: Any) -> ListPage[T]:
        total = count(engine, text=query.text, **limit)
        query = query.within(total)
        found = rows(engine, text=query.text, limit=query.page_rows, offset=query.offset, **limit)
        return ListPage(found, total, query)

    return _cached(read, _name_of(rows), query, **limit)


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
