"""The doctor: every check says what it found and what to do, and none stops another."""

import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from sqlalchemy import inspect, make_url, text, update

from lagwise.config import Config
from lagwise.operational.lease import Lease
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.raw import SAMPLES
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from lagwise_alerts.outbox.database import SCHEMA, create_tables, open_engine, transaction
from lagwise_app.cli import cli
from lagwise_app.doctor.checks import diagnoses
from lagwise_app.doctor.collector_check import check_collectors
from lagwise_app.doctor.diagnosis import CheckResult, Diagnosis
from lagwise_app.supervisor.effective_settings import write_settings
from tests.fixtures.postgresql import PASSWORD, PostgresServer
from tests.lake_rows import row

pytestmark = pytest.mark.timeout(120)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def config(tmp_path: Path, **settings: Any) -> Config:
    return Config.model_validate({"data": str(tmp_path / "data"), "dashboard": {"port": 0}, **settings})


def found(settings: Config, check: str) -> Diagnosis:
    """The one diagnosis of that name; every other check is run too."""
    everything = list(diagnoses(settings, start_spark=False))
    assert {"memory", "disk", "lake", "database", "alerts", "dashboard"} <= {d.check for d in everything}, (
        "a check was left out"
    )
    return next(d for d in everything if d.check.startswith(check))


def test_a_good_machine_without_a_cluster(tmp_path: Path) -> None:
    everything = list(diagnoses(config(tmp_path), start_spark=False))
    assert [d for d in everything if d.result is CheckResult.FAILED] == []
    by_name = {d.check: d for d in everything}
    assert by_name["lake"].result is CheckResult.OK
    assert by_name["database"].result is CheckResult.OK
    assert by_name["clusters"].result is CheckResult.WARNING
    assert by_name["alerts"].result is CheckResult.WARNING
    assert all(d.advice for d in everything if d.result is not CheckResult.OK)


def test_the_checks_leave_everything_as_they_found_it(tmp_path: Path) -> None:
    list(diagnoses(config(tmp_path), start_spark=False))
    assert list(tmp_path.iterdir()) == []

    kept = tmp_path / "data" / "lake" / "kept"
    kept.mkdir(parents=True)
    list(diagnoses(config(tmp_path), start_spark=False))
    assert [path for path in tmp_path.rglob("*") if path.name not in ("data", "lake")] == [kept]


def test_without_java_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    java = found(config(tmp_path), "Java")
    assert java.result is CheckResult.FAILED
    assert "openjdk" in java.found


def test_a_database_of_an_earlier_lagwise_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    settings = config(tmp_path)
    engine = open_engine(settings.database_url)
    create_tables(engine)
    with transaction(engine) as connection:
        connection.execute(text("drop table silences"))
        connection.execute(text("drop table alembic_version"))
        connection.execute(update(SCHEMA).values(version=1))
    refused = found(settings, "database")
    assert refused.result is CheckResult.FAILED
    assert "delete it, or name another database" in refused.found
    with transaction(engine, read_only=True) as connection:
        assert connection.scalar(text("select version from lagwise_schema")) == 1
        assert not inspect(connection).has_table("silences")
    engine.dispose()


def test_a_data_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("in the way")
    settings = config(tmp_path)
    assert found(settings, "lake").result is CheckResult.FAILED
    assert found(settings, "database").result is CheckResult.FAILED
    assert "\n" not in found(settings, "lake").found


def test_a_damaged_table_is_found(tmp_path: Path) -> None:
    settings = config(tmp_path)
    lake = Lake(settings.lake_uri)
    lake.create(GROUP_STATUS)
    for commit in (Path(lake.location(GROUP_STATUS)) / "_delta_log").glob("*.json"):
        commit.write_text("not JSON")
    diagnosis = found(settings, "lake")
    assert diagnosis.result is CheckResult.FAILED
    assert "group_status" in diagnosis.found


def ticks(lake: Lake, number: int) -> None:
    rows = {"started_at": NOON, "finished_at": NOON, "wall_seconds": 1.0, "samples": number, "group_partitions": 1}
    lake.create(TICKS)
    lake.append(TICKS, pa.Table.from_pylist([rows | {"progress": []}], TICKS.arrow.remove(len(TICKS.arrow) - 1)))


