"""What happened in groups, judged on the records that a coordinator writes. Each case says why its answer is right."""

from collections.abc import Callable

import pytest

from lagwise.domain.vocabulary import EventKind, EventSource, RebalanceCause
from lagwise_collectors.offsets_topic.ledger import Ledger
from lagwise_collectors.sample_diff.events import Event
from tests.collectors.offsets_records import START_MS, TOPIC_ID, Classic, Topic, commit_key, commit_value

T = [("t", p) for p in range(6)]
I = [(TOPIC_ID, p) for p in range(6)]  # noqa: E741  (the same by id)


def two() -> Topic:
    """A group of two members that commit every 5 s, seen for two minutes."""
    topic = Topic()
    topic.classic("g", 1, a=Classic(T[:2]), b=Classic(T[2:4])).committing("g", 120, *T[:4])
    topic.events()
    return topic


def quick() -> Topic:
    """The same with a commit every second."""
    topic = Topic()
    topic.classic("g", 1, a=Classic(T[:2]), b=Classic(T[2:4])).committing("g", 60, *T[:4], every=1)
    topic.events()
    return topic


def sole(topic: Topic) -> Event:
    [event] = topic.events()
    return event


CAUSES: list[tuple[str, Callable[[], Topic], RebalanceCause, list[str]]] = [
    (
        "its last commit is younger than its session timeout: it cannot have timed out, so it left",
        lambda: two().after(3).classic("g", 2, a=Classic(T[:4])),
        RebalanceCause.MEMBER_LEFT,
        [],
    ),
    (
        "it took part in the last rebalance less than a session timeout ago, though it never committed",
        lambda: two().after(60).classic("g", 2, a=Classic(T[:2]), b=Classic(T[2:4])).after(20).classic("g", 3),
        RebalanceCause.MEMBER_LEFT,
        [],
    ),
    (
        "silent for its session timeout while the others went on, and then taken out",
        lambda: two().committing("g", 45, *T[:2]).after(1).classic("g", 2, a=Classic(T[:4])),
        RebalanceCause.MEMBER_FAILED,
        ["b (10.0.0.1)"],
    ),
    (
        "the last member: nobody is waited for, so the silence is exact",
        lambda: two().classic("g", 2, b=Classic(T[:4])).committing("g", 60, *T[:4]).after(46).classic("g", 3),
        RebalanceCause.MEMBER_FAILED,
        ["b (10.0.0.1)"],
    ),
    (
        "silent for the poll interval and no longer, while heartbeats went on: its handler took too long",
        lambda: two().committing("g", 300, *T[:2]).after(1).classic("g", 2, a=Classic(T[:4])),
        RebalanceCause.POLL_INTERVAL_EXCEEDED,
        ["b (10.0.0.1)"],
    ),
    (
        "librdkafka commits for some seconds after the poll that counts, so the silence is a little shorter",
        lambda: two().committing("g", 295, *T[:2]).after(1).classic("g", 2, a=Classic(T[:4])),
        RebalanceCause.POLL_INTERVAL_EXCEEDED,
        ["b (10.0.0.1)"],
    ),
    (
        "silent for twice the session timeout: a dead one would have been taken out long before",
        lambda: two().committing("g", 120, *T[:2]).after(1).classic("g", 2, a=Classic(T[:4])),
        RebalanceCause.MEMBER_GONE,
        [],
    ),
    (
        "silent for an hour: no timeout lasts that long",
        lambda: two().committing("g", 3600, *T[:2]).after(1).classic("g", 2, a=Classic(T[:4])),
        RebalanceCause.MEMBER_GONE,
        [],
    ),
    (
        "it commits every minute, so 50 s without a commit are nothing unusual",
        lambda: (
            Topic()
            .classic("g", 1, a=Classic(T[:2]), b=Classic(T[2:4]))
            .committing("g", 600, *T[:4], every=60)
            .after(50)
            .classic("g", 2, a=Classic(T[:4]))
        ),
        RebalanceCause.MEMBER_GONE,
        [],
    ),
    (
        "nobody ever committed anything",
        lambda: (
            Topic().classic("g", 1, a=Classic(T[:2]), b=Classic(T[2:4])).after(100).classic("g", 2, a=Classic(T[:4]))
        ),
        RebalanceCause.MEMBER_GONE,
        [],
    ),
    (
        "a standby that owned nothing, gone after an hour",
        lambda: Topic().classic("g", 1, a=Classic(T[:2]), b=Classic()).after(3600).classic("g", 2, a=Classic(T[:2])),
        RebalanceCause.MEMBER_GONE,
        [],
    ),
    (
        "the member that stays joined late: its commits stood still too, so the silence may be the rebalance's",
        lambda: two().after(48).classic("g", 2, a=Classic(T[:4])),
        RebalanceCause.MEMBER_GONE,
        [],
    ),
    (
        "silent for 50 s when it was over, but for 10 s of that the other stood still too: it may have left",
        lambda: quick().committing("g", 38, *T[:2], every=1).after(12).classic("g", 2, a=Classic(T[:4])),
        RebalanceCause.MEMBER_GONE,
        [],
    ),
    (
        "the other has had nothing to read for an hour, so its silence says nothing",
        lambda: quick().committing("g", 3600, *T[2:4], every=1).after(46).classic("g", 2, a=Classic(T[:4])),
        RebalanceCause.MEMBER_FAILED,
        ["b (10.0.0.1)"],
    ),
    (
        "the others learn of it at their next heartbeat, up to a third of a session timeout later",
        lambda: quick().committing("g", 58, *T[:2], every=1).classic("g", 2, a=Classic(T[:4])),
        RebalanceCause.MEMBER_FAILED,
        ["b (10.0.0.1)"],
    ),
    (
        "… but where there are no others, nobody is waited for, and 58 s are too many",
        lambda: (
            quick()
            .after(1)
            .classic("g", 2, b=Classic(T[:4]))
            .committing("g", 9, *T[:4], every=1)
            .after(58)
            .classic("g", 3)
        ),
        RebalanceCause.MEMBER_GONE,
        [],
    ),
    (
        "both timeouts fit: not reported apart",
        lambda: (
            Topic()
            .classic("g", 1, b=Classic(T[:2], session_ms=45_000, poll_ms=50_000))
            .committing("g", 60, *T[:2])
            .after(50)
            .classic("g", 2)
        ),
        RebalanceCause.MEMBER_GONE,
        [],
    ),
    (
        "one failed and another came in its place: why one is gone is said first",
        lambda: two().committing("g", 45, *T[:2]).after(1).classic("g", 2, a=Classic(T[:2]), c=Classic(T[2:4])),
        RebalanceCause.MEMBER_FAILED,
        ["b (10.0.0.1)"],
    ),
    (
        "a new group's first record has generation 0 and no members",
        lambda: Topic().classic("g", 0).classic("g", 1, a=Classic(T[:4])),
        RebalanceCause.GROUP_APPEARED,
        [],
    ),
    (
        "the group was there, only without members",
        lambda: (
            two().write(b"\0\2\0\1h", None).after(1).classic("g", 2, a=Classic(T[:2]), b=Classic(T[2:4]), c=Classic())
        ),
        RebalanceCause.MEMBER_JOINED,
        [],
    ),
    (
        "the same member wants another topic",
        lambda: two().after(1).classic("g", 2, a=Classic(T[:2], topics=("t", "u")), b=Classic(T[2:4])),
        RebalanceCause.SUBSCRIPTION_CHANGED,
        [],
    ),
    (
        "the topic is wider than it ever was",
        lambda: two().after(1).classic("g", 2, a=Classic(T[:3]), b=Classic(T[3:6])),
        RebalanceCause.PARTITIONS_ADDED,
        [],
    ),
    (
        "the topic that was subscribed to came into being",
        lambda: Topic().classic("g", 1, a=Classic()).after(60).classic("g", 2, a=Classic(T[:2])),
        RebalanceCause.PARTITIONS_ADDED,
        [],
    ),
    (
        "the same instance under another member id, in the same generation",
        lambda: (
            Topic()
            .classic("g", 1, a=Classic(T[:2], instance="node-1"))
            .after(60)
            .classic("g", 1, a=Classic(T[:2], instance="node-1", member_id="another"))
        ),
        RebalanceCause.STATIC_MEMBER_RETURNED,
        [],
    ),
    (
        "nobody came, went or wants anything else",
        lambda: two().after(1).classic("g", 2, a=Classic(T[:2]), b=Classic(T[2:4])),
        RebalanceCause.REJOINED,
        [],
    ),
]


