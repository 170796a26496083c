"""Skips are told where there is one, and nowhere else: not of bursts, gaps, compaction, markers, losses, nor of new
topics."""

from lagwise.domain.vocabulary import EventKind
from lagwise.trace_events import events_of
from tests.traces import noise
from tests.traces.replayed import traces


def test_the_only_skip_that_samples_prove_is_told() -> None:
    told = {
        trace.name: [event for event in events_of(trace) if event["kind"] == EventKind.COMMIT_SKIPPED]
        for trace in traces()
    }
    skips = told.pop("skip-to-end")
    # The group that hung was never seen to be behind and go on: nobody knows how fast it is.
    assert [(event["group"], event["partition"]) for event in skips] == [("scoreboard", 0), ("scoreboard", 1)]
    for event in skips:
        assert 13_000 < int(event["after"]) - int(event["before"]) < 16_000
    assert {name: events for name, events in told.items() if events} == {}


def test_no_skip_is_told_of_healthy_noisy_traffic() -> None:
    trace = noise.trace_of(list(range(0, noise.GROUPS, 7)), 1.25)
    assert [event for event in events_of(trace) if event["kind"] == EventKind.COMMIT_SKIPPED] == []
