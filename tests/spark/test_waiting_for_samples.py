"""Between two rounds the analysis waits for the collector, but not for ever."""

import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lagwise.tables.raw import SAMPLES
from lagwise.tables.store import Lake
from lagwise_spark import run
from tests.spark.recorder import Recorder


class Pauses(threading.Event):
    """Counts the pauses, and writes a sample in one of them."""

    def __init__(self, recorder: Recorder, sample_in: int) -> None:
        super().__init__()
        self.recorder, self.sample_in, self.count = recorder, sample_in, 0

    def wait(self, timeout: float | None = None) -> bool:
        self.count += 1
        if self.count == self.sample_in:
            self.recorder.sample({"orders": {0: 100}}, {})
        return False


@pytest.fixture
def recorder(lake: Lake) -> Recorder:
    made = Recorder(lake, datetime(2026, 3, 1, tzinfo=UTC))
    made.sample({"orders": {0: 100}}, {})
    return made


def test_a_round_begins_with_the_next_sample(lake: Lake, recorder: Recorder) -> None:
    read = lake.version(SAMPLES)
    pauses = Pauses(recorder, sample_in=3)
    run._await_sample(lake, read, time.monotonic() + 3600, pauses)
    assert pauses.count == 3


def test_one_that_came_during_the_round_is_not_waited_for(lake: Lake, recorder: Recorder) -> None:
    read = lake.version(SAMPLES)
    recorder.sample({"orders": {0: 100}}, {})
    pauses = Pauses(recorder, sample_in=0)
    run._await_sample(lake, read, time.monotonic() + 3600, pauses)
    assert pauses.count == 0


def test_without_a_collector_rounds_go_on(lake: Lake, recorder: Recorder) -> None:
    pauses = Pauses(recorder, sample_in=0)
    run._await_sample(lake, lake.version(SAMPLES), time.monotonic(), pauses)
    assert pauses.count == 0


def test_a_lake_that_cannot_be_read_is_left_to_the_round(tmp_path: Path, lake: Lake, recorder: Recorder) -> None:
    read = lake.version(SAMPLES)
    log = Path(lake.location(SAMPLES), "_delta_log")
    for entry in log.iterdir():
        entry.write_text("no log")
    damaged = Lake(lake.uri)
    pauses = Pauses(recorder, sample_in=0)
    run._await_sample(damaged, read, time.monotonic() + 3600, pauses)
    assert pauses.count == 0


def test_whoever_is_stopped_does_not_wait(lake: Lake, recorder: Recorder) -> None:
    pauses = Pauses(recorder, sample_in=0)
    pauses.set()
    run._await_sample(lake, lake.version(SAMPLES), time.monotonic() + 3600, pauses)
    assert pauses.count == 0
