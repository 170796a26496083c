"""The shape of the answers to assistants: short, and bounded."""

from datetime import datetime
from typing import Any

from pydantic import Field

from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.raw import EVENTS, MEMBERS
from lagwise_app.answers.models import (
    FRESHNESS,
    MEMBER_COLUMNS,
    STALE,
    SUMMARY_COLUMNS,
    Answer,
    GroupSummary,
    Partition,
    StatusChange,
    of_table,
)

_LEFT_OUT = "how many more there are"

#: What the story of a group says beyond the summary.
_STORY_COLUMNS = (
    *SUMMARY_COLUMNS, "behind_since", "worst_topic", "worst_partition", "cause", "cause_name", "findings",
    "what_changed_at", "what_changed", "what_changed_sentence", "what_changed_remedy", "loss_cause", "lost_at_least",
    "lost_at_most", "first_lost_at", "last_lost_at", "transaction_seconds",
)  # fmt: skip
#: Lists of names, which can be as long as the group is big; `few` shortens them.
_NAMES = ("joined", "left", "failed")
_EVENT_COLUMNS = (
    "at", "kind", "topic", "partition", "before", "after", "source", "cause", *_NAMES, "members", "partitions_moved",
    "duration_seconds",
)  # fmt: skip
#: So many names of members stand beside an event.
MOST_NAMES = 10

StoryGroup = of_table(
    "StoryGroup", "The verdict on a group and its likely cause.", GROUP_STATUS, _STORY_COLUMNS, **FRESHNESS
)
StoryMember = of_table(
    "StoryMember", "A member in the newest sample.", MEMBERS, [c for c in MEMBER_COLUMNS if c != "assignment"]
)
StoryEvent = of_table(
    "StoryEvent",
    "Something that happened to the group.",
    EVENTS,
    _EVENT_COLUMNS,
    names_left_out=(int, Field(description="how many more members joined, left or failed than are named")),
)


class StoryAlert(Answer):
    """An open alert on the group."""

    incident_id: str
    kind: str
    rule: str
    severity: str = Field(description="page, warn or info")
    state: str = Field(description="pending or firing")
    sentence: str
    started_at: datetime
    acknowledged_by: str | None
    muted_until: datetime | None = Field(description="a silence or maintenance withholds its messages until then")


class GroupsInTrouble(Answer):
    """The groups that need attention, worst first."""

    groups: list[GroupSummary]  # type: ignore[valid-type]  # made at run time
    left_out: int = Field(description=_LEFT_OUT)
    stale: int = STALE
    groups_by_status: dict[str, int] = Field(description="of all groups that were asked about, well ones among them")


class GroupStory(Answer):
    """What is wrong with a group, why, and what happened to it."""

    group: StoryGroup  # type: ignore[valid-type]  # made at run time
    partitions_by_status: dict[str, int]
    members: list[StoryMember]  # type: ignore[valid-type]  # made at run time
    members_left_out: int = Field(description=_LEFT_OUT)
    events: list[StoryEvent] = Field(description="the newest first")  # type: ignore[valid-type]  # made at run time
    events_left_out: int = Field(description=f"{_LEFT_OUT}, of the newest hundred of the last day")
    status_changes: list[StatusChange] = Field(description="the newest first")  # type: ignore[valid-type]  # made at run time
    status_changes_left_out: int = Field(description=f"{_LEFT_OUT}, of the newest hundred of the last day")
    alerts: list[StoryAlert] | None = Field(description="open alerts on it; null: their database cannot be read")


class Partitions(Answer):
    """Partitions of a group, by status the worst first, then those with the oldest unread record."""

    partitions: list[Partition]  # type: ignore[valid-type]  # made at run time
    left_out: int = Field(description=_LEFT_OUT)


def few(event: dict[str, Any]) -> dict[str, Any]:
    """An event with few names of members, and how many it has left out."""
    names = {column: event[column] or [] for column in _NAMES}
    left_out = sum(max(0, len(listed) - MOST_NAMES) for listed in names.values())
    shortened = {column: listed[:MOST_NAMES] or None for column, listed in names.items()}
    return {**event, **shortened, "names_left_out": left_out}
