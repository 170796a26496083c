"""The rules on columns say what the plain model says: the same verdict and the same numbers, row by row.

On every trace, whose stories are what happens in life, and on random histories, whose nastiness is what the rules'
authors did not think of. A failure names the trace (a random one by its seed: ``history(seed)`` makes it again).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lagwise.domain.vocabulary import LossCause, Status, UnknownReason
from lagwise.traces.judged import judged
from lagwise.traces.trace import Trace, read_trace
from lagwise_app.replay.shown import Shown, shown_of
from lagwise_app.replay.trace_events import OF_GROUPS, events_of, group_events_of
from tests.contract.differences import differences
from tests.contract.histories import history
from tests.contract.oracle import shown_by_oracle
from tests.contract.variants import (
    in_segments,
    in_turns,
    overtaken,
    purged,
    stretched,
    unreadable,
    with_external_offsets,
)
from tests.traces.make import pairs, steps
from tests.traces.replayed import traces
from tests.traces.world import World

pytestmark = pytest.mark.thorough

#: The plain model reads the whole history at every moment: some moments of each trace are enough.
EVERY = 7
#: Seeds on which two ways to judge disagreed once: durations that lie exactly on a limit.
FOUND_BY_THE_LONG_RUN = (1132,)


def compared(batch: list[Trace]) -> Iterator[Shown]:
    """What is shown of each trace, once it has been compared."""
    for trace in batch:
        events = group_events_of(trace)
        shown = shown_of(trace, events=events)
        assert differences(shown, shown_by_oracle(trace, events)) == []
        yield from shown


def test_on_every_trace() -> None:
    count = 0
    for trace in traces():
        times = trace.evaluation_times[::EVERY]
        events = group_events_of(trace)
        seen = shown_of(trace, times, events)
        assert differences(seen, shown_by_oracle(trace, events, times)) == []
        count += len(seen)
    assert count > 1000


def test_on_random_histories() -> None:
    counts: Counter[str] = Counter()
    for one in compared([history(seed) for seed in (*range(250), *FOUND_BY_THE_LONG_RUN)]):
        counts[one.status if one.reason is None else f"{one.status}:{one.reason}"] += 1
    words = [*(s for s in Status if s is not Status.UNKNOWN)]
    of_others = (
        UnknownReason.NOT_COMMITTING,
        UnknownReason.NO_TOPICS,
    )  # of Flink's jobs, and of groups that read nothing
    reasons = [f"unknown:{reason}" for reason in UnknownReason if reason not in of_others]
    # Every word has been put to the test, not only the easy ones.
    assert {word: counts[word] for word in (*words, *reasons) if counts[word] < 3} == {}


def test_on_groups_that_could_not_be_read() -> None:
    sentences = [one.sentence or "" for one in compared([unreadable(history(seed), seed) for seed in range(20)])]
    assert sum("Describe on the group" in sentence for sentence in sentences) >= 20


def test_on_groups_with_objectives_of_their_own() -> None:
    batch = [replace(history(seed), lag_objectives_s={"group-0": (1.0, 20.0, 3600.0)[seed % 3]}) for seed in range(100)]
    others = 0
    for trace in batch:
        shown = list(compared([trace]))
        common = shown_of(replace(trace, lag_objectives_s={}))
        others += sum(a.status != b.status for a, b in zip(shown, common, strict=True))
    assert others >= 10


def test_on_groups_with_external_offsets() -> None:
    said: Counter[str] = Counter()
    # (Seed 87 has a rate that lies just between two roundings: the order of a sum decides on its last digit.)
    for one in compared([with_external_offsets(history(seed), seed) for seed in range(80)]):
        if one.topic is not None:
            said[f"{one.status}:{one.reason}"] += 1
            said["held up"] += one.status == Status.STALLED and one.numbers["lag"] is None
    words = ("unknown:not_committing", "unknown:no_commit", "stopped:None", "stalled:None", "held up")
    assert {word: said[word] for word in words if said[word] < 3} == {}


def test_on_logs_that_are_deleted_by_size() -> None:
    losses: Counter[str] = Counter()
    for one in compared([in_segments(history(seed), seed) for seed in range(150)]):
        if one.topic is not None and one.loss_cause == LossCause.DELETION:
            losses["at once" if one.numbers["seconds_to_loss"] == 0 else "later"] += 1
    assert min(losses["at once"], losses["later"]) >= 10, losses


def test_on_histories_of_a_day_and_more() -> None:
    assert len(list(compared([stretched(history(seed), 2 + seed % 4) for seed in range(60)]))) > 100


def test_on_owners_that_read_one_partition_after_the_other() -> None:
    counts: Counter[str] = Counter()
    for seed in range(150):
        trace = in_turns(history(seed), seed)
        list(compared([trace]))
        rows = judged(trace, events_of(trace)).partitions
        counts["waits"] += int((rows["awaits_turn"] & (rows["standstill_seconds"] >= 90)).sum())
        counts["stalled"] += int(rows["stalled"].sum())
    assert min(counts["waits"], counts["stalled"]) >= 10, counts


def test_on_readers_that_are_overtaken_again_and_again() -> None:
    losses = [one.lost for one in compared([overtaken(history(seed), seed) for seed in range(100)]) if one.topic]
    assert sum(its.at_least > 0 for its in losses) >= 30
    assert sum(its.at_most > its.at_least > 0 for its in losses) >= 30


def test_on_logs_that_their_readers_purge() -> None:
    losing: Counter[bool] = Counter()
    for one in compared([purged(history(seed), seed) for seed in range(100)]):
        losing[one.status == Status.LOSING_DATA] += 1
    assert min(losing[True], losing[False]) >= 10, losing


def test_on_hours_in_which_a_loss_shows_and_others_in_which_none_does(tmp_path: Path) -> None:
    """A reader is overtaken for a while, and reads on at the edge of what is kept: from then on what the log start
    passes beyond the commit of the sample before adds nothing."""
    world = World("edge", "", minutes=190, interval_s=30, evaluate_every_s=1500)
    world.topic("t", rate=100, kept_s=600, retention_ms=600_000)
    group = world.group("g", {"m-1": pairs("t", 1)}, commit_every_s=1)
    group.speed["t", 0] = steps((0, 500), (700, 0), (1250, 99), (3390, 100))
    world.run()
    trace = read_trace(world.write(tmp_path))
    shown = list(compared([trace]))
    reported = [(one.time_s, one.lost) for one in shown if one.topic is not None and one.lost.at_least]
    assert len(reported) >= 4
    (before, lost), (last, at_last) = reported[-2:]
    assert last > before
    assert at_last == lost._replace(first_seconds=at_last.first_seconds, last_seconds=at_last.last_seconds), (
        "an hour without a loss adds nothing"
    )
    assert at_last.at_least <= group.lost["t", 0] <= at_last.at_most


def test_both_go_by_the_events_that_all_samples_tell() -> None:
    """(On the traces: tests/traces/test_events.py.)"""
    count = 0
    for trace in (*map(history, range(60)), *(unreadable(history(seed), seed) for seed in range(20))):
        told = group_events_of(trace)
        assert told == [event for event in events_of(trace) if event["kind"] in OF_GROUPS], trace.name
        count += len(told)
    assert count > 300


@pytest.mark.long
@pytest.mark.timeout(14_400)
def test_on_ten_thousand_random_histories() -> None:
    assert sum(1 for _ in compared([history(seed) for seed in range(1_000, 11_000)])) > 100_000
