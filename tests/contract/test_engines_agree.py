"""Spark computes what the domain defines: the same verdict and the same numbers, row by row."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lagwise.replay import shown_of
from lagwise.traces import read_trace
from tests.contract.oracle import shown_by_oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

FOLDERS = sorted(path.parent for path in (Path(__file__).parents[1] / "traces").glob("*/trace.toml"))
#: The plain-Python definition reads the whole history at every moment: some moments of each trace are enough.
MOMENTS = 12


def test_on_every_trace(spark: "SparkSession") -> None:
    traces = [read_trace(folder) for folder in FOLDERS]
    compared = 0
    for trace, shown in zip(traces, shown_of(spark, traces), strict=True):
        every = max(1, len(trace.evaluation_times) // MOMENTS)
        times = trace.evaluation_times[::every]
        ours = {(s.time_s, s.group, s.topic, s.partition): s for s in shown if s.time_s in set(times)}
        theirs = {(s.time_s, s.group, s.topic, s.partition): s for s in shown_by_oracle(trace, times)}
        assert ours.keys() == theirs.keys(), trace.name
        for key, defined in theirs.items():
            computed = ours[key]
            where = (trace.name, *key)
            assert (computed.status, computed.reason, computed.reasons) == (
                defined.status,
                defined.reason,
                defined.reasons,
            ), where
            for name, value in defined.numbers.items():
                assert same(computed.numbers[name], value), (*where, name, computed.numbers[name], value)
            compared += 1
    assert compared > 500


def same(one: Any, other: Any) -> bool:
    """Equal, or equal to a millionth for measured numbers."""
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    return bool(one == other)