def test_a_damaged_file_is_found_asked_about_and_quarantined(tmp_path: Path) -> None:
    settings = config(tmp_path)
    lake = Lake(settings.lake_uri)
    for number in (1, 2, 3):
        ticks(lake, number)
    cut, junk, _ = map(Path, lake.files(TICKS))
    cut.write_bytes(b"junk")
    junk.write_bytes(b"x" * junk.stat().st_size)
    said = [d for d in diagnoses(settings, start_spark=False) if d.check == "lake"]
    assert {d.result for d in said} == {CheckResult.FAILED}
    day = f"analysis/ticks/day={NOON:%Y-%m-%d}"
    # What a look at sizes and at the error does not show is found by reading everything.
    assert f"{day}/{cut.name} is truncated (4 bytes of" in " ".join(d.found for d in said)
    assert {d.advice for d in said} == {
        "run this again with `--repair` to quarantine it; the next analysis round that reads it does so too"
    }

    def repair(*words: str, answer: str | None = None) -> Any:
        return CliRunner().invoke(cli, ["doctor", "--repair", "--data", str(settings.data), *words], input=answer)

    refused = repair(answer="n\n")
    assert refused.exit_code == 1
    assert f"{day}/{cut.name} is truncated" in refused.output
    assert f"{day}/{junk.name} is corrupt" in refused.output
    assert refused.output.count(": 1 row is lost") == 2
    assert f"moves what is left of them to {lake.uri}/quarantine\n" in refused.output
    shown = json.loads(repair("--json").output)
    assert {one["fault"] for one in shown["damaged"]} == {"truncated", "corrupt"}
    assert shown["quarantined"] is None
    assert cut.exists()
    assert junk.exists()
    done = repair(answer="y\n")
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "2 damaged files quarantined"), done.output
    assert len(list(Path(lake.uri, "quarantine").rglob("*.parquet"))) == 2
    assert len(Lake(lake.uri).read(TICKS)) == 1
    again = repair("--yes")
    assert (again.exit_code, again.output) == (0, f"no file of {lake.uri} is damaged\n")
    counted = found(settings, "damaged files")
    assert counted.result is CheckResult.WARNING
    assert counted.found.startswith("2 damaged files quarantined (analysis/ticks 2), the last ")


def test_without_a_lake_no_check_of_it_passes(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["doctor", "--repair", "--yes", "--data", str(tmp_path / "nowhere")])
    assert result.exit_code == 1
    assert "no lake at" in result.output
    assert "is damaged" not in result.output


def test_a_log_is_not_repaired_under_an_analysis_that_runs(tmp_path: Path) -> None:
    """It would go on with what the log said before."""
    settings = config(tmp_path)
    lake = Lake(settings.lake_uri)
    ticks(lake, 1)
    entry = Path(lake.location(TICKS), "_delta_log", f"{1:020d}.json")
    entry.write_bytes(entry.read_bytes()[:100])
    engine = open_engine(settings.database_url)
    analysis = Lease(engine, "analysis")
    analysis.ask()
    command = ["doctor", "--repair", "--yes", "--data", str(settings.data)]
    refused = CliRunner().invoke(cli, command)
    assert (refused.exit_code, entry.stat().st_size) == (1, 100)
    assert "runs the analysis: stop that one first" in refused.output
    analysis.give_back()
    engine.dispose()
    assert CliRunner().invoke(cli, command).exit_code == 0
    assert len(Lake(lake.uri).read(TICKS)) == 1, "the row is found again"


@pytest.mark.parametrize(
    "url", ["postgresql+nowhere://me:hunter2@127.0.0.1:1/db", "sqlite:////nowhere/at/all/x.db", "nonsense"]
)
def test_an_unusable_database_is_reported_without_its_password(tmp_path: Path, url: str) -> None:
    (tmp_path / "nowhere").write_text("in the way")
    url = url.replace("/nowhere/at", f"{tmp_path}/nowhere/at")
    diagnosis = found(config(tmp_path, database=url), "database")
    assert diagnosis.result is CheckResult.FAILED
    assert "database" in diagnosis.found
    assert "hunter2" not in diagnosis.found
    assert "\n" not in diagnosis.found


