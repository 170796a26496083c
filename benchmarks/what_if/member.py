"""One node of consumers that cost what the scene says: so many threads, each a consumer of its own.

A process of its own, run by :mod:`benchmarks.what_if.scene`, so that it can be frozen, killed or ended. It ends, and
its consumers leave their group, at the end of its input.
"""

import argparse
import os
import sys
import threading

from confluent_kafka import Consumer

from benchmarks.capacity.work import Mix, Work
from lagwise.platform.die_with_parent import end_with_parent

#: How often what was handled is committed.
COMMIT_SECONDS = 0.2
#: How often a member asks whether the group rebalances.
HEARTBEAT_SECONDS = 0.5


def _consume(options: argparse.Namespace, number: int, stop: threading.Event) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "client.id": f"{options.name}-{number}",
            "auto.offset.reset": "earliest",
            "enable.auto.offset.store": False,
            "auto.commit.interval.ms": round(COMMIT_SECONDS * 1000),
            "heartbeat.interval.ms": round(HEARTBEAT_SECONDS * 1000),
            "session.timeout.ms": round(options.session_timeout * 1000),
            "log_level": 0,
            "fetch.wait.max.ms": 50,
            # Little is fetched ahead, so that partitions take turns as the simulation has it, and at once when it is
            # used up: by default a full queue is not refilled for a second.
            "queued.min.messages": 20,
            "fetch.message.max.bytes": 1500,
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.subscribe([options.topic])
    work = Work(Mix(options.t1, options.t2), seed=number)
    while not stop.is_set():
        message = consumer.poll(0.2)
        if message is None or message.error():
            continue
        work.handle()
        consumer.store_offsets(message)
    consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("bootstrap", "group", "topic", "name"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--threads", type=int, required=True)
    for name in ("t1", "t2", "session-timeout"):
        parser.add_argument(f"--{name}", type=float, required=True)
    options = parser.parse_args()
    stop = threading.Event()
    end_with_parent(os.getppid(), stop)
    threads = [threading.Thread(target=_consume, args=(options, n, stop)) for n in range(options.threads)]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
