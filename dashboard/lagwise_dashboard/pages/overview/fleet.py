"""The strip of all groups: by what it is grouped, and the sentence on it."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from lagwise.links import pages, parameters
from lagwise.platform.errors import LagwiseError
from lagwise_alerts.operate import AlertKind, AlertState, owner_of
from lagwise_dashboard import address, alert_reader, visibility
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.overview import fleet_sentence, fleet_strip, owners
from lagwise_dashboard.pages.overview.fleet_sentence import SharedIncident, Trait
from lagwise_dashboard.pages.overview.fleet_strip import Block
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.overview import FleetGroup, GroupKeys

_CLUSTER, _TOPIC, _OWNER, _HOST = "cluster", "topic", "owner", "host"
_LABELS = {_CLUSTER: "By cluster", _TOPIC: "By topic", _OWNER: "By owner", _HOST: "By member's host"}
_FILTERS = {_CLUSTER: parameters.CLUSTER, _TOPIC: parameters.SEARCH, _OWNER: parameters.OWNER}
#: What groups have in common, in words that its name follows.
_SHARED = {_TOPIC: "on topic", _HOST: "on host", _OWNER: "owned by", _CLUSTER: "on cluster"}
_NAMELESS = {_TOPIC: "no topic", _OWNER: "no owner", _HOST: "no member"}


def grouping() -> None:
    """A choice of what the strip is grouped by."""
    st.selectbox(
        "Grouped by",
        list(_LABELS),
        index=None,
        placeholder="Not grouped",
        format_func=_LABELS.__getitem__,
        label_visibility="collapsed",
        width=160,
        **address.bound(parameters.GROUPED_BY),
    )


def show(cluster: str | None, text: str, among: GroupKeys | None) -> None:
    """Draw the strip of the groups that match; nothing where none does."""
    if strip := of(cluster, text, among):
        fleet_strip.show(*strip)


def of(cluster: str | None, text: str, among: GroupKeys | None) -> tuple[list[Block], str] | None:
    """The groups that match as the strip shows them, and the sentence on all of them; None where none does."""
    by = address.get(parameters.GROUPED_BY)
    groups = ask(overview.fleet_with_hosts if by == _HOST else overview.fleet, cluster, text, among)
    if not groups:
        return None
    names: dict[str, Callable[[FleetGroup], str | None]] = {
        _TOPIC: _topic,
        _HOST: _host,
        _OWNER: _team_of(),
        _CLUSTER: _cluster,
    }
    shown = [Block("", groups)]
    if by:
        shown = fleet_strip.blocks(groups, names[by], nameless=_NAMELESS.get(by, ""), href=partial(_href, by))
    watched = {cluster.name for cluster in visibility.clusters()}
    if not fleet_sentence.clusters_differ(groups, watched):
        del names[_CLUSTER]
    traits: list[Trait] = [(_SHARED[key], name_of) for key, name_of in names.items()]
    return shown, fleet_sentence.sentence(groups, traits, _shared_incidents())


def _cluster(one: FleetGroup) -> str | None:
    return one.cluster


def _topic(one: FleetGroup) -> str | None:
    return one.topic


def _host(one: FleetGroup) -> str | None:
    return one.host


def _team_of() -> Callable[[FleetGroup], str | None]:
    """The team of a group. The page itself reports a file of rules that cannot be read."""
    try:
        known = owners.owners()
    except LagwiseError:
        known = ()

    def team(one: FleetGroup) -> str | None:
        owner = owner_of(known, one.cluster, one.group) if known else None
        return owner.team if owner else None

    return team


def _href(by: str, name: str) -> str | None:
    """The overview as it is, narrowed to the name of a block; None where no filter does that."""
    parameter = _FILTERS.get(by)
    if parameter is None:
        return None
    return address.href(pages.OVERVIEW, {one: address.get(one) for one in pages.OVERVIEW.reads} | {parameter: name})


def _shared_incidents() -> list[SharedIncident]:
    """Shared incidents that fire. Without the database of the alerts, which its own page reports, there are none."""
    try:
        alerts = alert_reader.open_alerts()
    except LagwiseError:
        return []
    found = []
    for shared in alerts:
        if shared.subject.kind is AlertKind.SHARED_INCIDENT and shared.state is AlertState.FIRING:
            its = [one.subject for one in alerts if one.shared_incident == shared.incident_id]
            groups = frozenset((one.cluster, one.group) for one in its if one.cluster and one.group is not None)
            found.append(SharedIncident(shared.subject.shared_by, groups))
    return found
