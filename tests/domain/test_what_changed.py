"""The change that made a group fall behind is named, and nothing is where nothing changed."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lagwise.domain.humanise import lower_first
from lagwise.domain.rebalances.explanation import Setup
from lagwise.domain.rebalances.model import Rebalance
from lagwise.domain.vocabulary import EventKind, RebalanceCause, Status, UnknownReason
from lagwise.domain.what_changed.backlog import Backlog, backlog_now, is_told
from lagwise.domain.what_changed.change import Change, ChangeKind
from lagwise.domain.what_changed.choice import LOOK_BACK, likely_cause
from lagwise.domain.what_changed.happenings import (
    Leaderless,
    TopicEvent,
    of_leaderless,
    of_rebalances,
    of_topic_events,
)
from lagwise.domain.what_changed.levels import WorkStep
from lagwise.domain.what_changed.measured import RecordsStep, TopicWork, changes_of

START = datetime(2026, 11, 26, 14, tzinfo=UTC)
STEP = timedelta(seconds=15)
#: Steps before the fault, and after it: two minutes.
BEFORE, AFTER = 60, 8
FAULT = START + BEFORE * STEP
NOW = FAULT + AFTER * STEP


class Consumers:
    """A group that reads all of 1,000 records a second on 8 threads, 12 ms + 3 ms each, until something changes;
    measured with noise."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def noisy(self, value: float, share: float = 0.05) -> float:
        return value * max(0.1, self.chance.gauss(1.0, share))

    def work(
        self,
        *,
        t1: float = 0.012,
        t2: float = 0.003,
        written: float = 400.0,
        fetched: float = 1e9,
        hot_share: float = 0.125,
        steps: int = BEFORE + AFTER,
        threads: int = 8,
    ) -> TopicWork:
        """What is measured where these numbers hold since FAULT. A backlog keeps threads busy; what is not read yet is
        read as fast as they can."""
        work, ins, outs, backlog = [], [], [], 0.0
        for number in range(steps):
            at, after = START + number * STEP, number >= BEFORE
            one, two = (t1, t2) if after else (0.012, 0.003)
            arrived = self.noisy(written if after else 400.0) * STEP.total_seconds()
            can_do = min(threads / (one + two), fetched if after else 1e9) * STEP.total_seconds()
            done = min(can_do, backlog + arrived)
            backlog += arrived - done
            share = hot_share if after else 0.125
            ins.append(RecordsStep(at, at + STEP, round(arrived), round(arrived * self.noisy(share, 0.03))))
            outs.append(RecordsStep(at, at + STEP, round(done)))
            work.append(
                WorkStep(
                    start=at,
                    messages=round(done),
                    t1_seconds=self.noisy(one),
                    t2_seconds=self.noisy(two),
                    busy_share=done * (one + two) / (threads * STEP.total_seconds()),
                )
            )
        return TopicWork(topic="orders", work=work, written=ins, read=outs, hottest="orders-3", partitions=8, cores=2.0)


def cause(work: TopicWork, now: datetime = NOW) -> Change | None:
    return likely_cause(list(changes_of(work, FAULT - LOOK_BACK, now)), now)


def without_probe(work: TopicWork) -> TopicWork:
    return replace(work, work=())


FAULTS = {
    ChangeKind.WAITING_ROSE: {"t1": 0.048},
    ChangeKind.CPU_ROSE: {"t2": 0.020, "t1": 0.014},
    ChangeKind.HOT_PARTITION: {"hot_share": 0.7, "written": 600.0},
    ChangeKind.PRODUCE_RATE_ROSE: {"written": 900.0},
    ChangeKind.FETCHING_SLOWED: {"fetched": 150.0},
}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("seed", range(20))
def test_each_fault_is_named_within_two_minutes(kind: ChangeKind, seed: int) -> None:
    found = cause(Consumers(seed).work(**FAULTS[kind]))
    assert found is not None
    assert found.kind is kind
    assert abs(found.at - FAULT) <= STEP


