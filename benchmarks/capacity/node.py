"""One node: so many consumers of a group on cores of their own, each one thread that handles message after message.

A process of its own, run by :class:`benchmarks.capacity.runs.Node`. It prints ``READY`` when every consumer has
messages; a line on its input asks for the messages handled so far and the time; at the end of its input it ends.

The consumers are as many processes as asked for, their threads spread over them. What the client library does for
itself stays on the cores that this was started on, and the thread that handles messages moves to the node's cores
before its first message; with ``--whole`` all of it runs on the node's cores.
"""

import argparse
import multiprocessing
import os
import sys
import threading
import time
from multiprocessing.sharedctypes import SynchronizedArray
from multiprocessing.synchronize import Event
from typing import Any

from confluent_kafka import Consumer, Message

from benchmarks.capacity.work import Mix, Work, pin
from lagwise.platform.die_with_parent import end_with_parent
from lagwise.probe import Probe

#: Long enough for a hundred processes to start and to be given their partitions.
_START_SECONDS = 120.0
_POLL_SECONDS = 0.1


class Crew:
    """The consumers of one node, and what they have in common."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.mix = Mix(options.t1, options.t2, options.random)
        self.cores = frozenset(int(core) for core in options.cores.split(","))
        self.handled: SynchronizedArray[int] = multiprocessing.Array("Q", options.consumers)
        #: Which of them have been given messages, and whether they may begin.
        self.ready: SynchronizedArray[int] = multiprocessing.Array("B", options.consumers)
        self.begin: Event = multiprocessing.Event()

    def start(self) -> None:
        """Fork the processes, each with its share of the consumers; let them begin when all have messages."""
        numbers = range(self.options.consumers)
        for first in range(self.options.processes):
            mine = numbers[first :: self.options.processes]
            multiprocessing.Process(target=self._process, args=(mine,), daemon=True).start()
        deadline = time.monotonic() + _START_SECONDS
        while not all(self.ready.get_obj()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{sum(self.ready.get_obj())} of all consumers have messages")
            time.sleep(_POLL_SECONDS)
        self.begin.set()

    def total(self) -> int:
        """Messages handled by all consumers so far."""
        return sum(self.handled.get_obj())

    def _process(self, numbers: range) -> None:
        probe, stop = Probe(self.options.probe_period), threading.Event()
        end_with_parent(os.getppid(), stop)
        threads = [threading.Thread(target=self._consume, args=(number, probe, stop)) for number in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _consume(self, number: int, probe: Probe, stop: threading.Event) -> None:
        if self.options.whole:
            pin(self.cores)
        consumer = self._member(number)
        message = _next(consumer, stop)
        pin(self.cores)
        work = Work(self.mix, seed=number)
        handle = probe.handler(work.handle)
        handled: Any = self.handled.get_obj()  # an array whose items are numbers, which its type does not say
        self.ready[number] = 1
        while not self.begin.is_set():
            # Who does not poll keeps the others from getting their partitions. What is read here is left out.
            time.sleep(_POLL_SECONDS)
            message = _next(consumer, stop)
        time.sleep(work.first_pause_seconds())
        while message is not None:
            handle()
            probe.store_offsets(consumer, message)
            handled[number] += 1
            message = _next(consumer, stop)

    def _member(self, number: int) -> Consumer:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.options.bootstrap,
            "group.id": self.options.group,
            "client.id": f"{self.options.group}-{number}",
            "auto.offset.reset": "earliest",
            "enable.auto.offset.store": False,
            "auto.commit.interval.ms": 1000,
            # Little is fetched ahead: all consumers together would hold the whole topic many times.
            "queued.min.messages": 100,
        }
        consumer = Consumer(settings)
        consumer.subscribe([self.options.topic])
        return consumer


def _next(consumer: Consumer, stop: threading.Event) -> Message | None:
    """The next message, however long it takes; None at the end."""
    while not stop.is_set():
        message = consumer.poll(1.0)
        if message is not None and not message.error():
            return message
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("bootstrap", "group", "topic", "cores"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("consumers", "processes"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("t1", "t2", "probe-period"):
        parser.add_argument(f"--{name}", type=float, required=True)
    for name in ("random", "whole"):
        parser.add_argument(f"--{name}", action="store_true")
    multiprocessing.set_start_method("fork")
    crew = Crew(parser.parse_args())
    crew.start()
    print("READY", flush=True)
    for _ in sys.stdin:
        print(crew.total(), time.monotonic(), flush=True)
    return 0  # which ends the consumers' processes, in the middle of a message: their group is not read again


if __name__ == "__main__":
    sys.exit(main())
