"""What rebalances amount to, and why they happen: each row is an hour of a group's life and what must be said of it."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from lagwise.domain.rebalances.activity import Hour, RebalanceStats, by_hour, stats_of_hour
from lagwise.domain.rebalances.explanation import Setup
from lagwise.domain.rebalances.model import Rebalance
from lagwise.domain.vocabulary import RebalanceCause

START = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
A, B, C = "billing-1 (10.0.0.1)", "billing-2 (10.0.0.2)", "billing-3 (10.0.0.3)"
RANGE = Setup("classic", "range")
MILD = Setup("classic", "cooperative-sticky", has_static_members=True)


def stats_of(rebalances: Iterable[Rebalance], setup: Setup) -> RebalanceStats:
    """Of rebalances that are judged by themselves, in whatever order they come."""
    seen = tuple(sorted(rebalances, key=lambda r: r.at))
    return stats_of_hour(Hour(seen, seen), setup)


def at(minute: float, cause: RebalanceCause | None = None, **facts: Any) -> Rebalance:
    return Rebalance(START + timedelta(minutes=minute), cause, **facts)


def restart(minute: float, who: str, back: str | None = None) -> list[Rebalance]:
    """Goes, and is back half a minute later, perhaps on another host."""
    return [
        at(minute, RebalanceCause.MEMBER_LEFT, left=(who,)),
        at(minute + 0.5, RebalanceCause.MEMBER_JOINED, joined=(back or who,)),
    ]


def streams_restart(minute: float, host: int, new_host: int) -> list[Rebalance]:
    """Is back after 3 s under another process id, and given up under the old one when its session timeout is over."""
    name = "app-0b5f1c1e-0000-4000-8000-{:012d}-StreamThread-1-consumer (10.0.0.{})".format
    old, new = name(host, host), name(host + (new_host != host) * 100, new_host)
    return [
        at(minute, RebalanceCause.MEMBER_JOINED, joined=(new,), members=4),
        at(
            minute + 0.7,
            RebalanceCause.MEMBER_FAILED,
            left=(old,),
            failed=(old,),
            members=3,
            silent_seconds=47.0,
            session_timeout_seconds=45.0,
        ),
    ]


class Row(NamedTuple):
    why: str
    rebalances: list[Rebalance]
    cause: str
    setup: Setup = MILD
    storm: bool = False
    churning: tuple[str, ...] = ()


ROWS = (
    Row(
        "a handler that takes too long, with the numbers that show it",
        [
            at(
                1,
                RebalanceCause.POLL_INTERVAL_EXCEEDED,
                left=(A,),
                failed=(A,),
                silent_seconds=320.0,
                poll_interval_seconds=300.0,
            ),
            at(2, RebalanceCause.MEMBER_JOINED, joined=(A,)),
        ],
        "slow_processing",
    ),
    Row(
        "a crash; the session timeout is short, and the heartbeat follows from it",
        [
            at(
                1,
                RebalanceCause.MEMBER_FAILED,
                left=(A,),
                failed=(A,),
                silent_seconds=11.0,
                session_timeout_seconds=9.0,
            )
        ],
        "failing_members",
    ),
    Row(
        "one slow handler among crashes: the cause that can be mended in the code comes first",
        [
            at(1, RebalanceCause.MEMBER_FAILED, left=(A,)),
            at(2, RebalanceCause.POLL_INTERVAL_EXCEEDED, left=(B,), failed=(B,)),
        ],
        "slow_processing",
    ),
    Row(
        "one failure among forty other departures: the client that goes most is named, the failure beside it",
        [
            *(rebalance for n in range(20) for rebalance in restart(2 * n, A)),
            at(50, RebalanceCause.MEMBER_FAILED, left=(C,), failed=(C,)),
        ],
        "storm",
        storm=True,
        churning=(A,),
    ),
    Row(
        "the one that fails most often is named first, and how often",
        [
            *(at(m, RebalanceCause.MEMBER_FAILED, left=(who,), failed=(who,)) for m, who in ((1, A), (20, B), (40, B))),
            at(50, RebalanceCause.MEMBER_LEFT, left=(C,)),
        ],
        "failing_members",
        churning=(B,),
    ),
    Row(
        "a deployment of Kafka Streams, which sends no LeaveGroup: who is new comes before who is old is given up",
        [rebalance for n in range(3) for rebalance in streams_restart(2 * n, n, n)],
        "deployment",
    ),
    Row(
        "the same in pods, which are on another host, and get another process id, with every start",
        [rebalance for n in range(3) for rebalance in streams_restart(2 * n, n, n + 10)],
        "deployment",
    ),
    Row(
        "two of five fail and come back: that is no deployment",
        [
            rebalance
            for n, who in enumerate((A, B))
            for rebalance in (
                at(3 * n, RebalanceCause.MEMBER_FAILED, left=(who,), failed=(who,), members=4),
                at(3 * n + 1, RebalanceCause.MEMBER_JOINED, joined=(who,), members=5),
            )
        ],
        "failing_members",
    ),
    Row(
        "a static member that is retired can but fail to come back",
        [at(5, RebalanceCause.MEMBER_FAILED, left=(C,), failed=(C,), session_timeout_seconds=300.0, members=2)],
        "scaling",
    ),
    Row(
        "six processes of librdkafka on a host, none of which was given a client id: each restarts once",
        [rebalance for n in range(6) for rebalance in restart(n, "rdkafka (10.0.0.5)")],
        "deployment",
    ),
    Row(
        "two of them, of which six cannot have gone without one going again",
        [
            rebalance
            for n in range(6)
            for rebalance in (
                at(n, RebalanceCause.MEMBER_LEFT, left=("consumer-billing-1 (10.0.0.5)",), members=1),
                at(n + 0.5, RebalanceCause.MEMBER_JOINED, joined=("consumer-billing-1 (10.0.0.5)",), members=2),
            )
        ],
        "storm",
        storm=True,
        churning=("consumer-billing-1 (10.0.0.5)",),
    ),
    Row(
        "pods of librdkafka that crash on start are known by their hosts",
        [
            rebalance
            for n in range(6)
            for rebalance in (
                at(2 * n, RebalanceCause.MEMBER_JOINED, joined=(f"rdkafka (10.0.0.{n})",)),
                at(2 * n + 0.2, RebalanceCause.MEMBER_LEFT, left=(f"rdkafka (10.0.0.{n})",)),
            )
        ],
        "storm",
        storm=True,
    ),
    Row(
        "deployed, and rolled back half an hour later",
        [*restart(1, A), *restart(2, B), *restart(3, C), *restart(31, B), *restart(32, A), *restart(33, C)],
        "deployment",
        churning=(A, B, C),
    ),
    Row(
        "everybody goes and comes once: a deployment, however many rebalances it makes",
        [*restart(1, A), *restart(3, B), *restart(5, C, "billing-3 (10.0.9.9)")],
        "deployment",
        RANGE,
    ),
    Row(
        "the same, where all that helps is there already",
        [*restart(1, A), *restart(3, B)],
        "deployment",
    ),
    Row(
        "the same client goes twice: no deployment does that",
        [*restart(1, A), *restart(20, A)],
        "churn",
        churning=(A,),
    ),
    Row(
        "pods that crash on start get a new name with every start: nobody goes twice, and it is a storm all the same",
        [
            rebalance
            for n in range(6)
            for rebalance in (
                at(2 * n, RebalanceCause.MEMBER_JOINED, joined=(f"pod-{n} (10.0.0.{n})",)),
                at(2 * n + 0.2, RebalanceCause.MEMBER_LEFT, left=(f"pod-{n} (10.0.0.{n})",)),
            )
        ],
        "storm",
        storm=True,
    ),
    Row(
        "pods that are replaced one by one: who goes had been there, and who comes stays",
        [
            rebalance
            for n in range(6)
            for rebalance in (
                at(2 * n, RebalanceCause.MEMBER_JOINED, joined=(f"new-{n} (10.0.1.{n})",)),
                at(2 * n + 0.2, RebalanceCause.MEMBER_LEFT, left=(f"old-{n} (10.0.0.{n})",)),
            )
        ],
        "replacement",
    ),
    Row(
        "a departure that was seen before its rebalance had ended is told again when it has: it is one",
        [
            at(1, RebalanceCause.UNFINISHED, left=(A,)),
            at(1.1, RebalanceCause.MEMBER_LEFT, left=(A,)),
            at(2, RebalanceCause.MEMBER_JOINED, joined=(A,)),
        ],
        "restart",
    ),
    Row(
        "one member that samples saw go and come: it may have crashed, and one is no deployment",
        [at(1, RebalanceCause.MEMBER_GONE, left=(A,)), at(2, RebalanceCause.MEMBER_JOINED, joined=(A,))],
        "restart",
    ),
    Row(
        "everybody went and came back, as samples saw it: like a deployment, or two crashes",
        [
            at(1, RebalanceCause.MEMBER_GONE, left=(A, B), members=0),
            at(2, RebalanceCause.GROUP_APPEARED, joined=(A, B), members=2),
        ],
        "deployment",
    ),
    Row(
        "all members crashed, as samples see it: nobody knows that the group was scaled to nothing",
        [at(1, RebalanceCause.MEMBER_GONE, left=(A, B), members=0)],
        "gone",
        RANGE,
    ),
    Row(
        "one is gone, as samples see it",
        [at(1, RebalanceCause.MEMBER_GONE, left=(C,), members=1)],
        "gone",
        RANGE,
    ),
    Row(
        "again and again within a quarter of an hour: a storm; from samples nobody knows how they end",
        [
            *(at(m, RebalanceCause.MEMBER_GONE, left=(A,)) for m in (1, 4, 7)),
            *(at(m, RebalanceCause.MEMBER_JOINED, joined=(A,)) for m in (2, 5, 8)),
            at(9, RebalanceCause.MEMBER_GONE, left=(B,)),
        ],
        "storm",
        storm=True,
        churning=(A,),
    ),
    Row(
        "five in an hour, far apart, are no storm",
        [*restart(1, A), *restart(30, A), at(59, RebalanceCause.MEMBER_JOINED, joined=(B,))],
        "churn",
        churning=(A,),
    ),
    Row(
        "scaled up in one go: nothing to do",
        [at(1, RebalanceCause.MEMBER_JOINED, joined=(B, C), members=3)],
        "scaling",
        RANGE,
    ),
    Row(
        "scaled down",
        [at(1, RebalanceCause.MEMBER_LEFT, left=(C,), members=2)],
        "scaling",
        RANGE,
    ),
    Row(
        "other clients take the places of those that went",
        [at(1, RebalanceCause.MEMBER_LEFT, left=(A,)), at(2, RebalanceCause.MEMBER_JOINED, joined=("new (10.0.0.9)",))],
        "replacement",
    ),
    Row(
        "a topic got partitions",
        [at(1, RebalanceCause.PARTITIONS_ADDED)],
        "partitions_added",
    ),
    Row(
        "a group that came up was not scaled",
        [
            at(1, RebalanceCause.GROUP_APPEARED, joined=(A,), members=1),
            at(1.1, RebalanceCause.MEMBER_JOINED, joined=(B, C)),
        ],
        "start",
        RANGE,
    ),
    Row(
        "one that comes up and loses a member did not restart it",
        [
            at(1, RebalanceCause.MEMBER_JOINED, joined=(A, B), members=2),
            at(20, RebalanceCause.MEMBER_LEFT, left=(B,), members=1),
        ],
        "scaling",
    ),
    Row(
        "everybody was gone for a moment: the group is back, it did not start",
        [
            at(1, RebalanceCause.MEMBER_LEFT, left=(A, B), members=0),
            at(2, RebalanceCause.GROUP_APPEARED, joined=(A, B), members=2),
        ],
        "deployment",
    ),
    Row(
        "another subscription",
        [at(1, RebalanceCause.SUBSCRIPTION_CHANGED)],
        "subscription_changed",
    ),
    Row(
        "the leader joins anew, now and then",
        [at(1, RebalanceCause.REJOINED), at(30, RebalanceCause.REJOINED)],
        "rejoins",
    ),
    Row(
        "… or without end",
        [at(m, RebalanceCause.REJOINED) for m in range(1, 8)],
        "storm",
        storm=True,
    ),
    Row(
        "two samples differ in who owns what, and that is all",
        [at(1)],
        "unknown",
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.why)
def test_why_a_group_rebalances(row: Row, golden_sentence: Callable[..., None]) -> None:
    stats = stats_of(row.rebalances, row.setup)
    assert stats.finding.cause == row.cause
    golden_sentence(stats.finding.sentence, stats.finding.remedy)
    assert (stats.is_storm, stats.churning) == (row.storm, row.churning)
    assert stats_of(row.rebalances[::-1], row.setup) == stats, "the order of the rows says nothing"


class TestNumbers:
    def test_they_are_summed_and_what_is_not_known_is_no_zero(self) -> None:
        stats = stats_of(
            [
                at(1, exact=True, duration_seconds=2.0, partitions_moved=3, joined=(A, B), left=(C,)),
                at(2, exact=True, duration_seconds=None, partitions_moved=1, left=(B,)),
            ],
            RANGE,
        )
        assert (stats.rebalances, stats.downtime_seconds, stats.partitions_moved) == (2, 2.0, 4)
        assert (stats.joined, stats.left, stats.exact) == (2, 2, True)
        assert stats.last_at == START + timedelta(minutes=2)
        assert stats.downtime_seconds_at_most == 2.0
        bounded = stats_of(
            [at(1, duration_seconds=2.0, uncommitted_seconds=9.0), at(2, uncommitted_seconds=7.0)], RANGE
        )
        assert (bounded.downtime_seconds, bounded.downtime_seconds_at_most) == (2.0, 9.0)
        nothing = stats_of([at(1)], RANGE)
        assert (nothing.downtime_seconds, nothing.partitions_moved, nothing.exact) == (None, None, False)

    def test_one_that_has_not_ended_counts_until_it_is_reported_again(self) -> None:
        unfinished = at(1, RebalanceCause.UNFINISHED, duration_seconds=30.0, left=(A,))
        still = at(2, RebalanceCause.UNFINISHED, duration_seconds=90.0, left=(B,))
        assert (stats_of([unfinished, still], RANGE).rebalances) == 1
        assert (stats_of([unfinished, still], RANGE).downtime_seconds) == 90.0
        ended = stats_of([unfinished, still, at(3, duration_seconds=100.0)], RANGE)
        assert (ended.rebalances, ended.downtime_seconds, ended.left) == (1, 100.0, 2)

    def test_time_in_which_several_were_under_way_counts_once(self) -> None:
        each = [at(n / 12, uncommitted_seconds=6.0) for n in range(12)]
        assert stats_of(each, RANGE).downtime_seconds_at_most == 55.0, "every 5 s, from the hour on"
        within = [at(1, duration_seconds=50.0), at(1.1, uncommitted_seconds=20.0)]
        assert stats_of(within, RANGE).downtime_seconds_at_most == 56.0

    def test_without_rebalances_there_is_no_finding(self) -> None:
        with pytest.raises(ValueError, match="no rebalance"):
            stats_of([], RANGE)


class TestAcrossTheHour:
    """What belongs together is judged together, in the hour in which it ends; it is counted where it happened."""

    def test_a_restart_over_the_hour_is_one(self) -> None:
        before, after = by_hour(restart(59.8, A)).values()
        reported = stats_of_hour(before, MILD), stats_of_hour(after, MILD)
        assert [(t.finding.cause, t.rebalances, t.left, t.joined) for t in reported] == [
            ("continued", 1, 1, 0),
            ("restart", 1, 0, 1),
        ]

    def test_a_storm_over_the_hour_is_one(self) -> None:
        storm = [rebalance for n in range(4) for rebalance in restart(58.2 + n, A)]
        hours = by_hour(storm[::-1])
        reported = {start.hour: stats_of_hour(hour, MILD) for start, hour in hours.items()}
        assert {hour: (stats.rebalances, stats.is_storm) for hour, stats in reported.items()} == {
            3: (4, False),
            4: (4, True),
        }
        assert reported[4].churning == (A,)

    def test_what_is_farther_apart_than_a_storm_is_judged_by_itself(self) -> None:
        [before, after] = by_hour([*restart(44, A), *restart(58, B), *restart(73, C)]).values()
        assert [len(before.counted), len(before.judged)] == [4, 3]
        assert [len(after.counted), len(after.judged)] == [2, 3]

    def test_one_that_had_not_ended_at_the_hour_counts_in_the_next_one_only(self) -> None:
        unfinished = at(59.9, RebalanceCause.UNFINISHED, duration_seconds=30.0, left=(A,))
        before, after = by_hour([unfinished, at(60.1, duration_seconds=42.0, left=(A,))]).values()
        assert (stats_of_hour(before, MILD).rebalances, stats_of_hour(before, MILD).downtime_seconds) == (0, 36.0)
        assert (stats_of_hour(after, MILD).rebalances, stats_of_hour(after, MILD).downtime_seconds) == (1, 6.0)

    def test_downtime_is_no_longer_than_its_hour_and_counts_once(self) -> None:
        its = [at(30), at(70, uncommitted_seconds=5 * 3600.0), at(90, uncommitted_seconds=3600.0)]
        before, after = (stats_of_hour(hour, MILD) for hour in by_hour(its).values())
        assert (before.downtime_seconds_at_most, after.downtime_seconds_at_most) == (3600.0, 1800.0)
        quick = [at(30), at(70, uncommitted_seconds=60.0)]
        before, after = (stats_of_hour(hour, MILD) for hour in by_hour(quick).values())
        assert (before.downtime_seconds_at_most, after.downtime_seconds_at_most) == (None, 60.0)