@pytest.mark.parametrize("kind", [ChangeKind.WAITING_ROSE, ChangeKind.CPU_ROSE, ChangeKind.FETCHING_SLOWED])
@pytest.mark.parametrize("seed", range(10))
def test_without_a_probe_less_is_read_and_it_is_said_that_nobody_knows_why(kind: ChangeKind, seed: int) -> None:
    found = cause(without_probe(Consumers(seed).work(**FAULTS[kind] | {"t1": 0.060})))
    assert found is not None
    assert found.kind is ChangeKind.CONSUME_RATE_FELL
    assert "Which of the two is not measured." in found.sentence


def test_where_a_probe_will_tell_why_less_is_read_it_is_waited_for() -> None:
    work = Consumers(3).work(t1=0.060)
    unmeasured = replace(work, work=work.work[:BEFORE])
    assert cause(unmeasured, FAULT + timedelta(seconds=60)) is None
    later = cause(unmeasured)
    assert later is not None
    assert later.kind is ChangeKind.CONSUME_RATE_FELL


def test_healthy_consumers_have_no_cause() -> None:
    assert [cause(Consumers(seed).work()) for seed in range(300)] == [None] * 300


@pytest.mark.parametrize("seed", range(10))
def test_less_to_read_is_no_slower_reader(seed: int) -> None:
    """After a catch-up, or when less is written, threads idle and less is read."""
    assert cause(Consumers(seed).work(written=150.0)) is None


def test_a_change_that_is_over_is_not_named() -> None:
    during, after = Consumers(1).work(t1=0.048), Consumers(2).work(steps=40)
    later = [replace(step, start=step.start + (NOW - START)) for step in after.work]
    work = replace(during, work=[*during.work, *later], written=(), read=())
    assert cause(during) is not None
    assert cause(work, NOW + 40 * STEP) is None


def test_numbers_are_in_the_sentence() -> None:
    steps = [0.012] * BEFORE + [0.048] * AFTER
    work = TopicWork(topic="orders", work=steps_of(steps, [0.003] * len(steps)), cores=2.0)
    found = cause(work)
    assert found is not None
    assert found.sentence == (
        "T1 on orders rose from 12 ms to 48 ms at 14:15:00 UTC and T2 stayed at 3 ms: what its handlers wait for (a "
        "database, a service) got slower, or lets fewer calls through at once."
    )
    assert found.remedy == (
        "Look at what the handlers call. If it can take more calls at once, more threads make up for it, up to 34 "
        "threads a node."
    )
    full = cause(replace(work, downstream_rate_per_second=117.0))
    assert full is not None
    assert full.remedy is not None
    assert full.remedy.endswith("It is full at about 117/s: more threads would not help.")


def test_only_the_time_as_a_whole_is_known() -> None:
    work = TopicWork(topic="orders", work=steps_of([0.012] * BEFORE + [0.048] * AFTER, [None] * (BEFORE + AFTER)))
    found = cause(work)
    assert found is not None
    assert found.kind is ChangeKind.WORK_ROSE
    assert "from 12 ms to 48 ms at 14:15:00 UTC" in found.sentence


def test_a_deployment_shortly_before_is_named_with_it() -> None:
    restarts = [
        Rebalance(FAULT - timedelta(seconds=100 - 10 * n), joined=[f"c{n} (h)"], left=[f"c{n} (h)"], members=4)
        for n in range(4)
    ]
    work = TopicWork(topic="orders", work=steps_of([0.012] * (BEFORE + AFTER), [0.003] * BEFORE + [0.009] * AFTER))
    changes = [*changes_of(work, FAULT - LOOK_BACK, NOW), *of_rebalances(restarts, Setup(), NOW)]
    found = likely_cause(changes, NOW)
    assert found is not None
    assert found.kind is ChangeKind.CPU_ROSE
    assert "T2 on orders rose from 3 ms to 9 ms at 14:15:00 UTC" in found.sentence
    assert "Shortly before: since 14:13:20 UTC, 4 members left and came back once each" in found.sentence
    alone = likely_cause(changes[:1], NOW)
    assert alone is not None
    assert alone.sentence.endswith("No restart was seen since 14:07:00 UTC: rather the input than the code.")