@pytest.mark.parametrize(("why", "story", "cause", "failed"), CAUSES, ids=[case[0][:40] for case in CAUSES])
def test_the_cause_of_a_rebalance(
    why: str, story: Callable[[], Topic], cause: RebalanceCause, failed: list[str]
) -> None:
    event = story().events()[-1]
    assert event.kind is EventKind.REBALANCE
    assert (event.cause, list(event.failed or ())) == (cause, failed), why
    assert event.source is EventSource.OFFSETS_TOPIC


class TestClassic:
    def test_an_event_has_who_what_and_how_long(self) -> None:
        topic = two().committing("g", 45, *T[:2]).after(1)
        event = sole(topic.classic("g", 2, a=Classic(T[:2]), c=Classic(T[2:4])))
        assert event.at.timestamp() * 1000 == topic.now_ms
        assert (event.group, event.generation, event.before, event.after) == ("g", 2, "1", "2")
        assert (event.joined, event.left, event.members) == (("c (10.0.0.1)",), ("b (10.0.0.1)",), 2)
        assert (event.partitions_moved, event.moved) == (2, [("t", [2, 3])])
        assert (event.silent_seconds, event.uncommitted_seconds) == (46.0, 46.0)
        assert (event.session_timeout_seconds, event.poll_interval_seconds) == (45.0, 300.0)
        assert event.duration_seconds is None  # nobody writes down when it began

    def test_generations_that_were_never_seen_show_in_the_numbers(self) -> None:
        event = sole(two().after(1).classic("g", 7, a=Classic(T[:2]), b=Classic(T[2:4])))
        assert (event.before, event.after, event.generation) == ("1", "7", 7)

    def test_the_last_member_leaves_the_group_empty(self) -> None:
        event = sole(two().after(1).classic("g", 2))
        assert (event.members, event.partitions_moved, event.left) == (0, 4, ("a (10.0.0.1)", "b (10.0.0.1)"))

    def test_a_partition_that_is_nobodys_for_a_generation_is_none_that_was_added(self) -> None:
        """Cooperative rebalancing takes it from one member first, and gives it to the other in the next generation."""
        topic = two().after(1).classic("g", 2, a=Classic(T[:2]), b=Classic(T[2:3]), c=Classic())
        topic.after(1).classic("g", 3, a=Classic(T[:2]), b=Classic(T[2:3]), c=Classic(T[3:4]))
        first, second = topic.events()
        assert (first.cause, first.moved, first.partitions_moved) == (RebalanceCause.MEMBER_JOINED, [("t", [3])], 1)
        assert (second.cause, second.moved, second.partitions_moved) == (RebalanceCause.REJOINED, [], 1)

    def test_a_record_written_again_is_no_event(self) -> None:
        assert two().after(1).classic("g", 1, a=Classic(T[:2]), b=Classic(T[2:4])).events() == []

    def test_generations_without_members_are_no_event(self) -> None:
        assert Topic().classic("g", 0).classic("g", 1).classic("g", 2).events() == []

    def test_workers_of_kafka_connect_are_members_too(self) -> None:
        from tests.collectors.offsets_records import classic_value, text

        topic = Topic()
        topic.write(b"\0\2" + text("connect"), classic_value(1, {"w1": Classic(), "w2": Classic()}, "connect"))
        event = sole(topic)
        assert (event.joined, event.partitions_moved) == (("w1 (10.0.0.1)", "w2 (10.0.0.1)"), 0)


