"""The demo's cast, as it is written down."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise_sandbox.clients import record
from lagwise_sandbox.scenarios import SCENARIOS, TOPIC, TOPICS, Behaviour, DemoScenario

HOUR = 3600


def test_names_are_unique_and_every_topic_is_known() -> None:
    assert len({s.group for s in SCENARIOS}) == len(SCENARIOS)
    assert len(TOPIC) == len(TOPICS)
    assert {s.topic for s in SCENARIOS} | {s.left_topic for s in SCENARIOS if s.left_topic} == set(TOPIC)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.group)
def test_what_is_expected_is_a_status_of_the_product(scenario: DemoScenario) -> None:
    for word in scenario.expected:
        status, _, reason = word.partition(":")
        assert Status(status)
        assert (status == Status.UNKNOWN) == bool(reason)
        assert not reason or UnknownReason(reason)
    assert scenario.story.endswith(".")


def test_the_cast_covers_what_the_demo_promises() -> None:
    expected = {word for s in SCENARIOS for word in s.expected}
    assert expected == {
        "ok",
        "falling_behind",
        "stalled",
        "stopped",
        "catching_up",
        "losing_data",
        "unknown:no_commit",
        "unknown:rebalancing",
    }
    assert any(s.members > TOPIC[s.topic].partitions for s in SCENARIOS)
    assert any(s.group_protocol == "consumer" for s in SCENARIOS)
    assert any(s.left_topic for s in SCENARIOS)
    assert {s.behaviour for s in SCENARIOS} == set(Behaviour)


def test_the_load_is_small_and_the_backlog_lasts_for_hours() -> None:
    assert sum(t.rate_per_second for t in TOPICS) <= 1000
    [archiver] = [s for s in SCENARIOS if "catching_up" in s.expected]
    assert archiver.backlog_seconds > 5 * HOUR


def test_what_is_expected_stays_true_for_as_long_as_the_demo_is_left_open() -> None:
    """A day of the one that catches up, by its rates, on a machine on which the group reads up to 4 % less or more."""
    [archiver] = [s for s in SCENARIOS if "catching_up" in s.expected]
    topic = TOPIC[archiver.topic]
    assert archiver.rate_per_second is not None
    seen = set()
    for speed in (0.96, 1.0, 1.04):
        gain = archiver.rate_per_second * speed - topic.rate_per_second
        for elapsed in range(0, 24 * HOUR, 60):
            status = "catching_up" if topic.preloaded - gain * elapsed > 0 else "ok"
            assert archiver.agrees(status, None, elapsed), (speed, elapsed, status)
            seen.add(status)
    assert seen == {"catching_up", "ok"}
    # It is no blank cheque: what is wrong is wrong.
    assert not archiver.agrees("ok", None, HOUR)
    assert not archiver.agrees("catching_up", None, 12 * HOUR)
    assert not archiver.agrees("lagging", None, archiver.backlog_seconds)


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.rate_per_second], ids=lambda s: s.group)
def test_who_reads_less_than_is_written_does_so_for_ever(scenario: DemoScenario) -> None:
    assert (scenario.backlog_seconds == math.inf) == (not scenario.expected_without_backlog)
    if scenario.backlog_seconds == math.inf:
        assert scenario.expected_at(1e9) == scenario.expected


def test_records_are_json() -> None:
    assert json.loads(record("orders", 12_345)) == {"id": "orders-12345", "customer": 2347, "amount_cents": 2545}


def test_a_shown_status_agrees_only_with_its_reason() -> None:
    by_group = {s.group: s for s in SCENARIOS}
    assert by_group["billing"].agrees("ok", None, 0)
    assert not by_group["billing"].agrees("catching_up", None, 0)
    assert by_group["live-dashboard"].agrees("unknown", "no_commit", 0)
    assert not by_group["live-dashboard"].agrees("unknown", "rebalancing", 0)
    assert not by_group["live-dashboard"].agrees("unknown", None, 0)


def test_the_cast_can_be_read_without_a_kafka_client(tmp_path: Path) -> None:
    code = "import lagwise_sandbox.scenarios, sys; print('confluent_kafka' in sys.modules)"
    path = os.pathsep.join(p for p in sys.path if p)
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )
    assert ran.stdout.strip() == "False"