def test_an_occasion_alone_is_named_with_doubt() -> None:
    event = TopicEvent(FAULT, EventKind.CONFIG_CHANGED, "orders", "retention.ms=604800000", "retention.ms=3600000")
    found = likely_cause(list(of_topic_events([event], NOW, NOW)), NOW)
    assert found is not None
    assert found.sentence == (
        "It may have to do with this: settings of the topic orders changed at 14:15:00 UTC: retention.ms=604800000 "
        "became retention.ms=3600000."
    )


def leaders(kind: EventKind, before: str, after: str, at: datetime = FAULT) -> TopicEvent:
    return TopicEvent(at, kind, "orders", before, after, "20 of 48 partitions")


def test_leaders_that_moved_are_an_occasion() -> None:
    moved = leaders(EventKind.LEADERS_MOVED, "broker 1", "broker 2 (16), broker 3 (4)")
    [change] = of_topic_events([moved], NOW, NOW)
    found = likely_cause([change], NOW)
    assert found is not None
    assert found.sentence == (
        "It may have to do with this: 20 of 48 partitions of the topic orders changed leader at 14:15:00 UTC, from "
        "broker 1 to broker 2 (16), broker 3 (4)."
    )
    slower = Change(kind=ChangeKind.CONSUME_RATE_FELL, at=FAULT + STEP, sentence="It reads less.")
    told = likely_cause([change, slower], NOW)
    assert told is not None
    assert told.sentence == (
        "It reads less. Shortly before: 20 of 48 partitions of the topic orders changed leader at 14:15:00 UTC, from "
        "broker 1 to broker 2 (16), broker 3 (4)."
    )


MOVED = Change(kind=ChangeKind.LEADERS_MOVED, at=FAULT - 2 * STEP, sentence="Leaders moved.")
DEPLOYED = Change(kind=ChangeKind.DEPLOYMENT, at=FAULT - 6 * STEP, sentence="All were replaced.")


@pytest.mark.parametrize(
    ("kind", "occasions", "named"),
    [
        (ChangeKind.CPU_ROSE, [DEPLOYED, MOVED], "All were replaced."),
        (ChangeKind.WORK_ROSE, [DEPLOYED, MOVED], "All were replaced."),
        (ChangeKind.CONSUME_RATE_FELL, [DEPLOYED, MOVED], "All were replaced."),
        (ChangeKind.CONSUME_RATE_FELL, [MOVED], "Leaders moved."),
        (ChangeKind.FETCHING_SLOWED, [DEPLOYED, MOVED], "Leaders moved."),
        (ChangeKind.WORK_ROSE, [MOVED], None),
        (ChangeKind.FETCHING_SLOWED, [DEPLOYED], None),
    ],
)
def test_an_occasion_is_named_with_what_it_can_cause_and_leaders_after_what_people_did(
    kind: ChangeKind, occasions: list[Change], named: str | None
) -> None:
    found = likely_cause([Change(kind=kind, at=FAULT, sentence="It is slower."), *occasions], NOW)
    assert found is not None
    assert found.sentence == (f"It is slower. Shortly before: {lower_first(named)}" if named else "It is slower.")


def test_leaders_that_move_by_themselves_hide_no_deployment_and_no_input_that_changed() -> None:
    """Deployed at 14:13:30, leaders elected at 14:14:30, T2 rises at 14:15."""
    cpu = Change(kind=ChangeKind.CPU_ROSE, at=FAULT, sentence="T2 rose.")
    told = likely_cause([cpu, MOVED], NOW)
    assert told is not None
    assert told.sentence == "T2 rose. No restart was seen since 14:07:00 UTC: rather the input than the code."
    alone = likely_cause([DEPLOYED, MOVED], NOW)
    assert alone is not None
    assert alone.kind is ChangeKind.DEPLOYMENT


