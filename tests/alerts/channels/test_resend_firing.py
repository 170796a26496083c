"""An Alertmanager that keeps alerts in memory, as the real one does, at the other end of a real outbox."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

import pytest
from sqlalchemy import Engine

from lagwise.config import Config
from lagwise.config.channels import Alertmanager
from lagwise_alerts.channels import make_channel
from lagwise_alerts.model import Condition
from lagwise_alerts.notify.message import render
from lagwise_alerts.outbox import store
from lagwise_alerts.outbox.worker import Worker
from lagwise_alerts.stages import decide_and_mute
from tests.alerts.receiver import Answer, Receiver
from tests.alerts.support import at, book, group_condition, observation
from tests.alerts.test_outbox import Clock

NEVER = threading.Event()
Receivers = Callable[..., Receiver]


@dataclass
class Memory:
    """What an Alertmanager makes of the requests it got: alerts by their labels, and their ends."""

    ends: dict[str, datetime] = field(default_factory=dict)
    read: int = 0

    def take(self, to: Receiver) -> None:
        for got in to.got[self.read :]:
            for alert in json.loads(got.body):
                self.ends[json.dumps(alert["labels"], sort_keys=True)] = datetime.fromisoformat(alert["endsAt"])
        self.read = len(to.got)

    def firing(self, to: Receiver, now: datetime) -> list[tuple[str, str]]:
        """Group and severity of what fires."""
        self.take(to)
        labels = [json.loads(key) for key, end in self.ends.items() if end > now]
        return sorted((label["consumergroup"], label["severity"]) for label in labels)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def start(engine: Engine, clock: Clock) -> Iterator[Callable[[Receiver], Worker]]:
    """A worker of the alert process, as after a start."""
    made: list[Worker] = []

    def make(to: Receiver) -> Worker:
        settings = Alertmanager(name="ops", type="alertmanager", url=f"http://127.0.0.1:{to.port}")
        made.append(Worker(engine, make_channel(settings, clock), clock=clock, random=Random(7)))
        return made[-1]

    yield make
    for worker in made:
        worker.channel.close()


def see(engine: Engine, clock: Clock, seconds: float, *conditions: Condition) -> None:
    """One round of the alert process."""
    rules = book(("ops",))
    clock.now = at(seconds + 5)
    store.decide_and_queue(
        engine,
        lambda *stored: decide_and_mute(rules, observation(*conditions, judged_until=seconds), *stored, now=clock.now),
        lambda n: render(n, Config()),
        now=clock.now,
    )


def statuses(seconds: float, **groups: str) -> Iterable[Condition]:
    return [group_condition(seconds, status, group=group, since=0) for group, status in groups.items()]


def test_what_fires_goes_on_firing_for_hours(
    engine: Engine, clock: Clock, receiver: Receivers, start: Callable[[Receiver], Worker]
) -> None:
    see(engine, clock, 1000, *statuses(1000, a="stopped", b="stopped"))
    to, memory = receiver(), Memory()
    worker = start(to)
    for _ in range(400):  # 6 h 40 min
        worker.deliver_due(NEVER)
        assert memory.firing(to, clock.now) == [("a", "critical"), ("b", "critical")]
        clock.move(60)
    assert memory.read == 2 + 400, "two messages, and one request a minute for all that fires"


def test_it_is_not_repeated_more_often_than_that(
    engine: Engine, clock: Clock, receiver: Receivers, start: Callable[[Receiver], Worker]
) -> None:
    see(engine, clock, 1000, *statuses(1000, a="stopped"))
    to = receiver()
    worker = start(to)
    for _ in range(12):
        worker.deliver_due(NEVER)
        clock.move(5)
    assert len(to.got) == 2


def test_an_alertmanager_that_was_restarted_knows_it_again(
    engine: Engine, clock: Clock, receiver: Receivers, start: Callable[[Receiver], Worker]
) -> None:
    see(engine, clock, 1000, *statuses(1000, a="stopped"))
    to = receiver()
    worker = start(to)
    worker.deliver_due(NEVER)
    memory = Memory(read=len(to.got))
    assert memory.firing(to, clock.now) == []
    clock.move(60)
    worker.deliver_due(NEVER)
    assert memory.firing(to, clock.now) == [("a", "critical")]


def test_a_restart_of_lagwise_repeats_at_once_and_goes_unnoticed(
    engine: Engine, clock: Clock, receiver: Receivers, start: Callable[[Receiver], Worker]
) -> None:
    see(engine, clock, 1000, *statuses(1000, a="stopped"))
    to, memory = receiver(), Memory()
    start(to).deliver_due(NEVER)
    clock.move(50 * 60)
    assert memory.firing(to, clock.now) == [("a", "critical")]
    start(to).deliver_due(NEVER)
    clock.move(50 * 60)
    assert memory.firing(to, clock.now) == [("a", "critical")]


def test_where_lagwise_is_gone_it_ends_in_an_hour(
    engine: Engine, clock: Clock, receiver: Receivers, start: Callable[[Receiver], Worker]
) -> None:
    see(engine, clock, 1000, *statuses(1000, a="stopped"))
    to, memory = receiver(), Memory()
    start(to).deliver_due(NEVER)
    clock.move(3601)
    assert memory.firing(to, clock.now) == []


def test_a_worse_severity_takes_the_place_of_the_other_across_a_restart(
    engine: Engine, clock: Clock, receiver: Receivers, start: Callable[[Receiver], Worker]
) -> None:
    to, memory = receiver(), Memory()
    for seconds in (1000, 1060, 1120):
        see(engine, clock, seconds, *statuses(seconds, a="falling_behind"))
    start(to).deliver_due(NEVER)
    assert memory.firing(to, clock.now) == [("a", "warning")]
    see(engine, clock, 1135, *statuses(1135, a="stopped"))
    start(to).deliver_due(NEVER)
    assert memory.firing(to, clock.now) == [("a", "critical")]


def test_what_is_over_ends_at_once_and_is_not_repeated(
    engine: Engine, clock: Clock, receiver: Receivers, start: Callable[[Receiver], Worker]
) -> None:
    to, memory = receiver(), Memory()
    see(engine, clock, 1000, *statuses(1000, a="stopped", b="stopped"))
    worker = start(to)
    worker.deliver_due(NEVER)
    for seconds in (1060, 1120, 1180):
        see(engine, clock, seconds, *statuses(seconds, a="ok", b="stopped"))
    worker.deliver_due(NEVER)
    clock.move(1)
    assert memory.firing(to, clock.now) == [("b", "critical")]
    clock.move(600)
    start(to).deliver_due(NEVER)
    assert memory.firing(to, clock.now) == [("b", "critical")]


def test_an_end_waits_for_an_alertmanager_that_is_down(
    engine: Engine, clock: Clock, receiver: Receivers, start: Callable[[Receiver], Worker]
) -> None:
    to, memory = receiver(), Memory()
    see(engine, clock, 1000, *statuses(1000, a="stopped"))
    worker = start(to)
    worker.deliver_due(NEVER)
    to.then = Answer(503)
    for seconds in (1060, 1120, 1180):
        see(engine, clock, seconds, *statuses(seconds, a="ok"))
    due = worker.deliver_due(NEVER)
    to.then = Answer(200)
    clock.now = due or clock.now
    worker.deliver_due(NEVER)
    clock.move(1)
    assert memory.firing(to, clock.now) == []


def test_a_failing_repeat_is_logged_once_and_delays_no_message(
    engine: Engine,
    clock: Clock,
    receiver: Receivers,
    start: Callable[[Receiver], Worker],
    caplog: pytest.LogCaptureFixture,
) -> None:
    to = receiver()
    see(engine, clock, 1000, *statuses(1000, a="stopped"))
    worker = start(to)
    worker.deliver_due(NEVER)
    to.then = Answer(500)
    for _ in range(5):
        clock.move(60)
        assert worker.deliver_due(NEVER) is None
    said = [r.getMessage() for r in caplog.records if "sent again later" in r.getMessage()]
    assert len(said) == 1
    assert "500" in said[0]
