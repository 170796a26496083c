"""Every trace is judged as its truth says: the public proof of the verdicts."""

from typing import TYPE_CHECKING

import pytest

from lagwise_app.replay.verdicts import score_of
from tests.traces.replayed import replayed, traces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_every_truth_is_met(spark: "SparkSession") -> None:
    misses = {}
    for trace in traces():
        shown = replayed(spark)[trace.name]
        assert shown
        score = score_of(trace, shown)
        if score.misses:
            misses[trace.name] = [str(miss) for miss in score.misses]
    assert misses == {}