def test_leaders_that_move_after_the_group_fell_behind_or_are_back_are_no_occasion() -> None:
    moved = leaders(EventKind.LEADERS_MOVED, "broker 1", "broker 2")
    back = leaders(EventKind.LEADERS_RESTORED, "no leader", "broker 1")
    assert [*of_topic_events([moved], FAULT - STEP, NOW)] == []
    assert len([*of_topic_events([moved], FAULT, NOW)]) == 1
    assert [*of_topic_events([back], NOW, NOW)] == []


def test_partitions_without_a_leader_explain_why_they_are_not_read() -> None:
    lost = leaders(EventKind.LEADERS_LOST, "broker 1", "broker 2 (16), no leader (4)")
    gone = [Leaderless("orders", 4, 48)]
    found = likely_cause([*of_leaderless(gone, [lost], START, NOW)], NOW)
    assert found is not None
    assert (found.kind, found.at) == (ChangeKind.LEADERS_LOST, FAULT)
    assert found.sentence == (
        "4 of 48 partitions of the topic orders have had no leader since 14:15:00 UTC, before that broker 1: nobody "
        "can read or write them."
    )
    assert found.remedy is not None


LOST, BACK = EventKind.LEADERS_LOST, EventKind.LEADERS_RESTORED


@pytest.mark.parametrize(
    ("why", "kinds", "without_leader", "at", "told"),
    [
        ("no event tells when", [], 4, START, "have no leader"),
        ("no event tells when", [], 1, START, "has no leader"),
        ("all were lost then", [LOST], 4, FAULT, "have had no leader since 14:15:00 UTC, before that broker 0"),
        ("others are back", [LOST, BACK], 5, FAULT, "have had no leader since 14:15:00 UTC, before that broker 0"),
        (
            "those of before may be back or not",
            [LOST, BACK, LOST],
            4,
            FAULT + 2 * STEP,
            "have no leader, the last of them since 14:15:30 UTC, before that broker 2",
        ),
        (
            "what was lost last is the only one",
            [LOST, BACK, LOST],
            1,
            FAULT + 2 * STEP,
            "has had no leader since 14:15:30 UTC, before that broker 2",
        ),
        (
            "they were lost one after the other",
            [LOST, LOST],
            4,
            FAULT,
            "have no leader, the last of them since 14:15:15 UTC, before that broker 1",
        ),
        ("those of either may be back", [LOST, LOST, BACK], 4, FAULT, "have no leader"),
        ("some may be as old as what came back", [BACK, LOST, BACK], 4, FAULT + STEP, "have no leader"),
    ],
)
def test_since_when_there_is_no_leader_is_told_if_it_is_certain(
    why: str, kinds: list[EventKind], without_leader: int, at: datetime, told: str
) -> None:
    happened = [leaders(kind, f"broker {n}", "other", FAULT + n * STEP) for n, kind in enumerate(kinds)]
    [found] = of_leaderless([Leaderless("orders", without_leader, 48)], happened, START, NOW)
    assert found.at == at, why
    them = "it" if without_leader == 1 else "them"
    assert found.sentence == (
        f"{without_leader} of 48 partitions of the topic orders {told}: nobody can read or write {them}."
    ), why


def test_without_a_leader_a_group_is_unknown() -> None:
    lost = Change(kind=ChangeKind.LEADERS_LOST, at=FAULT, sentence="No leader.")
    began = backlog_now(None, Status.UNKNOWN, 0.0, 15.0, NOW, has_leaderless=True)
    assert began == Backlog(NOW)
    explained = began.explained([lost], Status.UNKNOWN, NOW)
    assert explained.cause is lost
    assert is_told(lost, Status.UNKNOWN)
    assert not is_told(lost, Status.LAGGING), "what is in trouble has a leader"
    assert backlog_now(explained, Status.UNKNOWN, 0.0, 15.0, NOW + STEP, has_leaderless=True) == explained
    others = backlog_now(explained, Status.LAGGING, 0.0, 15.0, NOW + STEP, has_leaderless=True)
    assert others == Backlog(NOW + STEP), "partitions that have a leader lag: why is looked for anew"
    unread = backlog_now(explained, Status.UNKNOWN, 0.0, 15.0, NOW + STEP, reason=UnknownReason.UNREADABLE)
    assert unread == Backlog(NOW), "not known whether there are leaders"


