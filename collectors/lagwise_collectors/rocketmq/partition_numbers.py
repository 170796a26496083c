"""Partition numbers: RocketMQ's queues are numbered on each broker, a partition's number must be that of one queue.

A partition is ``10,000 × the broker's number + the queue``. Brokers are numbered in the order in which they were first
seen, by name where several were at once, and keep their number for good: it is in a file. With one broker, partition
and queue are the same number.
"""

import json
import logging
from collections.abc import Iterable
from pathlib import Path

from lagwise.platform.files import BestEffortFile
from lagwise.platform.log_events import LogEvent, event

log = logging.getLogger("lagwise.collectors.rocketmq")

#: A queue's number is below this; a broker's below :data:`MAX_BROKERS`, so that partitions fit into 32 bits.
QUEUES = 10_000
MAX_BROKERS = 200_000


def partition_of(broker: int, queue: int) -> int:
    """The partition's number of a queue."""
    return broker * QUEUES + queue


def label_of(broker: str, queue: int) -> str:
    """What RocketMQ calls the partition."""
    return f"{broker} q{queue}"


class BrokerNumbers:
    """The brokers' numbers. ``file`` keeps them; without one they hold as long as this object."""

    def __init__(self, file: Path | None) -> None:
        self._file = None if file is None else BestEffortFile(file, log, "after a restart, brokers may get new numbers")
        self._numbers = {} if file is None else _saved_numbers(file)
        self._is_saved = True

    def __getitem__(self, broker: str) -> int:
        return self._numbers[broker]

    def add(self, brokers: Iterable[str]) -> None:
        """Give new brokers a number."""
        new = sorted(set(brokers) - set(self._numbers))
        if not new and self._is_saved:
            return
        first = max(self._numbers.values(), default=-1) + 1
        self._numbers |= {name: first + position for position, name in enumerate(new)}
        if self._file is not None:
            self._is_saved = self._file.write(json.dumps(self._numbers).encode())


def _saved_numbers(file: Path) -> dict[str, int]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        log.warning(
            "the brokers' numbers in %s cannot be read (%s): brokers get new numbers",
            file,
            error,
            extra=event(LogEvent.STATE_UNREADABLE),
        )
        return {}
    whole = isinstance(found, dict) and all(type(n) is int and 0 <= n < MAX_BROKERS for n in found.values())
    if not whole or len(set(found.values())) != len(found):
        log.warning(
            "the brokers' numbers in %s are damaged: brokers get new numbers",
            file,
            extra=event(LogEvent.STATE_UNREADABLE),
        )
        return {}
    return dict(found)
