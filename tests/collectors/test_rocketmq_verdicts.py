"""The verdicts on what was read of a real RocketMQ: `lagwise demo --rocketmq`, recorded."""

from pathlib import Path

import pytest

from lagwise.traces.trace import Trace, read_trace
from tests.traces.judged import judged

_FOLDER = Path(__file__).with_name("golden") / "rocketmq-trace"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return read_trace(_FOLDER)


def test_every_group_of_the_demo_is_judged_right(trace: Trace) -> None:
    last = len(trace.sample_times) - 1
    ((time_s, found),) = judged(trace, [last])
    truths = [truth for truth in trace.truth if truth.from_s <= time_s <= truth.to_s]
    assert {truth.group for truth in truths} == found.groups.keys()
    for truth in truths:
        verdict = found.groups[truth.group]
        assert truth.is_met_by(verdict.status, verdict.reason), (truth, verdict)


def test_what_was_to_be_tried_again_was_backlog_before_anything_was_committed(trace: Trace) -> None:
    ends = {(r["sample_id"], r["topic"]): r["high_watermark"] for r in trace.rows["watermarks"]}
    retries = [r for r in trace.rows["commits"] if r["topic"] == "%RETRY%email-sender"]
    waiting = [ends[r["sample_id"], r["topic"]] - r["committed"] for r in retries if r["committed"] == 0]
    assert max(waiting) >= 20
