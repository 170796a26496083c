"""What is kept elsewhere beside what is committed to Kafka: one row per group, one per group-partition."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from lagwise_collectors.external_offsets.model import GroupFound, Offset, Trouble
from lagwise_collectors.external_offsets.sources import Elsewhere
from lagwise_collectors.kafka.requests.committed_offsets import Commits
from lagwise_collectors.kafka.requests.group_members import KafkaGroup, KafkaMember
from lagwise_collectors.protocol import ErrorTally

#: Rows by topic and partition.
_Places = Mapping[tuple[str, int], int]


class Join:
    """Adds what is kept elsewhere to the rows of a Kafka cluster; ``names`` lists the cluster's topics."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = TopicNames(names)

    def into(self, elsewhere: Elsewhere, groups: list[KafkaGroup], commits: Commits, errors: ErrorTally) -> None:
        """Add the groups and their offsets to those of Kafka, in place.

        A group that Kafka knows, too, keeps its members where it has any; else its state and type are those of its job,
        or of who keeps its offsets. Of an offset that both have, the one kept elsewhere is shown: that is why it is
        kept. What Flink has committed is the same in Kafka, and the higher one is then the newer.
        """
        if not elsewhere.groups:
            return
        commits.committed_at += [None] * (len(commits.topic) - len(commits.committed_at))
        places = commits.places({group.name for _, group in elsewhere.groups})
        known = {group.name: group for group in groups}
        for source, found in elsewhere.groups:
            its_places = places.get(found.name, {})
            if found.follows_kafka and found.error is None:
                self._right_names(source, found, its_places, errors)
            group = known.get(found.name)
            if group is None:
                if found.follows_kafka and found.error is None and not found.offsets:
                    continue  # a job that has ended and left nothing: Flink remembers it for a while
                group = KafkaGroup(found.name)
                groups.append(group)
            if not group.members:
                _describe(group, source, found, is_in_kafka=found.name in known)
            if found.error is None:
                _add(found, commits, its_places)
        if elsewhere.read_at is not None:
            commits.read_at = max(commits.read_at or elsewhere.read_at, elsewhere.read_at)

    def _right_names(self, source: str, found: GroupFound, places: _Places, errors: ErrorTally) -> None:
        try:
            self._names.right(found, {topic for topic, _ in places})
        except Trouble as trouble:
            errors.note(trouble.kind, f"offsets from {source}: {trouble}")
            found.error, found.offsets, found.job = trouble.kind, [], None


def _describe(group: KafkaGroup, source: str, found: GroupFound, *, is_in_kafka: bool) -> None:
    group.source, group.type = source, found.type
    if found.error is not None:
        group.state = None
        # What a Flink job has committed can be read in Kafka; only that it runs, and who it is, is not known then.
        if not (found.follows_kafka and is_in_kafka):
            group.error = found.error
        return
    group.state, group.error = found.state, None
    group.checkpointed_at = found.checkpointed_at
    group.checkpoint_interval_seconds = found.checkpoint_interval_seconds
    if found.job is not None:
        owned: dict[str, list[int]] = {}
        for offset in sorted(found.offsets, key=lambda one: (one.topic, one.partition)):
            owned.setdefault(offset.topic, []).append(offset.partition)
        group.members = [KafkaMember(found.job.id, found.job.name, None, None, owned)]


def _add(found: GroupFound, commits: Commits, places: _Places) -> None:
    owner = found.job.id if found.job is not None else None
    new: list[Offset] = []
    for offset in found.offsets:
        row = places.get((offset.topic, offset.partition))
        if row is None:
            new.append(offset)
            continue
        commits.owner[row] = commits.owner[row] or owner
        before = commits.committed[row]
        is_older = found.follows_kafka and before is not None and before >= (offset.committed or 0)
        if offset.committed is not None and not is_older:
            commits.committed[row], commits.committed_at[row] = offset.committed, offset.updated_at
            commits.leader_epoch[row] = commits.metadata[row] = None
    if new:
        _append(found.name, new, owner, commits)


def _append(group: str, offsets: Sequence[Offset], owner: str | None, commits: Commits) -> None:
    commits.add_without_offset([(offset.topic, offset.partition, owner) for offset in offsets])
    commits.committed[-len(offsets) :] = [offset.committed for offset in offsets]
    commits.committed_at += [offset.updated_at if offset.committed is not None else None for offset in offsets]
    commits.group.append(group)
    commits.rows.append(len(offsets))


#: The names of all topics are listed again no sooner than this, however many are not found among them.
LIST_EVERY_SECONDS = 60.0


class TopicNames:
    """The cluster's topics by how Flink spells them. For one thread."""

    def __init__(self, names: Callable[[], Iterable[str]], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._names = names
        self._monotonic = monotonic
        self._listed_at: float | None = None
        self._by_spelling: dict[str, list[str]] = {}

    def right(self, group: GroupFound, committed: Collection[str]) -> None:
        """Give the group's topics their names; ``committed`` are those that it has committed to, which tell apart what
        is spelled alike. Raises Trouble where nothing does, and what listing the names raises."""
        spelled = {offset.topic for offset in group.offsets if "_" in offset.topic}
        if not spelled:
            return
        names = {one: self._name(one, committed) for one in spelled}
        group.offsets = [replace(offset, topic=names.get(offset.topic, offset.topic)) for offset in group.offsets]

    def _name(self, spelled: str, committed: Collection[str]) -> str:
        own = [name for name in committed if _spelled(name) == spelled]
        if len(own) == 1:
            return own[0]
        alike = self._alike(spelled)
        if len(alike) > 1:
            raise Trouble("malformed", f"Flink spells {len(alike)} topics alike: {', '.join(alike[:3])}")
        return alike[0] if alike else spelled

    def _alike(self, spelled: str) -> list[str]:
        now = self._monotonic()
        is_due = self._listed_at is None or now - self._listed_at >= LIST_EVERY_SECONDS
        if spelled not in self._by_spelling and is_due:
            self._listed_at = now
            self._by_spelling = {}
            for name in sorted(self._names()):
                self._by_spelling.setdefault(_spelled(name), []).append(name)
        return self._by_spelling.get(spelled, [])


def _spelled(name: str) -> str:
    return name.replace(".", "_")
