"""A small world of topics and consumer groups, simulated second by second and sampled as a collector would.

It knows nothing of Lagwise: what it writes down is what happened. Everything random comes from one seed, and only from
``random.Random.random``, whose sequence every Python version keeps.
"""

import csv
import io
import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Rate = Callable[[float], float]


def constant(value: float) -> Rate:
    return lambda _: value


@dataclass
class Topic:
    """A topic; offsets per partition. ``kept_s`` is how long records are kept, ``kept_records`` how many, by whole
    segments of ``segment_records``; whether some are to be deleted is looked up every ``segment_s``."""

    name: str
    rate: Rate
    high: list[float]
    start: list[int]
    id: str | None
    kept_s: float | None = None
    kept_records: int | None = None
    segment_records: int = 1
    segment_s: float = 60.0
    retention_ms: int = -1
    retention_bytes: int | None = None
    cleanup_policy: str = "delete"
    stable: list[int] | None = None
    open_transaction: bool = False
    readable: bool = True
    exists: bool = True
    watermarks: list[list[tuple[float, int]]] = field(default_factory=list)

    def end(self, partition: int) -> int:
        return math.floor(self.high[partition])

    def readable_end(self, partition: int) -> int:
        return self.stable[partition] if self.stable is not None else self.end(partition)

    def recreate(self, new_id: str) -> None:
        count = len(self.high)
        self.high, self.start, self.id = [0.0] * count, [0] * count, new_id
        self.watermarks = [[] for _ in range(count)]


@dataclass
class Group:
    """A group. ``members`` own partitions; a group without members that still commits (Flink) has ``engine`` set."""

    name: str
    type: str = "classic"
    state: str = "Empty"
    members: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    committed: dict[tuple[str, int], int | None] = field(default_factory=dict)
    #: The offset of the next record, where a collector has looked it up.
    next_record: dict[tuple[str, int], int] = field(default_factory=dict)
    position: dict[tuple[str, int], float] = field(default_factory=dict)
    speed: dict[tuple[str, int], Rate] = field(default_factory=dict)
    commit_every_s: float = 5.0
    commits: bool = True
    engine: list[tuple[str, int]] | None = None
    hosts: dict[str, str] = field(default_factory=dict)
    #: Records that were deleted before it read them.
    lost: dict[tuple[str, int], float] = field(default_factory=dict)

    @property
    def reads(self) -> list[tuple[str, int]]:
        if self.engine is not None:
            return self.engine
        if self.state != "Stable":
            return []
        return [pair for owned in self.members.values() for pair in owned]


