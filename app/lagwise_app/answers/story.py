"""What happened to one group lately, and who its members are. The callers have checked that the group may be seen."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from lagwise.tables.analysis import STATUS_CHANGES
from lagwise.tables.arrow_values import rows_of
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_app.answers.groups import Row
from lagwise_app.answers.models import CHANGE_COLUMNS, EVENT_COLUMNS, MEMBER_COLUMNS

#: How far back events are told.
EVENTS_SPAN = timedelta(days=1)
#: How old the newest sample of the members may be.
MEMBERS_SPAN = timedelta(hours=1)
#: At most this many events, and changes, are told: the newest.
MOST_EVENTS = 100


@dataclass(frozen=True, slots=True)
class GroupStory:
    """The members of a group in its newest sample, and what happened to it, the newest first."""

    members: list[Row]
    events: list[Row]
    status_changes: list[Row]


def story(lake: Lake, cluster: str, group: str, now: datetime) -> GroupStory:
    """The story of a group until ``now``. Raises LakeError."""
    return GroupStory(
        _members(lake, cluster, group, now),
        _of_last_day(lake, EVENTS, EVENT_COLUMNS, cluster, group, now),
        _of_last_day(lake, STATUS_CHANGES, CHANGE_COLUMNS, cluster, group, now, "and topic is null"),
    )


def _members(lake: Lake, cluster: str, group: str, now: datetime) -> list[Row]:
    # A group that was sampled without members has none, however many it had before.
    question = f"""
        with newest as (
            select cluster, arg_max(sample_id, sampled_at) as sample_id from groups
            where cluster = $cluster and "group" = $group and sampled_at >= $since group by cluster
        )
        select {_listed(MEMBER_COLUMNS)} from members semi join newest using (cluster, sample_id)
        where "group" = $group and sampled_at >= $since
        order by assigned_partitions desc, member_id
    """  # noqa: S608 (our own names)
    since = now - MEMBERS_SPAN
    return rows_of(lake.query(question, _values(cluster, group, since), over=[GROUPS, MEMBERS], since=since))


def _of_last_day(
    lake: Lake, table: Table, columns: tuple[str, ...], cluster: str, group: str, now: datetime, condition: str = ""
) -> list[Row]:
    # A collector that was killed may have reported the same event twice.
    question = f"""
        select distinct {_listed(columns)} from {table.name}
        where cluster = $cluster and "group" = $group and "at" >= $since {condition}
        order by "at" desc limit {MOST_EVENTS}
    """  # noqa: S608 (our own names)
    since = now - EVENTS_SPAN
    return rows_of(lake.query(question, _values(cluster, group, since), over=[table], since=since))


def _values(cluster: str, group: str, since: datetime) -> dict[str, object]:
    return {"cluster": cluster, "group": group, "since": since}


def _listed(columns: tuple[str, ...]) -> str:
    return ", ".join(f'"{column}"' for column in columns)
