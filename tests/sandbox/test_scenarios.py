"""The demo's cast, as it is written down."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise_sandbox.scenarios import SCENARIOS, TOPIC, TOPICS, Behaviour, Scenario


def test_names_are_unique_and_every_topic_is_known() -> None:
    assert len({s.group for s in SCENARIOS}) == len(SCENARIOS)
    assert len(TOPIC) == len(TOPICS)
    assert {s.topic for s in SCENARIOS} | {s.left_topic for s in SCENARIOS if s.left_topic} == set(TOPIC)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.group)
def test_what_is_expected_is_a_status_of_the_product(scenario: Scenario) -> None:
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


def test_the_load_is_small_and_the_backlog_lasts_for_five_minutes() -> None:
    assert sum(t.rate_per_second for t in TOPICS) <= 1000
    archiver = next(s for s in SCENARIOS if "catching_up" in s.expected)
    topic = TOPIC[archiver.topic]
    assert archiver.rate_per_second is not None
    assert topic.preloaded / (archiver.rate_per_second - topic.rate_per_second) > 300


def test_a_shown_status_agrees_only_with_its_reason() -> None:
    by_group = {s.group: s for s in SCENARIOS}
    assert by_group["billing"].agrees("ok")
    assert not by_group["billing"].agrees("catching_up")
    assert by_group["live-dashboard"].agrees("unknown", "no_commit")
    assert not by_group["live-dashboard"].agrees("unknown", "rebalancing")
    assert not by_group["live-dashboard"].agrees("unknown")


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
