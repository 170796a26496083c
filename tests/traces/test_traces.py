"""Every trace is judged as its truth says: the public proof of the verdicts."""

import re
from dataclasses import replace

import pytest

from lagwise_app.replay.verdicts import report, score_of
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


def test_the_report_says_what_the_score_is_made_of() -> None:
    trace = next(trace for trace in traces() if trace.name == "steady-backlog")
    shown = replayed()[trace.name]
    wrong = [replace(one, status="ok", reason=None) if one.status == "lagging" else one for one in shown]
    for these in (shown, wrong):
        score = score_of(trace, these)
        head, *lines = report(trace, these, score)
        rows = [line for line in lines if not line.startswith("  missed ")]
        assert len(rows) == len(trace.truth)
        counts = [re.search(r" in (\d+) of (\d+) evaluations?$", row) for row in rows]
        met, judged = (sum(int(found[place]) for found in counts if found) for place in (1, 2))
        assert (met, judged) == (score.met, score.judged)
        assert (": 100 % of the truth met" in head) == (met == judged) == (these is shown)
