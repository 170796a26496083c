"""Settings: one file, the environment over it, everything wrong refused with the key's path and what is allowed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lagwise.config import Config, load_config
from lagwise.platform.errors import ConfigError


def written(folder: Path, text: str) -> Path:
    path = folder / "lagwise.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, text: str, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(written(folder, text), environment=environment or {})
    return str(caught.value)


@pytest.mark.parametrize(
    ("lists", "keys"),
    [
        ({"clusters": [{"bootstrap": "h:1"}]}, "system name bootstrap groups"),
        ({"clusters": [{"system": "rocketmq", "name_servers": "h:1"}]}, "system name name_servers groups"),
        (
            {"alerts": {"channels": [{"name": "on-call", "url": "http://h"}]}},
            "type name url timeout_seconds attempt_timeout_seconds ca_file authorization secret",
        ),
        (
            {"alerts": {"channels": [{"type": "alertmanager", "name": "am", "url": "http://h"}]}},
            "type name url timeout_seconds",
        ),
    ],
)
def test_what_names_an_entry_comes_first_and_then_its_address(lists: dict[str, Any], keys: str) -> None:
    config = Config.model_validate(lists).model_dump(mode="json")
    (entry,) = (config.get("clusters") or []) + config["alerts"]["channels"]
    assert " ".join(entry).startswith(keys)


def test_errors_come_in_the_same_order(tmp_path: Path) -> None:
    lines = refused(tmp_path, "clusters: [{interval_seconds: 0, bootstrap: '', name: ''}]").splitlines()
    found = [line.split(":")[0].rpartition(".")[2] for line in lines if line.startswith("  ")]
    assert found == ["name", "bootstrap", "interval_seconds"]


def test_without_anything_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config(environment={}) == Config()


def test_the_working_directory_s_file_is_found_and_the_named_one_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "data: here")
    other = tmp_path / "other.yaml"
    other.write_text("data: there", encoding="utf-8")
    assert load_config(environment={}).data == "here"
    assert load_config(environment={"LAGWISE_CONFIG": str(other)}).data == "there"
    assert load_config(tmp_path / "lagwise.yaml", environment={"LAGWISE_CONFIG": str(other)}).data == "here"


def test_the_environment_wins_over_the_file_key_by_key(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        clusters:
          - {name: a, bootstrap: "a:9092", interval_seconds: 30}
        analysis: {interval_seconds: 20, risk_horizon_seconds: 100}
        """,
    )
    config = load_config(
        path,
        environment={
            "LAGWISE_CLUSTERS__0__BOOTSTRAP": "b:9092",
            "LAGWISE_CLUSTERS__1__NAME": "second",
            "LAGWISE_CLUSTERS__1__BOOTSTRAP": "c:9092",
            "LAGWISE_CLUSTERS__1__GROUPS__EXCLUDE": "['tmp-.*', '.*-test']",
            "LAGWISE_ANALYSIS__INTERVAL_SECONDS": "5",
            "UNRELATED": "x",
        },
    )
    assert [c.bootstrap for c in config.clusters] == ["b:9092", "c:9092"]
    assert config.clusters[0].interval_seconds == 30
    assert config.clusters[1].groups.exclude == ("tmp-.*", ".*-test")
    assert config.analysis.interval_seconds == 5
    assert config.analysis.risk_horizon_seconds == 100


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("LAGWISE_DATA", "10:30", lambda c: c.data),  # YAML 1.1 reads 630
        ("LAGWISE_DATA", "no", lambda c: c.data),  # … and False
        ("LAGWISE_DATA", "*anchor", lambda c: c.data),  # not YAML at all
        ("LAGWISE_DATA", "pa #ss", lambda c: c.data),  # … a comment
        ("LAGWISE_CLUSTERS__0__NAME", "007", lambda c: c.clusters[0].name),
    ],
)
def test_text_in_the_environment_stays_text(name: str, text: str, read: Callable[[Config], str]) -> None:
    config = load_config(environment={name: text, "LAGWISE_CLUSTERS__0__BOOTSTRAP": "h:1"})
    assert read(config) == text