class TestNewProtocol:
    """KIP-848: the records of a real broker, in its order."""

    def begun(self) -> Topic:
        topic = Topic()
        topic.commit("g", 1, *T[:4])  # … which shows the name
        topic.ledger.groups.topics[TOPIC_ID] = "t"
        topic.ledger.groups.session_ms, topic.ledger.groups.heartbeat_ms = 45_000, 5_000
        topic.member("g", "a").epoch("g", 2).target("g", 2, a=I[:4]).has("g", "a", 2, I[:4])
        return topic

    def joined(self) -> Topic:
        topic = self.begun()
        topic.events()
        topic.after(10).member("g", "b").epoch("g", 3).target("g", 3, a=I[:2], b=I[2:4]).has("g", "b", 3, [], state=2)
        topic.after(1).has("g", "a", 2, I[:2], revoking=I[2:4], state=1)
        topic.after(0.5).has("g", "a", 3, I[:2])
        return topic

    def test_a_group_that_appears_is_settled_at_once(self) -> None:
        event = sole(self.begun())
        assert (event.cause, event.generation, event.before, event.members) == ("group_appeared", 2, None, 1)
        assert (event.joined, event.partitions_moved, event.duration_seconds) == (("a (10.0.0.1)",), 4, 0.0)

    def test_a_rebalance_is_over_when_everybody_has_what_is_meant_for_it(self) -> None:
        topic = self.joined()
        assert topic.events() == []
        event = sole(topic.after(0.5).has("g", "b", 3, I[2:4]))
        assert (event.cause, event.generation, event.before) == ("member_joined", 3, "2")
        assert event.at.timestamp() * 1000 == START_MS + 10_000
        assert event.duration_seconds == 2.0
        assert (event.moved, event.partitions_moved) == ([("t", [2, 3])], 2)

    def test_one_that_is_overtaken_never_ended(self) -> None:
        topic = self.joined().after(1).member("g", "c").epoch("g", 4)
        event = sole(topic)
        assert (event.cause, event.generation, event.duration_seconds) == ("member_joined", 3, None)
        topic.target("g", 4, a=I[:1], b=I[2:4], c=I[1:2]).has("g", "a", 4, I[:1]).has("g", "b", 4, I[2:4])
        event = sole(topic.after(2).has("g", "c", 4, I[1:2]))
        assert (event.joined, event.generation, event.before, event.duration_seconds) == (
            ("c (10.0.0.1)",),
            4,
            "3",
            2.0,
        )

    def test_a_superseded_rebalance_proves_no_member_alive(self) -> None:
        """It died at 11.5 s; the epochs of 60 s and 62 s never reached it, so they are no sign of life."""
        topic = self.joined().has("g", "b", 3, I[2:4])
        topic.events()
        topic.after(48.5).member("g", "c").epoch("g", 4).target("g", 4, a=I[:1], b=I[2:4], c=I[1:2])
        topic.after(2).without("g", "a").epoch("g", 5).target("g", 5, b=I[:2], c=I[2:4])
        topic.has("g", "b", 5, I[:2]).has("g", "c", 5, I[2:4])
        overtaken, over = topic.events()
        assert (overtaken.generation, overtaken.duration_seconds) == (4, None)
        assert (over.left, over.cause) == (("a (10.0.0.1)",), RebalanceCause.MEMBER_GONE)

    def settled(self) -> Topic:
        topic = self.joined().has("g", "b", 3, I[2:4]).committing("g", 60, *T[:4])
        topic.events()
        return topic

    @pytest.mark.parametrize(
        ("silent", "cause"),
        [
            (3, RebalanceCause.MEMBER_LEFT),
            (39, RebalanceCause.MEMBER_LEFT),
            # Its last heartbeat may be five seconds older than its last commit, which is none in this protocol.
            (41, RebalanceCause.MEMBER_FAILED),
            (46, RebalanceCause.MEMBER_FAILED),
            (100, RebalanceCause.MEMBER_GONE),
            (298, RebalanceCause.POLL_INTERVAL_EXCEEDED),
            (400, RebalanceCause.MEMBER_GONE),
        ],
    )
    def test_a_member_that_is_gone(self, silent: float, cause: RebalanceCause) -> None:
        topic = self.settled().after(silent).without("g", "b").epoch("g", 4)
        topic.target("g", 4, a=I[:4])
        event = sole(topic.has("g", "a", 4, I[:4]))
        assert (event.cause, event.silent_seconds, event.left) == (cause, silent, ("b (10.0.0.1)",))

    def test_without_the_session_timeout_it_is_unknown_whether_a_member_left(self) -> None:
        topic = self.settled()
        topic.ledger.groups.session_ms = None
        topic.has("g", "a", 3, I[:2]).has("g", "b", 3, I[2:4])
        topic.ledger.groups.by_name["g"].consumer.reported = {  # type: ignore[union-attr]  # as if never known
            key: type(m)(m.member_id, m.label, m.topics, m.owned, None, m.poll_ms)
            for key, m in topic.ledger.groups.by_name["g"].members.items()
        }
        topic.after(3).without("g", "b").epoch("g", 4).target("g", 4, a=I[:4])
        assert sole(topic.has("g", "a", 4, I[:4])).cause is RebalanceCause.MEMBER_GONE

    def test_the_last_member_gone_ends_it_at_once(self) -> None:
        topic = self.settled().after(1).without("g", "a").without("g", "b")
        event = sole(topic.epoch("g", 4))
        assert (event.members, event.duration_seconds, event.cause) == (0, 0.0, RebalanceCause.MEMBER_LEFT)

    def test_more_partitions(self) -> None:
        topic = self.settled().after(1).epoch("g", 4).target("g", 4, a=I[:3], b=I[3:6])
        event = sole(topic.has("g", "a", 4, I[:3]).has("g", "b", 4, I[3:6]))
        assert event.cause is RebalanceCause.PARTITIONS_ADDED

    def test_another_subscription(self) -> None:
        topic = self.settled().after(1).member("g", "a", "t", "u").epoch("g", 4).target("g", 4, a=I[:2], b=I[2:4])
        event = sole(topic.has("g", "a", 4, I[:2]).has("g", "b", 4, I[2:4]))
        assert (event.cause, event.partitions_moved) == (RebalanceCause.SUBSCRIPTION_CHANGED, 0)

    def test_a_static_member_that_comes_back_needs_no_epoch(self) -> None:
        topic = Topic().member("g", "s1", instance="node-1", label="s").epoch("g", 2).target("g", 2, s1=I[:2])
        topic.has("g", "s1", 2, I[:2]).events()
        topic.events()
        topic.after(5).has("g", "s1", -2, I[:2]).after(5).without("g", "s1")
        topic.member("g", "s2", instance="node-1", label="s").target("g", 2, s2=I[:2])
        event = sole(topic.has("g", "s2", 0, I[:2]).has("g", "s2", 2, I[:2]))
        assert (event.cause, event.joined, event.left) == (RebalanceCause.STATIC_MEMBER_RETURNED, (), ())

    def test_a_static_member_that_is_away_for_a_while_delays_no_one(self) -> None:
        topic = Topic().member("g", "s1", instance="node-1").member("g", "a").epoch("g", 2)
        topic.target("g", 2, s1=I[:2], a=I[2:4]).has("g", "a", 2, I[2:4])
        assert sole(topic.has("g", "s1", -2, I[:2])).generation == 2

    def test_a_classic_group_that_is_converted_is_not_gone(self) -> None:
        topic = two().after(1)
        topic.ledger.groups.topics[TOPIC_ID] = "t"
        topic.no_classic("g").member("g", "a-id", label="a").member("g", "b-id", label="b").epoch("g", 2)
        topic.target("g", 2, **{"a-id": I[:2], "b-id": I[2:4]})
        event = sole(topic.has("g", "a-id", 2, I[:2]).has("g", "b-id", 2, I[2:4]))
        assert (event.kind, event.joined, event.left, event.partitions_moved) == (EventKind.REBALANCE, (), (), 0)
        topic.after(60).without("g", "a-id").without("g", "b-id").write(b"\0\6\0\1g", None).epoch("g", None)
        event = sole(topic.classic("g", 3, a=Classic(T[:2]), b=Classic(T[2:4])))
        assert (event.kind, event.joined, event.left, event.partitions_moved) == (EventKind.REBALANCE, (), (), 0)


