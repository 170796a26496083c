"""Which group and topic the capacity page is about, and everything that is known of them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.humanise import per_cent, significant
from lagwise.domain.sizing.group_workload import as_planned, known_values
from lagwise.links import parameters
from lagwise.links.parameter_types import Parameter
from lagwise_dashboard import address, context, escaping
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.capacity import capacity_verdict, headroom, inputs, what_if
from lagwise_dashboard.pages.capacity.inputs import StartingValues
from lagwise_dashboard.queries import capacity as queries
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.capacity import RecordedLoad
from lagwise_dashboard.queries.listing import ListQuery
from lagwise_dashboard.widgets import chooser, list_view
from lagwise_dashboard.widgets.freshness import Freshness

_CHOICE = "capacity_group"
#: A week has its busiest hour in it, mostly.
_SPAN = timedelta(days=7)
#: The span moves on in steps, so that browsers that look at the same moment share one answer.
_STEP_SECONDS = 60
_MAX_CHOICES = 1000
_OF_THE_GROUP: tuple[Parameter[Any], ...] = (*inputs.OF_THE_GROUP, *what_if.OF_THE_GROUP)


@dataclass(frozen=True, slots=True)
class SelectedGroup:
    """What the page is about. Without a group everything is empty."""

    #: The group's row of the table `capacity`; None where there is none yet.
    row: Row | None = None
    #: What is known of the group; None is no group.
    starting_values: StartingValues | None = None


def choose(fresh: Freshness | None, now: datetime) -> SelectedGroup:
    """Let a group be chosen. Without one all groups' verdicts are shown, with one its own."""
    if fresh is None or fresh.as_of is None:
        st.caption("No group is known yet. The grey values below are an example.")
        return SelectedGroup()
    verdicts = ask(queries.headroom, list_view.query(parameters.HEADROOM_LIST))
    cluster, group = _group_of_address()
    rows = [] if group is None else ask(queries.verdicts_of, cluster, group)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _group(verdicts.rows)
        row = _topic(rows)
    if group is None:
        headroom.show(verdicts, now)
        st.caption("Without a group, the grey values below are an example.")
        return SelectedGroup()
    until = context.rounded_up(now, _STEP_SECONDS)
    load = ask(queries.load, cluster, group, until - _SPAN, until)
    if row is None and load is None:
        _unknown(cluster, group)
        return SelectedGroup()
    if row is None:
        st.info(
            "**No verdict on its capacity yet.** The analysis produces one a few minutes after it first sees a group. "
            "Until then, enter the unknown values below.",
            icon=":material/hourglass_top:",
        )
    else:
        capacity_verdict.show(row, now)
    if load is not None:
        st.caption(_provenance(load, now))
    return SelectedGroup(row, _starting_values(load, row, now))


def _group_of_address() -> tuple[str, str | None]:
    """The cluster and the group of the address, which may name the group alone."""
    group = address.get(parameters.GROUP)
    return ("" if group is None else chooser.cluster_of(overview.clusters_of, group)), group


def _unknown(cluster: str, group: str) -> None:
    where = f" in the cluster **{escaping.markdown(cluster)}**" if cluster else ""
    if not cluster and ask(overview.clusters_of, group):
        sentences = f"**Several clusters have a group “{escaping.markdown(group)}”.** Choose one of them."
    else:
        sentences = f"**There is no group “{escaping.markdown(group)}”{where}.** Choose another one."
    st.warning(f"{sentences} The grey values below are an example.", icon=":material/search_off:")


def _group(verdicts: list[Row]) -> None:
    """A choice between the groups. Any name can be typed: of very many groups not all are offered."""
    offered = [(r["cluster"], r["group"]) for r in [*ask(overview.names, ListQuery(page_rows=_MAX_CHOICES)), *verdicts]]
    cluster, group = _group_of_address()
    shown = None if group is None else _name(cluster, group)
    names = dict.fromkeys([*(_name(*one) for one in offered), *([] if shown is None else [shown])])
    if st.session_state.get(_CHOICE, "") != shown:
        st.session_state[_CHOICE] = shown

    def chosen() -> None:
        chosen = st.session_state[_CHOICE]
        cluster, slash, group = (chosen or "").partition("/")
        # What was typed over one group's numbers is not the next one's.
        address.change(
            {
                **dict.fromkeys(_OF_THE_GROUP),
                parameters.CLUSTER: cluster if slash else "",
                parameters.GROUP: None if chosen is None else group if slash else cluster,
                parameters.TOPIC: "",
            }
        )

    st.selectbox(
        "Group",
        list(names),
        index=None,
        key=_CHOICE,
        on_change=chosen,
        accept_new_options=True,
        placeholder="All groups; type a part of a name",
        format_func=escaping.visible,
    )


def _name(cluster: str, group: str) -> str:
    return f"{cluster}/{group}" if cluster else group


def _topic(rows: list[Row]) -> Row | None:
    """The row of the topic that is looked at: the one of the address, or else the worst."""
    if not rows:
        return None
    topics = [r["topic"] for r in rows]
    wanted = address.get(parameters.TOPIC)
    if len(rows) > 1:
        st.selectbox(
            "Topic",
            topics,
            index=None,
            format_func=escaping.visible,
            **address.bound(parameters.TOPIC, empty=topics[0], options=topics, resets=_OF_THE_GROUP),
        )
    if wanted and wanted not in topics:
        st.warning(
            f"**The group does not read a topic “{escaping.markdown(wanted)}”.** "
            f"Shown is {escaping.markdown(topics[0])}.",
            icon=":material/search_off:",
        )
    return rows[topics.index(wanted)] if wanted in topics else rows[0]


def _starting_values(load: RecordedLoad | None, row: Row | None, now: datetime) -> StartingValues:
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
    values["target_utilisation"] = context.config().analysis.capacity.target_utilisation
    sources["target_utilisation"] = "settings"
    return StartingValues(values, sources, "from the group")


def _provenance(load: RecordedLoad, now: datetime) -> str:
    """What is known of the group's load, from how much history, and how old that is."""
    topics = f" of {load.topics} topics, taken together" if load.topics > 1 else ""
    sentences = [f"It reads {humanise.plural(load.partitions, 'partition')}{topics}."]
    if load.peak_rate_per_second is None or load.first_at is None or load.last_at is None:
        sentences.append("The write rate is unknown: enter the peak.")
    else:
        span = humanise.duration((load.last_at - load.first_at).total_seconds())
        sentences.append(
            f"Its peak was {significant(load.peak_rate_per_second)} messages/s; 99 % of the time it was at most "
            f"{significant(load.usual_peak_rate_per_second or 0.0)}. That is from "
            f"{humanise.plural(load.rounds, 'round')} of the analysis over {span} (of the last "
            f"{humanise.duration(_SPAN.total_seconds())}), the newest {humanise.since(load.last_at, now)} ago."
        )
        if load.last_at - load.first_at < timedelta(days=1):
            sentences.append("Less than a day: the daily peak may not be in it.")
    if load.hottest_share is not None:
        sentences.append(f"Its hottest partition now gets {per_cent(load.hottest_share)} of the traffic.")
    if load.lag:
        sentences.append(f"Its lag of {humanise.count(load.lag)} does not count as a backlog here unless you enter it.")
    return " ".join(sentences)
