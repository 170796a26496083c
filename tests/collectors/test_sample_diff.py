"""What happened between two samples, judged on plain rows. Each case says why its answer is right."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from lagwise.domain.vocabulary import EventKind
from lagwise.tables.raw import GROUPS, WATERMARKS
from lagwise_collectors.protocol import ErrorTally, Snapshot
from lagwise_collectors.sample_diff.compare_samples import PreviousSample, compare_samples
from lagwise_collectors.sample_diff.events import MAX_EVENTS
from lagwise_collectors.sample_diff.leader_changes import MAX_LEADER_EVENTS
from lagwise_collectors.sample_diff.topic_changes import setting_events
from tests.collectors.snapshots import INTERVAL, START, Commits, sample


def events(*samples: Snapshot) -> list[dict[str, Any]]:
    """Everything that happened over these samples."""
    known, found = PreviousSample(), []
    for one in samples:
        result = compare_samples(known, one)
        known = result.latest
        found += result.rows.to_pylist()
    return found


def kinds(*samples: Snapshot) -> list[str]:
    return [event["kind"] for event in events(*samples)]


def replaced(snapshot: Snapshot, column: str, values: pa.Array) -> Snapshot:
    """The same, with other values in a column of its watermarks."""
    rows = snapshot.rows(WATERMARKS)
    return snapshot.with_rows(WATERMARKS, rows.set_column(rows.schema.get_field_index(column), column, values))


class TestCommits:
    def test_the_first_sample_is_no_event(self) -> None:
        assert kinds(sample(0, commits={("g", "t", 0): 5}, topics={"t": ("a", 1)})) == []

    def test_commits_that_advance_or_stay_are_no_event(self) -> None:
        assert kinds(*(sample(n, commits={("g", "t", 0): 5 + n, ("g", "t", 1): 7}) for n in range(3))) == []

    def test_a_commit_that_went_back_is_reported_with_both_offsets(self) -> None:
        [event] = events(
            sample(0, commits={("g", "t", 0): 5, ("g", "t", 1): 7}),
            sample(1, commits={("g", "t", 0): 2, ("g", "t", 1): 7}),
        )
        assert event["kind"] == EventKind.COMMIT_REWOUND
        assert (event["group"], event["topic"], event["partition"]) == ("g", "t", 0)
        assert (event["before"], event["after"], event["at"]) == ("5", "2", START + INTERVAL)

    def test_many_partitions_of_one_group_and_topic_are_one_event(self) -> None:
        before = {("g", "t", p): 10 for p in range(30)}
        [event] = events(sample(0, commits=before), sample(1, commits=dict.fromkeys(before, 4)))
        assert (event["kind"], event["partition"]) == (EventKind.COMMIT_REWOUND, None)
        assert event["cause"] == "30 partitions, 180 records in all"

    @pytest.mark.parametrize(
        ("after", "why"),
        [
            ({("g", "u", 0): 1}, "the row is missing: nothing is committed, and it has no owner"),
            ({("g", "t", 0): None, ("g", "u", 0): 1}, "the row is null: somebody owns it, and nothing is committed"),
        ],
    )
    def test_offsets_that_are_gone(self, after: Commits, why: str) -> None:
        [event] = events(sample(0, commits={("g", "t", 0): 5, ("g", "u", 0): 1}), sample(1, commits=after))
        assert (event["kind"], event["topic"], event["before"], event["after"]) == (
            EventKind.OFFSETS_GONE,
            "t",
            "5",
            None,
        ), why

    def test_a_first_commit_is_no_event(self) -> None:
        assert kinds(sample(0, commits={("g", "t", 0): None}), sample(1, commits={("g", "t", 0): 0})) == []

    def test_pairs_that_come_and_go_do_not_hide_a_rewind(self) -> None:
        """The keys differ between the samples, which takes another way than where they are the same."""
        before = {("g", "t", p): 10 for p in range(4)}
        after = {("a", "new", 0): 1, **dict.fromkeys(before, 10), ("g", "t", 2): 9, ("g", "t", 4): 1}
        [event] = events(sample(0, commits=before), sample(1, commits=after))
        assert (event["kind"], event["partition"], event["before"]) == (EventKind.COMMIT_REWOUND, 2, "10")

    def test_a_group_that_cannot_be_read_has_lost_nothing(self) -> None:
        commits = {("g", "t", 0): 5, ("h", "t", 0): 5}
        unread = sample(1, commits={("h", "t", 0): 5}, groups={"g": "!timeout", "h": "Empty"})
        back = sample(2, commits={**commits, ("g", "t", 0): 3})
        assert kinds(sample(0, commits=commits), unread) == []
        # … and is compared with what it had before.
        [event] = events(sample(0, commits=commits), unread, back)
        assert (event["kind"], event["group"], event["before"]) == (EventKind.COMMIT_REWOUND, "g", "5")

    def test_a_cluster_that_cannot_be_read_changes_nothing(self) -> None:
        unreachable = ErrorTally()
        unreachable.note("unreachable", "nothing answers")
        down = sample(1, errors=unreachable)
        assert kinds(sample(0, commits={("g", "t", 0): 5}), down) == []
        assert kinds(sample(0, commits={("g", "t", 0): 5}), down, sample(2, commits={("g", "t", 0): 4})) == [
            EventKind.COMMIT_REWOUND
        ]

    def test_the_number_of_events_is_bounded_and_the_rest_counted(self) -> None:
        before = {(f"g{n}", "t", 0): 10 for n in range(MAX_EVENTS + 5)}
        known = compare_samples(PreviousSample(), sample(0, commits=before)).latest
        result = compare_samples(known, sample(1, commits=dict.fromkeys(before, 4)))
        assert (result.rows.num_rows, result.errors.counts) == (MAX_EVENTS, {"events_dropped": 5})


class TestLeaders:
    """Topics have six partitions; a group reads them, so that the cluster counts as readable."""

    @staticmethod
    def led(number: int, leaders: Mapping[str, Sequence[int | None]], **more: Any) -> Snapshot:
        return sample(number, groups={"g": "Empty"}, leaders=leaders, **more)

    def test_leaders_that_stay_are_no_event_and_neither_is_the_first_sample(self) -> None:
        leaders: dict[str, Sequence[int | None]] = {"t": [1, 2, 3, 1, 2, None]}
        assert kinds(self.led(0, leaders), self.led(1, leaders)) == []

    def test_moves_are_one_event_for_each_topic_summed_up_by_broker(self) -> None:
        t, u = events(
            self.led(0, {"t": [1, 2, 3, 1, 2, 3], "u": [1, 1, 1, 2, 2, 2], "v": [2] * 6}),
            self.led(1, {"t": [2, 2, 3, 3, 2, 3], "u": [1, 1, 3, 2, 2, 2], "v": [2] * 6}),
        )
        assert (t["kind"], t["topic"], t["partition"], t["group"]) == (EventKind.LEADERS_MOVED, "t", None, None)
        assert (t["before"], t["after"], t["cause"]) == ("broker 1", "broker 2 (1), broker 3 (1)", "2 of 6 partitions")
        assert (u["topic"], u["partition"], u["before"], u["after"]) == ("u", 2, "broker 1", "broker 3")
        assert u["at"] == START + INTERVAL

    def test_a_broker_that_fails_and_comes_back(self) -> None:
        lost, restored = events(
            self.led(0, {"t": [1, 1, 1, 2, 2, 2]}),
            self.led(1, {"t": [2, None, None, 2, 2, 2]}),
            self.led(2, {"t": [2, None, None, 2, 2, 2]}),
            self.led(3, {"t": [1, 1, 1, 2, 2, 2]}),
        )
        assert (lost["kind"], lost["before"], lost["after"]) == (
            EventKind.LEADERS_LOST,
            "broker 1",
            "no leader (2), broker 2 (1)",
        )
        assert (restored["kind"], restored["before"], restored["after"], restored["cause"]) == (
            EventKind.LEADERS_RESTORED,
            "no leader (2), broker 2 (1)",
            "broker 1",
            "3 of 6 partitions",
        )

    def test_a_topic_that_could_not_be_described_is_compared_with_what_it_had_before(self) -> None:
        before: dict[str, Sequence[int | None]] = {"t": [1, 1], "u": [1, 1]}
        gone = self.led(1, {"u": [1, 1]}, topics={"t": (None, 2)})
        errors = [None if error is None else "timeout" for error in gone.rows(WATERMARKS)["error"].to_pylist()]
        unread = replaced(gone, "error", pa.array(errors, pa.string()))
        assert kinds(self.led(0, before), unread) == []
        [event] = events(self.led(0, before), unread, self.led(2, {"t": [2, 1], "u": [1, 1]}))
        assert (event["kind"], event["partition"]) == (EventKind.LEADERS_MOVED, 0)

    def test_other_partitions_have_no_leader_before(self) -> None:
        """More partitions, another topic of the same name, and a topic that is watched from now on."""
        assert kinds(self.led(0, {"t": [1, 1]}), self.led(1, {"t": [1, 1, 2], "u": [3]})) == [
            EventKind.PARTITIONS_ADDED
        ]
        again = self.led(1, {"t": [2, 2]}, topics={"t": ("b", 2)})
        assert kinds(self.led(0, {"t": [1, 1]}), again) == [EventKind.TOPIC_RECREATED]

    def test_systems_without_replicas_have_no_leaders_that_move(self) -> None:
        """RocketMQ numbers its brokers as leaders; a queue stays on its broker."""

        def queues(number: int, broker: int) -> Snapshot:
            marks = self.led(number, {"t": [broker] * 4})
            return replaced(marks, "replicas", pa.nulls(4, pa.list_(pa.int32())))

        assert kinds(queues(0, 1), queues(1, 2)) == []

    def test_the_text_does_not_grow_with_partitions_or_brokers(self) -> None:
        [event] = events(
            self.led(0, {"t": [p % 60 for p in range(10_000)]}),
            self.led(1, {"t": [(p + 1) % 60 for p in range(10_000)]}),
        )
        assert event["before"] == "broker 0 (167), broker 1 (167), broker 2 (167), broker 3 (167), 56 more (9,332)"
        assert event["cause"] == "10,000 of 10,000 partitions"

    def test_a_broker_that_leads_many_topics_leaves_room_for_other_events_and_is_no_error(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        topics = [f"t{number:04d}" for number in range(MAX_LEADER_EVENTS + 7)]
        known = compare_samples(PreviousSample(), self.led(0, dict.fromkeys(topics, (1, 1)))).latest
        after = {**dict.fromkeys(topics, (2, 1)), topics[-1]: (None, 1)}
        with caplog.at_level(logging.INFO, "lagwise.collectors"):
            result = compare_samples(known, self.led(1, after))
        assert (result.rows.num_rows, result.errors.counts) == (MAX_LEADER_EVENTS, {})
        assert result.rows["kind"][0].as_py() == EventKind.LEADERS_LOST, "what hurts most is not left out"
        assert "leaders of 1,007 topics changed at once; 7 of them have no event" in caplog.text

    def test_where_other_events_leave_little_room_leaders_have_the_rest_of_it(self) -> None:
        topics = [f"t{number:04d}" for number in range(20)]
        before = {(f"g{number}", "t", 0): 10 for number in range(MAX_EVENTS - 5)}

        def of(number: int, committed: int, leader: int) -> Snapshot:
            return sample(number, commits=dict.fromkeys(before, committed), leaders=dict.fromkeys(topics, (leader,)))

        result = compare_samples(compare_samples(PreviousSample(), of(0, 10, 1)).latest, of(1, 4, 2))
        kinds_of = Counter(result.rows["kind"].to_pylist())
        assert kinds_of == {EventKind.COMMIT_REWOUND: MAX_EVENTS - 5, EventKind.LEADERS_MOVED: 5}
        assert result.errors.counts == {}


class TestTopics:
    def test_another_id_is_another_topic_and_its_commits_are_no_rewind(self) -> None:
        [event] = events(
            sample(0, commits={("g", "t", 0): 5}, topics={"t": ("a", 1)}),
            sample(1, commits={("g", "t", 0): 1}, topics={"t": ("b", 2)}),
        )
        assert (event["kind"], event["topic"]) == (EventKind.TOPIC_RECREATED, "t")
        assert (event["before"], event["after"]) == ("a", "b")

    def test_a_deleted_topic_takes_its_offsets_along_whenever_kafka_gets_to_it(self) -> None:
        commits = {("g", "t", 0): 5, ("g", "u", 0): 5}
        happened = events(
            sample(0, commits=commits, topics={"t": ("a", 1), "u": ("c", 1)}),
            sample(1, commits=commits, topics={"t": (None, 1), "u": ("c", 1)}),
            sample(2, commits={("g", "u", 0): 5}, topics={"u": ("c", 1)}),
        )
        assert [(e["kind"], e["topic"], e["before"]) for e in happened] == [(EventKind.TOPIC_GONE, "t", "a")]

    def test_a_topic_created_again_after_it_was_seen_gone(self) -> None:
        commits = {("g", "t", 0): 5}
        assert kinds(
            sample(0, commits=commits, topics={"t": ("a", 1)}),
            sample(1, commits=commits, topics={"t": (None, 1)}),
            sample(2, commits=commits, topics={"t": ("b", 1)}),
        ) == [EventKind.TOPIC_GONE, EventKind.TOPIC_RECREATED]

    def test_a_topic_that_a_broker_did_not_know_for_a_moment_is_the_same_afterwards(self) -> None:
        commits = {("g", "t", 0): 5}
        assert kinds(
            sample(0, commits=commits, topics={"t": ("a", 1)}),
            sample(1, commits=commits, topics={"t": (None, 1)}),
            sample(2, commits=commits, topics={"t": ("a", 1)}),
            sample(3, commits=commits, topics={"t": ("a", 1)}),
        ) == [EventKind.TOPIC_GONE]

    def test_a_topic_without_readers_is_no_event(self) -> None:
        assert (
            kinds(sample(0, groups={"g": "Empty"}, topics={"t": ("a", 1)}), sample(1, groups={"g": "Empty"}, topics={}))
            == []
        )

    def test_more_partitions(self) -> None:
        [event] = events(
            sample(0, groups={"g": "Empty"}, topics={"t": ("a", 2)}),
            sample(1, groups={"g": "Empty"}, topics={"t": ("a", 6)}),
        )
        assert (event["kind"], event["before"], event["after"]) == (EventKind.PARTITIONS_ADDED, "2", "6")

    def test_changed_settings_are_one_event_and_unreadable_ones_are_no_change(self) -> None:
        one = {"retention_ms": 60000, "cleanup_policy": "delete", "min_isr": 1}
        groups = {"g": "Empty"}
        happened = events(
            sample(0, groups=groups, settings={"t": one}),
            sample(1, groups=groups),
            sample(2, groups=groups, settings={"t": {"retention_ms": None, "cleanup_policy": None, "min_isr": None}}),
            sample(3, groups=groups, settings={"t": {**one, "retention_ms": 1000, "cleanup_policy": "compact"}}),
        )
        assert [(e["kind"], e["before"], e["after"]) for e in happened] == [
            (
                EventKind.CONFIG_CHANGED,
                "retention_ms=60000 cleanup_policy=delete",
                "retention_ms=1000 cleanup_policy=compact",
            )
        ]

    def test_how_long_rocketmq_keeps_messages_is_no_setting_of_a_topic(self) -> None:
        """It follows its brokers' disks: each topic would be reported as changed, again and again."""

        def of(hours: int, policy: str) -> pa.Table:
            row = {"topic": "t", "retention_ms": hours * 3_600_000, "cleanup_policy": policy, "sampled_at": START}
            return pa.Table.from_pylist([row])

        known, first = setting_events({}, of(72, "delete"), "rocketmq")
        known, second = setting_events(known, of(35, "delete"), "rocketmq")
        _, third = setting_events(known, of(34, "compact"), "rocketmq")
        assert [first, second] == [[], []]
        assert [event.after for event in third] == ["cleanup_policy=compact"]


