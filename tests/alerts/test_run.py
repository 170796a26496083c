"""The whole room on a real lake, a real database and real receivers."""

import json
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from lagwise.config import Config
from lagwise.platform.errors import ConfigError, DatabaseError
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.store import Lake
from lagwise_alerts.model import AlertEvent
from lagwise_alerts.operate import queries
from lagwise_alerts.run import AlertProcess, alert_once
from tests.alerts.receiver import Answer, Receiver
from tests.alerts.rounds import MakeConfig, beat_of, running, until
from tests.alerts.support import LakeWriter, at, write_yaml

pytestmark = pytest.mark.thorough

Receivers = Callable[..., Receiver]


class TestRulesThatChange:
    RULES = "rules: [{name: first, severity: page, when: {statuses: [stopped]}}]"

    def test_are_in_force_at_the_next_round(
        self, config: MakeConfig, writer: LakeWriter, tmp_path: Path, receiver: Receivers
    ) -> None:
        file = write_yaml(tmp_path / "rules.yaml", "rules: []")
        settings = config({"ops": receiver().url}, alerts={"rules_file": str(file)})
        now = datetime.now(UTC)
        writer.all_well(now, {"orders": {"status": "stopped", "lag": 42, "members": 1}})
        with running(settings):
            until(lambda: beat_of(settings).startswith("0 firing"))
            write_yaml(file, self.RULES)
            until(lambda: beat_of(settings).startswith("1 firing"))

    def test_a_broken_file_is_logged_once_and_shown_while_the_old_rules_stay(
        self, config: MakeConfig, writer: LakeWriter, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        file = write_yaml(tmp_path / "rules.yaml", self.RULES)
        settings = config(alerts={"rules_file": str(file)})
        with caplog.at_level(logging.INFO, "lagwise.alerts"), running(settings):
            until(lambda: beat_of(settings).startswith("0 firing"))
            write_yaml(file, self.RULES.replace("page", "loud"))
            until(lambda: "rules.0.severity" in beat_of(settings))
            writer.all_well(datetime.now(UTC), {"orders": {"status": "stopped", "lag": 42, "members": 1}})
            until(lambda: beat_of(settings).startswith("1 firing"))
            assert "the 1 earlier rule stays in force" in beat_of(settings)
            write_yaml(file, self.RULES)
            until(lambda: "rules" not in beat_of(settings))
        said = [record.message for record in caplog.records if "rule" in record.message]
        assert [m for m in said if "loud" in m] == [m for m in said if "rules.0.severity" in m]
        assert len([m for m in said if "loud" in m]) == 1
        assert "the file of rules is valid again" in said


class TestOnce:
    def test_from_a_stopped_group_to_the_receiver_and_back(
        self, config: MakeConfig, writer: LakeWriter, receiver: Receivers
    ) -> None:
        to = receiver()
        settings = config({"ops": to.url})
        writer.all_well(at(0), {"orders": {"status": "ok"}, "idle": "stopped"})
        assert alert_once(settings, at(5)).events[AlertEvent.FIRING] == 0
        writer.all_well(at(15), {"orders": {"status": "stopped", "lag": 42}, "idle": "stopped"})
        report = alert_once(settings, at(20))
        assert (report.events[AlertEvent.FIRING], report.counts.firing, report.counts.delivered) == (1, 1, 1)
        assert report.line == "1 firing, 0 pending; 1 delivered, 0 queued"
        for seconds in (30, 90):
            writer.all_well(at(seconds), {"orders": {"status": "ok", "since": at(30)}, "idle": "stopped"})
            report = alert_once(settings, at(seconds + 5))
        assert (report.events[AlertEvent.RESOLVED], report.counts.firing, report.counts.delivered) == (1, 0, 2)
        documents = [got.document for got in to.got]
        assert [(d["group"], d["event"], d["status"], d["lag_records"]) for d in documents] == [
            ("orders", "firing", "stopped", 42),
            ("orders", "resolved", "ok", 10),
        ]
        published = resources.files("lagwise_alerts.notify").joinpath("lagwise.alert.v1.schema.json")
        schema = json.loads(published.read_text("utf-8"))
        for got, document in zip(to.got, documents, strict=True):
            Draft202012Validator(schema).validate(document)
            assert document["idempotency_key"] == got.key
        assert documents[0]["incident_id"] == documents[1]["incident_id"]
        assert documents[0]["first_command"].startswith("kafka-consumer-groups --bootstrap-server 127.0.0.1:9092 ")
        assert documents[0]["dashboard_url"] == "http://127.0.0.1:8501/group?cluster=kafka&group=orders"

    def test_groups_that_were_already_stopped_do_not_page_on_the_first_day(
        self, config: MakeConfig, writer: LakeWriter, receiver: Receivers
    ) -> None:
        """200 abandoned groups, as in any old cluster, and one that was alive when Lagwise came."""
        to = receiver()
        settings = config({"ops": to.url})
        abandoned = {f"old-{i}": "stopped" if i % 3 else "losing_data" for i in range(200)}
        writer.change(at(-100), "old-0", None, "unknown")
        writer.change(at(-70), "old-0", "unknown", "losing_data")
        writer.all_well(at(0), abandoned | {"alive": {"status": "unknown", "reason": "too_few_samples", "members": 1}})
        assert alert_once(settings, at(5)).counts.firing == 0
        writer.all_well(at(15), abandoned | {"alive": "stopped"})
        assert alert_once(settings, at(20)).events[AlertEvent.FIRING] == 1
        assert [got.document["group"] for got in to.got] == ["alive"], "its members were seen by an earlier process"

    @pytest.mark.parametrize(("max_messages", "messages"), [(5, 1), (None, 300)])
    def test_three_hundred_groups_at_once(
        self,
        config: MakeConfig,
        writer: LakeWriter,
        receiver: Receivers,
        max_messages: int | None,
        messages: int,
    ) -> None:
        """One message, unless the settings want one for each; in either all of them."""
        to = receiver()
        settings = config({"ops": to.url}, alerts={"grouping": {"max_messages": max_messages}})
        writer.all_well(at(0), {f"g{i}": {"status": "stalled", "members": 1} for i in range(300)})
        began = time.monotonic()
        report = alert_once(settings, at(5))
        seconds = time.monotonic() - began
        assert (report.events[AlertEvent.FIRING], report.counts.delivered) == (300, messages)
        assert len(set(to.keys)) == messages
        notified = {one["group"] for got in to.got for one in got.document.get("alerts", [got.document])}
        assert notified == {f"g{i}" for i in range(300)}
        assert seconds < 60, "a message for each took 2 s where this was written"
        assert alert_once(settings, at(10)).events[AlertEvent.FIRING] == 0

    def test_a_cluster_that_was_never_read_pages(self, config: MakeConfig, receiver: Receivers) -> None:
        to = receiver()
        alert_once(config({"ops": to.url}), at(0))
        (got,) = to.got
        assert (got.document["kind"], got.document["status"]) == ("collection", "stale")
        assert got.document["dashboard_url"].endswith("/health")

    def test_a_stale_analysis_pages_once_and_holds_the_groups(
        self, config: MakeConfig, writer: LakeWriter, receiver: Receivers
    ) -> None:
        to = receiver()
        settings = config({"ops": to.url})
        writer.all_well(at(0), {"orders": {"status": "stalled", "members": 1}, "payments": "ok"})
        alert_once(settings, at(5))
        for seconds in range(60, 600, 60):
            writer.sample(at(seconds))
            alert_once(settings, at(seconds + 5))
        assert [got.document["kind"] for got in to.got] == ["group", "analysis"]
        engine = queries.connect(settings)
        assert {a.subject.group: a.on_hold for a in queries.open_alerts(engine)} == {"orders": True, None: False}
        engine.dispose()

    def test_a_lake_that_cannot_be_read_holds_everything(
        self, config: MakeConfig, writer: LakeWriter, lake: Lake, receiver: Receivers
    ) -> None:
        to = receiver()
        settings = config({"ops": to.url})
        writer.all_well(at(0), {"orders": {"status": "stalled", "members": 1}})
        alert_once(settings, at(5))
        writer.all_well(at(300), {"orders": "ok"})
        Path(lake.files(GROUP_STATUS)[0]).write_bytes(b"rubbish")
        report = alert_once(settings, at(305))
        assert (report.events[AlertEvent.RESOLVED], report.counts.firing) == (0, 1)
        assert len(report.trouble) == 1
        assert "\n" not in report.line

    def test_a_rule_file_that_is_wrong_is_refused_before_anything_else(
        self, config: MakeConfig, tmp_path: Path
    ) -> None:
        file = write_yaml(tmp_path / "rules.yaml", "rules: [{name: a, when: {statuses: [x]}, severity: page}]")
        with pytest.raises(ConfigError, match=r"rules\.0\.when\.statuses\.0"):
            alert_once(config(alerts={"rules_file": str(file)}))
        assert not (tmp_path / "state").exists()

    def test_a_database_that_cannot_be_opened_is_one_line(self, config: MakeConfig, tmp_path: Path) -> None:
        (tmp_path / "state").write_text("in the way", encoding="utf-8")
        with pytest.raises(DatabaseError) as caught:
            alert_once(config())
        assert "\n" not in str(caught.value)

    def test_what_ended_long_ago_is_forgotten(
        self, config: MakeConfig, writer: LakeWriter, receiver: Receivers
    ) -> None:
        settings = config({"ops": receiver().url}, lake={"retention": {"history_days": 1}})
        for seconds, status in ((0, "stalled"), (600, "ok")):
            writer.all_well(at(seconds), {"orders": {"status": status, "since": at(15)}})
            alert_once(settings, at(seconds + 20))
        engine = queries.connect(settings)
        assert len(queries.history(engine)) == 1
        writer.all_well(at(90_000), {"orders": "ok"})
        alert_once(settings, at(90_005))
        assert queries.history(engine) == []
        engine.dispose()


class TestForever:
    def test_posts_soon_beats_and_ends_at_once(
        self, config: MakeConfig, writer: LakeWriter, receiver: Receivers
    ) -> None:
        to = receiver()
        settings = config({"ops": to.url})
        writer.all_well(datetime.now(UTC), {"orders": "ok"})
        with running(settings):
            until(lambda: beat_of(settings) == "0 firing, 0 pending; 0 delivered, 0 queued")
            began = time.monotonic()
            writer.all_well(datetime.now(UTC), {"orders": "stopped"})
            to.wait_for(1)
            assert time.monotonic() - began < 10
            until(lambda: beat_of(settings) == "1 firing, 0 pending; 1 delivered, 0 queued")
            began = time.monotonic()
        assert time.monotonic() - began < 5

    def test_an_unwritable_database_is_logged_once_and_then_everything_continues(
        self,
        config: MakeConfig,
        writer: LakeWriter,
        receiver: Receivers,
        caplog: pytest.LogCaptureFixture,
        tmp_path: Path,
    ) -> None:
        caplog.set_level(logging.INFO, logger="lagwise.alerts")
        to = receiver()
        obstacle = tmp_path / "elsewhere"
        obstacle.write_text("in the way", encoding="utf-8")
        settings = config({"ops": to.url}, database=f"sqlite:///{obstacle / 'lagwise.db'}")
        writer.all_well(datetime.now(UTC), {"orders": {"status": "stalled", "members": 1}})
        with running(settings):
            until(lambda: "cannot make the folder" in beat_of(settings))
            time.sleep(0.3)  # several rounds: the line must not be said again
            log_throttle = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
            assert len(log_throttle) == 1
            assert "nothing is decided until it works" in log_throttle[0]
            obstacle.unlink()
            to.wait_for(1)
        assert "the database works again" in caplog.text

    def test_a_lake_that_breaks_and_heals(
        self, config: MakeConfig, writer: LakeWriter, lake: Lake, receiver: Receivers, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, logger="lagwise.alerts")
        to = receiver()
        settings = config({"ops": to.url})
        writer.all_well(datetime.now(UTC), {"orders": "ok"})
        with running(settings):
            until(lambda: beat_of(settings) != "")
            broken = Path(lake.location(GROUP_STATUS)) / "_delta_log" / f"{2:020}.json"
            assert broken.with_name(f"{1:020}.json").exists()
            broken.write_bytes(b"{rubbish")
            until(lambda: "alerts that depend on it stay as they are" in caplog.text)
            broken.unlink()
            writer.groups(datetime.now(UTC), {"orders": "stopped"})
            to.wait_for(1)
        assert caplog.text.count("alerts that depend on it stay as they are") == 1
        assert "the lake can be read again" in caplog.text

    def test_heartbeats_that_cannot_be_written_stop_nothing(
        self,
        config: MakeConfig,
        writer: LakeWriter,
        receiver: Receivers,
        caplog: pytest.LogCaptureFixture,
        tmp_path: Path,
    ) -> None:
        to = receiver()
        settings = config({"ops": to.url})
        (tmp_path / "state").mkdir()
        (tmp_path / "state" / "health").write_text("in the way", encoding="utf-8")
        writer.all_well(datetime.now(UTC), {"orders": {"status": "stalled", "members": 1}})
        with running(settings):
            to.wait_for(1)
        assert caplog.text.count("/health/alerts.json: Not a directory") == 1

    def test_a_channel_that_was_taken_out_is_mentioned_and_gets_its_messages_when_it_is_back(
        self, config: MakeConfig, writer: LakeWriter, receiver: Receivers, caplog: pytest.LogCaptureFixture
    ) -> None:
        down, back = receiver(Answer(503)), receiver()
        writer.all_well(at(0), {"orders": {"status": "stalled", "members": 1}})
        alert_once(config({"ops": down.url}), at(5))
        assert len(down.got) == 1
        with running(config({"other": receiver().url})):
            until(lambda: "messages for channel ops have waited" in caplog.text)
        with running(config({"ops": back.url})):
            back.wait_for(1)
        assert back.got[0].key == down.got[0].key

    def test_no_address_in_the_log(
        self, config: MakeConfig, writer: LakeWriter, receiver: Receivers, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        to = receiver(Answer(500))
        settings = config({"ops": f"{to.url}/T0K3N-abcdefgh"})
        writer.all_well(datetime.now(UTC), {"orders": {"status": "stalled", "members": 1}})
        with running(settings):
            to.wait_for(1)
            until(lambda: "answered 500" in caplog.text)
        assert f"ops (127.0.0.1:{to.port})" in caplog.text
        assert "T0K3N" not in caplog.text


def test_the_rules_in_the_docs_are_rules(tmp_path: Path, config: MakeConfig) -> None:
    docs = (Path(__file__).parents[2] / "docs" / "alerts" / "rules.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in docs.split("```yaml\n")[1:]]
    rules = [block for block in blocks if "rules:" in block]
    settings = [block for block in blocks if "channels:\n    -" in block]
    assert (len(rules), len(settings)) == (3, 1)
    channels = dict.fromkeys(("ops", "pager", "payments-chat"), "http://127.0.0.1:1/")
    for number, block in enumerate(rules[1:]):
        file = write_yaml(tmp_path / f"more-{number}.yaml", block)
        AlertProcess(config(channels, alerts={"rules_file": str(file)}), watching_since=None).close()
    file = write_yaml(tmp_path / "rules.yaml", rules[0])
    loaded = AlertProcess(config(channels, alerts={"rules_file": str(file)}), watching_since=None)
    assert [rule.name for rule in loaded.book.rules] == [
        "payments_late",
        "offsets_expired",
        "offsets_expiring",
        "given_up",
        "offsets_exposed",
        "collector_late",
    ]
    loaded.close()
    Config.model_validate(yaml.safe_load(settings[0]))
    (objectives,) = [block for block in blocks if "lag_objectives:" in block]
    (cluster,) = Config.model_validate(yaml.safe_load(objectives)).clusters
    assert [cluster.lag_objective_of(g) for g in ("payments-api", "reports-weekly", "orders")] == [30, 7200, 300]
