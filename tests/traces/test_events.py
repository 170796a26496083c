"""What comparing a trace's samples tells. Skips are told where there is one, and nowhere else: not of bursts, gaps,
compaction, markers, losses, nor of new topics. What verdicts go by is told by a few of the samples."""

from pathlib import Path

import pytest

from lagwise.domain.loss.skips import FROM_LOG_START
from lagwise.domain.vocabulary import EventKind
from lagwise.traces.trace import read_trace
from lagwise_app.replay.trace_events import OF_GROUPS, events_of, group_events_of
from tests.traces import noise
from tests.traces.judged import judged
from tests.traces.make import pairs, steps
from tests.traces.replayed import events_by_trace, traces
from tests.traces.world import World

pytestmark = pytest.mark.thorough


def test_the_only_skip_that_samples_prove_is_reported() -> None:
    reported = {
        name: [event for event in events if event["kind"] == EventKind.COMMIT_SKIPPED]
        for name, events in events_by_trace().items()
    }
    skips = reported.pop("skip-to-end")
    # The group that hung was never seen to be behind and go on: nobody knows how fast it is.
    assert [(event["group"], event["partition"]) for event in skips] == [("scoreboard", 0), ("scoreboard", 1)]
    for event in skips:
        assert 13_000 < int(event["after"]) - int(event["before"]) < 16_000
    assert {name: events for name, events in reported.items() if events} == {}


def test_verdicts_go_by_the_events_that_all_samples_tell() -> None:
    count = 0
    for trace in traces():
        told = group_events_of(trace)
        assert told == [event for event in events_by_trace()[trace.name] if event["kind"] in OF_GROUPS], trace.name
        count += len(told)
    assert count > 300


def test_no_skip_is_reported_for_healthy_noisy_traffic() -> None:
    trace = noise.trace_of(list(range(0, noise.GROUPS, 7)), 1.25)
    assert [event for event in events_of(trace) if event["kind"] == EventKind.COMMIT_SKIPPED] == []


def test_what_one_never_reads_that_goes_on_at_the_end_was_lost_or_skipped(tmp_path: Path) -> None:
    """A reader that is too slow for a topic that keeps ten minutes, and another that hangs for half an hour: whenever
    its next record is deleted, each goes on at the end, as consumers do by default. What is told as lost and what is
    told as skipped is together what it never reads."""
    world = World("reset-to-latest", "", minutes=60)
    topic = world.topic("clicks", rate=100, kept_s=600, retention_ms=600_000)
    slow = world.group("slow", {"slow-1": pairs("clicks", 1)}, commit_every_s=5)
    hung = world.group("hung", {"hung-1": pairs("clicks", 1)}, commit_every_s=5)
    slow.speed["clicks", 0] = steps((0, 400), (300, 60))
    hung.speed["clicks", 0] = steps((0, 400), (900, 0), (2700, 400))
    unread = {"slow": 0.0, "hung": 0.0}

    def reset(second: float) -> None:
        for group in (slow, hung):
            position = group.position["clicks", 0]
            reads = group is slow or not 900 <= second < 2700
            if reads and position < topic.start[0]:
                unread[group.name] += topic.end(0) - position
                group.position["clicks", 0] = topic.end(0)

    world.every_second(reset)
    world.run()
    trace = read_trace(world.write(tmp_path))
    events = [event for event in events_of(trace) if event["kind"] == EventKind.COMMIT_SKIPPED]
    assert {event["cause"] for event in events} == {FROM_LOG_START}
    ((_, evaluation),) = judged(trace, [len(trace.sample_times) - 1])
    for name, truly in unread.items():
        its = [int(event["after"]) - int(event["before"]) for event in events if event["group"] == name]
        lost = evaluation.groups[name].lost
        assert sum(its) > 0.3 * truly > 0
        # A skip is known to within what is written from one sample to the next.
        about = 15 * 100 * len(its)
        assert lost.at_least + sum(its) - about <= truly <= lost.at_most + sum(its) + about