def test_quoted_text_loses_its_quotes() -> None:
    config = load_config(environment={"LAGWISE_DATA": '"./here"', "LAGWISE_DASHBOARD": '{"port": 1}'})
    assert (config.data, config.dashboard.port) == ("./here", 1)


def test_an_empty_variable_is_null() -> None:
    assert load_config(environment={"LAGWISE_DATABASE": ""}).database is None


def test_librdkafka_keys_are_reached_from_the_environment() -> None:
    config = load_config(
        environment={
            "LAGWISE_CLUSTERS__0__BOOTSTRAP": "h:1",
            "LAGWISE_CLUSTERS__0__LIBRDKAFKA__SECURITY_PROTOCOL": "SASL_SSL",
            "LAGWISE_CLUSTERS__0__LIBRDKAFKA__SASL_PASSWORD": "${env:LAGWISE_SECRET_KAFKA}",
            "LAGWISE_SECRET_KAFKA": "hunter2",
        }
    )
    assert config.clusters[0].librdkafka == {
        "security.protocol": "SASL_SSL",
        "sasl.password": "${env:LAGWISE_SECRET_KAFKA}",
    }


def test_a_duration_may_be_written_with_units(tmp_path: Path) -> None:
    text = """
    analysis: {interval_seconds: 1m30s, forecast: {interval_hours: 2d}}
    lake: {retention: {raw_days: 48h, history_days: 90}}
    clusters: [{bootstrap: 'h:1', interval_seconds: 0.5m, lag_objective_seconds: "300"}]
    """
    config = load_config(written(tmp_path, text), environment={"LAGWISE_ALERTS__INTERVAL_SECONDS": "1500ms"})
    assert (config.analysis.interval_seconds, config.analysis.forecast.interval_hours) == (90.0, 48)
    assert (config.lake.retention.raw_days, config.lake.retention.history_days) == (2, 90)
    assert (config.clusters[0].interval_seconds, config.clusters[0].lag_objective_seconds) == (30.0, 300.0)
    assert config.alerts.interval_seconds == 1.5


