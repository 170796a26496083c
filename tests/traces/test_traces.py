"""Every trace is judged as its truth says: the public proof of the verdicts."""

import pytest

from lagwise_app.replay.verdicts import score_of
from tests.traces.replayed import replayed, traces

pytestmark = pytest.mark.thorough


def test_there_are_traces_of_every_kind_of_trouble() -> None:
    assert len(traces()) >= 20
    said = {status for trace in traces() for truth in trace.truth for status, _ in truth.allowed}
    assert {str(s) for s in said} >= {
        "losing_data",
        "at_risk",
        "stopped",
        "stalled",
        "rewound",
        "falling_behind",
        "lagging",
        "catching_up",
        "ok",
        "ghost",
        "unknown",
    }


def test_every_truth_is_met() -> None:
    misses = {}
    for trace in traces():
        shown = replayed()[trace.name]
        assert shown
        score = score_of(trace, shown)
        if score.misses:
            misses[trace.name] = [str(miss) for miss in score.misses]
    assert misses == {}
