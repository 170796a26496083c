"""Findings on clusters: read from the newest samples, and when they wake somebody."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lagwise.domain.cluster_findings import ClusterFindingKind
from lagwise.tables.store import Lake
from lagwise_alerts.evaluate.lake_reader import LakeReader
from lagwise_alerts.evaluate.observation import observe
from lagwise_alerts.model import AlertEvent, AlertKind, ClusterCondition, Resolution, Severity
from tests.alerts.support import CLUSTER, LakeWriter, Player, at, book, cluster_condition, observation

LEADERLESS = {
    "topic": None,
    "state": "no_leader",
    "partitions": 2,
    "named": "orders-3, orders-4",
    "missing": "2",
}
SAID = (
    "2 partitions have no leader (orders-3, orders-4). Nobody can read or write there. Broker 2 is not in the cluster: "
    "start it."
)


class TestTheyAreReadFromTheNewestSample:
    @pytest.fixture
    def reader(self, lake: Lake) -> Iterator[LakeReader]:
        made = LakeReader(lake)
        yield made
        made.close()

    def read(self, reader: LakeReader, now: float) -> dict[str, ClusterCondition]:
        seen = observe(
            reader.read(at(now)),
            clusters=(CLUSTER,),
            analysis_interval_seconds=15.0,
            active=set(),
            watching_since=at(-10_000),
            now=at(now),
        )
        return {c.subject.kind.value: c for c in seen.conditions if isinstance(c, ClusterCondition)}

    def test_what_it_shows(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.sample(at(0), replicas=[])
        writer.sample(at(15), replicas=[LEADERLESS])
        found = self.read(reader, 20)
        assert found.keys() == {kind.value for kind in ClusterFindingKind}
        assert (found["no_leader"].as_of, found["no_leader"].sentence) == (at(15), SAID)
        assert [kind for kind, one in found.items() if one.is_found] == ["no_leader"]
        writer.sample(at(30), replicas=[])
        assert self.read(reader, 35)["no_leader"].is_found is False

    def test_a_sample_that_read_nothing_says_nothing(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.sample(at(0), replicas=[LEADERLESS])
        writer.sample(at(15), groups=0, errors=[{"kind": "timeout", "count": 1, "example": "no answer"}])
        found = self.read(reader, 20)
        assert (found["no_leader"].as_of, found["no_leader"].is_found) == (at(0), True)

    def test_what_could_not_be_read_is_unknown(self, reader: LakeReader, writer: LakeWriter) -> None:
        writer.sample(at(0), replicas=None)
        assert {one.is_found for one in self.read(reader, 5).values()} == {None}

    def test_the_state_of_rocketmqs_brokers_stands_among_the_errors(
        self, reader: LakeReader, writer: LakeWriter
    ) -> None:
        error = {"kind": "disk_full", "count": 1, "example": "broker-a: its disk is 91% full"}
        brokers: list[Mapping[str, Any]] = [{"name": "broker-b", "role": "broker", "gone_at": at(-60)}]
        writer.sample(at(0), system="rocketmq", errors=[error], brokers=brokers)
        found = self.read(reader, 5)
        assert [kind for kind, one in found.items() if one.is_found] == ["disk_full", "broker_gone"]
        assert found["broker_gone"].sentence.startswith("Broker broker-b has been gone for 1 min:")


class TestTheDefaultRules:
    def play(self, kind: AlertKind, found: Mapping[float, bool | None]) -> Player:
        player = Player(book())
        for second, is_found in found.items():
            player.see(second + 5, observation(cluster_condition(second, kind, is_found=is_found)))
        return player

    def test_a_restarted_broker_wakes_nobody(self) -> None:
        player = self.play(AlertKind.NO_LEADER, {0: True, 60: True, 110: True, 125: False, 140: False})
        assert player.notified == []

    def test_one_that_stays_away_pages_once_and_the_end_is_reported(self) -> None:
        seconds = range(0, 600, 60)
        player = self.play(AlertKind.NO_LEADER, {second: second < 240 for second in seconds})
        assert [(one.event, one.severity, one.status) for one in player.notified] == [
            (AlertEvent.FIRING, Severity.PAGE, "degraded"),
            (AlertEvent.RESOLVED, Severity.PAGE, "healthy"),
        ]
        assert player.ended[0].resolution is Resolution.RECOVERED

    def test_an_alert_is_on_hold_while_nobody_knows(self) -> None:
        found = {0: True, 120: True} | dict.fromkeys(range(180, 1200, 60), None)
        player = self.play(AlertKind.OFFSETS_AT_RISK, found)
        assert [one.event for one in player.notified] == [AlertEvent.FIRING]
        (alert,) = player.alerts.values()
        assert alert.on_hold

    def test_a_finding_that_lasts_does_not_hide_another_one(self) -> None:
        player = self.play(AlertKind.DISK_TOO_FULL, {0: True, 120: True})
        for second in (240, 360):
            both = (AlertKind.DISK_TOO_FULL, AlertKind.NO_LEADER)
            player.see(second + 5, observation(*(cluster_condition(second, kind) for kind in both)))
        assert [one.alert.subject.kind for one in player.notified] == [AlertKind.DISK_TOO_FULL, AlertKind.NO_LEADER]

    @pytest.mark.parametrize(
        ("kinds", "severity"),
        [
            (
                "offsets_at_risk no_leader under_min_isr disk_full disk_too_full broker_gone no_master",
                Severity.PAGE,
            ),
            ("disk_filling under_replicated clock_differs", Severity.WARN),
            ("offsets_unreplicated min_isr_too_high one_rack offsets_retention", None),
        ],
    )
    def test_what_wakes_what_waits_and_what_is_only_shown(self, kinds: str, severity: Severity | None) -> None:
        for kind in kinds.split():
            player = self.play(AlertKind(kind), dict.fromkeys(range(0, 2000, 100), True))
            assert [one.severity for one in player.notified] == ([] if severity is None else [severity]), kind

    def test_every_kind_of_finding_is_one_of_alert(self) -> None:
        rules = book().rules
        asked = {kind for rule in rules for kind in rule.when.cluster_findings}
        shown_only = {"offsets_unreplicated", "min_isr_too_high", "one_rack", "offsets_retention"}
        assert {kind.value for kind in ClusterFindingKind} - {kind.value for kind in asked} == shown_only
