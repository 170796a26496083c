"""Which group and topic the capacity page is about, and everything that is known of them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.sizing.known_workload import as_planned, known_values
from lagwise.domain.sizing.words import say_number, say_share
from lagwise_dashboard import literal, settings
from lagwise_dashboard.cache import ask
from lagwise_dashboard.components import capacity_headroom, capacity_inputs, capacity_standing, capacity_what_if
from lagwise_dashboard.components.capacity_headroom import GROUP, TOPIC
from lagwise_dashboard.components.capacity_inputs import Start
from lagwise_dashboard.components.freshness import Freshness
from lagwise_dashboard.queries import capacity as queries
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.capacity import Load

#: A week has its busiest hour in it, mostly.
_SPAN = timedelta(days=7)
#: The span moves on in steps, so that browsers that look at the same moment share one answer.
_STEP_SECONDS = 60
_MOST_CHOICES = 1000


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the page is about. Without a group everything is empty."""

    #: The group's row of the table `capacity`; None where there is none yet.
    row: Row | None = None
    #: What is known of the group; None is no group.
    start: Start | None = None


def choose(fresh: Freshness | None, now: datetime) -> Chosen:
    """Let a group be chosen. Without one all groups' verdicts are shown, with one its own."""
    if fresh is None or fresh.as_of is None:
        st.caption("No group is known yet. What stands grey in the fields below is an example.")
        return Chosen()
    headroom, total = ask(queries.headroom)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = _group(headroom)
        if chosen is not None:
            cluster, _, group = chosen.partition("/")
            row = _topic(ask(queries.standing, cluster, group))
    if chosen is None:
        capacity_headroom.show(headroom, total, now)
        st.caption("Without a group, what stands grey in the fields below is an example.")
        return Chosen()
    if row is None:
        st.info(
            "**No verdict on its capacity yet.** The analysis works one out a few minutes after it has seen a group. "
            "Until then type in below what is not known.",
            icon=":material/hourglass_top:",
        )
    else:
        capacity_standing.show(row, now)
    until = datetime.fromtimestamp(-(-now.timestamp() // _STEP_SECONDS) * _STEP_SECONDS, now.tzinfo)
    load = ask(queries.load, cluster, group, until - _SPAN, until)
    if load is not None:
        st.caption(_provenance(load, now))
    return Chosen(row, _start(load, row, now))


def _group(headroom: list[Row]) -> str | None:
    names = [f"{r['cluster']}/{r['group']}" for r in [*ask(overview.names, "", _MOST_CHOICES), *headroom]]
    chosen: str | None = st.selectbox(
        "Group",
        list(dict.fromkeys(names)),
        index=None,
        key=GROUP,
        bind="query-params",
        placeholder="All groups; type a part of a name",
        format_func=literal.shown,
        on_change=_forget,
    )
    return chosen


def _topic(rows: list[Row]) -> Row | None:
    """The row of the topic that is looked at: the one chosen, or else the worst."""
    if len(rows) < 2:
        return rows[0] if rows else None
    topics = [r["topic"] for r in rows]
    chosen = st.selectbox(
        "Topic",
        topics,
        key=TOPIC,
        bind="query-params",
        format_func=literal.shown,
        on_change=_forget_known,
    )
    return rows[topics.index(chosen)] if chosen in topics else rows[0]


def _forget() -> None:
    """What was typed over one group's numbers is not the next one's."""
    st.session_state.pop(TOPIC, None)
    _forget_known()


def _forget_known() -> None:
    capacity_inputs.forget_known()
    capacity_what_if.forget()


def _start(load: Load | None, row: Row | None, now: datetime) -> Start:
    """The verdict's numbers, which are the topic's, as `lagwise size` starts with them; without a verdict the load of
    all that the group reads."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    if row is not None:
        values, sources = known_values(row, now)
    elif load is not None:
        load_of = f"its load of the last {humanise.duration(_SPAN.total_seconds())}"
        values = {
            "peak_rate_per_second": load.peak_rate_per_second,
            "partitions": load.partitions or None,
        }
        values = as_planned({name: value for name, value in values.items() if value is not None})
        sources = dict.fromkeys(values, load_of)
    values["target_utilisation"] = settings.config().analysis.capacity.target_utilisation
    sources["target_utilisation"] = "settings"
    return Start(values, sources, "from the group")


def _provenance(load: Load, now: datetime) -> str:
    """What is known of the group's load, from how much history, and how old that is."""
    topics = f" of {load.topics} topics, taken together" if load.topics > 1 else ""
    said = [f"It reads {humanise.plural(load.partitions, 'partition')}{topics}."]
    if load.peak_rate_per_second is None or load.first_at is None or load.last_at is None:
        said.append("How much is written to them is not known yet: type the peak.")
    else:
        span = humanise.duration((load.last_at - load.first_at).total_seconds())
        said.append(
            f"Its peak was {say_number(load.peak_rate_per_second)} messages/s; 99 % of the time it was at most "
            f"{say_number(load.usual_peak_rate_per_second or 0.0)}. That is from "
            f"{humanise.plural(load.rounds, 'round')} of the analysis over {span} (of the last "
            f"{humanise.duration(_SPAN.total_seconds())}), the newest {humanise.since(load.last_at, now)} ago."
        )
        if load.last_at - load.first_at < timedelta(days=1):
            said.append("Less than a day: the daily peak may not be in it.")
    if load.hottest_share is not None:
        said.append(f"Its hottest partition now gets {say_share(load.hottest_share)} of the traffic.")
    if load.lag:
        said.append(f"Its lag of {humanise.count(load.lag)} is no backlog here unless you type it in.")
    return " ".join(said)
