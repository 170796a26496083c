"""Behaviours of the members of the demo's groups: one function each, run in a thread of its own."""

import random
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaException

from lagwise_sandbox import clients
from lagwise_sandbox.scenarios import (
    FLAPPING_STAY_SECONDS,
    SLOW_REVOKE_SECONDS,
    STALLS_AFTER_SECONDS,
    Behaviour,
    DemoScenario,
)

_TICK_SECONDS = 0.2
_BATCH = 500
_WAIT_SECONDS = 0.5
_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class DemoClients:
    """Shared by all members: the address of the broker, the event that ends them, and the counts of errors."""

    bootstrap: str
    stop: threading.Event
    errors: clients.ClientErrors = field(default_factory=clients.ClientErrors)

    def member(self, scenario: DemoScenario, number: int, **settings: Any) -> Consumer:
        """A consumer of the scenario's group, named after it."""
        if scenario.group_protocol == "consumer":
            # The new protocol leaves these to the broker and refuses them from a client.
            settings |= {"group_protocol": "consumer", "session_timeout_ms": None, "heartbeat_interval_ms": None}
        client_id = f"{scenario.group}-{number}"
        return clients.consumer(self.bootstrap, scenario.group, client_id, self.errors, **settings)


def start_members(demo: DemoClients, scenario: DemoScenario) -> list[threading.Thread]:
    """Start the members of a group in threads of this process. They end when ``demo.stop`` is set."""
    jobs: list[Callable[[int], None]] = []
    if scenario.behaviour is Behaviour.FLAPPING:
        jobs = [lambda number: _slow_to_revoke(demo, scenario, number), lambda _: _flap(demo, scenario)]
    else:
        act = {
            Behaviour.STEADY: _steady,
            Behaviour.KILLED: _steady,
            Behaviour.NOT_COMMITTING: _never_committing,
            Behaviour.THROTTLED: _throttled,
            Behaviour.STALLING: _stalling,
        }[scenario.behaviour]
        jobs = [lambda number: act(demo, scenario, number)] * scenario.members
    threads = [
        threading.Thread(
            target=_until_stopped,
            args=(demo, f"{scenario.group}-{number}", job, number),
            name=f"{scenario.group}-{number}",
            daemon=True,
        )
        for number, job in enumerate(jobs, start=1)
    ]
    for thread in threads:
        thread.start()
    return threads


def _until_stopped(demo: DemoClients, name: str, job: Callable[[int], None], number: int) -> None:
    """Run a member again when a Kafka error ends it, as a real service would be restarted."""
    while not demo.stop.is_set():
        try:
            job(number)
        except KafkaException as error:
            demo.errors.count(name, error)
            demo.stop.wait(_RETRY_SECONDS)


def _consume(demo: DemoClients, consumer: Consumer, most: int, seconds: float) -> int:
    """Take up to so many records within so many seconds; returns how many. Errors are counted."""
    taken = 0
    for message in consumer.consume(most, seconds):
        if message.error() is None:
            taken += 1
        else:
            demo.errors.count("consumer", message.error())
    return taken


def _steady(demo: DemoClients, scenario: DemoScenario, number: int) -> None:
    _consume_all(demo, scenario, demo.member(scenario, number))


def _never_committing(demo: DemoClients, scenario: DemoScenario, number: int) -> None:
    _consume_all(demo, scenario, demo.member(scenario, number, enable_auto_commit=False, auto_offset_reset="latest"))


def _consume_all(demo: DemoClients, scenario: DemoScenario, member: Consumer) -> None:
    with closing(member) as consumer:
        consumer.subscribe([scenario.topic])
        while not demo.stop.is_set():
            _consume(demo, consumer, _BATCH, _WAIT_SECONDS)


def _throttled(demo: DemoClients, scenario: DemoScenario, number: int) -> None:
    """Read the member's share of the group's rate, evenly over time.

    Where the backlog is large the client must fetch little at a time: it hands out one partition's batch after the
    other, and at this speed a big batch would make the other partitions look unread. Where records are
    to be deleted unread the client's own large buffer is left as it is by default: it reads on from there for a while
    and so commits offsets that the broker has already deleted, as real slow consumers do.
    """
    rate = (scenario.rate_per_second or 0.0) / scenario.members
    small = {"max_partition_fetch_bytes": 4096, "queued_min_messages": 40, "fetch_queue_backoff_ms": 100}
    with closing(demo.member(scenario, number, **(small if rate >= 10 else {}))) as consumer:
        consumer.subscribe([scenario.topic])
        credit, at = 0.0, time.monotonic()
        while not demo.stop.is_set():
            now = time.monotonic()
            credit, at = min(credit + rate * (now - at), rate), now
            if credit >= 1:
                credit -= _consume(demo, consumer, int(credit), _TICK_SECONDS)
            demo.stop.wait(max(0.0, at + _TICK_SECONDS - time.monotonic()))


def _stalling(demo: DemoClients, scenario: DemoScenario, number: int) -> None:
    """Read, then pause every partition and only keep polling: the group sees it alive, but it makes no progress."""
    stalls_at = time.monotonic() + STALLS_AFTER_SECONDS
    stalled = False

    def keep_paused(consumer: Consumer, partitions: list[Any]) -> None:
        if stalled:
            consumer.assign(partitions)
            consumer.pause(partitions)

    with closing(demo.member(scenario, number)) as consumer:
        consumer.subscribe([scenario.topic], on_assign=keep_paused)
        while not demo.stop.is_set():
            if not stalled and time.monotonic() >= stalls_at:
                stalled = True
                consumer.pause(consumer.assignment())
            _consume(demo, consumer, _BATCH, _WAIT_SECONDS)


def _slow_to_revoke(demo: DemoClients, scenario: DemoScenario, number: int) -> None:
    """A member that takes seconds to give back its partitions: the group's rebalance waits for it."""

    irregular = random.Random(number)  # noqa: S311  (not for secrets: the same run each time)

    def flush_slowly(_consumer: Consumer, _partitions: list[Any]) -> None:
        demo.stop.wait(irregular.uniform(*SLOW_REVOKE_SECONDS))

    with closing(demo.member(scenario, number, heartbeat_interval_ms=200)) as consumer:
        consumer.subscribe([scenario.topic], on_revoke=flush_slowly)
        while not demo.stop.is_set():
            _consume(demo, consumer, _BATCH, _TICK_SECONDS)


def _flap(demo: DemoClients, scenario: DemoScenario) -> None:
    """A member that leaves as soon as it has read what it was given, and comes back at once under the next name."""
    number = 2
    while not demo.stop.is_set():
        with closing(demo.member(scenario, number)) as consumer:
            number += 1
            consumer.subscribe([scenario.topic])
            while not demo.stop.is_set() and not consumer.assignment():
                _consume(demo, consumer, _BATCH, _TICK_SECONDS)
            until = time.monotonic() + FLAPPING_STAY_SECONDS
            while not demo.stop.is_set() and time.monotonic() < until:
                _consume(demo, consumer, _BATCH, _TICK_SECONDS)
