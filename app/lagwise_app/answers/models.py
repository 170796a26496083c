"""The shape of the answers, as pydantic models. Those of rows are made from the tables, whose columns say what they
mean; an OpenAPI document is made from all of them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, create_model

from lagwise.domain.group_record import GroupNumbers
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS, STATUS_CHANGES
from lagwise.tables.raw import EVENTS, MEMBERS
from lagwise.tables.schema import Column, Table
from lagwise_app.terminal.lake_queries import PARTITION_COLUMNS


class Answer(BaseModel):
    """Times are UTC, and null is unknown."""

    model_config = ConfigDict(serialize_by_alias=True)


#: What a list of groups says of each.
SUMMARY_COLUMNS = (
    "cluster", "group", "as_of", "status", "reason", "since", "sentence", "state", "type", "members", "idle_members",
    "partitions", "lag", "lag_seconds", "lag_seconds_is_lower_bound", "produce_rate_per_second",
    "consume_rate_per_second", "seconds_to_catch_up", "seconds_to_breach", "seconds_to_loss", "records_lost",
)  # fmt: skip
#: What is said of a member. A group's last known members are those of its newest sample.
MEMBER_COLUMNS = (
    "member_id", "client_id", "host", "static_instance_id", "sampled_at", "assigned_partitions", "assignment", "lag",
)  # fmt: skip
EVENT_COLUMNS = (
    "at", "kind", "topic", "partition", "before", "after", "generation", "source", "cause", "joined", "left", "failed",
    "members", "partitions_moved", "duration_seconds",
)  # fmt: skip
CHANGE_COLUMNS = ("at", "before", "after", "reason")


def _python_type(name: str, of: pa.DataType) -> Any:
    if pa.types.is_list(of):
        return list[_python_type(name.removesuffix("s"), of.value_type)]  # type: ignore[misc]  # made at run time
    if pa.types.is_struct(of):
        fields = {field.name: (_python_type(field.name, field.type) | None, ...) for field in of}
        return create_model(name.capitalize(), __base__=Answer, **fields)  # type: ignore[call-overload]  # made at run time
    if pa.types.is_timestamp(of):
        return datetime
    return {pa.string(): str, pa.bool_(): bool, pa.float64(): float, pa.int32(): int, pa.int64(): int}[of]


def _field(column: Column) -> Any:
    kind = _python_type(column.name, column.type)
    # Always there, so without a default.
    return (kind | None if column.nullable else kind, Field(description=column.meaning))


def of_table(name: str, doc: str, table: Table, columns: Iterable[str] | None = None, **others: Any) -> type[Answer]:
    """A model of a table's rows, with these columns or all, and ``others`` after them or instead of them."""
    wanted = [c for c in table.columns if c.name not in others and (columns is None or c.name in columns)]
    fields = {column.name: _field(column) for column in wanted} | others
    made: type[Answer] = create_model(name, __base__=Answer, __doc__=doc, **fields)
    return made


FRESHNESS: dict[str, Any] = {
    "is_stale": (bool, Field(description="the row is older than the intervals of collector and analysis explain")),
    "owner": (
        str | None,
        Field(
            description="team that owns the group, by the alert rules (a partition's owner is a member); null: none, "
            "or their file cannot be used"
        ),
    ),
}
GroupSummary = of_table(
    "GroupSummary", "What is known of a group, in short.", GROUP_STATUS, SUMMARY_COLUMNS, **FRESHNESS
)
Member = of_table("Member", "A member of a group in its newest sample.", MEMBERS, MEMBER_COLUMNS)
Event = of_table("Event", "Something that happened to a group.", EVENTS, EVENT_COLUMNS)
StatusChange = of_table("StatusChange", "A change of a group's status.", STATUS_CHANGES, CHANGE_COLUMNS)
Partition = of_table(
    "Partition", "What is known of a partition that a group reads.", PARTITION_STATUS, PARTITION_COLUMNS
)
Group = of_table(
    "Group",
    "The verdict on a group, with its numbers, members, and what happened in the last day.",
    GROUP_STATUS,
    **FRESHNESS,
    partitions_by_status=(dict[str, int], Field(description="how many partitions are in which status")),
    current_members=(list[Member], Field(description="members in the newest sample of the last hour")),  # type: ignore[valid-type]  # made at run time
    events=(list[Event], Field(description="of the last day, the newest first, at most 100")),  # type: ignore[valid-type]  # made at run time
    status_changes=(list[StatusChange], Field(description="of the last day, the newest first, at most 100")),  # type: ignore[valid-type]  # made at run time
)


class Page(Answer):
    """One page of a list."""

    total: int = Field(description="how many there are on all pages, of those that the caller may see")
    offset: int = Field(description="how many come before this page")


#: Beside a list of groups: a list that is empty because nothing is judged any more must not look like good news.
STALE = Field(
    description="groups, of all in these clusters that the caller may see, whose verdict is older than the intervals "
    "of collector and analysis explain. If it is not 0, the list says little about the present"
)


class Groups(Page):
    """Groups, worst first."""

    stale: int = STALE
    groups: list[GroupSummary]  # type: ignore[valid-type]  # made at run time


class Partitions(Page):
    """Partitions of one group, by topic and number."""

    partitions: list[Partition]  # type: ignore[valid-type]  # made at run time


class Acknowledged(Answer):
    """Somebody has taken on the alert."""

    by: str
    at: datetime
    comment: str


class Muted(Answer):
    """Notifications of the alert are withheld."""

    cause: str = Field(description="silence or maintenance")
    name: str | None = Field(description="number of the silence, or name of the maintenance window")
    until: datetime


class OpenAlert(Answer):
    """An open alert, as of when its rule last matched."""

    incident_id: str = Field(description="name of the incident; the same from its first sign to its end")
    fingerprint: str = Field(description="name of what the alert is about; the same for all its incidents")
    kind: str = Field(description="what it is about: group, collection, analysis, shared_incident, loss and others")
    cluster: str | None
    group: str | None
    rule: str = Field(description="name of the worst rule that matches")
    severity: str = Field(description="page, warn or info")
    state: str = Field(description="pending or firing")
    status: str
    reason: str | None
    sentence: str
    since: datetime = Field(description="when the group got its status, or the finding was first seen")
    started_at: datetime = Field(description="when a rule first matched")
    fired_at: datetime | None
    notified_at: datetime | None
    flapping: bool
    on_hold: bool = Field(description="the newest data is stale or unknown, so the alert stays as it was")
    inhibited_by: str | None = Field(description="incident that reports the same; null to a limited caller")
    shared_incident: str | None = Field(description="shared incident that it is part of; null to a limited caller")
    labels: dict[str, str]
    numbers: GroupNumbers
    acknowledged: Acknowledged | None
    muted: Muted | None


class Alerts(Page):
    """Open alerts: firing ones first, then the most severe, then the oldest."""

    alerts: list[OpenAlert]


class SilenceAnswer(Answer):
    """A silence in force or to come. Patterns are regular expressions on the whole name; null is any."""

    model_config = ConfigDict(title="Silence")

    id: int
    cluster: str | None
    group: str | None
    kind: str | None
    severity: str | None
    starts_at: datetime
    ends_at: datetime
    comment: str
    created_by: str
    created_at: datetime


class Silences(Page):
    """Silences, the next to end first."""

    silences: list[SilenceAnswer]
