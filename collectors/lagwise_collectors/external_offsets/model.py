"""What is found where offsets are kept, whatever kind of place that is, and what can be wrong with it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from lagwise.domain.vocabulary import RECORDED, Engine
from lagwise.platform.errors import ClusterError
from lagwise_collectors.protocol import ErrorTally

#: What a topic may be called. One that no broker can have would cost the request about all the others.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LONGEST_GROUP = 249
_LARGEST_PARTITION = 2**31 - 1
_LARGEST_OFFSET = 2**63 - 1
#: A time that is given as a number is in seconds below this (the year 5138), and in milliseconds from it on.
_MILLISECONDS_FROM = 1e11


class Trouble(ClusterError):
    """A place that cannot be read. ``kind`` is one of `elsewhere_timeout`, `elsewhere_unreachable`,
    `elsewhere_refused`, `elsewhere_missing` and `elsewhere_malformed`."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = f"elsewhere_{kind}"


@dataclass(frozen=True, slots=True)
class Offset:
    """One offset: ``committed`` is the next to be read, None is none; ``updated_at`` is when it was written."""

    topic: str
    partition: int
    committed: int | None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Vertex:
    """A vertex of a job: the shares of its time, and records, since the look before; None where there was none.

    ``slots_held`` are the task slots of its slot sharing group: as many as the most parallel vertex in it has subtasks.
    """

    name: str
    parallelism: int
    slots_held: int
    busy_share: float | None = None
    backpressured_share: float | None = None
    idle_share: float | None = None
    records_in_per_second: float | None = None
    records_out_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A job that runs and reads: the owner of what its group reads. Checkpoints are counted since its start, task
    slots are those of the whole cluster."""

    id: str
    name: str
    vertices: tuple[Vertex, ...] = ()
    checkpoint_duration_seconds: float | None = None
    checkpoints_completed: int | None = None
    checkpoints_failed: int | None = None
    slots_total: int | None = None
    slots_free: int | None = None


@dataclass(slots=True)
class GroupFound:
    """One group as it is found. With an ``error`` only the name is known.

    ``checkpointed_at`` is when the job last completed a checkpoint (or began), ``checkpoint_interval_seconds`` how
    often it is to; None is no checkpoints.
    """

    name: str
    type: str
    state: str = RECORDED
    offsets: list[Offset] = field(default_factory=list)
    job: Job | None = None
    checkpointed_at: datetime | None = None
    checkpoint_interval_seconds: float | None = None
    error: str | None = None

    @property
    def follows_kafka(self) -> bool:
        """Whether its offsets are those that are, or might as well be, committed to Kafka."""
        return self.type == Engine.FLINK


@dataclass(slots=True)
class FoundOffsets:
    """What one look at a place showed: groups by name, and what went wrong with parts of it."""

    groups: dict[str, GroupFound] = field(default_factory=dict)
    errors: ErrorTally = field(default_factory=ErrorTally)

    def group(self, name: str, kind: str) -> GroupFound:
        """The group of this name, made where it is new."""
        return self.groups.setdefault(name, GroupFound(name, kind))

    def spoil(self, name: str, kind: str, trouble: Trouble) -> None:
        """Let a group be unreadable: of a part that is missing, nobody knows how far it is."""
        self.errors.note(trouble.kind, str(trouble))
        self.groups[name] = GroupFound(name, kind, error=trouble.kind)


class OffsetReader(Protocol):
    """Reads one place."""

    def read(self) -> FoundOffsets:
        """Look once. Raises Trouble where nothing can be read."""
        ...


def group_named(value: Any) -> str:
    """A group's name out of a record. Raises ValueError where it is none."""
    if not isinstance(value, str) or not value or len(value) > _LONGEST_GROUP or "\0" in value:
        raise ValueError(f"the group must be a text of 1 to {_LONGEST_GROUP} characters")
    return value


def offset_of(record: Mapping[str, Any]) -> Offset:
    """The offset of a record with ``topic``, ``partition``, ``offset`` and perhaps ``updated_at``. Raises ValueError.

    Numbers may be written as text, as in a CSV file. An offset that is null, empty or negative is none.
    """
    topic = record.get("topic")
    if not isinstance(topic, str) or _TOPIC.fullmatch(topic) is None or topic in (".", ".."):
        raise ValueError("the topic is not a name that Kafka allows")
    partition = _whole(record.get("partition"), "the partition", _LARGEST_PARTITION)
    if partition is None:
        raise ValueError("the partition is missing")
    return Offset(topic, partition, _offset(record.get("offset")), time_of(record.get("updated_at")))


def _offset(value: Any) -> int | None:
    if value is None or value == "":
        return None
    if str(value).strip().startswith("-"):
        return None
    return _whole(value, "the offset", _LARGEST_OFFSET)


def _whole(value: Any, what: str, largest: int) -> int | None:
    if value is None or value == "":
        return None
    try:
        # Numeric columns of a database come as Decimal, those of a spreadsheet as 12.0.
        number = value if isinstance(value, int) else int(value) if isinstance(value, str) else _integral(value)
    except (ValueError, TypeError, OverflowError, ArithmeticError):
        raise ValueError(f"{what} is not a whole number") from None
    if isinstance(value, bool) or not 0 <= number <= largest:
        raise ValueError(f"{what} is not a whole number from 0 to {largest}")
    return number


def _integral(value: Any) -> int:
    number = int(value)
    if number != value:
        raise ValueError("it has a fraction")
    return number


def time_of(value: Any) -> datetime | None:
    """A time from a database's value, ISO 8601, or seconds or milliseconds since 1970; UTC where no zone is told.
    None where it is none: a time is told beside an offset, which is worth having without it."""
    try:
        if isinstance(value, str):
            value = float(value) if re.fullmatch(r"\d+(\.\d+)?", value) else datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        if isinstance(value, bool) or value is None:
            return None
        seconds = float(value)
        return datetime.fromtimestamp(seconds / 1000 if seconds >= _MILLISECONDS_FROM else seconds, UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def groups_of(records: Iterable[Mapping[str, Any]], kind: str, *, group: str | None = None, where: str) -> FoundOffsets:
    """Groups by name; ``group`` is that of records that name none, ``where`` is named in errors.

    A record that cannot be understood makes its whole group unreadable, and costs no other: without it, its partition
    would look as if its offset were gone. One that does not even name its group is counted. Of two records about the
    same partition the later one counts, or the last where no times are told.
    """
    found = FoundOffsets()
    spoilt: set[str] = set()
    kept: dict[tuple[str, str, int], int] = {}
    for number, record in enumerate(records, 1):
        name = None
        try:
            name = group_named(record.get("group") or group)
            offset = offset_of(record)
        except ValueError as error:
            trouble = Trouble("malformed", f"record {number} of {where}: {error}")
            if name is None:
                found.errors.note(trouble.kind, str(trouble))
            else:
                spoilt.add(name)
                found.spoil(name, kind, trouble)
            continue
        if name in spoilt:
            continue
        offsets = found.group(name, kind).offsets
        key = (name, offset.topic, offset.partition)
        if key not in kept:
            kept[key] = len(offsets)
            offsets.append(offset)
            continue
        before = offsets[kept[key]]
        if before.updated_at is None or offset.updated_at is None or offset.updated_at >= before.updated_at:
            offsets[kept[key]] = offset
    return found
