"""What groups that got worse together share, in words."""

from collections.abc import Mapping
from datetime import datetime

from lagwise.domain.correlation import GroupKey, GroupTraits, SharedThing, ThingKind
from lagwise.domain.humanise import count, duration

#: A sentence names as many groups.
_MOST_NAMES = 5


def correlation_sentence(
    things: tuple[SharedThing, ...],
    began: Mapping[GroupKey, datetime],
    well: Mapping[GroupKey, GroupTraits],
    worse: Mapping[GroupKey, GroupTraits],
) -> str:
    """``20 groups got worse within 40 s. All 20 read topic clicks; of the 180 groups that are well, 2 do. …``.

    ``began`` says since when each group has been in trouble; ``worse`` has what these groups may share.
    """
    within_seconds = round((max(began.values()) - min(began.values())).total_seconds())
    within = "at the same time" if within_seconds < 1 else f"within {duration(within_seconds)}"
    parts = [f"{count(len(began))} groups got worse {within}."]
    for thing in things:
        hits = sum(thing in traits.things for traits in worse.values())
        others = sum(thing in traits.things for traits in well.values())
        who = f"All {count(hits)}" if hits == len(began) else f"{count(hits)} of them"
        if thing.kind is ThingKind.BROKER:
            only = sum(traits.only_broker == thing for traits in worse.values())
            nowhere_else = f", {count(only)} of them on no others" if only else ""
            parts.append(f"{who} {_what(thing)}{nowhere_else}; {_led(others, len(well))}.")
        else:
            parts.append(f"{who} {_what(thing)}; {_comparison(others, len(well))}.")
    names = sorted(name for _, name in began)
    more = f" and {count(len(names) - _MOST_NAMES)} more" if len(names) > _MOST_NAMES else ""
    return " ".join(parts) + f" Groups: {', '.join(names[:_MOST_NAMES])}{more}."


def _comparison(having: int, well: int) -> str:
    """How many of the well groups have the thing, too."""
    if not well:
        return "no other group is known to be well"
    if well == 1:
        return f"the only group that is well {'does' if having else 'does not'}"
    do = "none does" if not having else "1 does" if having == 1 else f"{count(having)} do"
    return f"of the {count(well)} groups that are well, {do}"


def _led(having: int, well: int) -> str:
    """Of how many well groups the broker leads partitions: they have no trouble there."""
    if not well:
        return "no other group is known to be well"
    if well == 1:
        return f"it leads {'some' if having else 'none'} of the partitions of the only group that is well"
    return f"it leads partitions of {count(having) if having else 'none'} of the {count(well)} groups that are well"


def _what(thing: SharedThing) -> str:
    match thing.kind:
        case ThingKind.TOPIC:
            return f"read topic {thing.name}"
        case ThingKind.BROKER:
            return f"have trouble on partitions that broker {thing.name} leads"
        case ThingKind.HOST:
            return f"have members on host {thing.name}"
        case ThingKind.CLIENT_ID:
            return f"have members with client id {thing.name}"
        case ThingKind.DOWNSTREAM:
            return f"depend on {thing.name}"
        case ThingKind.CLUSTER:
            return f"are on cluster {thing.name}"
