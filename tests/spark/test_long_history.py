"""Rounds over hours of history: the live tables, coarse ones included, hold what the plain model makes of samples.

The model reads every sample from the beginning; the rounds read minutes, five minutes, the latest sample and the
statuses of the round before. Replay and the contract test know only minutes.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lagwise.config import Config
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES
from lagwise.tables.store import Lake
from tests.contract.plain_model.evaluation import Moment
from tests.contract.plain_model.records import Pair, Policy
from tests.spark.defined import holds_what_is_defined
from tests.spark.recorder import Recorder

if TYPE_CHECKING:
    from pyspark import SparkContext

pytestmark = pytest.mark.spark

#: Across midnight UTC, and not at the start of five minutes.
START = datetime(2026, 3, 1, 22, 53, tzinfo=UTC)
SAMPLES = 180
#: A sample of the thirty-first minute is delivered half an hour after it.
LATE, DELIVERED = 62, 125


class SlowRecorder(Recorder):
    interval_seconds = 30.0


def offsets(at: int) -> tuple[dict[str, dict[int, int]], dict[str, str], dict[Any, tuple[int | None, str | None]]]:
    """Ends by topic and partition, topic ids, and commits with their owners, ``at`` seconds after the start."""
    end = 10 * at
    # Truncated after 25 minutes, re-created after 62: the latter lies within five minutes, as seen at the end.
    cut = end if at < 1500 else 10 * (at - 1200)
    new = end if at < 3720 else 10 * (at - 3700)
    ends = {"plain": {0: end}, "truncated": {0: cut}, "recreated": {0: new}, "segments": {0: 1_000_000 + end}}
    stopped_at, rewound_at = 1800, 2700
    read_again = 12 * (at - rewound_at) if at >= rewound_at else end
    commits: dict[Any, tuple[int | None, str | None]] = {
        ("slow", "plain", 0): (8 * at, "m"),
        ("sawtooth", "plain", 0): (10 * (at - at % 600), "m"),
        ("rewound", "plain", 0): (min(end, read_again), "m"),
        ("stopped", "plain", 0): (min(end, 10 * stopped_at), None),
        ("behind", "plain", 0): (at // 10, "m"),
        ("sporadic", "plain", 0): (end - 50 if at % 90 else None, "m"),
        ("truncated", "truncated", 0): (max(0, cut - 700 - at // 3), "m"),
        ("recreated", "recreated", 0): (max(0, new - 100 - (at % 3720) // 2), "m"),
        ("held", "segments", 0): (1_000_000 + min(end, 27_000), "m"),
    }
    return ends, {"recreated": "old" if at < 3720 else "new"}, commits


@pytest.mark.timeout(600)
def test_spark_agrees_with_the_plain_model(spark: "SparkContext", lake: Lake) -> None:
    from lagwise_spark.jobs.tick import tick

    config = Config(data=str(Path(lake.uri).parent))
    recorder = SlowRecorder(lake, START, gathers=True)
    for i in range(SAMPLES):
        ends, topic_ids, commits = offsets(recorder.elapsed)
        recorder.sample(
            ends,
            commits,
            # Its only jump lies further back than the last rounds look.
            log_start={"segments": 500_000 if recorder.elapsed < 900 else 560_000},
            retention_bytes={"segments": 1_000_000_000},
            topic_ids=topic_ids,
            withheld=i == LATE,
        )
        if i == DELIVERED:
            recorder.deliver_withheld()
        if i in (70, 100, DELIVERED, SAMPLES - 2, SAMPLES - 1):
            recorder.write()
            tick(spark, lake, config)

    last = START + timedelta(seconds=recorder.elapsed - 30)
    finished = int((last - START) / timedelta(minutes=1))
    assert len({row["minute"] for row in lake.read(MINUTES).to_pylist()}) == finished
    # From 22:50, because the first of them began before the first sample, to 00:15.
    assert len({row["minute"] for row in lake.read(FIVE_MINUTES).to_pylist()}) == 18
    ends_of_log = [r["points"] for r in lake.read(WATERMARK_FIVE_MINUTES).to_pylist() if r["topic"] == "plain"]
    assert sum(map(len, ends_of_log)) == 2 * (7 + 80), "every sample from 22:53 to 00:20, the late one too"

    defined = holds_what_is_defined(lake, Moment(f"{SAMPLES - 1:08d}", last, Policy(30.0)))
    # The eighth jump, of 60,000 each, takes what it reads next, 467,000 beyond the log start. The last one came after
    # the first sample of its five minutes, which begin at 23:05.
    seconds_since_jump = (last - START - timedelta(minutes=12)).total_seconds()
    to_go = 8 * 60_000 - 10 * seconds_since_jump
    assert defined[Pair("held", "segments", 0)]["seconds_to_loss"] == pytest.approx(to_go / 10)
    statuses = {pair.group: numbers["status"] for pair, numbers in defined.items()}
    assert len(set(statuses.values())) >= 4, statuses
