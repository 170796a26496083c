"""Which group and topic a page about capacity is about, and how much of the group's load is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.capacity.outlook import Outlook
from lagwise.domain.humanise import per_cent, significant
from lagwise.links import parameters
from lagwise.links.parameter_types import Parameter
from lagwise_dashboard import address, context, escaping
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import capacity as queries
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.capacity import RecordedLoad
from lagwise_dashboard.queries.listing import ListQuery
from lagwise_dashboard.report.capacity_report import CapacityReport
from lagwise_dashboard.widgets import chooser

_CHOICE = "capacity_group"
#: A week has its busiest hour in it, mostly.
LOAD_SPAN = timedelta(days=7)
#: The span moves on in steps, so that browsers that look at the same moment share one answer.
_STEP_SECONDS = 60
_MAX_CHOICES = 1000


@dataclass(frozen=True, slots=True)
class SelectedGroup:
    """What the page is about. Without a group everything is empty."""

    #: The group of the address, which may be none that there is.
    name: str | None = None
    #: Its row of the table `capacity`; None where there is none yet.
    row: Row | None = None
    #: Its load; None where nothing is known of it.
    load: RecordedLoad | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is such a group."""
        return self.row is not None or self.load is not None


def choose(now: datetime, *, placeholder: str, resets: Sequence[Parameter[Any]]) -> SelectedGroup:
    """Let a group be chosen, and of several topics one; a group that does not exist is reported.

    ``placeholder`` stands for no group. Another group or topic takes the ``resets`` out of the address: what was typed
    over one group's numbers is not the next one's.
    """
    cluster, group = _group_of_address()
    rows = [] if group is None else ask(queries.verdicts_of, cluster, group)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _group(placeholder, resets)
        row = _topic(rows, resets)
    if group is None:
        return SelectedGroup()
    until = context.rounded_up(now, _STEP_SECONDS)
    selected = SelectedGroup(group, row, ask(queries.load, cluster, group, until - LOAD_SPAN, until))
    if not selected.is_known:
        _unknown(cluster, group)
    return selected


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
    st.warning(sentences, icon=":material/search_off:")


def _group(placeholder: str, resets: Sequence[Parameter[Any]]) -> None:
    """A choice between the groups. Any name can be typed: of very many groups not all are offered."""
    offered = [_name(r["cluster"], r["group"]) for r in ask(overview.names, ListQuery(page_rows=_MAX_CHOICES))]
    cluster, group = _group_of_address()
    shown = None if group is None else _name(cluster, group)
    names = dict.fromkeys([*offered, *([] if shown is None else [shown])])
    address.fill(_CHOICE, shown)

    def chosen() -> None:
        chosen = st.session_state[_CHOICE]
        cluster, slash, group = (chosen or "").partition("/")
        address.change(
            {
                **dict.fromkeys(resets),
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
        placeholder=placeholder,
        format_func=escaping.visible,
    )


def _name(cluster: str, group: str) -> str:
    return f"{cluster}/{group}" if cluster else group


def _topic(rows: list[Row], resets: Sequence[Parameter[Any]]) -> Row | None:
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
            **address.bound(parameters.TOPIC, empty=topics[0], options=topics, resets=resets),
        )
    if wanted and wanted not in topics:
        st.warning(
            f"**The group does not read a topic “{escaping.markdown(wanted)}”.** "
            f"Shown is {escaping.markdown(topics[0])}.",
            icon=":material/search_off:",
        )
    return rows[topics.index(wanted)] if wanted in topics else rows[0]


def outlook_of(selected: SelectedGroup, now: datetime) -> Outlook | None:
    """The forecast of the topic; None where the group has no row."""
    row = selected.row
    if row is None:
        return None
    # By the minute, so that browsers that look at the same moment share one answer.
    return ask(queries.outlook, row["cluster"], row["topic"], now.replace(second=0, microsecond=0))


def known(selected: SelectedGroup, outlook: Outlook | None, now: datetime) -> CapacityReport:
    """What can be taken away of a group, or of any workload, without advice."""
    config, row = context.config(), selected.row
    return CapacityReport(
        advice=None,
        row=row,
        cluster_note="" if row is None else config.dashboard.cluster_notes.get(row["cluster"], ""),
        outlook=outlook,
        target_utilisation=config.analysis.capacity.target_utilisation,
        now=now,
    )


def provenance(selected: SelectedGroup, now: datetime) -> str:
    """What is known of the group's load, from how much history, and how old that is; empty where nothing is."""
    load = selected.load
    if load is None:
        return ""
    topics = f" of {load.topics} topics, taken together" if load.topics > 1 else ""
    sentences = [f"It reads {humanise.plural(load.partitions, 'partition')}{topics}."]
    if selected.row is None or selected.row["peak_rate_per_second"] is None:
        # A verdict has its peak from the minutes of the topic: what rounds saw of it is no better.
        sentences += _peak_seen(load, now)
    if load.hottest_share is not None:
        sentences.append(f"Its hottest partition now gets {per_cent(load.hottest_share)} of the traffic.")
    return " ".join(sentences)


def _peak_seen(load: RecordedLoad, now: datetime) -> Iterator[str]:
    """The highest rate that rounds saw."""
    if load.peak_rate_per_second is None or load.first_at is None or load.last_at is None:
        yield "The write rate is unknown."
        return
    span = humanise.duration((load.last_at - load.first_at).total_seconds())
    yield (
        f"Its peak was {significant(load.peak_rate_per_second)} messages/s; 99 % of the time it was at most "
        f"{significant(load.usual_peak_rate_per_second or 0.0)}. That is from "
        f"{humanise.plural(load.rounds, 'round')} of the analysis over {span} (of the last "
        f"{humanise.duration(LOAD_SPAN.total_seconds())}), the newest {humanise.since(load.last_at, now)} ago."
    )
    if load.last_at - load.first_at < timedelta(days=1):
        yield "Less than a day: the daily peak may not be in it."
