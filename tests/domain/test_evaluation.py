"""What is read out of the rows at a moment. Each row says why its answer is right."""

from collections.abc import Callable
from typing import Any

import pytest

from lagwise.domain.vocabulary import LossCause, Status, UnknownReason
from lagwise.traces.trace import Row, moment, sample_id
from lagwise.traces.trace_columns import client_of
from tests.traces.judged import Evaluation, Pair, judged, trace_of

INTERVAL = 15.0
ORDERS = Pair("billing", "orders", 0)


class World:
    """Rows of the raw tables, sample by sample. Every partition holds 1,000 records of which 900 are committed."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {
            name: [] for name in ("watermarks", "commits", "groups", "members", "topics", "events")
        }

    def stamp(self, sample: int) -> Row:
        return {"sample_id": sample_id(sample), "sampled_at": moment(INTERVAL * sample)}

    def group(self, sample: int, name: str = "billing", **values: Any) -> None:
        row = {"group": name, "state": "Stable", "type": "classic", "member_count": 1, "error": None}
        self.rows["groups"].append(self.stamp(sample) | row | values)

    def commit(
        self, sample: int, pair: Pair = ORDERS, *, committed: int | None = 900, owner: str | None = "m-1"
    ) -> None:
        self.rows["commits"].append(self.stamp(sample) | pair._asdict() | {"committed": committed, "owner": owner})

    def ends(self, sample: int, pair: Pair = ORDERS, high: int | None = 1000, topic_id: str | None = None) -> None:
        row = {"topic": pair.topic, "partition": pair.partition, "topic_id": topic_id}
        start = None if high is None else 0
        self.rows["watermarks"].append(
            self.stamp(sample) | row | {"log_start": start, "high_watermark": high, "last_stable": None}
        )

    def member(self, sample: int, **values: Any) -> None:
        row = {"group": "billing", "member_id": "m-1", "client_id": "app", "host": "10.0.0.7", "assigned_partitions": 1}
        assignment = [{"topic": "orders", "partitions": [0]}]
        self.rows["members"].append(self.stamp(sample) | row | {"assignment": assignment} | values)

    def topic(self, sample: int, **values: Any) -> None:
        row = {"topic": "orders", "retention_ms": None, "retention_bytes": None, "cleanup_policy": None}
        self.rows["topics"].append(self.stamp(sample) | row | values)

    def sampled(self, sample: int) -> None:
        """A sample of the one partition, owned and committed."""
        self.group(sample)
        self.member(sample)
        self.commit(sample)
        self.ends(sample)

    def judged(self, sample: int, offsets_retention_s: float | None = None) -> Evaluation:
        trace = trace_of(self.rows, [INTERVAL * n for n in range(60)], INTERVAL, offsets_retention_s)
        ((_, evaluation),) = judged(trace, [sample], self.rows["events"])
        return evaluation


@pytest.fixture
def world() -> World:
    return World()


class TestWhoItIs:
    def test_two_processes_of_one_name_are_two(self, world: World, golden_sentence: Callable[..., None]) -> None:
        """On one host, with the client id that nobody chose: one hangs, and the other reads."""
        for sample in range(12):
            world.group(sample, member_count=2)
            for partition, member in ((0, "m-1"), (1, "m-2")):
                pair = ORDERS._replace(partition=partition)
                world.member(sample, member_id=member, assignment=[{"topic": "orders", "partitions": [partition]}])
                world.commit(sample, pair, owner=member, committed=900 + (10 * sample if partition else min(sample, 3)))
                world.ends(sample, pair, high=1000 + 10 * sample)
        found = world.judged(11).groups["billing"]
        assert found.status is Status.STALLED
        golden_sentence(found.sentence)

    def test_what_a_long_transaction_held_back_is_not_late_when_it_ends(self, world: World) -> None:
        """It is ten minutes old when it may be read, and the reader had nothing to read a sample before."""
        for sample in range(44):
            world.group(sample)
            world.member(sample)
            stable = 1000 if sample < 40 else 1000 + 10 * sample
            world.commit(sample, committed=1000)
            world.ends(sample, high=1000 + 10 * sample)
            world.rows["watermarks"][-1]["last_stable"] = stable
        age = world.judged(40).partitions[ORDERS].lag_seconds
        assert age is not None
        assert age > 500
        assert Status.LAGGING not in world.judged(40).partitions[ORDERS].reasons


class TestWhatIsShown:
    def test_an_owned_partition_without_commits_is_forgotten_once_unowned(self, world: World) -> None:
        world.group(0)
        world.commit(0, committed=None)
        world.ends(0)
        world.group(1)
        assert world.judged(0).partitions[ORDERS].reason is UnknownReason.NO_COMMIT
        assert not world.judged(1).partitions

    def test_a_partition_whose_commit_is_gone_is_still_shown(self, world: World) -> None:
        world.sampled(0)
        world.group(1)
        world.ends(1)
        assert world.judged(1).partitions[ORDERS].reason is UnknownReason.EXPIRED
        assert world.judged(1).groups["billing"].reason is UnknownReason.EXPIRED

    def test_a_group_that_is_gone_is_shown_as_long_as_its_commits_were_seen(self, world: World) -> None:
        world.sampled(0)
        world.ends(1)
        assert world.judged(1).groups["billing"].reason is UnknownReason.EXPIRED

    def test_a_group_that_committed_nothing_is_shown(self, world: World) -> None:
        world.group(0, "viewer", member_count=0)
        assert world.judged(0).groups["viewer"].reason is UnknownReason.NO_COMMIT

    def test_without_rows_there_is_nothing(self) -> None:
        nothing = World().judged(0)
        assert (nothing.partitions, nothing.groups) == ({}, {})

    def test_a_group_whose_offsets_cannot_be_read_is_unreadable_even_where_a_commit_is_known(
        self, world: World
    ) -> None:
        world.sampled(0)
        world.group(1, error="timed_out")
        world.ends(1)
        assert world.judged(1).partitions[ORDERS].reason is UnknownReason.UNREADABLE

    def test_a_group_that_could_never_be_read_is_unreadable_and_not_without_commits(self, world: World) -> None:
        world.group(0, state=None, type=None, member_count=None, error="group_not_authorized")
        found = world.judged(0).groups["billing"]
        assert (found.status, found.reason) == (Status.UNKNOWN, UnknownReason.UNREADABLE)
        assert "Describe on the group" in found.sentence

    def test_a_commit_that_is_missing_is_not_gone_where_the_partition_cannot_be_read(self, world: World) -> None:
        """Of a topic that may not be described the commits are hidden: they may still be there."""
        world.sampled(0)
        world.group(1)
        world.ends(1, high=None)
        assert world.judged(1).partitions[ORDERS].reason is UnknownReason.UNREADABLE

    def test_nor_was_it_never_there(self, world: World) -> None:
        world.group(0)
        world.commit(0, committed=None)
        world.ends(0, high=None)
        assert world.judged(0).partitions[ORDERS].reason is UnknownReason.UNREADABLE

    def test_an_end_of_an_older_sample_does_not_stand_in_for_one_that_could_not_be_read(self, world: World) -> None:
        world.sampled(0)
        world.group(1)
        world.commit(1)
        assert world.judged(1).partitions[ORDERS].reason is UnknownReason.UNREADABLE


def test_a_commit_on_a_re_created_topic_is_one_of_the_old_topic_until_it_moves(world: World) -> None:
    reasons = []
    for sample, committed in enumerate((900, 900, 900, 950, 950)):
        world.group(sample)
        world.commit(sample, committed=committed)
        world.ends(sample, topic_id="new" if sample else "old")
        reasons.append(world.judged(sample).partitions[ORDERS].reason)
    assert [reason is UnknownReason.RECREATED for reason in reasons] == [False, True, True, False, False]


# retention_ms, retention_bytes, cleanup_policy → seconds that records are kept, whether their size is limited
RETENTIONS = (
    (1, "ten minutes", 600_000, None, "delete", 600.0, False),
    (2, "forever", -1, -1, "delete", None, False),
    (3, "by size alone", -1, 1_000_000, "delete", None, True),
    (4, "by both", 600_000, 1_000_000, "delete", 600.0, True),
    (
        5,
        "compacted: records go when they are replaced, not when they are old",
        600_000,
        1_000_000,
        "compact",
        None,
        False,
    ),
    (6, "compacted and deleted", 600_000, None, "compact,delete", 600.0, False),
    (7, "nothing may be kept", 0, 0, "delete", 0.0, True),
    (8, "the policy is not known: Kafka's default", 600_000, None, None, 600.0, False),
)


@pytest.mark.parametrize(
    ("ms", "size", "policy", "seconds", "by_size"),
    [r[2:] for r in RETENTIONS],
    ids=[f"{r[0]} {r[1]}" for r in RETENTIONS],
)
def test_retention(
    world: World, ms: int, size: int | None, policy: str | None, seconds: float | None, by_size: bool
) -> None:
    world.sampled(0)
    world.topic(0, retention_ms=ms, retention_bytes=size, cleanup_policy=policy)
    evidence = world.judged(0).partitions[ORDERS]
    assert (evidence.retention_seconds, evidence.retention_is_by_size) == (seconds, by_size)


# segment_ms, cleanup_policy → for how many seconds at most a segment takes records
SEGMENTS = (
    (1, "closed after a week", 604_800_000, "delete", 604_800.0),
    (2, "the policy is not known: Kafka's default", 60_000, None, 60.0),
    (3, "compaction makes one of several", 60_000, "compact,delete", None),
    (4, "not known", None, "delete", None),
)


@pytest.mark.parametrize(
    ("ms", "policy", "seconds"), [r[2:] for r in SEGMENTS], ids=[f"{r[0]} {r[1]}" for r in SEGMENTS]
)
def test_segments(world: World, ms: int | None, policy: str | None, seconds: float | None) -> None:
    world.sampled(0)
    world.topic(0, retention_ms=600_000, segment_ms=ms, cleanup_policy=policy)
    assert world.judged(0).partitions[ORDERS].segment_seconds == seconds


def test_a_topic_s_latest_settings_up_to_the_moment_count(world: World) -> None:
    for sample in range(3):
        world.sampled(sample)
    for sample, ms in ((2, 3000), (0, 1000), (1, 2000)):
        world.topic(sample, retention_ms=ms)
    kept = [world.judged(sample).partitions[ORDERS].retention_seconds for sample in range(3)]
    assert kept == [1.0, 2.0, 3.0]


def test_a_topic_without_settings_is_kept_forever_for_all_we_know(world: World) -> None:
    world.sampled(0)
    evidence = world.judged(0).partitions[ORDERS]
    assert (evidence.retention_seconds, evidence.retention_is_by_size) == (None, False)


@pytest.mark.parametrize(
    ("client", "host", "named"),
    [("app", "10.0.0.7", "client app on host 10.0.0.7"), ("app", None, "client app"), (None, "10.0.0.7", None)],
    ids=["both", "a host that is not known", "a client that is not known is nobody"],
)
def test_an_owner_is_its_client_on_its_host(
    world: World, client: str | None, host: str | None, named: str | None
) -> None:
    world.sampled(0)
    world.rows["members"][0] |= {"client_id": client, "host": host}
    assert client_of(world.rows["members"][0]) == named


def test_the_partition_that_is_named_has_the_oldest_record_and_among_equals_the_lowest_number(
    world: World, golden_sentence: Callable[..., None]
) -> None:
    """Three partitions stand still: two from the beginning, the first by number since records came a minute later."""
    for sample in range(20):
        world.group(sample)
        world.member(sample)
        for number in (5, 3, 4):
            pair = Pair("billing", "orders", number)
            world.commit(sample, pair)
            world.ends(sample, pair, high=900 if number == 3 and sample < 5 else 1000)
    found = world.judged(19).groups["billing"]
    assert (found.status, found.numbers.worst_topic, found.numbers.worst_partition) == (Status.STALLED, "orders", 4)
    assert (found.numbers.lag_seconds, found.numbers.lag_seconds_is_lower_bound) == (285.0, True)
    golden_sentence(found.sentence)


def test_that_committed_offsets_expire_is_not_a_loss_of_records(
    world: World, golden_sentence: Callable[..., None]
) -> None:
    """Records that are kept for ever wait for an empty group, whose commits are kept for an hour."""
    for sample in range(20):
        world.group(sample, state="Empty", member_count=0)
        world.commit(sample, owner=None)
        world.ends(sample)
    world.topic(0, retention_ms=-1)
    found = world.judged(19, offsets_retention_s=3600.0).groups["billing"]
    assert (found.status, found.numbers.seconds_to_loss, found.numbers.loss_cause) == (
        Status.AT_RISK,
        3315.0,
        LossCause.EXPIRY,
    )
    golden_sentence(found.sentence)