class TestCommits:
    def test_a_commit_that_goes_back(self) -> None:
        event = sole(Topic().commit("g", 9, T[0]).after(5).commit("g", 4, T[0]))
        assert (event.kind, event.topic, event.partition) == (EventKind.COMMIT_REWOUND, "t", 0)
        assert (event.before, event.after, event.at.timestamp() * 1000) == ("9", "4", START_MS + 5000)

    def test_a_commit_of_the_same_offset_is_none(self) -> None:
        assert Topic().commit("g", 9, T[0]).after(5).commit("g", 9, T[0]).events() == []

    def test_two_commits_back_and_forth_between_two_samples_are_seen(self) -> None:
        topic = Topic().commit("g", 9, T[0]).after(1).commit("g", 4, T[0]).after(1).commit("g", 12, T[0])
        assert [e.kind for e in topic.events()] == [EventKind.COMMIT_REWOUND]

    def test_many_partitions_of_one_request_are_one_event(self) -> None:
        many = [("t", p) for p in range(30)]
        event = sole(Topic().commit("g", 9, *many).after(5).commit("g", 4, *many))
        assert (event.partition, event.cause) == (None, "30 partitions, 150 records in all")

    @pytest.mark.parametrize(
        ("retention", "age", "subscribed", "why", "reason"),
        [
            (3600, 4000, False, "expired", "older than the retention, and nobody subscribes"),
            (3600, 600, False, "deleted", "younger than the retention"),
            (3600, 4000, True, "deleted", "a topic that a member subscribes to does not expire"),
            (None, 4000, False, None, "the retention is not known"),
        ],
    )
    def test_offsets_that_are_gone(
        self, retention: float | None, age: float, subscribed: bool, why: str | None, reason: str
    ) -> None:
        topic = Topic()
        topic.ledger.retention_ms = None if retention is None else int(retention * 1000)
        topic.classic("g", 1, a=Classic(T[:1], topics=("t",) if subscribed else ("u",)))
        topic.commit("g", 7, T[0], T[1])
        topic.events()
        event = sole(topic.after(age).commit("g", None, T[1]))
        assert (event.kind, event.before, event.after) == (EventKind.OFFSETS_GONE, "7", None)
        assert event.cause == why, reason

    def test_a_group_that_is_deleted_is_one_event(self) -> None:
        topic = two().after(1).classic("g", 2).after(5)
        topic.events()
        topic.ledger.retention_ms = 3_600_000
        event = sole(topic.commit("g", None, *T[:4]).no_classic("g"))
        assert (event.kind, event.before, event.cause) == (EventKind.GROUP_GONE, "Empty", "deleted")

    def test_a_name_for_commits_is_gone_with_the_last_of_them(self) -> None:
        topic = Topic().commit("g", 7, *T[:2])
        assert sole(topic.after(1).commit("g", None, *T[:2])).kind is EventKind.GROUP_GONE

    def test_a_name_for_commits_that_lost_some_is_still_there(self) -> None:
        topic = Topic().commit("g", 7, *T[:2]).after(1).commit("g", None, T[0])
        assert [(e.kind, e.partition) for e in topic.events()] == [(EventKind.OFFSETS_GONE, 0)]

    def test_a_group_that_is_deleted_and_comes_back(self) -> None:
        topic = two().after(5).no_classic("g").after(5).classic("g", 0).classic("g", 1, a=Classic(T[:4]))
        assert [(e.kind, e.cause) for e in topic.events()] == [
            (EventKind.GROUP_GONE, None),
            (EventKind.REBALANCE, RebalanceCause.GROUP_APPEARED),
        ]

    def test_commits_are_counted_from_one_asking_to_the_next(self) -> None:
        topic = Topic().committing("g", 30, *T[:2]).commit("g", 1, T[0])
        taken = topic.ledger.take().committed
        assert {(p.partition, p.commits) for p in taken} == {(0, 7), (1, 6)}
        for pair in taken:
            pair.commits = 0
        topic.committing("g", 10, T[0])
        assert {(p.partition, p.commits) for p in topic.ledger.take().committed} == {(0, 2)}


