"""What real consumers get from a real broker is what our assignors compute for them, through the rows we collect."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from lagwise.domain.assignment.assignors import ASSIGNORS
from lagwise.domain.assignment.model import Assignment, Member
from lagwise.domain.assignment.rows import members_of
from lagwise.domain.assignment.sticky import moved
from lagwise.tables.raw import GROUPS, MEMBERS
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import Lab, eventually, rows

pytestmark = pytest.mark.broker

EMPTY: frozenset[tuple[str, int]] = frozenset()


@pytest.fixture
def lab(broker: KafkaBroker) -> Lab:
    return Lab(broker.client_settings())


@pytest.fixture
def source(lab: Lab) -> Iterator[KafkaSource]:
    made = KafkaSource(lab.cluster())
    yield made
    made.close()


class Watched:
    """Two topics, and a group of real consumers that subscribe to both."""

    def __init__(self, lab: Lab, source: KafkaSource, assignor: str, *partitions: int) -> None:
        self.counts = {lab.topic(f"topic-{number}", count): count for number, count in enumerate(partitions)}
        self.assignor = assignor
        self._lab, self._source = lab, source
        self._group = lab.name("group")

    def start(self, running: ExitStack, *instances: str | None) -> None:
        """Start a member for each instance id; None is a dynamic one."""
        for instance in instances:
            settings = {"partition.assignment.strategy": self.assignor, "topic.metadata.refresh.interval.ms": 500}
            if instance is not None:
                settings["group.instance.id"] = instance
            # librdkafka takes a subscription that begins with ^ as a pattern.
            running.enter_context(self._lab.consumer(self._group, f"^{self._lab.name('topic')}-.*", **settings))

    def settled(self, members: int) -> list[Member]:
        """The members once there are so many and everything is assigned."""

        def read() -> list[Member] | None:
            snapshot = self._source.collect()
            states = {row["group"]: (row["state"], row["assignor"]) for row in rows(snapshot, GROUPS)}
            found = members_of([row for row in rows(snapshot, MEMBERS) if row["group"] == self._group])
            owned = sum(len(member.owned) for member in found)
            stable = states.get(self._group) == ("Stable", self.assignor)
            return found if stable and len(found) == members and owned == sum(self.counts.values()) else None

        found: list[Member] = eventually(read)
        return found


def owned(members: list[Member]) -> Assignment:
    return {member.member_id: member.owned for member in members}


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
@pytest.mark.parametrize("instances", [(None, None, None, None), ("c", "a", "b")], ids=["dynamic", "static"])
def test_range_and_round_robin_give_exactly_this(
    lab: Lab, source: KafkaSource, assignor: str, instances: tuple[str | None, ...]
) -> None:
    group = Watched(lab, source, assignor, 6, 3)
    with ExitStack() as running:
        group.start(running, *instances)
        members = group.settled(len(instances))
    assert owned(members) == ASSIGNORS[assignor](members, group.counts).assignment


def test_cooperative_sticky_is_as_even_and_moves_as_few(lab: Lab, source: KafkaSource) -> None:
    """librdkafka's is another program than Java's: not always the same owners, but the same figures."""
    group = Watched(lab, source, "cooperative-sticky", 7, 4)
    with ExitStack() as running:
        group.start(running, None, None, None)
        three = group.settled(3)
        group.start(running, None)
        four = group.settled(4)
    known = {member.member_id: member for member in three}
    before = [known.get(member.member_id, Member(member.member_id, member.topics)) for member in four]
    computed = ASSIGNORS["cooperative-sticky"](before, group.counts)
    assert computed.rebalances == 2
    assert sorted(map(len, computed.assignment.values())) == sorted(len(member.owned) for member in four)
    assert moved(before, computed.assignment) == moved(before, owned(four)) == 2