@pytest.fixture
def back() -> Backlog:
    """Leaders were lost at 14:15, which the next sample shows, and are back at 14:45."""
    lost = Change(kind=ChangeKind.LEADERS_LOST, at=FAULT, sentence="No leader.", remedy="Start a broker.")
    during, now = Backlog(FAULT + STEP, lost), FAULT + timedelta(minutes=30)
    found = backlog_now(during, Status.UNKNOWN, 0.0, 15.0, now, reason=UnknownReason.TOO_FEW_SAMPLES)
    assert found is not None
    return found


def test_leaders_that_were_lost_stay_the_cause_while_the_group_catches_up(back: Backlog) -> None:
    assert back.since == FAULT + STEP
    cause = back.cause
    assert cause == Change(
        kind=ChangeKind.LEADERS_WERE_LOST,
        at=FAULT,
        sentence="Until 14:45:00 UTC, partitions that it reads had no leader, and nobody could read or write them.",
    )
    assert is_told(cause, Status.CATCHING_UP)
    later = FAULT + timedelta(minutes=40)
    assert backlog_now(back, Status.CATCHING_UP, 900.0, 15.0, later) == back
    assert backlog_now(back, Status.OK, 1.0, 15.0, later) is None
    again = backlog_now(back, Status.UNKNOWN, 0.0, 15.0, later, has_leaderless=True)
    assert again == Backlog(later)


def test_what_follows_from_leaders_that_were_lost_is_not_blamed_for_the_backlog(back: Backlog) -> None:
    more = Change(kind=ChangeKind.PRODUCE_RATE_ROSE, at=FAULT + timedelta(minutes=30), sentence="More is written.")
    less = Change(kind=ChangeKind.CONSUME_RATE_FELL, at=FAULT - STEP, sentence="It reads less.")
    lost = leaders(EventKind.LEADERS_LOST, "broker 1", "no leader")
    restored = leaders(EventKind.LEADERS_RESTORED, "no leader", "broker 1", FAULT + timedelta(minutes=30))
    occasions = [*of_topic_events([lost, restored], back.since, NOW)]
    for status in (Status.CATCHING_UP, Status.LAGGING, Status.STOPPED):
        assert back.explained([more, less, *occasions], status, NOW) == back
        assert back.explained([], status, NOW) == back


def test_lag_that_grows_though_leaders_are_back_has_another_cause(back: Backlog) -> None:
    slower = Change(kind=ChangeKind.WAITING_ROSE, at=FAULT + timedelta(minutes=30), sentence="T1 rose.")
    assert back.explained([slower], Status.CATCHING_UP, NOW) == back
    assert back.explained([slower], Status.FALLING_BEHIND, NOW).cause is slower
    assert back.explained([], Status.FALLING_BEHIND, NOW) == back


def test_partitions_that_lose_their_leader_begin_another_backlog_however_old_the_one_before_is() -> None:
    """Behind since 14:00 for T1, decided long ago: at 14:30 a broker fails."""
    failed = START + timedelta(minutes=30)
    slower = Backlog(START, Change(kind=ChangeKind.WAITING_ROSE, at=START, sentence="T1 rose."))
    assert backlog_now(slower, Status.UNKNOWN, 0.0, 15.0, failed) == slower
    began = backlog_now(slower, Status.UNKNOWN, 0.0, 15.0, failed, has_leaderless=True)
    assert began == Backlog(failed)
    assert not began.is_decided(failed)


