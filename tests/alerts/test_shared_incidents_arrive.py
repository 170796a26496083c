"""Shared incidents from a real lake and database to a real receiver."""

import json
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lagwise.config import Config
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.raw import MEMBERS
from lagwise.tables.store import Lake
from lagwise_alerts.evaluate.lake_reader import LakeReader
from lagwise_alerts.model import AlertState
from lagwise_alerts.operate import queries
from lagwise_alerts.run import alert_once
from tests.alerts.night import OTHERS, TWENTY
from tests.alerts.receiver import Got, Receiver
from tests.alerts.rounds import MakeConfig
from tests.alerts.support import (
    CLUSTER,
    LakeWriter,
    at,
    write_rows,
)

Receivers = Callable[..., Receiver]


def _schema(name: str) -> Draft202012Validator:
    text = resources.files("lagwise_alerts.notify").joinpath(name).read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text) | {"additionalProperties": False})


def documents(got: Iterable[Got]) -> list[dict[str, Any]]:
    return [one.document for one in got]


@pytest.mark.thorough
class TestOnARealLakeAndDatabase:
    @pytest.fixture
    def ops(self, receiver: Receivers) -> Receiver:
        return receiver()

    @pytest.fixture
    def settings(self, config: MakeConfig, ops: Receiver, writer: LakeWriter) -> Config:
        writer.sample(at(-3600))
        made = config({"ops": ops.url})
        self.round(made, writer, 0, {})
        return made

    def round(self, settings: Config, writer: LakeWriter, second: float, statuses: Mapping[str, str]) -> None:
        """A sample in which these groups have a status and all others are well, and a round on it."""
        every = dict.fromkeys([*TWENTY, *OTHERS], "ok") | dict(statuses)
        rows = {
            group: {"status": status, "members": 1, "topics": ["clicks"] if group in TWENTY else ["logs"]}
            for group, status in every.items()
        }
        writer.all_well(at(second), rows)
        alert_once(settings, at(second + 5))

    def test_twenty_alerts_are_one_message_and_one_end(
        self, settings: Config, writer: LakeWriter, ops: Receiver
    ) -> None:
        self.round(settings, writer, 15, dict.fromkeys(TWENTY, "stopped"))
        (begin,) = documents(ops.got)
        _schema("lagwise.alert.v1.schema.json").validate(begin)
        assert (begin["event"], begin["kind"], begin["severity"]) == ("firing", "shared_incident", "page")
        assert begin["summary"] == "Shared incident on topic clicks on kafka: 20 groups in trouble, the worst stopped"
        shared = begin["shared_incident"]
        assert shared["id"] == begin["incident_id"]
        assert shared["shared_by"] == [{"kind": "topic", "name": "clicks", "cluster": CLUSTER}]
        assert (shared["groups"], sorted(one["group"] for one in shared["members"])) == (20, TWENTY)

        engine = queries.connect(settings)
        alerts = queries.open_alerts(engine)
        members = [alert for alert in alerts if alert.shared_incident == shared["id"]]
        assert sorted(alert.subject.group or "" for alert in members) == TWENTY
        assert {alert.state for alert in members} == {AlertState.FIRING}
        for second in range(30, 121, 15):
            self.round(settings, writer, second, {})
        end = documents(ops.got)[1:]
        assert [(one["event"], one["incident_id"], one["resolution"]) for one in end] == [
            ("resolved", shared["id"], "recovered")
        ]
        _schema("lagwise.alert.v1.schema.json").validate(end[0])
        assert not queries.open_alerts(engine)
        ended = queries.history(engine)
        assert sum(alert.shared_incident == shared["id"] for alert in ended) == 20
        engine.dispose()

    def test_what_was_notified_before_names_it_at_its_end(
        self, settings: Config, writer: LakeWriter, ops: Receiver
    ) -> None:
        self.round(settings, writer, 15, dict.fromkeys(TWENTY[:2], "stopped"))
        self.round(settings, writer, 30, dict.fromkeys(TWENTY, "stopped"))
        assert [one["kind"] for one in documents(ops.got)] == ["group", "group", "shared_incident"]
        for second in range(45, 121, 15):
            self.round(settings, writer, second, {TWENTY[9]: "stopped"})
        ends = documents(ops.got)[3:]
        assert sorted((one["event"], one["group"]) for one in ends) == [("resolved", one) for one in TWENTY[:2]]
        assert {one["shared_incident"]["groups"] for one in ends} == {1}, "that still is in trouble"

    def test_brokers_and_hosts_are_read_from_the_lake(
        self, settings: Config, writer: LakeWriter, ops: Receiver, lake: Lake
    ) -> None:
        ill = [*TWENTY[:4], *OTHERS[:4]]
        partitions = [
            {
                "group": group,
                "topic": "logs",
                "partition": n,
                "leader": n,
                "status": "stalled" if group in ill and n == 3 else "ok",
            }
            for group in [*TWENTY, *OTHERS]
            for n in ((2, 3) if group in ill else (1, 2))
        ]
        write_rows(lake, PARTITION_STATUS, partitions, 15)
        self.round(settings, writer, 15, dict.fromkeys(ill, "stalled"))
        assert [one["shared_incident"]["shared_by"] for one in documents(ops.got)] == [
            [{"kind": "broker", "name": "3", "cluster": CLUSTER}]
        ]

    def test_damaged_members_cost_only_what_they_would_have_told(
        self, settings: Config, writer: LakeWriter, ops: Receiver, lake: Lake
    ) -> None:
        write_rows(lake, MEMBERS, [{"group": group, "member_id": group, "host": "h"} for group in TWENTY], -60)
        for file in Path(lake.location(MEMBERS)).rglob("*.parquet"):
            file.write_bytes(b"not Parquet")
        self.round(settings, writer, 15, dict.fromkeys(TWENTY, "stopped"))
        (begin,) = documents(ops.got)
        assert begin["summary"].startswith("Shared incident on topic clicks on kafka:")
        reader = LakeReader(lake)
        snapshot = reader.read(at(20))
        reader.close()
        assert any("members" in line for line in snapshot.trouble)
        assert snapshot.analysis_unreadable_since is None, "no verdict rests on members: the analysis is not stale"

    def test_the_members_of_a_host_that_failed_are_remembered(
        self, settings: Config, writer: LakeWriter, ops: Receiver, lake: Lake
    ) -> None:
        ill = [*TWENTY[:4], *OTHERS[:4]]
        seen = [
            {
                "group": group,
                "member_id": group,
                "host": "10.0.0.7" if group in ill else f"10.0.1.{n}",
                "client_id": "rdkafka",
            }
            for n, group in enumerate([*TWENTY, *OTHERS])
        ]
        write_rows(lake, MEMBERS, seen, -60)
        self.round(settings, writer, 15, dict.fromkeys(ill, "stopped"))
        assert [one["shared_incident"]["shared_by"] for one in documents(ops.got)] == [
            [{"kind": "host", "name": "10.0.0.7", "cluster": None}]
        ]
