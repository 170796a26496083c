"""What is known of a group now. Every fact is declared here once: its name, type, meaning and unit.

The table ``group_status``, the rows that are read from it, the numbers of an alert, the message and its JSON Schema are
made from these declarations by name. So a new number is declared here and computed in :mod:`lagwise.domain.groups`
(a sum over partitions in the roll-ups, too); only a page must still place it.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from lagwise.domain.causes import Scope
from lagwise.domain.facts import Fact, facts_of
from lagwise.domain.findings import Finding, FindingKind
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason
from lagwise.domain.what_changed.change import ChangeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNumbers:
    """What was measured of a group, as an alert carries it, too. None is unknown, never 0."""

    lag_records: Annotated[
        int | None,
        Fact(
            "sum of the partitions' lag, unknown ones and ghosts left out; null if all are",
            unit="records",
            column="lag",
            minimum=0,
            sent="Unread records.",
        ),
    ] = None
    lag_seconds: Annotated[
        float | None,
        Fact(
            "age of the oldest unread record of any partition, of unknown ones too where their lag was measured",
            unit="seconds",
            minimum=0,
            sent="Age of the oldest unread record.",
        ),
    ] = None
    lag_seconds_is_lower_bound: Annotated[
        bool | None,
        Fact(
            "the age reaches beyond the watermark history",
            sent="Whether the age reaches beyond the history, so that it may be higher.",
        ),
    ] = None
    produce_rate_per_second: Annotated[
        float | None,
        Fact(
            "records written per second to the partitions it reads",
            unit="records/s",
            sent="Records written per second to what the group reads.",
        ),
    ] = None
    consume_rate_per_second: Annotated[
        float | None,
        Fact("records it committed per second", unit="records/s", sent="Records the group commits per second."),
    ] = None
    seconds_to_catch_up: Annotated[
        float | None,
        Fact(
            "until its last partition has no lag; only while catching up",
            unit="seconds",
            sent="Time until nothing is unread; null is unknown or never.",
        ),
    ] = None
    seconds_to_loss: Annotated[
        float | None,
        Fact(
            "shortest of its partitions'; null is never",
            unit="seconds",
            sent="Time until unread records are deleted, or committed offsets expire; null is never.",
        ),
    ] = None
    seconds_to_loss_is_upper_bound: Annotated[
        bool | None,
        Fact(
            "the loss may come at any moment before: the oldest unread record is older than the history, by an unknown "
            "time",
            sent="The loss may come at any moment before: the age of the oldest unread record is unknown.",
        ),
    ] = None
    loss_cause: Annotated[
        LossCause | None,
        Fact(
            "how that loss would come: deletion (of records) or expiry (of offsets)",
            sent="How that loss would come: records are deleted, or the committed offsets expire.",
        ),
    ] = None
    records_lost: Annotated[
        int | None,
        Fact(
            "sum over its partitions",
            unit="records",
            minimum=0,
            sent="Records that were deleted before they were read.",
            is_required=True,
        ),
    ] = None
    transaction_seconds: Annotated[
        float | None,
        Fact(
            "for how long a transaction has been open, at least, that hangs and holds records back; null is none",
            unit="seconds",
            minimum=0,
            sent="For how long a transaction has been open, at least, that hangs and holds records back; null is none.",
        ),
    ] = None
    members: Annotated[int | None, Fact("members", unit="members", minimum=0, sent="Members of the group.")] = None
    what_changed: Annotated[
        ChangeKind | None,
        Fact(
            "the likely cause of its backlog, in a word; already_behind: it lagged when it was first seen, so that the "
            "cause cannot be told; null is not known, or no backlog",
            sent="The likely cause of the backlog: what changed before the group fell behind. already_behind: it "
            "lagged when it was first seen, so that the cause cannot be told; null is not known.",
        ),
    ] = None
    what_changed_sentence: Annotated[
        str | None,
        Fact("the same in a sentence", sent="The same in a sentence. In trouble, `sentence` ends with it."),
    ] = None
    what_changed_remedy: Annotated[
        str | None, Fact("what would help, if the sentence does not say it", sent="What would help against that.")
    ] = None
    #: Sent together with the number of the partition.
    worst_topic: Annotated[str | None, Fact("topic of its worst partition")] = None
    worst_partition: Annotated[int | None, Fact("its worst partition: by status, then by age of the oldest unread")] = (
        None
    )
    #: Decides which command is the first to run.
    stands_still: Annotated[
        bool | None, Fact("partitions of its status are stopped or stalled, even if others are worse")
    ] = None
    #: Decides whether a group that is partly unknown is as well known as it was in trouble. None also where it is 0.
    known_partitions: Annotated[
        int | None, Fact("partitions whose status is known, ghosts left out", unit="partitions", is_stored=False)
    ] = None


_LowEnd = Annotated[float | None, Fact("lower end of its confidence interval", unit="seconds")]
_HighEnd = Annotated[float | None, Fact("upper end of its confidence interval; null is never", unit="seconds")]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """A group as it stands: its row of ``group_status``."""

    cluster: Annotated[str, Fact("name of the cluster in the configuration")]
    group: Annotated[str, Fact("consumer group")]
    as_of: Annotated[datetime, Fact("time of the cluster's latest sample: the time the row describes")]
    status: Annotated[Status, Fact("status word")]
    reason: Annotated[UnknownReason | None, Fact("why it is unknown; null for every other status")]
    since: Annotated[datetime, Fact("since when the status has been shown")]
    sentence: Annotated[str, Fact("why, with numbers; it ends with the likely cause of a backlog, if there is one")]
    state: Annotated[str | None, Fact("state as the coordinator names it")]
    type: Annotated[
        str | None,
        Fact(
            "Kafka: classic, consumer (KIP-848), share, streams, connect, simple, other; RocketMQ: how it consumes; "
            "else who keeps the offsets"
        ),
    ]
    idle_members: Annotated[int | None, Fact("members that own no partition", unit="members")]
    topics: Annotated[tuple[str, ...], Fact("topics it has commits on or is assigned, ghosts left out")]
    partitions: Annotated[int, Fact("partitions, ghosts left out", unit="partitions")]
    partitions_by_status: Annotated[Mapping[str, int], Fact("how many partitions are in which status")]
    numbers: GroupNumbers
    commits_seen: Annotated[
        int | None, Fact("how often its committed offsets were seen to move within an hour", unit="commits")
    ]
    seconds_to_catch_up_low: _LowEnd
    seconds_to_catch_up_high: _HighEnd
    seconds_to_breach: Annotated[
        float | None,
        Fact(
            "time until the oldest unread record is older than the group's objective, at today's rates; null where it "
            "is, or where it will not happen",
            unit="seconds",
        ),
    ]
    seconds_to_breach_low: _LowEnd
    seconds_to_breach_high: _HighEnd
    seconds_to_loss_at_latest: Annotated[
        float | None,
        Fact(
            "time until unread records are deleted by age at the latest: whole segments are, of up to segment.ms of "
            "records each; null is not known, or never",
            unit="seconds",
        ),
    ]
    lost_at_least: Annotated[
        int | None,
        Fact("records deleted unread within a day, or missing now, at least; 0 is none", unit="records"),
    ]
    lost_at_most: Annotated[
        int | None,
        Fact(
            "the same at most: what the log start passed between commits counts, too, in hours that show a loss",
            unit="records",
        ),
    ]
    first_lost_at: Annotated[
        datetime | None, Fact("time of the first sample within a day that shows a loss; null is none")
    ]
    last_lost_at: Annotated[datetime | None, Fact("time of the last such sample")]
    cause: Annotated[
        Scope | None, Fact("where its trouble sits: partition, member, broker or group; null is no trouble")
    ]
    findings: Annotated[
        tuple[Finding, ...],
        Fact("what else is worth knowing, the most urgent first: loss, dead_letters, unread_retries, retries, …"),
    ]
    cause_name: Annotated[str | None, Fact("that member (client and host) or broker (node id); null for the others")]
    behind_since: Annotated[
        datetime | None,
        Fact(
            "since when its status is one of trouble, records had waited when it committed, or partitions had no "
            "leader; null is none of them"
        ),
    ] = None
    what_changed_at: Annotated[datetime | None, Fact("time of the change that is its likely cause; null is none")] = (
        None
    )


#: The facts of :class:`GroupNumbers`, in the order in which messages have them.
NUMBER_FACTS = facts_of(GroupNumbers)
#: The facts that :class:`GroupRecord` declares itself.
_OWN_FACTS = facts_of(GroupRecord)
#: Every column of ``group_status``.
STORED_FACTS = tuple(field for field in (*_OWN_FACTS, *NUMBER_FACTS) if field.fact.is_stored)


def row_of(record: GroupRecord) -> dict[str, Any]:
    """Values by the names of their columns, in plain types: words as text, findings and counts as lists of mappings."""
    return number_columns(record.numbers) | {f.column: _plain(getattr(record, f.name)) for f in _OWN_FACTS}


def number_columns(numbers: GroupNumbers) -> dict[str, Any]:
    """Numbers by the names of their columns, in plain types."""
    return {f.column: _plain(getattr(numbers, f.name)) for f in NUMBER_FACTS if f.fact.is_stored}


def sent_numbers(numbers: GroupNumbers) -> dict[str, Any]:
    """Numbers by name, in plain types, as receivers of messages are sent them."""
    return {f.name: _plain(getattr(numbers, f.name)) for f in NUMBER_FACTS if f.fact.sent is not None}


def _plain(value: Any) -> Any:
    match value:
        case StrEnum():
            return value.value
        case Finding():
            return {"kind": value.kind.value, "sentence": value.sentence, "remedy": value.remedy}
        case tuple():
            return [_plain(one) for one in value]
        case Mapping():
            counted = sorted(value.items(), key=lambda item: Status(item[0]).rank)
            return [{"status": str(status), "partitions": number} for status, number in counted]
        case _:
            return value


def record_of(row: Mapping[str, Any]) -> GroupRecord:
    """A row of ``group_status``, by the names of its columns.

    A word that only a newer version knows is not one to act on: such a status is ``unknown``, such a finding is left
    out.
    """
    facts = {f.name: _READ[f.type](row[f.column]) for f in _OWN_FACTS}
    numbers = {f.name: _READ[f.type](row[f.column]) for f in NUMBER_FACTS if f.fact.is_stored}
    known = known_partitions(facts["partitions_by_status"])
    return GroupRecord(numbers=GroupNumbers(**numbers, known_partitions=known), **facts)


def numbers_of(stored: Mapping[str, Any]) -> GroupNumbers:
    """Numbers by name, as alerts are stored; those that only another version knows are left out."""
    return GroupNumbers(**{f.name: _READ[f.type](stored[f.name]) for f in NUMBER_FACTS if f.name in stored})


def known_partitions(partitions_by_status: Mapping[str, int] | Mapping[Status, int]) -> int | None:
    """How many partitions have a known status, ghosts left out; None where none has."""
    unknown = (Status.UNKNOWN, Status.GHOST)
    return sum(number for status, number in partitions_by_status.items() if status not in unknown) or None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _word(words: type[StrEnum], otherwise: StrEnum | None = None) -> Callable[[str | None], StrEnum | None]:
    known = {word.value: word for word in words}
    return lambda text: otherwise if text is None else known.get(text, otherwise)


def _findings(value: Iterable[Mapping[str, Any]]) -> tuple[Finding, ...]:
    known = {kind.value: kind for kind in FindingKind}
    return tuple(Finding(known[one["kind"]], one["sentence"], one["remedy"]) for one in value if one["kind"] in known)


#: How a value that was read becomes one of the declared type.
_READ: dict[Any, Callable[[Any], Any]] = {
    bool: lambda value: value,
    int: lambda value: value,
    str: lambda value: value,
    float: _finite,
    datetime: lambda at: None if at is None else at.astimezone(UTC),
    Status: _word(Status, Status.UNKNOWN),
    UnknownReason: _word(UnknownReason),
    LossCause: _word(LossCause),
    Scope: _word(Scope),
    ChangeKind: _word(ChangeKind),
    tuple[str, ...]: lambda names: tuple(names or ()),
    tuple[Finding, ...]: _findings,
    Mapping[str, int]: lambda counts: {one["status"]: one["partitions"] for one in counts},
}