@pytest.mark.process
@pytest.mark.parametrize(
    ("changes", "said"), [({}, None), ({"password": "wrong-one"}, "password authentication failed")]
)
def test_a_server_of_the_database_and_its_password(
    tmp_path: Path, postgres_server: PostgresServer, postgresql: str, changes: dict[str, str], said: str | None
) -> None:
    name = str(make_url(postgresql).database)
    ran = doctor("--no-spark", "--json", data=tmp_path / "data", LAGWISE_DATABASE=postgres_server.url(name, **changes))
    [check] = [one for one in json.loads(ran.stdout)["checks"] if one["check"] == "database"]
    assert (check["result"], ran.returncode) == (("ok", 0) if said is None else ("failed", 1)), ran.stdout
    assert said is None or check["found"].endswith(f'{said} for user "lagwise"')
    for secret in (PASSWORD, "wrong-one"):
        assert secret not in ran.stdout + ran.stderr
    assert postgres_server.rows("select 1 from pg_tables where schemaname = 'public'", name) == [], "it leaves nothing"


def test_a_secret_that_is_not_there_is_named(tmp_path: Path) -> None:
    channel = {"name": "ops", "url": "http://h", "secret": "${env:LAGWISE_SECRET_NOWHERE}"}
    diagnosis = found(config(tmp_path, alerts={"channels": [channel]}), "alerts")
    assert diagnosis.result is CheckResult.FAILED
    assert "alerts.channels.0.secret" in diagnosis.found


def test_a_channel_that_cannot_be_used_is_named_with_its_type(tmp_path: Path) -> None:
    mail = {"host": "smtp.example", "sender": "a@b.example", "to": ["c@d.example"], "ca_file": str(tmp_path / "no.pem")}
    settings = config(tmp_path, alerts={"channels": [{"name": "post", "type": "email", **mail}]})
    diagnosis = found(settings, "alerts")
    assert diagnosis.result is CheckResult.FAILED
    assert f"channel post: cannot read the file {tmp_path / 'no.pem'}" in diagnosis.found
    assert diagnosis.advice == "check the channel post (email) under alerts.channels"


