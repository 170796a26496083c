"""One consumer of a group, a process of its own: for each message it calls the downstream and computes, in proportion
to the message's size. It measures itself with the probe, as users' consumers do.

``--cpu`` is CPU time for each kilobyte, in seconds. ``--idle`` owns partitions and reads none.
"""

import argparse
import os
import signal
import socket
import threading

from confluent_kafka import Consumer, Message

from benchmarks.capacity.work import Mix, Work
from lagwise.platform.die_with_parent import end_with_parent
from lagwise.probe import Probe


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("bootstrap", "topic", "group", "client"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--cpu", type=float, required=True)
    parser.add_argument("--idle", action="store_true")
    options = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    end_with_parent(os.getppid(), stop)
    consumer = Consumer(
        {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "client.id": options.client,
            "auto.offset.reset": "earliest",
            "enable.auto.offset.store": False,
            "auto.commit.interval.ms": 1000,
            # Little is fetched ahead, so that a broker that slows shows at once.
            "queued.min.messages": 20,
            "fetch.message.max.bytes": 16_384,
        }
    )
    consumer.subscribe([options.topic])
    try:
        if options.idle:
            while not stop.wait(0.2):
                for owned in (consumer.assignment(),):
                    consumer.pause(owned)
                consumer.poll(0)
        else:
            _consume(consumer, options, stop)
    finally:
        consumer.close()


def _consume(consumer: Consumer, options: argparse.Namespace, stop: threading.Event) -> None:
    probe, works = Probe(), {}
    with socket.create_connection(("127.0.0.1", options.port)) as downstream:
        downstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        downstream.sendall(f"{options.group}\n".encode())

        @probe.handler
        def handle(message: Message) -> None:
            downstream.sendall(b"?")
            downstream.recv(1)
            size = len(message)
            if size not in works:
                works[size] = Work(Mix(0.0, options.cpu * size / 1024), seed=size)
            works[size].handle()

        while not stop.is_set():
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                handle(message)
                probe.store_offsets(consumer, message)


if __name__ == "__main__":
    main()