class TestSilence:
    def test_what_was_there_at_the_start_is_no_event(self) -> None:
        topic = Topic(primed=False).classic("g", 4, a=Classic(T[:4])).commit("g", 9, T[0]).commit("g", 3, T[0])
        topic.member("h", "a").epoch("h", 2).target("h", 2, a=I[:2]).has("h", "a", 2, I[:2])
        topic.classic("old", 3).no_classic("old").commit("gone", 1, T[0]).commit("gone", None, T[0])
        topic.ledger.primed(0)
        taken = topic.take()
        assert (taken.events, taken.committed) == ([], [])
        # … but is known from then on.
        topic.after(60).classic("g", 5, a=Classic(T[:2]), b=Classic(T[2:4])).commit("g", 1, T[0])
        topic.member("h", "b").epoch("h", 3).target("h", 3, a=I[:1], b=I[1:2])
        topic.has("h", "a", 3, I[:1]).has("h", "b", 3, I[1:2])
        found = {(e.group, e.kind, e.cause) for e in topic.events()}
        assert found == {
            ("g", EventKind.REBALANCE, RebalanceCause.MEMBER_JOINED),
            ("g", EventKind.COMMIT_REWOUND, None),
            ("h", EventKind.REBALANCE, RebalanceCause.MEMBER_JOINED),
        }

    def test_groups_that_are_not_watched_leave_no_trace(self) -> None:
        topic = Topic(ledger=Ledger(lambda name: name == "g"))
        topic.classic("h", 1, a=Classic(T[:1])).commit("h", 9, T[0]).commit("h", 1, T[0]).commit("g", 9, T[0])
        assert topic.events() == []
        assert set(topic.ledger.groups.by_name) == {"g"}
        assert set(topic.ledger.pairs) == {commit_key("g", "t", 0)}

    def test_a_newer_commit_on_a_known_pair_reads_no_key(self) -> None:
        topic = Topic().commit("g", 9, T[0])
        key = commit_key("g", "t", 0)
        topic.write(bytes(key), commit_value(10, topic.now_ms))
        assert topic.ledger.pairs[key].offset == 10