def test_the_first_change_is_named_and_its_consequences_are_not() -> None:
    waiting = Change(kind=ChangeKind.WAITING_ROSE, at=FAULT, sentence="T1 rose.")
    storm = Change(kind=ChangeKind.REBALANCES, at=FAULT + timedelta(minutes=5), sentence="It rebalances.")
    assert likely_cause([storm, waiting], NOW) is waiting
    assert likely_cause([replace(storm, at=FAULT - timedelta(minutes=5)), waiting], NOW) is not waiting
    assert likely_cause([], NOW) is None


def test_members_that_went_are_a_cause_and_those_that_came_are_not() -> None:
    gone = [Rebalance(FAULT, left=["c1 (h)"], members=3)]
    [found] = of_rebalances(gone, Setup(), NOW)
    assert found.kind is ChangeKind.MEMBERS_LEFT
    assert list(of_rebalances([Rebalance(FAULT, joined=["c1 (h)"], members=5)], Setup(), NOW)) == []
    assert list(of_rebalances([], Setup(), NOW)) == []


@pytest.mark.parametrize(
    ("status", "lag_seconds", "since"),
    [
        (Status.OK, 3.0, None),
        (Status.OK, 40.0, START),
        (Status.FALLING_BEHIND, 3.0, START),
        (Status.UNKNOWN, 0.0, START),
        (Status.REWOUND, 300.0, None),
        (Status.REWOUND, 3.0, None),
    ],
)
def test_a_backlog_goes_on_while_the_group_is_behind(
    status: Status, lag_seconds: float, since: datetime | None
) -> None:
    went_on = backlog_now(Backlog(START), status, lag_seconds, 15.0, NOW)
    assert (went_on.since if went_on else None) == since
    began = backlog_now(None, status, lag_seconds, 15.0, NOW)
    assert (began.since if began else None) == (NOW if since and status is not Status.UNKNOWN else None)


def test_what_was_found_stays_and_a_group_that_reads_nothing_has_not_slowed() -> None:
    slower = Change(kind=ChangeKind.CONSUME_RATE_FELL, at=FAULT, sentence="It read less.")
    backlog = Backlog(START).explained([slower], Status.FALLING_BEHIND, NOW)
    assert backlog.cause is slower
    assert backlog.explained([], Status.LAGGING, NOW).cause is slower
    assert Backlog(START).explained([slower], Status.STOPPED, NOW).cause is None
    assert backlog.explained([], Status.STALLED, NOW).cause is None, "it hangs: its messages do not take longer"


def test_a_crash_loop_or_static_members_that_came_back_are_restarts() -> None:
    cpu = Change(kind=ChangeKind.CPU_ROSE, at=FAULT, sentence="T2 rose.")
    storm = Change(kind=ChangeKind.REBALANCES, at=FAULT, sentence="It rebalances.")
    told = likely_cause([cpu, storm], NOW)
    assert told is not None
    assert told.sentence == "T2 rose."
    returned = [Rebalance(FAULT - STEP, cause=RebalanceCause.STATIC_MEMBER_RETURNED, members=3)]
    told = likely_cause([cpu, *of_rebalances(returned, Setup(has_static_members=True), NOW)], NOW)
    assert told is not None
    assert "Shortly before: at 14:14:45 UTC, static members came back" in told.sentence


def test_what_came_a_little_later_is_not_called_earlier() -> None:
    cpu = Change(kind=ChangeKind.CPU_ROSE, at=FAULT, sentence="T2 rose.")
    later = Change(kind=ChangeKind.DEPLOYMENT, at=FAULT + timedelta(seconds=30), sentence="All were replaced.")
    told = likely_cause([cpu, later], NOW)
    assert told is not None
    assert told.sentence == "T2 rose. At about the same time: all were replaced."


def steps_of(t1: Sequence[float], t2: Sequence[float | None]) -> list[WorkStep]:
    return [
        WorkStep(start=START + n * STEP, messages=int(8 * 15 / (one + (two or 0.0))), t1_seconds=one, t2_seconds=two)
        for n, (one, two) in enumerate(zip(t1, t2, strict=True))
    ]
