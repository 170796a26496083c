"""Every trace is judged as its truth says: the public proof of the verdicts."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lagwise.replay import score_of, shown_of
from lagwise.traces import read_trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("*/trace.toml"))


def test_there_are_traces_of_every_kind_of_trouble() -> None:
    assert len(FOLDERS) >= 20
    said = {status for folder in FOLDERS for truth in read_trace(folder).truth for status, _ in truth.allowed}
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
    traces = [read_trace(folder) for folder in FOLDERS]
    misses = {}
    for trace, shown in zip(traces, shown_of(spark, traces), strict=True):
        assert shown
        score = score_of(trace, shown)
        if score.misses:
            misses[trace.name] = [str(miss) for miss in score.misses]
    assert misses == {}
