"""What a group may share with others besides its topics and its cluster: brokers, and the hosts and clients of members.

Brokers are those that lead the group's partitions; of a group in trouble, those of its partitions in trouble. Members
are those of the last half hour: the members of a host that has failed are gone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from lagwise.domain.causes import TROUBLE
from lagwise.domain.correlation import GroupTraits, SharedThing, ThingKind
from lagwise.domain.vocabulary import Status
from lagwise_alerts.evaluate.group_facts import Group
from lagwise_alerts.evaluate.observation import GroupRow

MEMBERS_LOOKBACK = timedelta(minutes=30)
#: A group that has had its status for longer did not get worse lately.
_LATELY = timedelta(minutes=30)
#: So many groups must have got worse lately for what they share to be read.
_SEVERAL = 2

_TROUBLE_WORDS = ", ".join(f"'{status.value}'" for status in sorted(TROUBLE))
LEADERS_SQL = f"""
with led as (
    select cluster, "group", leader, count(*) as partitions,
        count(*) filter (where status in ({_TROUBLE_WORDS})) as in_trouble
    from partition_status
    where leader is not null and status <> '{Status.GHOST.value}'
    group by all
)
select cluster, "group",
    list(leader) as leaders,
    coalesce(list(leader) filter (where in_trouble > 0), []) as leaders_in_trouble,
    max(partitions) / sum(partitions) as largest_share
from led
group by all
"""  # noqa: S608 (words of our own)
MEMBERS_SQL = """
select cluster, "group",
    list(distinct host) filter (where host is not null) as hosts,
    list(distinct client_id) filter (where client_id is not null) as client_ids
from members
where sampled_at >= ?
group by all
"""


def have_got_worse(groups: Iterable[GroupRow]) -> bool:
    """Whether several groups are in trouble that lately were not, or not in this one."""
    worse = 0
    for row in groups:
        record = row.record
        worse += row.is_getting_older or (record.status in TROUBLE and record.as_of - record.since <= _LATELY)
    return worse >= _SEVERAL


def traits_by_group(
    leaders: Iterable[Mapping[str, Any]], members: Iterable[Mapping[str, Any]]
) -> dict[Group, GroupTraits]:
    """The traits of each group from rows of :data:`LEADERS_SQL` and :data:`MEMBERS_SQL`."""
    found: dict[Group, GroupTraits] = {}
    for row in leaders:
        cluster = row["cluster"]
        ours = row["leaders_in_trouble"] or row["leaders"]
        brokers = [SharedThing(ThingKind.BROKER, str(leader), cluster) for leader in ours]
        is_one = len(row["leaders_in_trouble"]) == 1 and len(row["leaders"]) > 1
        found[cluster, row["group"]] = GroupTraits(
            frozenset(brokers), brokers[0] if is_one else None, largest_broker_share=row["largest_share"]
        )
    for row in members:
        key = row["cluster"], row["group"]
        before = found.get(key, GroupTraits(frozenset()))
        things = {SharedThing(ThingKind.HOST, host) for host in row["hosts"] or ()}
        things |= {SharedThing(ThingKind.CLIENT_ID, client_id) for client_id in row["client_ids"] or ()}
        found[key] = replace(before, things=before.things | things)
    return found
