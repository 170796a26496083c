"""What collectors keep from start to start, in a folder that cannot be written for a while: it costs only the file, and
the file says the same as the process once it can be written again."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from lagwise_collectors.external_offsets.sources import GroupCache
from lagwise_collectors.kafka.requests.next_records import LogPosition, NextRecord, NextRecordCache
from lagwise_collectors.rocketmq.partition_numbers import BrokerNumbers


def known_groups(path: Path) -> tuple[Callable[[], object], Callable[[], object]]:
    kept = GroupCache(path)
    return lambda: kept.save("jobs", {"billing": "spark"}), lambda: GroupCache(path).of("jobs")


def looked_up(path: Path) -> tuple[Callable[[], object], Callable[[], object]]:
    kept = NextRecordCache(path)
    return lambda: kept.save({LogPosition("t", 0, 9): NextRecord(10, False)}), lambda: NextRecordCache(path).load()


def broker_numbers(path: Path) -> tuple[Callable[[], object], Callable[[], object]]:
    kept = BrokerNumbers(path)
    return lambda: kept.add(["b", "a"]), lambda: BrokerNumbers(path)._numbers


@pytest.mark.parametrize(
    ("make", "content"),
    [
        (known_groups, {"billing": "spark"}),
        (looked_up, {LogPosition("t", 0, 9): NextRecord(10, False)}),
        (broker_numbers, {"a": 0, "b": 1}),
    ],
)
def test_a_file_that_could_not_be_written_is_written_later(
    make: Callable[[Path], tuple[Callable[[], object], Callable[[], object]]],
    content: object,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "lagwise")
    folder = tmp_path / "state"
    folder.write_text("somebody else's")
    keep, read = make(folder / "shop.json")
    caplog.clear()  # what the first reading says
    keep()
    keep()
    folder.unlink()
    keep()
    keep()
    assert read() == content
    assert [r.levelname for r in caplog.records] == ["WARNING", "INFO"]
    assert "cannot write" in caplog.records[0].getMessage()
    assert "can be written again" in caplog.records[1].getMessage()
