"""External offsets as every source returns them, and the errors of sources."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lagwise.domain.vocabulary import RECORDED, Engine
from lagwise_collectors.protocol import ErrorTally, Trouble

#: Names that Kafka allows. An invalid one would fail the request about all the others.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LONGEST_GROUP = 249
_LARGEST_PARTITION = 2**31 - 1
_LARGEST_OFFSET = 2**63 - 1
#: Numeric times below this are seconds (until the year 5138), others are milliseconds.
_MILLISECONDS_FROM = 1e11


class OffsetSourceTrouble(Trouble):
    """A source that cannot be read. ``kind`` is one of `external_offsets_timeout`, `external_offsets_unreachable`,
    `external_offsets_refused`, `external_offsets_missing` and `external_offsets_malformed`."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"external_offsets_{kind}", detail)


@dataclass(frozen=True, slots=True)
class ExternalOffset:
    """One offset."""

    topic: str
    partition: int
    #: The next offset to be read; None: none is stored yet.
    committed: int | None
    #: When it was written.
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkVertex:
    """A vertex of a job. Shares of its time and record rates are since the previous sample; None: unknown."""

    name: str
    #: Number of its subtasks.
    parallelism: int
    #: Task slots of its slot sharing group: as many as the most parallel vertex in it has subtasks.
    slots_held: int
    #: Share of its subtasks' time in which they worked, 0 to 1.
    busy_share: float | None = None
    #: Share of its subtasks' time in which they waited for a slower vertex downstream, 0 to 1.
    backpressured_share: float | None = None
    #: Share of its subtasks' time in which they had nothing to do, 0 to 1.
    idle_share: float | None = None
    #: Records received by all subtasks together.
    records_in_per_second: float | None = None
    #: Records emitted by all subtasks together.
    records_out_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class FlinkJob:
    """A running job: the owner of what its group reads."""

    id: str
    name: str
    vertices: tuple[FlinkVertex, ...] = ()
    #: Of the last completed checkpoint.
    checkpoint_duration_seconds: float | None = None
    #: Since the start of the job.
    checkpoints_completed: int | None = None
    checkpoints_failed: int | None = None
    #: Task slots of the whole cluster.
    slots_total: int | None = None
    slots_free: int | None = None


@dataclass(slots=True)
class ExternalGroup:
    """One group of a source. With an ``error`` only the name is known."""

    name: str
    type: str
    state: str = RECORDED
    offsets: list[ExternalOffset] = field(default_factory=list)
    job: FlinkJob | None = None
    #: When the job completed its last checkpoint, or started.
    checkpointed_at: datetime | None = None
    #: None: it makes no checkpoints.
    checkpoint_interval_seconds: float | None = None
    error: str | None = None
    #: The name of its source in the settings.
    source: str = ""

    @property
    def follows_kafka(self) -> bool:
        """Whether its offsets are, or could be, committed to Kafka."""
        return self.type == Engine.FLINK


@dataclass(slots=True)
class SourceResult:
    """What one read of a source returned: groups by name, and errors of parts of it."""

    groups: dict[str, ExternalGroup] = field(default_factory=dict)
    errors: ErrorTally = field(default_factory=ErrorTally)

    def mark_unreadable(self, name: str, kind: str, trouble: OffsetSourceTrouble) -> None:
        """Mark a group as unreadable: where a part of its offsets is missing, its progress is unknown."""
        self.errors.note(trouble.kind, str(trouble))
        self.groups[name] = ExternalGroup(name, kind, error=trouble.kind)


def group_named(value: Any) -> str:
    """The group name in a record. Raises ValueError where it is invalid."""
    if not isinstance(value, str) or not value or len(value) > _LONGEST_GROUP or "\0" in value:
        raise ValueError(f"the group must be a text of 1 to {_LONGEST_GROUP} characters")
    return value


def offset_of(record: Mapping[str, Any]) -> ExternalOffset:
    """The offset of a record with ``topic``, ``partition``, ``offset`` and perhaps ``updated_at``. Raises ValueError.

    Numbers may be written as text, as in a CSV file. An offset that is null, empty or negative is none.
    """
    topic = record.get("topic")
    if not isinstance(topic, str) or _TOPIC.fullmatch(topic) is None or topic in (".", ".."):
        raise ValueError("the topic is not a name that Kafka allows")
    partition = _whole_number(record.get("partition"), "the partition", _LARGEST_PARTITION)
    if partition is None:
        raise ValueError("the partition is missing")
    return ExternalOffset(topic, partition, _offset(record.get("offset")), time_of(record.get("updated_at")))


def _offset(value: Any) -> int | None:
    if value is None or value == "":
        return None
    if str(value).strip().startswith("-"):
        return None
    return _whole_number(value, "the offset", _LARGEST_OFFSET)


def _whole_number(value: Any, what: str, largest: int) -> int | None:
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
    """A time from a database's value, ISO 8601, or seconds or milliseconds since 1970; UTC where it has no zone.
    None where it is invalid: the offset is useful without its time."""
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


def groups_of_records(records: Iterable[Mapping[str, Any]], kind: str, *, where: str) -> SourceResult:
    """Groups by name; ``where`` is named in errors.

    An invalid record makes its whole group unreadable, and no other: without it, its partition would look as if its
    offset were gone. One without a group is only counted. Of two records about the same partition the later one counts,
    or the last where they have no times.
    """
    result = SourceResult()
    by_group: dict[str, dict[tuple[str, int], ExternalOffset]] = {}
    for number, record in enumerate(records, 1):
        name = None
        try:
            name = group_named(record.get("group"))
            offsets = by_group.setdefault(name, {})
            offset = offset_of(record)
        except ValueError as error:
            trouble = OffsetSourceTrouble("malformed", f"record {number} of {where}: {error}")
            if name is None:
                result.errors.note(trouble.kind, str(trouble))
            else:
                result.mark_unreadable(name, kind, trouble)
            continue
        key = offset.topic, offset.partition
        before = offsets.get(key, offset)
        if before.updated_at is None or offset.updated_at is None or offset.updated_at >= before.updated_at:
            offsets[key] = offset
    result.groups = {
        name: result.groups.get(name) or ExternalGroup(name, kind, offsets=list(offsets.values()))
        for name, offsets in by_group.items()
    }
    return result
