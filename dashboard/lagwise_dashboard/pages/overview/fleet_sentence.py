"""The groups in trouble in one sentence: how many, how badly, and what they share."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from lagwise.domain.humanise import count, plural
from lagwise.domain.vocabulary import DISPLAY_ORDER, Status
from lagwise_alerts.operate import SharedIncidents
from lagwise_dashboard.queries.overview import FleetGroup

#: What one group does, and what several do.
_VERBS = {
    Status.LOSING_DATA: ("loses data", "lose data"),
    Status.AT_RISK: ("is at risk", "are at risk"),
    Status.STOPPED: ("is stopped", "are stopped"),
    Status.STALLED: ("is stalled", "are stalled"),
    Status.REWOUND: ("was rewound", "were rewound"),
    Status.FALLING_BEHIND: ("falls behind", "fall behind"),
    Status.LAGGING: ("lags", "lag"),
}
_WELL = frozenset({Status.OK, Status.CATCHING_UP})
#: Fewer share something by chance: as many as a shared incident takes by default.
_MIN_SHARING = SharedIncidents().groups
#: What at most this share of the well groups has, too, says something about those in trouble.
_MAX_WELL_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class SharedIncident:
    """An open shared incident: what its groups share, in words, and the groups by cluster and name."""

    shared_by: str
    groups: frozenset[tuple[str, str]]


#: Something that groups may share: the words before its name, and its name for a group; None where it has none.
Trait = tuple[str, Callable[[FleetGroup], str | None]]


def sentence(groups: Sequence[FleetGroup], traits: Sequence[Trait], incidents: Sequence[SharedIncident] = ()) -> str:
    """``10 groups lose data, all on topic clicks; 3 more are in trouble.`` Plain text; empty where none is in trouble.

    ``traits`` are what groups may share, the narrowest first. A shared incident that alerts know of comes first (of
    several the one with most of these groups): it was found with more evidence than this page has.
    """
    troubled = [one for one in groups if one.status in _VERBS]
    if not troubled:
        return ""
    sizes = [sum((one.cluster, one.group) in incident.groups for one in troubled) for incident in incidents]
    if (together := max(sizes, default=0)) > 1:
        largest = incidents[sizes.index(together)]
        what = f"{count(together)} groups are in one shared incident, {largest.shared_by}"
        return what + _more(len(troubled) - together)
    status = next(status for status in DISPLAY_ORDER if any(one.status == status for one in troubled))
    worst = [one for one in troubled if one.status == status]
    well = [one for one in groups if one.status in _WELL]
    if len(worst) < len(troubled) and (shared := _shared(troubled, well, traits)):
        return (
            f"{count(len(troubled))} groups are in trouble, all {shared}: {count(len(worst))} {_verb(status, worst)}."
        )
    shared = _shared(worst, well, traits)
    who = worst[0].group if len(worst) == 1 else plural(len(worst), "group")
    return f"{who} {_verb(status, worst)}{f', all {shared}' if shared else ''}" + _more(len(troubled) - len(worst))


def clusters_differ(groups: Sequence[FleetGroup], watched: Collection[str]) -> bool:
    """Whether a cluster sets groups apart: others are elsewhere, on a cluster that the settings name. What is not
    collected, as the made-up cluster of the demo, is no elsewhere. Without any cluster in the settings, all count."""
    there = {one.cluster for one in groups}
    return len(there & set(watched) if watched else there) > 1


def _more(number: int) -> str:
    return f"; {count(number)} more {'is' if number == 1 else 'are'} in trouble." if number else "."


def _verb(status: Status, groups: Sequence[FleetGroup]) -> str:
    return _VERBS[status][len(groups) > 1]


def _shared(groups: Sequence[FleetGroup], well: Sequence[FleetGroup], traits: Sequence[Trait]) -> str:
    """What all of these groups have and most of the well ones have not, as ``on topic clicks``; empty if nothing."""
    if len(groups) < _MIN_SHARING or not well:
        return ""
    for words, name_of in traits:
        name = name_of(groups[0])
        if not name or any(name_of(one) != name for one in groups):
            continue
        if sum(name_of(one) == name for one in well) <= _MAX_WELL_SHARE * len(well):
            return f"{words} {name}"
    return ""