T0, T1, T2, T3 = (("t", p) for p in range(4))
ONE = {"g": {"a": [T0, T1, T2, T3]}}
TWO = {"g": {"a": [T0, T1], "b": [T2, T3]}}
STABLE: dict[str, str | None] = {"g": "Stable"}
PREPARING: dict[str, str | None] = {"g": "PreparingRebalance"}


class TestGroups:
    def test_nothing_happens_in_a_group_that_stays_as_it_is(self) -> None:
        assert kinds(*(sample(n, groups=STABLE, members=TWO) for n in range(3))) == []

    def test_a_rocketmq_client_that_finds_its_groups_retry_topic_is_no_event(self) -> None:
        later = {"g": {**ONE["g"], "a": [*ONE["g"]["a"], ("%RETRY%g", 0)]}}
        assert kinds(sample(0, groups=STABLE, members=ONE), sample(1, groups=STABLE, members=later)) == []

    def test_broadcasting_members_are_members_wherever_their_offsets_come_from(self) -> None:
        def of(number: int, source: str | None) -> Snapshot:
            made = sample(number, groups=STABLE, members=ONE)
            groups = made.rows(GROUPS)
            for name, value in (("type", "broadcasting"), ("source", source)):
                column = pa.array([value], pa.string())
                groups = groups.set_column(groups.schema.get_field_index(name), name, column)
            return made.with_rows(GROUPS, groups)

        assert kinds(of(0, None), of(1, "broadcast hint"), of(2, "local files"), of(3, None)) == []

    def test_a_join_that_was_over_between_two_samples(self) -> None:
        [event] = events(sample(0, groups=STABLE, members=ONE), sample(1, groups=STABLE, members=TWO))
        assert (event["kind"], event["joined"], event["left"]) == (EventKind.REBALANCE, ["b (10.0.0.1)"], [])
        assert (event["partitions_moved"], event["duration_seconds"]) == (2, None)

    def test_a_rebalance_that_was_seen_under_way_is_one_event_when_it_is_over(self) -> None:
        """While a classic group prepares a rebalance no partition has an owner: that is no move."""
        happened = events(
            sample(0, groups=STABLE, members=ONE),
            sample(1, groups=PREPARING, members={"g": {"a": [], "b": []}}),
            sample(2, groups=STABLE, members=TWO),
        )
        assert [(e["kind"], e["before"], e["after"]) for e in happened] == [
            (EventKind.STATE_CHANGED, "Stable", "PreparingRebalance"),
            (EventKind.STATE_CHANGED, "PreparingRebalance", "Stable"),
            (EventKind.REBALANCE, None, None),
        ]
        rebalance = happened[-1]
        assert (rebalance["joined"], rebalance["partitions_moved"]) == (["b (10.0.0.1)"], 2)
        assert rebalance["duration_seconds"] == 15

    def test_a_rebalance_that_moved_nothing_is_one_still(self) -> None:
        happened = events(
            sample(0, groups=STABLE, members=TWO),
            sample(1, groups=PREPARING, members={"g": {"a": [], "b": []}}),
            sample(2, groups=STABLE, members=TWO),
        )
        rebalance = happened[-1]
        assert (rebalance["kind"], rebalance["partitions_moved"]) == (EventKind.REBALANCE, 0)
        assert (rebalance["joined"], rebalance["left"]) == ([], [])

    def test_a_group_that_never_settles_is_seen_each_time_its_members_change(self) -> None:
        def round_of(number: int) -> Snapshot:
            return sample(number, groups=PREPARING, members={"g": {f"a#{number}": []}})

        happened = events(sample(0, groups=STABLE, members=ONE), *(round_of(n) for n in range(1, 5)))
        storm = [e for e in happened if e["kind"] == EventKind.REBALANCE]
        assert [e["duration_seconds"] for e in storm] == [15, 30, 45]
        assert [(e["joined"], e["left"]) for e in storm] == [(["a (10.0.0.1)"], ["a (10.0.0.1)"])] * 3

    def test_a_static_member_that_restarts_neither_left_nor_joined(self) -> None:
        static = {"a#1": "node-1", "a#2": "node-1"}
        assert (
            kinds(
                sample(0, groups=STABLE, members={"g": {"a#1": [T0]}}, static=static),
                sample(1, groups=STABLE, members={"g": {"a#2": [T0]}}, static=static),
            )
            == []
        )

    def test_a_group_that_loses_all_its_members(self) -> None:
        happened = events(sample(0, groups=STABLE, members=TWO), sample(1, groups={"g": "Empty"}))
        assert [e["kind"] for e in happened] == [EventKind.STATE_CHANGED, EventKind.REBALANCE]
        assert (happened[1]["left"], happened[1]["partitions_moved"]) == (["a (10.0.0.1)", "b (10.0.0.1)"], 4)

    def test_a_group_that_appears_with_members(self) -> None:
        [event] = events(sample(0, groups={"old": "Empty"}), sample(1, groups={"old": "Empty", **STABLE}, members=ONE))
        assert (event["kind"], event["cause"], event["joined"]) == (
            EventKind.REBALANCE,
            "group_appeared",
            ["a (10.0.0.1)"],
        )

    def test_a_group_that_is_gone_is_one_event_whatever_it_had_committed(self) -> None:
        [event] = events(
            sample(0, commits={("g", "t", 0): 5}), sample(1, groups={"h": "Empty"}, commits={("h", "t", 0): 5})
        )
        assert (event["kind"], event["group"], event["before"]) == (EventKind.GROUP_GONE, "g", "Empty")

    def test_the_last_group_that_is_gone(self) -> None:
        assert kinds(sample(0, commits={("g", "t", 0): 5}), sample(1)) == [EventKind.GROUP_GONE]

    @pytest.mark.parametrize("state", ["!coordinator_not_available", "Unknown", None])
    def test_a_group_of_which_nothing_is_known_now_has_not_changed(self, state: str | None) -> None:
        happened = kinds(
            sample(0, groups=STABLE, members=TWO),
            sample(1, groups={"g": state}),
            sample(2, groups=STABLE, members=TWO),
        )
        assert happened == []
