"""Exact events and differences of samples: the better source writes each of them once, whatever becomes of the tail."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from lagwise.domain.vocabulary import EventKind, EventSource
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS
from lagwise_collectors.merge_events import EventMerge
from lagwise_collectors.offsets_topic.commit_history import CADENCE_TABLE, CommitCadence, CommitHistory, cadence_rows
from lagwise_collectors.protocol import ErrorTally, EventSourceState, Snapshot
from lagwise_collectors.sample_diff.compare_samples import PreviousSample, compare_samples
from lagwise_collectors.sample_diff.events import MAX_EVENTS, Event, as_rows
from tests.collectors.snapshots import INTERVAL, START, sample

T0, T1 = ("t", 0), ("t", 1)
STABLE: dict[str, str | None] = {"g": "Stable"}
ONE, TWO = {"g": {"a": [T0, T1]}}, {"g": {"a": [T0], "b": [T1]}}
LIVE, BEHIND = EventSourceState(is_caught_up=True), EventSourceState(is_caught_up=False, records_left=7)


class Script:
    """A tail that follows a script: one entry a round."""

    def __init__(self, *rounds: tuple[EventSourceState, list[Event]]) -> None:
        self._rounds = list(rounds)
        self.topics: list[Mapping[str, str]] = []
        self.kept = 0

    def take(self, topics: Mapping[str, str]) -> tuple[Snapshot | None, EventSourceState, ErrorTally]:
        self.topics.append(topics)
        state, events = self._rounds.pop(0)
        tables = {
            **sample(0).tables,
            EVENTS.name: as_rows(events, "shop"),
            CADENCE_TABLE: cadence_rows([], counted=True),
        }
        return Snapshot("shop", "x", tables), state, ErrorTally()

    def acknowledge(self) -> None:
        self.kept += 1

    def abandon(self) -> None: ...

    def close(self) -> None: ...


def exact_rebalance(at: datetime, group: str = "g") -> Event:
    return Event(EventKind.REBALANCE, at, group, generation=2, source=EventSource.OFFSETS_TOPIC)


def written(tail: Script, *samples: Snapshot) -> list[list[tuple[str, str]]]:
    """Kind and source of the events of each round."""
    exact, known, rounds = EventMerge(tail), PreviousSample(), []
    for one in samples:
        exact.take(one, compared=known.commits is not None)
        found = compare_samples(known, one, leave_out=exact.reports)
        known = found.latest
        done = exact.complete(one.with_rows(EVENTS, found.rows), known)
        rounds.append([(row["kind"], row["source"]) for row in done.rows(EVENTS).to_pylist()])
    return rounds


BY_SAMPLES = ("rebalance", "samples")
EXACTLY = ("rebalance", "offsets_topic")


def test_while_the_tail_is_live_it_reports_and_the_samples_do_not() -> None:
    tail = Script((LIVE, []), (LIVE, [exact_rebalance(START + INTERVAL / 2)]))
    assert written(tail, sample(0, groups=STABLE, members=ONE), sample(1, groups=STABLE, members=TWO)) == [
        [],
        [EXACTLY],
    ]


def test_changes_of_state_are_what_samples_saw() -> None:
    tail = Script((LIVE, []), (LIVE, []))
    rounds = written(tail, sample(0, groups=STABLE, members=ONE), sample(1, groups={"g": "Empty"}))
    assert rounds[1] == [("state_changed", "samples")]


def test_while_the_tail_is_behind_the_samples_report_and_it_does_not_repeat_that_later() -> None:
    late = [exact_rebalance(START + INTERVAL / 2), exact_rebalance(START + 1.5 * INTERVAL)]
    tail = Script((LIVE, []), (BEHIND, []), (LIVE, late))
    rounds = written(
        tail,
        sample(0, groups=STABLE, members=ONE),
        sample(1, groups=STABLE, members=TWO),
        sample(2, groups=STABLE, members=TWO),
    )
    assert rounds == [[], [BY_SAMPLES], [EXACTLY]]  # the second of the late ones alone


def test_what_happened_while_the_collector_was_off_is_reported_by_the_tail() -> None:
    """The first sample of a start is compared with nothing, so the samples show nothing of the time before."""
    before = exact_rebalance(START - timedelta(hours=1))
    tail = Script((BEHIND, [before]), (LIVE, [exact_rebalance(START - timedelta(minutes=1))]))
    assert written(tail, sample(0, groups=STABLE, members=ONE), sample(1, groups=STABLE, members=ONE)) == [
        [EXACTLY],
        [EXACTLY],
    ]


def test_unreadable_samples_reported_nothing_that_the_tail_would_repeat() -> None:
    down = ErrorTally()
    down.note("unreachable", "nothing answers")
    late = [exact_rebalance(START + INTERVAL / 2)]
    tail = Script((BEHIND, []), (BEHIND, []), (LIVE, late))
    rounds = written(
        tail,
        sample(0, errors=down),
        sample(1, groups=STABLE, members=ONE),
        sample(2, groups=STABLE, members=ONE),
    )
    assert rounds == [[], [], [EXACTLY]]


def test_one_that_is_live_for_the_first_time_was_silent_until_just_now() -> None:
    both = [exact_rebalance(START + INTERVAL - timedelta(seconds=1)), exact_rebalance(START + 1.1 * INTERVAL)]
    tail = Script((BEHIND, []), (EventSourceState(is_caught_up=True, is_first_time=True), both[:1]), (LIVE, both[1:]))
    rounds = written(
        tail,
        sample(0, groups=STABLE, members=ONE),
        sample(1, groups=STABLE, members=TWO),
        sample(2, groups=STABLE, members=TWO),
    )
    assert rounds == [[], [BY_SAMPLES], [EXACTLY]]


@pytest.mark.parametrize("kind", ["share", "spark", "sql", "files"])
def test_groups_without_readable_records_are_reported_by_samples(kind: str) -> None:
    def of(number: int, members: Any) -> Snapshot:
        made = sample(number, groups=STABLE, members=members)
        groups = made.rows(GROUPS)
        place = groups.schema.get_field_index("type")
        return made.with_rows(GROUPS, groups.set_column(place, "type", pa.array([kind], pa.string())))

    assert written(Script((LIVE, []), (LIVE, [])), of(0, ONE), of(1, TWO))[1] == [BY_SAMPLES]


def test_offsets_that_went_with_their_topic_are_explained_by_that() -> None:
    commits = {("g", "t", 0): 5, ("g", "u", 0): 5}
    lost = [
        Event(EventKind.OFFSETS_GONE, START + 1.5 * INTERVAL, "g", topic, 0, source=EventSource.OFFSETS_TOPIC)
        for topic in ("t", "u")
    ]
    tail = Script((LIVE, []), (LIVE, []), (LIVE, lost))
    topics: list[dict[str, tuple[str | None, int]]] = [{"t": ("a", 1)}, {"t": (None, 1)}, {}]
    rounds = written(tail, *(sample(n, commits=commits, topics=topics[n]) for n in range(3)))
    assert rounds[1:] == [[("topic_gone", "samples")], [("offsets_gone", "offsets_topic")]]


def test_the_number_of_events_of_a_sample_stays_bounded() -> None:
    many = [exact_rebalance(START, f"g{n}") for n in range(MAX_EVENTS + 3)]
    exact, one = EventMerge(Script((LIVE, many))), sample(0, groups=STABLE)
    exact.take(one, compared=False)
    assert exact.complete(one, PreviousSample()).rows(EVENTS).num_rows == MAX_EVENTS
    assert exact.errors.counts == {"events_dropped": 3}


def test_the_tail_learns_each_topics_name_once() -> None:
    tail = Script((LIVE, []), (LIVE, []), (LIVE, []))
    topics: list[dict[str, tuple[str | None, int]]] = [{"t": ("a", 2)}, {"t": ("a", 2), "u": ("b", 1)}, {"u": ("b", 1)}]
    written(tail, *(sample(n, groups=STABLE, topics=topics[n]) for n in range(3)))
    assert tail.topics == [{"a": "t"}, {"b": "u"}, {}]


class TestCadence:
    AT_MS = 1_795_230_000_123

    def pair(self, partition: int, commits: int, group: str = "g") -> CommitHistory:
        made = CommitHistory(group, "t", partition, 5, self.AT_MS + partition)
        made.commits = commits
        return made

    def filled(
        self, cadence: CommitCadence, commits: pa.Table, pairs: list[CommitHistory] | None, **how: bool
    ) -> list[Any]:
        committed = None if pairs is None else cadence_rows(pairs, counted=how.pop("counted", True))
        rows = cadence.fill(commits, committed, all_commits=how.pop("all_commits", False))
        assert rows.schema.field("committed_at").type == COMMITS.arrow.field("committed_at").type
        return [
            (None if r["committed_at"] is None else r["committed_at"].timestamp(), r["commits_since"])
            for r in rows.to_pylist()
        ]

    def at(self, partition: int) -> float:
        return (self.AT_MS + partition) / 1000

    def test_times_are_remembered_and_counts_are_not(self) -> None:
        cadence = CommitCadence()
        rows = sample(0, commits={("g", "t", 0): 5, ("g", "t", 1): 5, ("g", "t", 2): None}).rows(COMMITS)
        everything = [self.pair(p, 3) for p in range(3)]
        # What has no committed offset has no commit that counts, whatever there was once.
        assert self.filled(cadence, rows, everything, all_commits=True) == [
            (self.at(0), 3),
            (self.at(1), 3),
            (None, None),
        ]
        changed = self.pair(1, 1)
        changed.at_ms += 10_000
        assert self.filled(cadence, rows, [changed]) == [(self.at(0), 0), (self.at(1) + 10, 1), (None, None)]

    def test_a_new_reader_reports_all_events_and_the_rest_is_forgotten(self) -> None:
        cadence = CommitCadence()
        rows = sample(0, commits={("g", "t", 0): 5, ("g", "t", 1): 5}).rows(COMMITS)
        self.filled(cadence, rows, [self.pair(0, 0), self.pair(1, 0)], all_commits=True)
        assert self.filled(cadence, rows, [self.pair(0, 2)], all_commits=True) == [(self.at(0), 2), (None, None)]

    def test_the_first_time_after_a_start_nothing_was_counted(self) -> None:
        rows = sample(0, commits={("g", "t", 0): 5}).rows(COMMITS)
        assert self.filled(CommitCadence(), rows, [self.pair(0, 0)], all_commits=True, counted=False) == [
            (self.at(0), None)
        ]

    def test_all_there_is_may_come_with_a_sample_that_could_not_be_read(self) -> None:
        cadence = CommitCadence()
        assert self.filled(cadence, sample(0).rows(COMMITS), [self.pair(0, 2)], all_commits=True) == []
        rows = sample(1, commits={("g", "t", 0): 5}).rows(COMMITS)
        assert self.filled(cadence, rows, []) == [(self.at(0), 0)]

    def test_a_tail_that_is_off_or_behind_knows_nothing(self) -> None:
        rows = sample(0, commits={("g", "t", 0): 5}).rows(COMMITS)
        assert self.filled(CommitCadence(), rows, None) == [(None, None)]

    def test_the_time_of_an_external_offset_stays(self) -> None:
        rows = sample(0, commits={("g", "t", 0): 5, ("other", "t", 0): 7}).rows(COMMITS)
        place = rows.schema.get_field_index("committed_at")
        times = [START if group == "other" else None for group in rows["group"].to_pylist()]
        rows = rows.set_column(place, "committed_at", pa.array(times, COMMITS.arrow.field("committed_at").type))
        filled = self.filled(CommitCadence(), rows, [self.pair(0, 3)], all_commits=True)
        assert sorted(filled, key=str) == sorted([(self.at(0), 3), (START.timestamp(), None)], key=str)

    def test_a_pair_that_the_sample_has_later_than_the_tail(self) -> None:
        cadence = CommitCadence()
        one = sample(0, commits={("g", "t", 0): 5}).rows(COMMITS)
        self.filled(cadence, one, [self.pair(0, 0)], all_commits=True)
        assert self.filled(cadence, one, [self.pair(1, 1)]) == [(self.at(0), 0)]
        both = sample(1, commits={("a", "t", 0): 1, ("g", "t", 0): 5, ("g", "t", 1): 5}).rows(COMMITS)
        # When the first was committed is unknown: the tail has never reported it.
        assert self.filled(cadence, both, []) == [(None, None), (self.at(0), 0), (self.at(1), 0)]
