"""Many messages as one: when (a proof table), what the summary says, and that a real receiver gets all of it once."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from importlib import resources
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from sqlalchemy import Engine

from lagwise.config import Config
from lagwise.config.channels import Webhook
from lagwise.config.operating import Grouping
from lagwise_alerts.channels import make_channel
from lagwise_alerts.notify.group import NextSend, SendSingly, SendSummary, SentMessage, Wait, next_send
from lagwise_alerts.notify.message import render
from lagwise_alerts.operate import queries
from lagwise_alerts.outbox import store
from lagwise_alerts.outbox.summaries import MAX_IN_A_SUMMARY
from lagwise_alerts.outbox.worker import Worker
from lagwise_alerts.stages import decide_and_mute
from tests.alerts.receiver import Answer, Receiver
from tests.alerts.support import at, book, group_condition, observation

Receivers = Callable[..., Receiver]
NEVER = threading.Event()
FIVE_A_MINUTE = Grouping(max_messages=5, interval_seconds=60.0)


def one(second: float) -> SentMessage:
    return SentMessage(at(second), is_summary=False)


def many(second: float) -> SentMessage:
    return SentMessage(at(second), is_summary=True)


@pytest.mark.parametrize(
    ("waiting", "sent", "expected", "why"),
    [
        (1, [], SendSingly(1), "one outage is told at once"),
        (5, [], SendSingly(5), "as many as are allowed"),
        (6, [], SendSummary(), "more than that at once is an outage of something they share"),
        (300, [], SendSummary(), "and 300 are one message"),
        (1, [one(-10)] * 4, SendSingly(1), "the fifth within a minute"),
        (2, [one(-10)] * 4, SendSummary(), "one more than is left"),
        (1, [one(-10)] * 5, Wait(at(50)), "the sixth waits until the first is a minute ago"),
        (9, [one(-50), *[one(-10)] * 4], Wait(at(10)), "until the oldest is"),
        (1, [one(-70), *[one(-10)] * 4], SendSingly(1), "what is over a minute ago does not count"),
        (1, [one(-60), *[one(-10)] * 4], SendSingly(1), "a minute is over when it is over"),
        (1, [many(-10)], Wait(at(50)), "a summary uses up the minute"),
        (1, [many(-70)], SendSingly(1), "but no more than that"),
        (9, [many(-50), many(-20)], Wait(at(40)), "of two the later"),
        (9, [one(-20)] * 7, Wait(at(40)), "where more went out than is allowed now, until fewer than that are left"),
    ],
)
def test_when(waiting: int, sent: list[SentMessage], expected: NextSend, why: str) -> None:
    assert next_send(waiting, sent, FIVE_A_MINUTE, at(0)) == expected, why


def test_without_a_limit_each_goes_by_itself() -> None:
    assert next_send(300, [many(-1)], Grouping(max_messages=None), at(0)) == SendSingly(300)


class Clock:
    def __init__(self) -> None:
        self.now = at(1000)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def worker(engine: Engine, clock: Clock) -> Iterator[Callable[[str], Worker]]:
    made: list[Worker] = []

    def make(url: str) -> Worker:
        settings = Webhook.model_validate({"name": "ops", "url": url})
        channel = make_channel(settings, clock)
        made.append(Worker(engine, channel, clock=clock, random=Random(7), grouping=FIVE_A_MINUTE))
        return made[-1]

    yield make
    for each in made:
        each.channel.close()


def happen(engine: Engine, clock: Clock, second: float, status: str, groups: int, since: float | None = None) -> None:
    """All groups get this status at once."""
    seen = observation(*[group_condition(second, status, group=f"g{i:04}", since=since) for i in range(groups)])
    rules, config = book(("ops",)), Config()
    store.decide_and_queue(
        engine,
        lambda *stored: decide_and_mute(rules, seen, *stored, now=at(second + 5)),
        lambda notification: render(notification, config),
        now=clock(),
    )


def decided(engine: Engine) -> list[str]:
    """The keys of all that summaries brought, in the order in which it was decided."""
    return [row.idempotency_key for row in reversed(queries.deliveries(engine, state="summarised", limit=10_000))]


def members(document: dict[str, Any]) -> list[str]:
    return [member["idempotency_key"] for member in document["alerts"]]


def test_three_hundred_groups_at_once_are_one_message_and_their_end_is_another(
    engine: Engine, clock: Clock, receiver: Receivers, worker: Callable[[str], Worker]
) -> None:
    to = receiver()
    delivering = worker(to.url)
    happen(engine, clock, 1000, "stopped", 300)
    clock.now = at(1005)
    assert delivering.deliver_due(NEVER) is None
    [summary] = [got.document for got in to.got]
    assert summary["summary"] == "300 alerts on kafka: 300 firing (300 stopped)"
    assert (summary["severity"], summary["events"]) == ("page", {"firing": 300})
    assert summary["dashboard_url"] == "http://127.0.0.1:8501/alerts"
    assert members(summary) == decided(engine)
    assert {member["group"] for member in summary["alerts"]} == {f"g{i:04}" for i in range(300)}
    assert to.got[0].key == summary["idempotency_key"]

    clock.now = at(1030)
    happen(engine, clock, 1025, "ok", 300)
    clock.now = at(1095)
    happen(engine, clock, 1090, "ok", 300, since=1025)
    assert delivering.deliver_due(NEVER) is None
    [_, over] = [got.document for got in to.got]
    assert over["summary"] == "300 alerts on kafka: 300 over"
    incidents = [{member["incident_id"] for member in document["alerts"]} for document in (summary, over)]
    assert incidents[0] == incidents[1], "whoever opened them by it can close them by it"
    rows = queries.deliveries(engine)
    assert [(row.event, row.state) for row in rows] == [("summary", "delivered"), ("summary", "delivered")]
    assert queries.summary_sizes(engine) == {row.id: 300 for row in rows}
    [of_one, before] = queries.deliveries(engine, incident_id=summary["alerts"][0]["incident_id"])
    assert {of_one.state, before.state} == {"summarised"}


def test_the_first_alerts_are_sent_at_once_and_later_ones_together(
    engine: Engine, clock: Clock, receiver: Receivers, worker: Callable[[str], Worker]
) -> None:
    to = receiver()
    delivering = worker(to.url)
    for groups in range(1, 31):
        happen(engine, clock, 1000, "stopped", groups)  # one more each time
        delivering.deliver_due(NEVER)
        clock.now += timedelta(seconds=1)
    assert len(to.got) == 5
    due = delivering.deliver_due(NEVER)
    assert due == at(1060)
    clock.now = due
    assert delivering.deliver_due(NEVER) is None
    first = [got.key for got in to.got[:5]]
    assert len(to.got) == 6
    assert len({*first, *members(to.got[5].document)}) == 30


def test_a_summary_that_fails_is_sent_again_as_it_is_and_what_comes_meanwhile_waits(
    engine: Engine, clock: Clock, receiver: Receivers, worker: Callable[[str], Worker]
) -> None:
    to = receiver()
    to.answers.append(Answer(503))
    delivering = worker(to.url)
    happen(engine, clock, 1000, "stopped", 20)
    due = delivering.deliver_due(NEVER)
    happen(engine, clock, 1015, "losing_data", 20)
    assert due is not None
    clock.now = due
    waits = delivering.deliver_due(NEVER)
    assert [got.key for got in to.got] == [to.got[0].key] * 2
    assert to.got[0].body == to.got[1].body
    assert waits == clock.now + timedelta(seconds=60)
    clock.now = waits
    assert delivering.deliver_due(NEVER) is None
    worse = to.got[2].document
    assert worse["events"] == {"escalated": 20}
    assert "20 worse (20 losing data)" in worse["summary"]


def test_what_was_tried_alone_goes_on_alone(
    engine: Engine, clock: Clock, receiver: Receivers, worker: Callable[[str], Worker]
) -> None:
    """It may have arrived without our knowing: its key must stay its own."""
    to = receiver()
    to.answers.append(Answer(drop=True))
    delivering = worker(to.url)
    happen(engine, clock, 1000, "stopped", 1)
    due = delivering.deliver_due(NEVER)
    happen(engine, clock, 1000, "stopped", 30)
    assert due is not None
    clock.now = due
    assert delivering.deliver_due(NEVER) is None
    assert to.got[0].key == to.got[1].key
    assert len(members(to.got[2].document)) == 29


def test_a_flood_is_parted_and_stays_in_order(
    engine: Engine, clock: Clock, receiver: Receivers, worker: Callable[[str], Worker]
) -> None:
    to = receiver()
    happen(engine, clock, 1000, "stopped", 2 * MAX_IN_A_SUMMARY + 1)
    assert worker(to.url).deliver_due(NEVER) is None
    documents = [got.document for got in to.got]
    assert [len(document["alerts"]) for document in documents] == [MAX_IN_A_SUMMARY, MAX_IN_A_SUMMARY, 1]
    assert [key for document in documents for key in members(document)] == decided(engine)
    assert max(len(got.body) for got in to.got) < 1_000_000


def test_it_matches_its_schema(
    engine: Engine, clock: Clock, receiver: Receivers, worker: Callable[[str], Worker]
) -> None:
    folder = resources.files("lagwise_alerts.notify")
    single, several = (
        json.loads(folder.joinpath(f"lagwise.{name}.v1.schema.json").read_text("utf-8")) for name in ("alert", "alerts")
    )
    Draft202012Validator.check_schema(several)
    registry: Registry[Any] = Registry().with_resource(single["$id"], Resource.from_contents(single))
    schema = Draft202012Validator(several | {"additionalProperties": False}, registry=registry)
    to = receiver()
    happen(engine, clock, 1000, "stopped", 10)
    worker(to.url).deliver_due(NEVER)
    [got] = to.got
    schema.validate(got.document)
    assert not schema.is_valid(got.document | {"alerts": [{"schema": "lagwise.alert.v1"}]})
