"""Records of ``__consumer_offsets`` made by hand, for tests that need no broker. Layouts as in Kafka's schemas; that
ours are the same as Kafka's own is what the golden bytes show."""

import base64
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lagwise_collectors.offsets_topic.ledger import Ledger, LedgerChanges
from lagwise_collectors.sample_diff.events import Event

#: 2026-11-21 03:00 UTC.
START_MS = 1_795_230_000_000
TOPIC_ID = base64.urlsafe_b64encode(bytes(range(16))).decode().rstrip("=")

Owned = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Rec:
    """A record as confluent_kafka shows it."""

    key_bytes: bytes | None
    value_bytes: bytes | None
    at_ms: int = START_MS
    number: int = 0
    where: int = 0

    def key(self) -> bytes | None:
        return self.key_bytes

    def value(self) -> bytes | None:
        return self.value_bytes

    def partition(self) -> int:
        return self.where

    def offset(self) -> int:
        return self.number

    def timestamp(self) -> tuple[int, int]:
        return 1, self.at_ms


def text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def blob(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def compact(value: str | None) -> bytes:
    return b"\0" if value is None else bytes([len(value.encode()) + 1]) + value.encode()


def array(items: Iterable[bytes]) -> bytes:
    found = list(items)
    return struct.pack(">i", len(found)) + b"".join(found)


def compact_array(items: Iterable[bytes]) -> bytes:
    found = list(items)
    return bytes([len(found) + 1]) + b"".join(found)


def by_topic(owned: Owned) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in owned:
        found.setdefault(topic, []).append(partition)
    return found


def commit_key(group: str, topic: str, partition: int) -> bytes:
    return b"\0\1" + text(group) + text(topic) + struct.pack(">i", partition)


def commit_value(offset: int, at_ms: int, metadata: str = "") -> bytes:
    return struct.pack(">hqi", 4, offset, -1) + compact(metadata) + struct.pack(">q", at_ms) + b"\0"


@dataclass(frozen=True)
class Classic:
    """A member of a classic group."""

    owned: Owned = ()
    topics: Sequence[str] = ("t",)
    session_ms: int = 45_000
    poll_ms: int = 300_000
    instance: str | None = None
    member_id: str | None = None


def classic_value(generation: int, members: Mapping[str, Classic], kind: str = "consumer") -> bytes:
    def member(name: str, m: Classic) -> bytes:
        instance = struct.pack(">h", -1) if m.instance is None else text(m.instance)
        subscription = struct.pack(">h", 1) + array(text(topic) for topic in m.topics) + blob(b"")
        assignment = struct.pack(">h", 1) + array(
            text(topic) + array(struct.pack(">i", p) for p in partitions)
            for topic, partitions in by_topic(m.owned).items()
        )
        return (
            text(m.member_id or f"{name}-id")
            + instance
            + text(name)
            + text("/10.0.0.1")
            + struct.pack(">ii", m.poll_ms, m.session_ms)
            + blob(subscription)
            + blob(assignment)
        )

    head = struct.pack(">h", 3) + text(kind) + struct.pack(">i", generation) + text("range") + text("leader")
    return head + struct.pack(">q", 0) + array(member(name, m) for name, m in members.items())


def owned_by_id(owned: Owned) -> bytes:
    return compact_array(
        base64.urlsafe_b64decode(topic + "==") + compact_array(struct.pack(">i", p) for p in partitions) + b"\0"
        for topic, partitions in by_topic(owned).items()
    )


@dataclass
class Topic:
    """``__consumer_offsets`` as a coordinator writes it, read by a ledger. ``now_ms`` is the clock."""

    ledger: Ledger = field(default_factory=lambda: Ledger(lambda name: True))
    now_ms: int = START_MS
    records: list[Rec] = field(default_factory=list)
    primed: bool = True

    def __post_init__(self) -> None:
        if not self.primed:
            self.ledger.priming.add(0)

    def after(self, seconds: float) -> "Topic":
        self.now_ms += round(seconds * 1000)
        return self

    def write(self, key: bytes, value: bytes | None) -> "Topic":
        record = Rec(key, value, self.now_ms, len(self.records))
        self.records.append(record)
        self.ledger.feed([record])
        return self

    def commit(self, group: str, offset: int | None, *owned: tuple[str, int]) -> "Topic":
        for topic, partition in owned:
            value = None if offset is None else commit_value(offset, self.now_ms)
            self.write(commit_key(group, topic, partition), value)
        return self

    def committing(self, group: str, seconds: float, *owned: tuple[str, int], every: float = 5.0) -> "Topic":
        """Commit regularly for so long, the last time at the end of it."""
        rounds = int(seconds / every)
        for _ in range(rounds):
            self.after(every).commit(group, self.now_ms, *owned)
        return self

    def classic(self, group: str, generation: int, **members: Classic) -> "Topic":
        return self.write(b"\0\2" + text(group), classic_value(generation, members))

    def no_classic(self, group: str) -> "Topic":
        return self.write(b"\0\2" + text(group), None)

    def epoch(self, group: str, epoch: int | None) -> "Topic":
        return self.write(b"\0\3" + text(group), None if epoch is None else struct.pack(">hi", 0, epoch) + b"\0")

    def target(self, group: str, epoch: int, **members: Owned) -> "Topic":
        for name, owned in members.items():
            self.write(b"\0\7" + text(group) + text(name), struct.pack(">h", 0) + owned_by_id(owned) + b"\0")
        return self.write(b"\0\6" + text(group), struct.pack(">hi", 0, epoch) + b"\0")

    def member(
        self, group: str, name: str, *topics: str, instance: str | None = None, label: str | None = None
    ) -> "Topic":
        value = struct.pack(">h", 0) + compact(instance) + compact(None) + compact(label or name) + compact("/10.0.0.1")
        value += compact_array(compact(topic) for topic in topics or ("t",)) + compact(None)
        return self.write(
            b"\0\5" + text(group) + text(name), value + struct.pack(">i", 300_000) + compact(None) + b"\0"
        )

    def has(self, group: str, name: str, epoch: int, owned: Owned, *, revoking: Owned = (), state: int = 0) -> "Topic":
        value = struct.pack(">hiib", 0, epoch, epoch - 1, state) + owned_by_id(owned) + owned_by_id(revoking) + b"\0"
        return self.write(b"\0\x08" + text(group) + text(name), value)

    def without(self, group: str, name: str) -> "Topic":
        """The tombstones of a member."""
        for number in (8, 7, 5):
            self.write(bytes([0, number]) + text(group) + text(name), None)
        return self

    def take(self) -> LedgerChanges:
        taken = self.ledger.take()
        for pair in taken.committed:
            pair.commits = 0
        return taken

    def events(self) -> list[Event]:
        return self.take().events
