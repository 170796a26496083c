"""Deliveries to real receivers that fail in every way, with a clock and a dice of the test's own."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from sqlalchemy import Engine

from lagwise.config.channels import Webhook
from lagwise.platform.errors import DatabaseError
from lagwise_alerts.channels import make_channel
from lagwise_alerts.channels.base import DeliveryOutcome
from lagwise_alerts.operate import queries
from lagwise_alerts.outbox import store
from lagwise_alerts.outbox.retry import RetryPolicy, after_attempt
from lagwise_alerts.outbox.worker import Outbox, Worker
from lagwise_alerts.stages import decide_and_mute
from tests.alerts.endless import endless_server
from tests.alerts.receiver import OK, Answer, Receiver
from tests.alerts.support import at, book, group_condition, observation, refusing

pytestmark = pytest.mark.thorough

Receivers = Callable[..., Receiver]
NEVER = threading.Event()


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = at(1000)

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


Make = Callable[..., Worker]


@pytest.fixture
def worker(engine: Engine, clock: Clock) -> Iterator[Make]:
    made: list[Worker] = []

    def make(name: str, url: str, **given: float) -> Worker:
        settings = Webhook.model_validate({"name": name, "url": url, "timeout_seconds": 5.0, **given})
        made.append(Worker(engine, make_channel(settings, clock), clock=clock, random=Random(7)))
        return made[-1]

    yield make
    for one in made:
        one.channel.close()


def queue(
    engine: Engine, clock: Clock, groups: int, channels: tuple[str, ...] = ("ops",), prefix: str = "g"
) -> list[str]:
    """Let so many groups stop; returns the keys in the order in which they were queued."""
    conditions = [group_condition(900, "stopped", group=f"{prefix}{i:03}") for i in range(groups)]
    rules = book(channels)
    decision = store.decide_and_queue(
        engine,
        lambda *stored: decide_and_mute(rules, observation(*conditions), *stored, now=at(905)),
        lambda n: json.dumps({"group": n.alert.subject.group}),
        now=clock(),
    )
    return [n.idempotency_key for n in decision.notifications]


def states(engine: Engine, channel: str = "ops") -> list[str]:
    return [row.state for row in reversed(queries.deliveries(engine)) if row.channel == channel]


def test_everything_arrives_in_order(engine: Engine, clock: Clock, receiver: Receivers, worker: Make) -> None:
    keys = queue(engine, clock, 120)
    to = receiver()
    assert worker("ops", to.url).deliver_due(NEVER) is None
    assert to.keys == keys
    assert set(states(engine)) == {"delivered"}
    (row, *_) = queries.deliveries(engine)
    assert (row.attempts, row.last_error, row.delivered_at) == (1, None, clock())


def test_a_failure_holds_the_order(engine: Engine, clock: Clock, receiver: Receivers, worker: Make) -> None:
    keys = queue(engine, clock, 3)
    to = receiver()
    to.answers.extend([OK, Answer(500), Answer(503), Answer(drop=True)])
    one = worker("ops", to.url)
    for _ in range(4):
        due = one.deliver_due(NEVER)
        clock.now = due or clock.now
    assert due is None
    assert to.keys == [keys[0], keys[1], keys[1], keys[1], keys[1], keys[2]]
    assert len({got.body for got in to.got if got.key == keys[1]}) == 1, "the same bytes at every attempt"


def test_it_waits_longer_each_time(engine: Engine, clock: Clock, receiver: Receivers, worker: Make) -> None:
    queue(engine, clock, 1)
    one = worker("ops", receiver(Answer(500)).url)
    waits = []
    for _ in range(14):
        due = one.deliver_due(NEVER)
        assert due is not None
        waits.append((due - clock()).total_seconds())
        assert one.deliver_due(NEVER) == due, "not before it is due"
        clock.now = due
    for attempt, wait in enumerate(waits):
        whole = min(300, 2**attempt)
        assert whole / 2 <= wait <= whole
    assert len({wait / min(300, 2**i) for i, wait in enumerate(waits)}) > 10, "jitter"


def test_a_receiver_that_never_finishes_fails_like_any_other(engine: Engine, clock: Clock, worker: Make) -> None:
    queue(engine, clock, 1)
    with endless_server(b"HTTP/1.1 200 OK\r\nX: ", b"a") as port:
        one = worker("ops", f"http://127.0.0.1:{port}/hook", attempt_timeout_seconds=0.3)
        for attempt in range(3):
            due = one.deliver_due(NEVER)
            assert due is not None
            assert 2**attempt / 2 <= (due - clock()).total_seconds() <= 2**attempt
            (row,) = queries.deliveries(engine)
            assert (row.state, row.attempts, row.last_error) == ("queued", attempt + 1, "not done within 0.3 s")
            clock.now = due


def test_retry_after_is_kept_to(engine: Engine, clock: Clock, receiver: Receivers, worker: Make) -> None:
    keys = queue(engine, clock, 2)
    to = receiver()
    to.answers.append(Answer(429, {"Retry-After": "120"}))
    one = worker("ops", to.url)
    assert one.deliver_due(NEVER) == clock() + timedelta(seconds=120)
    clock.move(119)
    one.deliver_due(NEVER)
    assert len(to.got) == 1
    clock.move(1)
    assert one.deliver_due(NEVER) is None
    assert to.keys == [keys[0], *keys]


def test_a_refusal_becomes_a_dead_letter_and_the_next_goes_on(
    engine: Engine, clock: Clock, receiver: Receivers, worker: Make, caplog: pytest.LogCaptureFixture
) -> None:
    keys = queue(engine, clock, 2)
    to = receiver()
    to.answers.extend([Answer(400, body=b"bad payload")] * 5)
    one = worker("ops", to.url)
    for _ in range(6):
        clock.now = one.deliver_due(NEVER) or clock.now
    assert to.keys == [keys[0]] * 5 + [keys[1]]
    assert states(engine) == ["dead", "delivered"]
    (dead,) = queries.deliveries(engine, state="dead")
    assert dead.last_error == "answered 400 Bad Request: bad payload; given up after 5 attempts"
    assert dead.attempts == 5
    (line,) = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
    assert "dead letter" in line
    assert f"127.0.0.1:{to.port}" in line
    assert "/hook" not in line


def test_a_receiver_that_is_down_for_a_day_is_given_up(
    engine: Engine, clock: Clock, receiver: Receivers, worker: Make
) -> None:
    queue(engine, clock, 1)
    one = worker("ops", receiver(Answer(503)).url)
    one.deliver_due(NEVER)
    clock.move(86_399)
    one.deliver_due(NEVER)
    assert states(engine) == ["queued"]
    clock.move(301)
    one.deliver_due(NEVER)
    assert states(engine) == ["dead"]
    assert "given up after 24 h" in str(queries.deliveries(engine)[0].last_error)


def test_a_receiver_that_answers_with_nonsense_for_hours_loses_nothing(
    engine: Engine, clock: Clock, receiver: Receivers, worker: Make
) -> None:
    keys = queue(engine, clock, 5)
    to = receiver(Answer(502))
    one = worker("ops", to.url)
    for _ in range(40):
        clock.now = one.deliver_due(NEVER) or clock.now
    to.then = OK
    while (due := one.deliver_due(NEVER)) is not None:
        clock.now = due
    assert list(dict.fromkeys(to.keys)) == keys
    assert set(states(engine)) == {"delivered"}


class TestKilledInBetween:
    def test_sent_but_not_marked_is_sent_again_with_the_same_key(
        self, engine: Engine, clock: Clock, receiver: Receivers, worker: Make
    ) -> None:
        """The database refuses to mark; the process ends; the next one knows nothing of the attempt."""
        keys = queue(engine, clock, 2)
        to = receiver()
        with refusing(engine, "update", "deliveries"), pytest.raises(DatabaseError):
            worker("ops", to.url).deliver_due(NEVER)
        assert to.keys == keys[:1]
        assert worker("ops", to.url).deliver_due(NEVER) is None
        assert to.keys == [keys[0], *keys]

    def test_the_same_process_marks_it_before_it_sends_anything(
        self, engine: Engine, clock: Clock, receiver: Receivers, worker: Make
    ) -> None:
        keys = queue(engine, clock, 2)
        to = receiver()
        one = worker("ops", to.url)
        with refusing(engine, "update", "deliveries"):
            for _ in range(3):
                with pytest.raises(DatabaseError):
                    one.deliver_due(NEVER)
        assert to.keys == keys[:1]
        assert one.deliver_due(NEVER) is None
        assert to.keys == keys

    def test_a_restart_keeps_the_appointment(
        self, engine: Engine, clock: Clock, receiver: Receivers, worker: Make
    ) -> None:
        queue(engine, clock, 1)
        to = receiver(Answer(429, {"Retry-After": "600"}))
        due = worker("ops", to.url).deliver_due(NEVER)
        again = worker("ops", to.url)
        clock.move(30)
        assert again.deliver_due(NEVER) == due
        assert len(to.got) == 1


class TestTwoProcessesOnOneDatabase:
    """Each sends what waits: some of it comes twice, with the same key, and nothing is lost or undone."""

    def test_who_fails_does_not_undo_what_the_other_delivered(
        self, engine: Engine, clock: Clock, receiver: Receivers, worker: Make
    ) -> None:
        keys = queue(engine, clock, 1)
        to, failing = receiver(), receiver(Answer(503))
        late = worker("ops", failing.url)
        with refusing(engine, "update", "deliveries"), pytest.raises(DatabaseError):
            late.deliver_due(NEVER)
        assert worker("ops", to.url).deliver_due(NEVER) is None
        assert late.deliver_due(NEVER) is None
        assert (to.keys, failing.keys) == (keys, keys)
        assert states(engine) == ["delivered"]

    def test_both_at_once_bring_everything(
        self, engine: Engine, clock: Clock, receiver: Receivers, worker: Make
    ) -> None:
        keys = queue(engine, clock, 60)
        to = receiver()
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(worker("ops", to.url).deliver_due, NEVER) for _ in range(2)]:
                assert done.result() is None
        assert list(dict.fromkeys(to.keys)) == keys, "in order, by their first arrival"
        assert set(states(engine)) == {"delivered"}


class TestThreads:
    """The real threads, with the real clock."""

    @pytest.fixture(autouse=True)
    def _real_time(self, clock: Clock) -> None:
        """Threads go by the real clock: what was queued days ago by it would be given up at the first failure."""
        clock.now = datetime.now(UTC)

    def _outbox(self, engine: Engine, urls: dict[str, str], timeout_seconds: float = 5.0) -> Outbox:
        def now() -> datetime:
            return datetime.now(UTC)

        workers = []
        for name, url in urls.items():
            settings = Webhook.model_validate({"name": name, "url": url, "timeout_seconds": timeout_seconds})
            workers.append(Worker(engine, make_channel(settings, now), clock=now, random=Random(1)))
        outbox = Outbox(workers)
        outbox.start()
        return outbox

    def test_a_dead_receiver_delays_only_itself(self, engine: Engine, clock: Clock, receiver: Receivers) -> None:
        keys = queue(engine, clock, 40, ("alive", "hanging", "gone", "busy"))
        alive, hanging, gone = receiver(), receiver(Answer(hang=True)), receiver(Answer(drop=True))
        with endless_server(b"", b"H") as port:
            urls = {"alive": alive.url, "hanging": hanging.url, "gone": gone.url, "busy": f"http://127.0.0.1:{port}"}
            outbox = self._outbox(engine, urls, 60.0)
            try:
                assert [got.key for got in alive.wait_for(40)] == keys
                _until(lambda: set(states(engine, "alive")) == {"delivered"})
            finally:
                outbox.stop(1.0)
        for name in ("hanging", "gone", "busy"):
            assert set(states(engine, name)) == {"queued"}
        assert set(hanging.keys) == {keys[0]}
        assert set(gone.keys) <= {keys[0]}

    def test_what_is_queued_later_goes_out_at_once(self, engine: Engine, clock: Clock, receiver: Receivers) -> None:
        to = receiver()
        outbox = self._outbox(engine, {"ops": to.url})
        try:
            for i in range(3):
                queue(engine, clock, 1, prefix=f"later{i}-")
                began = time.monotonic()
                outbox.wake()
                to.wait_for(i + 1)
                assert time.monotonic() - began < 5, "not at the next look, 15 s later"
        finally:
            outbox.stop(3.0)

    def test_it_stops_at_once_although_a_receiver_hangs(
        self, engine: Engine, clock: Clock, receiver: Receivers
    ) -> None:
        queue(engine, clock, 1)
        to = receiver(Answer(hang=True))
        outbox = self._outbox(engine, {"ops": to.url}, 60.0)
        to.wait_for(1)
        began = time.monotonic()
        outbox.stop(0.5)
        assert time.monotonic() - began < 3


def _until(holds: Callable[[], bool], within_seconds: float = 20.0) -> None:
    deadline = time.monotonic() + within_seconds
    while not holds():
        assert time.monotonic() < deadline, "did not come to hold in time"
        time.sleep(0.02)


class TestThePolicy:
    """Pure: what an attempt makes of a message."""

    @pytest.mark.parametrize(
        ("why", "outcome", "attempts", "age_seconds", "state"),
        [
            ("arrived", DeliveryOutcome(), 1, 0, "delivered"),
            ("arrived at last", DeliveryOutcome(), 99, 999_999, "delivered"),
            ("no answer", DeliveryOutcome("x"), 50, 86_399, "queued"),
            ("no answer for a day", DeliveryOutcome("x"), 2, 86_400, "dead"),
            ("refused, but not for good yet", DeliveryOutcome("x", refused=True), 4, 0, "queued"),
            ("refused for good", DeliveryOutcome("x", refused=True), 5, 0, "dead"),
        ],
    )
    def test_states(self, why: str, outcome: DeliveryOutcome, attempts: int, age_seconds: float, state: str) -> None:
        step = after_attempt(outcome, attempts, at(0), at(age_seconds), Random(1), RetryPolicy())
        assert step.state == state, why

    def test_retry_after_never_shortens_the_wait_and_never_lasts_for_days(self) -> None:
        def wait(attempts: int, asked: float) -> float:
            outcome = DeliveryOutcome("x", retry_after_seconds=asked)
            step = after_attempt(outcome, attempts, at(0), at(0), Random(1), RetryPolicy())
            return (step.next_attempt_at - at(0)).total_seconds()

        assert wait(10, 0) >= 150
        assert wait(1, 1e9) == 3600
