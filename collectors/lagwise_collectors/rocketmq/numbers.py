"""Partition numbers: RocketMQ's queues are numbered on each broker, a partition's number must be that of one queue.

A partition is ``10,000 × the broker's number + the queue``. Brokers are numbered in the order in which they were first
seen, by name where several were at once, and keep their number for good: it is in a file. With one broker, partition
and queue are the same number.
"""

import json
import logging
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from lagwise.private_files import make_folder

log = logging.getLogger("lagwise.collectors.rocketmq")

#: A queue's number is below this; a broker's below :data:`MOST_BROKERS`, so that partitions fit into 32 bits.
QUEUES = 10_000
MOST_BROKERS = 200_000


def partition_of(broker: int, queue: int) -> int:
    """The partition's number of a queue."""
    return broker * QUEUES + queue


def label_of(broker: str, queue: int) -> str:
    """What RocketMQ calls the partition."""
    return f"{broker} q{queue}"


class BrokerNumbers:
    """The brokers' numbers. ``file`` keeps them; without one they hold as long as this object."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._numbers = {} if file is None else _kept(file)

    def __getitem__(self, broker: str) -> int:
        return self._numbers[broker]

    def see(self, brokers: Iterable[str]) -> None:
        """Number those that are new."""
        new = sorted(set(brokers) - set(self._numbers))
        if not new:
            return
        first = max(self._numbers.values(), default=-1) + 1
        self._numbers |= {name: first + position for position, name in enumerate(new)}
        if self._file is not None:
            self._keep(self._file)

    def _keep(self, file: Path) -> None:
        try:
            make_folder(file.parent)
            descriptor, part = tempfile.mkstemp(dir=file.parent, prefix=".brokers-")
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                json.dump(self._numbers, out)
            os.replace(part, file)
        except OSError as error:
            log.warning("the brokers' numbers cannot be kept in %s: %s", file, error.strerror)


def _kept(file: Path) -> dict[str, int]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        log.warning("the brokers' numbers in %s cannot be read (%s): they are numbered anew", file, error)
        return {}
    whole = isinstance(found, dict) and all(type(n) is int and 0 <= n < MOST_BROKERS for n in found.values())
    if not whole or len(set(found.values())) != len(found):
        log.warning("the brokers' numbers in %s are damaged: they are numbered anew", file)
        return {}
    return dict(found)
