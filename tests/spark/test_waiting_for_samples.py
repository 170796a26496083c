"""Between two rounds the analysis waits for the collector, but not for ever."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from lagwise.tables.raw import SAMPLES
from lagwise.tables.store import Lake
from lagwise_spark import run

AT = datetime(2026, 3, 1, tzinfo=UTC)
TIMES = ("started_at", "commits_read_at", "watermarks_read_at", "finished_at", "written_at")
NUMBERS = ("groups", "group_partitions", "partitions", "wall_seconds", "cpu_seconds")


class Time(threading.Event):
    """A clock that goes on while somebody waits for it, and a collector that writes samples at certain seconds."""

    def __init__(self, lake: Lake, samples: Sequence[float]) -> None:
        super().__init__()
        self.lake, self.now = lake, 0.0
        self.due, self.written = sorted(samples), [0.0]
        self.append()

    def clock(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        assert self.now < 3600, "nobody waits for so long"
        self.pass_(timeout)
        return False

    def pass_(self, seconds: float) -> None:
        self.now += seconds
        while self.due and self.due[0] <= self.now:
            self.written.append(self.due.pop(0))
            self.append()

    def append(self) -> None:
        row = {"cluster": "c", "sample_id": str(len(self.written)), "system": "kafka", "interval_seconds": 15.0}
        row |= dict.fromkeys(TIMES, AT) | dict.fromkeys(NUMBERS, 0) | {"errors": []}
        self.lake.append(SAMPLES, SAMPLES.from_rows([row]))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(str(tmp_path / "lake"))
    made.create(SAMPLES)
    return made


def every(seconds: float, since: float = 0.0) -> list[float]:
    return [since + n * seconds for n in range(1, 40)]


def rounds(time: Time, count: int, *, takes: Sequence[float] = (0.5,), interval: float = 15.0) -> list[float]:
    """When each round begins; the rounds take so many seconds each, by turns."""
    begins = []
    for number in range(count):
        begins.append(time.now)
        time.pass_(takes[number % len(takes)])
        run._await_sample(time.lake, begins[-1], interval, time, clock=time.clock)
    return begins


def waits(time: Time, begins: Sequence[float]) -> list[float]:
    """For how long the newest sample had waited at each of these times."""
    return [at - max(sample for sample in time.written if sample <= at) for at in begins]


@pytest.mark.parametrize("phase", [0.1, 4.0, 7.5, 11.0, 14.9])
def test_rounds_get_in_step_with_the_collector(lake: Lake, phase: float) -> None:
    time = Time(lake, every(15, since=phase - 15))
    time.pass_(1)
    assert max(waits(time, rounds(time, 8)[1:])) <= 2 * run._LOOK_SECONDS


def test_they_do_so_again_after_maintenance(lake: Lake) -> None:
    time = Time(lake, every(15))
    begins = rounds(time, 8, takes=(0.5, 0.5, 21.0, 0.5))
    assert max(waits(time, [begins[n] for n in (1, 2, 4, 5, 6)])) <= 2 * run._LOOK_SECONDS
    assert begins[3] == begins[2] + 21.0, "what is late begins at once"


def test_a_round_takes_what_other_clusters_write_a_moment_later(lake: Lake) -> None:
    slower = [at + 0.4 for at in every(15)]
    time = Time(lake, [*every(15), *slower])
    assert [at for at in rounds(time, 6)[1:] if not any(0 <= at - other <= 1 for other in slower)] == []


def test_clusters_that_never_stop_writing_do_not_hold_it_up(lake: Lake) -> None:
    time = Time(lake, every(0.5))
    (first, second) = rounds(time, 2)
    assert second - first <= run._LOOK_AFTER * 15 + run._OTHERS_WITHIN_SECONDS + 2 * run._LOOK_SECONDS


def test_without_a_collector_rounds_go_on(lake: Lake) -> None:
    time = Time(lake, [])
    assert {later - earlier for earlier, later in pairwise(rounds(time, 4))} <= {30.0, 30.25, 30.5}


def test_rare_samples_do_not_make_rounds_rare(lake: Lake) -> None:
    time = Time(lake, every(60))
    begins = rounds(time, 9)
    assert max(later - earlier for earlier, later in pairwise(begins)) <= 31
    assert sum(wait <= 2 * run._LOOK_SECONDS for wait in waits(time, begins)) >= 4, "each sample has its round"


def test_stopping_ends_the_wait(lake: Lake) -> None:
    time = Time(lake, [])
    time.set()
    run._await_sample(lake, 0.0, 15.0, time, clock=time.clock)
    assert time.now <= run._LOOK_AFTER * 15


def test_so_does_another_process_that_takes_over(lake: Lake) -> None:
    time = Time(lake, [])
    run._await_sample(lake, 0.0, 15.0, time, leads=lambda: False, clock=time.clock)
    assert time.now <= run._LOOK_AFTER * 15


def test_a_lake_that_cannot_be_read_is_left_to_the_round(lake: Lake) -> None:
    time = Time(lake, [])
    for entry in Path(lake.location(SAMPLES), "_delta_log").iterdir():
        entry.write_text("no log")
    run._await_sample(Lake(lake.uri), 0.0, 15.0, time, clock=time.clock)
    assert time.now <= run._LOOK_AFTER * 15