def test_rules_that_cannot_be_used_are_found(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("rules: [{name: x}]")
    assert (
        found(config(tmp_path, alerts={"rules_file": str(tmp_path / "rules.yaml")}), "alerts").result
        is CheckResult.FAILED
    )


def test_a_port_that_is_taken_is_a_warning(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        diagnosis = found(config(tmp_path, dashboard={"port": server.getsockname()[1]}), "dashboard")
    assert diagnosis.result is CheckResult.WARNING
    assert diagnosis.advice is not None


def test_too_little_memory_is_a_warning(tmp_path: Path) -> None:
    assert (
        found(config(tmp_path, analysis={"spark": {"driver_memory": "9999g"}}), "memory").result is CheckResult.WARNING
    )


def test_memory_is_what_the_demo_was_measured_to_take_and_what_a_full_heap_adds(tmp_path: Path) -> None:
    said = found(config(tmp_path, analysis={"spark": {"driver_memory": "1g"}}), "memory").found
    assert said.endswith("everything takes about 1.4 GiB for a small cluster, and up to 2.1 GiB if Spark's heap fills")


def test_a_cluster_that_is_not_there_fails_and_says_so(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        bootstrap = f"127.0.0.1:{closed.getsockname()[1]}"
        cluster = {"name": "shop", "bootstrap": bootstrap, "timeout_seconds": 2}
        diagnosis = found(config(tmp_path, clusters=[cluster]), "cluster shop")
    assert diagnosis.result is CheckResult.FAILED
    assert diagnosis.advice


def test_a_check_that_breaks_is_a_failed_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("a\nb")

    monkeypatch.setattr("lagwise_app.doctor.checks._memory", explode)
    everything = list(diagnoses(config(tmp_path), start_spark=False))
    assert Diagnosis("memory", CheckResult.FAILED, "ZeroDivisionError: a\\nb") in everything
    assert everything[-1].check == "clusters"


def doctor(*arguments: str, data: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LAGWISE_")}
    return subprocess.run(
        [sys.executable, "-m", "lagwise", "doctor", "--data", str(data), *arguments],
        capture_output=True,
        text=True,
        env=environment | {"LAGWISE_DASHBOARD__PORT": "0"} | variables,
        check=False,
    )


@pytest.mark.process
def test_the_command_exits_1_only_on_failure(tmp_path: Path) -> None:
    good = doctor("--no-spark", data=tmp_path / "data")
    assert good.returncode == 0, good.stdout
    assert "✓ lake:" in good.stdout
    (tmp_path / "file").write_text("in the way")
    bad = doctor("--no-spark", "--json", data=tmp_path / "file")
    assert bad.returncode == 1
    document = json.loads(bad.stdout)
    assert document["ok"] is False
    assert "failed" in {check["result"] for check in document["checks"]}


@pytest.mark.process
def test_the_settings_of_the_last_run_on_the_data_are_checked(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    channel = {"name": "ops", "url": "http://127.0.0.1:9/", "secret": "${file:key}"}
    write_settings(Config.model_validate({"data": str(data), "alerts": {"channels": [channel]}}))

    def checks(**variables: str) -> dict[str, dict[str, str]]:
        ran = doctor("--no-spark", "--json", data=data, **variables)
        return {check["check"]: check for check in json.loads(ran.stdout)["checks"]}

    last_run = checks()
    assert str(data / "effective.yaml") in last_run["settings"]["found"]
    assert "${file:key}" in last_run["alerts"]["found"]
    (tmp_path / "named.yaml").write_text("{}")
    named = checks(LAGWISE_CONFIG=str(tmp_path / "named.yaml"))
    assert "settings" not in named
    assert "no receiver" in named["alerts"]["found"]


@pytest.mark.spark
def test_spark_is_started_and_does_a_job(tmp_path: Path) -> None:
    ran = doctor("--json", data=tmp_path / "data")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    spark = next(check for check in json.loads(ran.stdout)["checks"] if check["check"] == "Spark")
    assert spark["result"] == "ok"
    assert "did a job" in spark["found"]


@pytest.mark.spark
def test_spark_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    ran = doctor("--json", data=tmp_path / "data", LAGWISE_ANALYSIS__SPARK__MASTER="nonsense")
    assert ran.returncode == 1
    spark = next(check for check in json.loads(ran.stdout)["checks"] if check["check"] == "Spark")
    assert spark["result"] == "failed"
    assert "Spark did not start" in spark["found"]


@pytest.mark.broker
def test_a_cluster_that_answers_is_checked_step_by_step(tmp_path: Path, broker: Any) -> None:
    settings = config(tmp_path, clusters=[{"name": "shop", "bootstrap": broker.bootstrap}])
    steps = [d for d in diagnoses(settings, start_spark=False) if d.check.startswith("cluster shop: ")]
    assert len(steps) > 1
    assert {d.result for d in steps} == {CheckResult.OK}


class TestCollectors:
    """Who collects a cluster, by the lease in the database and by the mark that its holder leaves in the lake."""

    @staticmethod
    def diagnosed(tmp_path: Path, written_by: str) -> list[Diagnosis]:
        """A process took the lease at noon, and the newest sample is of ten minutes later."""
        settings = config(tmp_path, clusters=[{"name": "shop", "bootstrap": "127.0.0.1:9"}])
        engine = open_engine(settings.database_url)
        noon = datetime.now(UTC) - timedelta(hours=1)
        lease = Lease(engine, "collector shop", now=lambda: noon)
        lease.ask()
        engine.dispose()
        mark = {"this": lease.hold_id or 0, "another": 7}[written_by]
        lake = Lake(settings.lake_uri)
        lake.create(SAMPLES)
        at = noon + timedelta(minutes=10)
        sample = row(SAMPLES, cluster="shop", started_at=at, finished_at=at, written_at=at)
        lake.append(SAMPLES, SAMPLES.from_rows([sample]), transactions={"lagwise-collector-shop-hold": mark})
        return list(check_collectors(settings))

    def test_the_process_is_named(self, tmp_path: Path) -> None:
        [diagnosis] = self.diagnosed(tmp_path, "this")
        assert (diagnosis.check, diagnosis.result) == ("cluster shop: collector", CheckResult.OK)
        assert diagnosis.found.startswith(f"process {os.getpid()} on {socket.gethostname()} (since ")

    def test_a_second_one_with_another_database_is_noticed(self, tmp_path: Path) -> None:
        [diagnosis] = self.diagnosed(tmp_path, "another")
        assert diagnosis.result is CheckResult.WARNING
        assert diagnosis.found.endswith("collects it, and so does a process that has another operational database")
        assert diagnosis.advice is not None

    def test_without_a_collector_there_is_nothing_to_say(self, tmp_path: Path) -> None:
        assert list(check_collectors(config(tmp_path, clusters=[{"name": "shop", "bootstrap": "127.0.0.1:9"}]))) == []
        assert list(tmp_path.iterdir()) == []