class World:
    """One trace in the making."""

    def __init__(
        self,
        name: str,
        story: str,
        *,
        minutes: float,
        interval_s: float = 15.0,
        offsets_retention_s: float | None = None,
        lag_objective_s: float | None = None,
        risk_horizon_s: float | None = None,
        only_changes: bool = False,
        looks_up: bool = False,
        evaluate_every_s: float | None = None,
        step_s: int = 1,
        clock: Rate = lambda now: now,
    ) -> None:
        self.name = name
        self.story = " ".join(story.split())
        self.seconds = round(minutes * 60)
        self.interval_s = interval_s
        #: Seconds from one look at the world to the next; rates and speeds stay those of a second.
        self.step_s = step_s
        #: The time that the collector's clock shows; what is written down, truths included, is of this clock.
        self.clock = clock
        self.head = {
            "evaluate_every_s": evaluate_every_s if evaluate_every_s is not None else interval_s,
            "offsets_retention_s": offsets_retention_s,
            "lag_objective_s": lag_objective_s,
            "risk_horizon_s": risk_horizon_s,
        }
        #: The collector looks up the next record where a group stands still before the end.
        self.looks_up = looks_up
        #: Groups and assignments are written when they change, and not at every sample.
        self.only_changes = only_changes
        self.random = random.Random(name)
        self.topics: dict[str, Topic] = {}
        self.groups: dict[str, Group] = {}
        self.silent: list[tuple[float, float]] = []
        self._plans: list[tuple[float, Callable[[], None]]] = []
        self._every: list[Callable[[float], None]] = []
        self._between: list[Callable[[float], None]] = []
        self._rows: dict[str, list[tuple[object, ...]]] = {
            "watermarks.csv": [],
            "commits.csv": [],
            "groups.csv": [],
            "assignments.csv": [],
            "truth.csv": [],
        }
        self._written: dict[str, object] = {}

    def topic(
        self, name: str, *, partitions: int = 1, rate: Rate | float, records: int = 0, **options: object
    ) -> Topic:
        made = Topic(
            name,
            rate if callable(rate) else constant(rate),
            [float(records)] * partitions,
            [0] * partitions,
            f"{name}-1",
            **options,  # type: ignore[arg-type]  # of mixed types, checked by the class
        )
        made.watermarks = [[] for _ in range(partitions)]
        self.topics[name] = made
        return made

    def group(
        self,
        name: str,
        owned: Mapping[str, Iterable[tuple[str, int]]] | None = None,
        *,
        speed: Rate | float = 1000.0,
        **options: object,
    ) -> Group:
        """A group whose members own and read these partitions, all caught up at the start."""
        made = Group(name, **options)  # type: ignore[arg-type]  # of mixed types, checked by the class
        self.groups[name] = made
        if owned is not None:
            made.members = {member: list(pairs) for member, pairs in owned.items()}
            made.state = "Stable"
        for pair in made.reads:
            self.follow(made, pair, speed=speed)
        return made

    def follow(self, group: Group, pair: tuple[str, int], *, speed: Rate | float, at: int | None = None) -> None:
        """Let a group read a partition at a speed, from an offset (by default from the end)."""
        topic, partition = pair
        start = self.topics[topic].end(partition) if at is None else at
        group.position[pair] = start
        if group.commits:
            group.committed[pair] = start
        group.speed[pair] = speed if callable(speed) else constant(speed)

    def at(self, time_s: float, what: Callable[[], None]) -> None:
        """Do something at a moment."""
        self._plans.append((time_s, what))

    def every_second(self, what: Callable[[float], None]) -> None:
        self._every.append(what)

    def between_reads(self, what: Callable[[float], None]) -> None:
        """Something that happens every second after the collector has read the commits, and before it reads where logs
        begin and end."""
        self._between.append(what)

    def truth(
        self, status: str, from_s: float, to_s: float, group: str, topic: str = "", partition: int | str = ""
    ) -> None:
        """What is true of a group (or of one of its partitions) through the whole of a time."""
        self._rows["truth.csv"].append((group, topic, partition, _plain(from_s), _plain(to_s), status))

    def run(self) -> None:
        plans = sorted(self._plans, key=lambda plan: plan[0])
        for second in range(0, self.seconds + 1, self.step_s):
            while plans and plans[0][0] <= second:
                plans.pop(0)[1]()
            for what in self._every:
                what(second)
            for group in self.groups.values():
                self._read(group, second)
            sampled = second % self.interval_s == 0 and not any(a < second < b for a, b in self.silent)
            if sampled:
                self._sample_groups(second)
            for what in self._between:
                what(second)
            for topic in self.topics.values():
                self._write(topic, second)
            if sampled:
                self._sample_topics(second)

    def _write(self, topic: Topic, second: float) -> None:
        for partition in range(len(topic.high)):
            # Batches come unevenly: each step brings between nothing and twice the rate.
            topic.high[partition] += topic.rate(second) * self.step_s * 2 * self.random.random()
            topic.watermarks[partition].append((second, topic.end(partition)))
            if second % topic.segment_s == 0:
                self._delete(topic, partition, second)
        if topic.stable is not None and not topic.open_transaction:
            topic.stable = [topic.end(p) for p in range(len(topic.high))]

    def _delete(self, topic: Topic, partition: int, second: float) -> None:
        if topic.kept_s is not None:
            old = [high for at, high in topic.watermarks[partition] if at <= second - topic.kept_s]
            topic.start[partition] = max(topic.start[partition], old[-1] if old else 0)
        if topic.kept_records is not None:
            surplus = topic.end(partition) - topic.kept_records - topic.start[partition]
            topic.start[partition] += max(0, surplus // topic.segment_records * topic.segment_records)

    def _read(self, group: Group, second: float) -> None:
        for pair in group.reads:
            if pair not in group.position:
                continue
            topic = self.topics[pair[0]]
            if not topic.exists or not topic.readable:
                continue
            end = topic.readable_end(pair[1])
            speed = group.speed[pair](second) * self.step_s
            if speed > 0:
                # What was deleted is skipped, as `auto.offset.reset=earliest` does.
                start = max(group.position[pair], topic.start[pair[1]])
                group.lost[pair] = group.lost.get(pair, 0.0) + start - group.position[pair]
                group.position[pair] = max(start, min(end, start + speed))
            if group.commits and second % group.commit_every_s == 0:
                group.committed[pair] = math.floor(group.position[pair])

    def _sample_groups(self, second: float) -> None:
        at = _plain(self.clock(second))
        for group in self.groups.values():
            for (topic, partition), committed in sorted(group.committed.items()):
                row = (at, group.name, topic, partition, "" if committed is None else committed)
                looked_up = (group.next_record.get((topic, partition), ""),) if self.looks_up else ()
                self._rows["commits.csv"].append(row + looked_up)
            assigned = [
                (at, group.name, member, member.rsplit("-", 1)[0], group.hosts.get(member, "10.0.0.1"), *pair)
                for member, owned in sorted(group.members.items())
                for pair in (owned or [("", "")])
            ]
            now = (group.state, tuple(row[2:] for row in assigned))
            if self.only_changes and self._written.get(group.name) == now:
                continue
            self._written[group.name] = now
            self._rows["groups.csv"].append((at, group.name, group.state, group.type))
            self._rows["assignments.csv"] += assigned

    def _sample_topics(self, second: float) -> None:
        at = _plain(self.clock(second))
        for topic in self.topics.values():
            if not topic.exists:
                continue
            for partition in range(len(topic.high)):
                ends: tuple[object, ...] = ("", "", "")
                if topic.readable:
                    stable = "" if topic.stable is None else topic.stable[partition]
                    ends = (topic.start[partition], topic.end(partition), stable)
                self._rows["watermarks.csv"].append((at, topic.name, partition, *ends, topic.id or ""))

    def write(self, root: Path) -> Path:
        """Write the trace's folder below ``root``."""
        folder = root / self.name
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in self._rows.items():
            looked_up = ("next_record",) if self.looks_up and name == "commits.csv" else ()
            write_csv(folder / name, COLUMNS[name] + looked_up, rows)
        topics = [
            (t.name, t.retention_ms, "" if t.retention_bytes is None else t.retention_bytes, t.cleanup_policy)
            for t in self.topics.values()
        ]
        write_csv(folder / "topics.csv", COLUMNS["topics.csv"], topics)
        head = [f'name = "{self.name}"', f'story = "{self.story}"', f"sample_interval_s = {_plain(self.interval_s)}"]
        head += [f"{key} = {_plain(value)}" for key, value in self.head.items() if value is not None]
        (folder / "trace.toml").write_text("\n".join(head) + "\n", encoding="utf-8")
        return folder


COLUMNS = {
    "watermarks.csv": ("time_s", "topic", "partition", "log_start", "high_watermark", "last_stable", "topic_id"),
    "commits.csv": ("time_s", "group", "topic", "partition", "committed"),
    "groups.csv": ("time_s", "group", "state", "type"),
    "assignments.csv": ("time_s", "group", "member_id", "client_id", "host", "topic", "partition"),
    "topics.csv": ("topic", "retention_ms", "retention_bytes", "cleanup_policy"),
    "truth.csv": ("group", "topic", "partition", "from_s", "to_s", "status"),
}


def _plain(value: float) -> str:
    return f"{value:.10g}"


def write_csv(path: Path, columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")
