"""How right the time to a loss is: told at every sample before it, and compared with when it came."""

from pathlib import Path
from typing import NamedTuple

import pytest

from lagwise.domain.verdicts.buckets import MINUTE_SECONDS
from lagwise.traces.trace import Trace, read_trace
from tests.traces.judged import judged
from tests.traces.make import STORIES

HERE = Path(__file__).parent


class Loss(NamedTuple):
    """A group's loss, how long before it its time must be told, and for how long (at most) a jump may be late: the log
    is deleted when the broker looks."""

    trace: str
    group: str
    told_for_s: float
    checks_s: float


LOSSES = (
    Loss("retention-by-size", "aggregator", 900, 60),
    Loss("retention-large-segments", "archiver", 10_000, 300),
    Loss("retention-large-segments", "backfill", 1500, 300),
)


def lost_at(trace: Trace, group: str) -> float:
    """The time of the first sample at which the log starts behind what the group has committed."""
    starts = {row["sample_id"]: row["log_start"] for row in trace.rows["watermarks"]}
    committed = {row["sample_id"]: row["committed"] for row in trace.rows["commits"] if row["group"] == group}
    return trace.sample_times[min(int(n) for n in committed if starts[n] > committed[n])]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.trace} {loss.group}")
def test_the_time_to_a_loss_by_size(loss: Loss) -> None:
    """To a tenth, which is what the rates of five minutes are worth, to one look of the broker's, and to the minute to
    which the last jump is known."""
    trace = read_trace(HERE / loss.trace)
    at_last = lost_at(trace, loss.group)
    samples = [n for n, at in enumerate(trace.sample_times) if at_last - loss.told_for_s <= at < at_last]
    wrong = {}
    for at, evaluation in judged(trace, samples):
        predicted, true = evaluation.groups[loss.group].numbers.seconds_to_loss, at_last - at
        if predicted is None or abs(predicted - true) > 0.1 * true + loss.checks_s + MINUTE_SECONDS:
            wrong[at] = predicted, true
    assert len(samples) > 20
    assert wrong == {}


def test_a_continuing_loss_lies_between_the_reported_bounds() -> None:
    """Told an hour after it began, from samples most of which show nothing."""
    world = STORIES["continuing-loss"]()
    truly = world.groups["recommender"].lost["web-sessions", 0]
    trace = read_trace(HERE / "continuing-loss")
    ((_, evaluation),) = judged(trace, [len(trace.sample_times) - 1])
    verdict = evaluation.groups["recommender"]
    assert verdict.lost.at_least <= truly <= verdict.lost.at_most
    # Of all that one sample shows, it is many times as much; and not much more may be than is.
    assert verdict.lost.at_least > 20 * verdict.numbers.records_lost
    assert verdict.lost.at_most < 1.5 * truly
