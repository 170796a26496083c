"""The timeline of the alerts page: lanes of incidents, and the messages about them."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, update

from lagwise_alerts.operate import Matcher, Operator, Via, actions, queries
from lagwise_alerts.outbox.database import DELIVERIES, open_engine, transaction
from lagwise_alerts.outbox.summaries import queue_summaries
from lagwise_dashboard.pages.alerts import timeline
from lagwise_dashboard.pages.alerts.alert_tables import OpenAlert
from lagwise_dashboard.pages.alerts.timeline import Lane, Segment
from tests.dashboard.conftest import NOW

_OPERATOR = Operator("anna", Via.CLI)


@pytest.fixture
def engine(busy: Path) -> Engine:
    return open_engine(f"sqlite:///{busy / 'lagwise.db'}")


def _all_lanes(engine: Engine, since: datetime) -> list[Lane]:
    muted = queries.mute_state(engine, (), NOW)
    open_ones = [OpenAlert(one, queries.operator_state(one, muted, NOW)) for one in queries.open_alerts(engine)]
    return timeline.lanes(open_ones, queries.history(engine), queries.silences(engine, NOW), since)


def _lanes(engine: Engine, since: datetime) -> dict[str, list[Segment]]:
    return {lane.name: lane.segments for lane in _all_lanes(engine, since)}


def _traces(engine: Engine, lanes: Sequence[Lane], since: datetime) -> dict[str, Any]:
    ids = [one for lane in lanes for one in lane.incident_ids]
    made = timeline.chart(lanes, queries.messages_of(engine, ids, since), since, NOW)
    return {trace.name: trace for trace in made.data}


def test_an_incident_is_pending_then_fires_and_an_ended_one_has_an_end(engine: Engine) -> None:
    lanes = _lanes(engine, NOW - timedelta(hours=6))
    pending, firing = lanes["fraud-scoring (prod)"]
    assert (pending.kind, firing.kind) == ("pending", "firing")
    assert pending.until == firing.since == pending.since + timedelta(seconds=30)
    assert firing.until is None
    assert [one.kind for one in lanes["orders-fulfilment (prod)"]] == ["pending"]
    assert lanes["billing-export (prod)"][-1].until is not None
    assert "billing-export (prod)" not in _lanes(engine, NOW), "it ended before"


def test_what_operators_did_lies_over_it(engine: Engine) -> None:
    [fraud] = [one for one in queries.open_alerts(engine) if one.subject.group == "fraud-scoring"]
    at = NOW - timedelta(minutes=2)
    actions.acknowledge(engine, fraud.incident_id, comment="", by=_OPERATOR, now=at)
    matcher = Matcher(group="invoice-mailer")
    actions.silence(
        engine, matcher, starts_at=at, ends_at=NOW + timedelta(hours=1), comment="deploy", by=_OPERATOR, now=at
    )
    lanes = _lanes(engine, NOW - timedelta(hours=6))
    assert lanes["fraud-scoring (prod)"][-1] == Segment("acknowledged", at, None)
    assert lanes["invoice-mailer (prod)"][-1] == Segment("silenced", at, None)


def test_the_axis_is_as_long_as_it_needs_to_be(engine: Engine) -> None:
    muted = queries.mute_state(engine, (), NOW)
    open_ones = [OpenAlert(one, queries.operator_state(one, muted, NOW)) for one in queries.open_alerts(engine)]
    fraud = [one for one in open_ones if one.alert.subject.group == "fraud-scoring"]
    assert timeline.span(fraud, [], NOW) == timedelta(minutes=15), "it began ten minutes ago"
    assert timeline.span([], [], NOW) == timedelta(minutes=15)
    assert timeline.span(open_ones, [], NOW) == timedelta(hours=4), "etl-nightly has been stopped for three hours"
    assert timeline.span(open_ones, [], NOW + timedelta(days=3)) == timedelta(hours=24)


def test_the_chart_has_a_bar_for_each_stretch_and_a_sign_for_each_message(engine: Engine) -> None:
    since = NOW - timedelta(hours=1)
    muted = queries.mute_state(engine, (), NOW)
    open_ones = [OpenAlert(one, queries.operator_state(one, muted, NOW)) for one in queries.open_alerts(engine)]
    lanes = timeline.lanes(open_ones, [], [], since)
    by_name = _traces(engine, lanes, since)
    assert set(by_name) == {"pending", "firing", "delivered", "queued", "undelivered"}
    assert len(by_name["firing"].y) == 5
    assert min(by_name["firing"].base) == since, "what began earlier begins at the left end"
    assert list(by_name["undelivered"].customdata) == ["firing to team-chat: undelivered (12 attempts)"]
    made = timeline.chart(lanes, [], since, NOW)
    assert list(made.layout.yaxis.ticktext) == [lane.name for lane in lanes]


def test_messages_in_a_summary_have_its_state_and_time_on_their_own_lanes(engine: Engine) -> None:
    document = {"event": "firing", "severity": "page", "status": "stopped", "cluster": "prod"}
    payload = json.dumps(document | {"decided_at": NOW.isoformat(), "dashboard_url": "http://127.0.0.1:8501/group"})
    waiting = {"state": "queued", "attempts": 0, "delivered_at": None, "payload": payload}
    at = NOW - timedelta(minutes=1)
    with transaction(engine) as connection:
        connection.execute(update(DELIVERIES).where(DELIVERIES.c.channel == "on-call").values(**waiting))
    members = queue_summaries(engine, "on-call", at)
    with transaction(engine) as connection:
        is_summary = DELIVERIES.c.event == "summary"
        connection.execute(update(DELIVERIES).where(is_summary).values(state="dead", attempts=12))
    lanes = _all_lanes(engine, NOW - timedelta(hours=6))
    undelivered = _traces(engine, lanes, NOW - timedelta(hours=6))["undelivered"]
    signs = zip(undelivered.x, undelivered.y, undelivered.customdata, strict=True)
    in_summary = [
        (x, y) for x, y, words in signs if words == "firing to on-call in a summary: undelivered (12 attempts)"
    ]
    assert members == 6
    assert {x for x, _ in in_summary} == {at}
    assert len({y for _, y in in_summary}) == members, "each on a lane of its own"


def test_an_escalation_is_marked_beside_its_state(engine: Engine) -> None:
    [fraud] = [one for one in queries.open_alerts(engine) if one.subject.group == "fraud-scoring"]
    is_fraud = (DELIVERIES.c.incident_id == fraud.incident_id) & (DELIVERIES.c.channel == "team-chat")
    with transaction(engine) as connection:
        connection.execute(update(DELIVERIES).where(is_fraud).values(event="escalated"))
    since = NOW - timedelta(hours=6)
    lanes = _all_lanes(engine, since)
    escalated = _traces(engine, lanes, since)["escalated"]
    assert [lanes[y].name for y in escalated.y] == ["fraud-scoring (prod)"]
    assert list(escalated.x) == [fraud.fired_at]
    assert list(escalated.customdata) == ["escalated to team-chat: delivered (1 attempt)"]