def test_a_key_without_a_value_in_the_file_can_be_filled_from_the_environment(tmp_path: Path) -> None:
    path = written(tmp_path, "clusters:\nanalysis:\n  interval_seconds: 3\n")
    config = load_config(path, environment={"LAGWISE_CLUSTERS__0__BOOTSTRAP": "h:1"})
    assert config.clusters[0].bootstrap == "h:1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dta: x", "dta: there is no such setting; known here: alerts, analysis, clusters, dashboard, data"),
        (
            "analysis: {intervall: 3}",
            "analysis.intervall: there is no such setting; known here: capacity, forecast, interval_seconds",
        ),
        ("clusters: [{bootstrap: 'h:1', grups: {}}]", "clusters.0.grups: there is no such setting; known here: boot"),
        ("clusters: [{name: a}]", "clusters.0.bootstrap: is required"),
        ("clusters: [{system: rocketmq}]", "clusters.0.name_servers: is required"),
        ("clusters: [{system: pulsar, bootstrap: 'h:1'}]", "clusters.0: system must be kafka or rocketmq"),
        (
            "clusters: [{system: rocketmq, name_servers: 'h:1', tls: {verified: true}}]",
            "clusters.0.tls.verified: there is no such setting; known here: ca_file",
        ),
        (
            "clusters: [{system: rocketmq, name_servers: 'h:1', access_key: a}]",
            "clusters.0: access_key and secret_key go together",
        ),
        (
            "clusters: [{bootstrap: 'h:1', name: 'a b'}]",
            "clusters.0.name: must be 1 to 100 letters, digits, dots",
        ),
        (
            "clusters: [{bootstrap: 'h:1', interval_seconds: 0}]",
            "must be greater than or equal to 1, not 0",
        ),
        ("clusters: [{bootstrap: 'h:1', groups: {include: ['(']}}]", "groups.include: '(' is not a regular expression"),
        ("clusters: [{bootstrap: 'h:1'}, {bootstrap: 'h:2'}]", "clusters: the name 'kafka' is given twice"),
        ("dashboard: {port: 70000}", "dashboard.port: must be less than or equal to 65535, not 70000"),
        (
            "alerts: {channels: [{name: a, url: 'ftp://x'}]}",
            "alerts.channels.0.url: must be an address http://… or https://…",
        ),
        (
            "alerts: {channels: [{name: a, type: mail, url: 'http://x'}]}",
            "alerts.channels.0.type: must be one of 'webhook',",
        ),
        (
            "analysis: {spark: {driver_memory: lots}}",
            "driver_memory: must be a whole number and its unit, as in 512m or 1g, not 'lots'",
        ),
        (
            "analysis: {spark: {conf: {spark.executor.extraJavaOptions: -Dstore.password=hunter2}}}",
            "analysis.spark.conf: spark.executor.extraJavaOptions is visible on the executors' command lines",
        ),
        ("dashboard: {port: x}", "dashboard.port: must be a whole number, not 'x'"),
        ("lake: {retention: {raw_days: 1.5}}", "lake.retention.raw_days: must be a whole number, not 1.5"),
        (
            "analysis: {interval_seconds: soon}",
            "analysis.interval_seconds: must be a number of seconds, or a number and a unit (ns, us, ms, s, m, h, d), "
            "as in 12ms, 30s or 1h30m, not 'soon'",
        ),
        ("lake: {retention: {raw_days: 36h}}", "lake.retention.raw_days: must be a whole number, not 1.5"),
        ("dashboard: {refresh_seconds: 500ms}", "dashboard.refresh_seconds: must be greater than or equal to 2"),
        ("dashboard: {host: 5}", "dashboard.host: must be a text, not 5"),
        ("clusters: {name: a}", "clusters: must be a list"),
        ("dashboard: here", "dashboard: must have keys and values"),
        ("- a list", "must hold keys and values at its top level, not a list"),
        ("{1: x}", "keys should be strings"),
    ],
)
def test_what_cannot_be_is_refused_by_path(tmp_path: Path, text: str, says: str) -> None:
    assert says in refused(tmp_path, text)


def test_every_problem_is_named_at_once(tmp_path: Path) -> None:
    message = refused(tmp_path, "analysis: {interval_seconds: -1}\ndashboard: {port: x}\nnonsense: 1")
    assert "analysis.interval_seconds" in message
    assert "dashboard.port" in message
    assert "nonsense" in message


@pytest.mark.parametrize(
    "text",
    [
        "clusters: [{bootstrap: 'h:1', librdkafka: {sasl.password: hunter2}}]",
        "clusters: [{bootstrap: 'h:1', librdkafka: {ssl.key.pem: hunter2}}]",
        "clusters: [{system: rocketmq, name_servers: 'h:1', access_key: a, secret_key: hunter2}]",
        "alerts: {channels: [{name: a, url: 'http://x', secret: hunter2}]}",
        "lake: {storage_options: {aws_secret_access_key: hunter2}}",
    ],
)
def test_a_secret_in_the_file_is_refused_without_repeating_it(tmp_path: Path, text: str) -> None:
    message = refused(tmp_path, text)
    assert "is a secret: write ${env:NAME} or ${file:/path}" in message
    assert "hunter2" not in message


def test_a_setting_keeps_its_capitals_in_messages(tmp_path: Path) -> None:
    message = refused(tmp_path, "lake: {storage_options: {AWS_SECRET_ACCESS_KEY: hunter2}}")
    assert " AWS_SECRET_ACCESS_KEY is a secret: " in message


@pytest.mark.parametrize(
    "text",
    [
        "alerts: {channels: [{name: a, url: 'hunter2'}]}",
        "alerts: {channels: ['https://x.example/hunter2']}",
        "alerts: {channels: hunter2}",
        "alerts: {heartbeat: 'https://x.example/hunter2'}",
        "alerts: {channels: [{name: a, url: 'http://x', secret: 1234567}]}",
        "lake: {storage_options: {account_key: 1234567}}",
        "database: 1234567",
        "clusters: [{bootstrap: 'h:1', librdkafka: hunter2}]",
    ],
)
def test_a_refused_value_that_may_be_a_secret_is_not_repeated(tmp_path: Path, text: str) -> None:
    message = refused(tmp_path, text)
    assert "must " in message
    assert "hunter2" not in message
    assert "1234567" not in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("data: x\nclusters: [{sasl.password: hunter2, : }\n", "line 2, column 37: "),
        ("database: *hunter2", "line 1, column 11: found undefined alias '…'"),
        ("database: !hunter2", "line 1, column 11: could not determine a constructor for the tag '…'"),
        ("database: !!int hunter2", "a value that does not fit its tag (!!…)"),
        ("database: 2026-13-45", "it contains a date that does not exist"),
    ],
)
def test_broken_yaml_is_placed_without_quoting_what_is_there(tmp_path: Path, text: str, says: str) -> None:
    message = refused(tmp_path, text)
    assert "is not YAML: " in message
    assert says in message
    assert "hunter2" not in message


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lagwise.yaml"
    path.write_bytes(b"data: \xff\xfe")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load_config(path, environment={})
    path.write_bytes(b"data: \x00")
    with pytest.raises(ConfigError, match="a character that YAML does not allow"):
        load_config(path, environment={})


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the settings file .*nowhere\.yaml: No such file"):
        load_config(tmp_path / "nowhere.yaml", environment={})


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("LAGWISE_DTAA", "dtaa (LAGWISE_DTAA): there is no such setting"),
        ("LAGWISE_ANALYSIS__SPARK__DRIVER_MEMORY", "driver_memory (LAGWISE_ANALYSIS__SPARK__DRIVER_MEMORY): must be a"),
        ("LAGWISE_DASHBOARD", "dashboard (LAGWISE_DASHBOARD): must have keys and values"),
        ("LAGWISE_CLUSTERS__5__BOOTSTRAP", "'5' is not a position of a list that has 0 entries"),
        ("LAGWISE_CLUSTERS__X__BOOTSTRAP", "clusters (LAGWISE_CLUSTERS__X__BOOTSTRAP): must be a list"),
        ("LAGWISE_DATA__X", "LAGWISE_DATA__X names a key below a setting that has no keys"),
    ],
)
def test_a_variable_that_leads_nowhere_is_refused(tmp_path: Path, name: str, says: str) -> None:
    assert says in refused(tmp_path, "data: there", {name: "1"})


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    local = Config(data="here")
    assert local.lake_uri == str(tmp_path / "here" / "lake")
    assert local.state == tmp_path / "here"
    assert local.database_url == f"sqlite:///{tmp_path}/here/lagwise.db"
    remote = Config(data="s3://bucket/prefix/")
    assert remote.lake_uri == "s3://bucket/prefix/lake"
    assert remote.state == tmp_path / "lagwise-data"
    assert Config(data=f"file://{tmp_path}/x").lake_uri == f"{tmp_path}/x/lake"


def test_group_selection_matches_whole_names() -> None:
    config = load_config(
        environment={
            "LAGWISE_CLUSTERS__0__BOOTSTRAP": "h:1",
            "LAGWISE_CLUSTERS__0__GROUPS": "{include: ['shop-.*'], exclude: ['.*-tmp']}",
        }
    )
    groups = config.clusters[0].groups
    assert groups.selects("shop-orders")
    assert not groups.selects("my-shop-orders")
    assert not groups.selects("shop-orders-tmp")
