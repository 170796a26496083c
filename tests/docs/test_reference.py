"""The reference pages say what the code says, whole and current."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from click.testing import CliRunner
from pydantic import BaseModel

from lagwise.config import Config, load_config
from lagwise.config.visibility import Visibility
from lagwise.platform.errors import ConfigError
from lagwise.tables import ALL_TABLES
from lagwise_app.cli import cli
from lagwise_app.terminal.lake_queries import PARTITION_COLUMNS

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """The cells of every table row of a page; a bar inside a cell is written ``\\|``."""
    return [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in text.splitlines()
        if line.startswith("|")
    ]


def test_the_pages_are_current() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "reference.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def uncommented() -> str:
    """The YAML reference with every setting taken out of its comment."""
    return re.sub(r"(?m)^( *)#(?=\S)", r"\1", page("lagwise.yaml"))


def test_the_yaml_reference_changes_nothing_before_it_is_uncommented(tmp_path: Path) -> None:
    settings = tmp_path / "lagwise.yaml"
    settings.write_text(page("lagwise.yaml"))
    assert load_config(settings, environment={}) == Config()


def test_the_yaml_reference_is_accepted_uncommented_and_has_the_defaults(tmp_path: Path) -> None:
    settings = tmp_path / "lagwise.yaml"
    settings.write_text(uncommented())
    config, default = load_config(settings, environment={}), Config()
    assert [cluster.system for cluster in config.clusters] == ["kafka", "rocketmq"]
    assert config.server.metrics.otlp is not None
    assert [token.visibility for token in config.server.tokens] == [Visibility()]
    metrics = config.server.metrics.model_copy(update={"otlp": None})
    server = config.server.model_copy(update={"metrics": metrics, "tokens": ()})
    assert (config.lake, config.scaling, server, config.analysis.spark) == (
        default.lake,
        default.scaling,
        default.server,
        default.analysis.spark,
    )
    assert config.alerts.grouping == default.alerts.grouping
    assert config.alerts.heartbeat is not None
    assert config.dashboard.sign_in is not None


def test_the_yaml_reference_has_every_setting() -> None:
    written = set(re.findall(r"LAGWISE_\w+", page("lagwise.yaml")))
    lists = {key for key, field in keys(Config).items() if list(models(field.annotation))}
    for key in set(keys(Config)) - lists:
        assert "LAGWISE_" + re.sub(r"\[\w*\]\.", "__0__", key).upper().replace(".", "__") in written


def keys(model: type[BaseModel], before: str = "") -> dict[str, Any]:
    """Every setting below a model that is not a map of settings itself, found without the generator's help."""
    found: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        key = before + name
        inner = list(models(field.annotation))
        if inner and get_origin(field.annotation) is not tuple:
            found |= keys(inner[0], f"{key}.")
            continue
        found[key] = field
        for one in inner:
            kind = kind_of(one) if len(inner) > 1 else ""
            found |= keys(one, f"{key}[{kind}].")
    return found


def kind_of(model: type[BaseModel]) -> str:
    """The kind of an entry of a list with several kinds; empty for Kafka, the default."""
    field = model.model_fields.get("system") or model.model_fields["type"]
    kind: str = get_args(field.annotation)[0]
    return "" if kind == "kafka" else kind


def models(annotation: Any) -> list[type[BaseModel]]:
    """Every model in an annotation: itself, in a list, or one of several."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in models(argument)]


def documented_settings() -> dict[str, list[str]]:
    return {row[0].strip("`"): row for row in rows(page("configuration.md")) if row[0].startswith("`")}


def test_every_setting_is_documented_and_no_other() -> None:
    assert set(documented_settings()) == set(keys(Config))


@pytest.mark.parametrize("key", sorted(keys(Config)))
def test_a_setting_has_variable_default_and_meaning(key: str) -> None:
    field, (_, variable, allowed, default, meaning) = keys(Config)[key], documented_settings()[key]
    assert variable == "`LAGWISE_" + re.sub(r"\[.*?\]\.", "__0__", key).upper().replace(".", "__") + "`"
    assert len(meaning) > 10
    assert allowed
    if field.is_required():
        assert default == "required"
    elif isinstance(field.default, str | int | float):
        assert default == f"`{field.default:g}`" if isinstance(field.default, float) else f"`{field.default}`"


#: A value for each setting's variable, other than its default.
_OTHER = {
    "log_format": "json",
    "analysis.capacity.size_by": "peak",
    "data": "other",
    "state_dir": "/tmp/x",
    "database": "sqlite://",
    "clusters": "[]",
    "alerts.channels": "[]",
    "alerts.maintenance": "[]",
    "alerts.maintenance[].name": "other",
    "alerts.maintenance[].clusters.include": "['a']",
    "alerts.maintenance[].clusters.exclude": "['a']",
    "alerts.maintenance[].groups.include": "['a']",
    "alerts.maintenance[].groups.exclude": "['a']",
    "alerts.maintenance[].time_zone": "Europe/Berlin",
    "alerts.maintenance[].days": "[sun]",
    "alerts.maintenance[].start_time": "21:00",
    "alerts.maintenance[].end_time": "21:00",
    "alerts.maintenance[].starts_at": "2026-11-20T00:00:00",
    "alerts.maintenance[].ends_at": "2026-11-29T00:00:00",
    "alerts.heartbeat.url": "https://other",
    "server.metrics.otlp": "{url: https://other}",
    "server.metrics.otlp.url": "https://other",
    "server.metrics.otlp.authorization": "${env:OTHER}",
    "dashboard.sign_in.operators": "['a']",
    "dashboard.sign_in.viewers": "['a']",
    "dashboard.sign_in.teams": "[]",
    "dashboard.sign_in.teams[].name": "other",
    "dashboard.sign_in.teams[].members": "['b']",
    "dashboard.sign_in.teams[].clusters.include": "['a']",
    "dashboard.sign_in.teams[].clusters.exclude": "['a']",
    "dashboard.sign_in.teams[].groups.include": "['a']",
    "dashboard.sign_in.teams[].groups.exclude": "['a']",
    "dashboard.sign_in.teams[].may_operate": "true",
    "clusters[].name": "other",
    "clusters[].bootstrap": "h:2",
    "clusters[].librdkafka": "{client.id: me}",
    "clusters[].oauth_token_function": "other:token",
    "clusters[].skip_control_records": "false",
    "clusters[].side_topics.retry": "['(a)']",
    "clusters[].side_topics.dead_letter": "['(a)']",
    "scaling.token": "${env:X}",
    "server.token": "${env:X}",
    "server.tokens": "[]",
    "server.tokens[].name": "other",
    "server.tokens[].token": "${env:OTHER}",
    "server.tokens[].role": "metrics",
    **{f"server.tokens[].{kind}.{part}": "['a']" for kind in ("clusters", "groups") for part in ("include", "exclude")},
    "server.metrics.name_sets": "[kminion]",
    "server.metrics.groups.include": "['a']",
    "server.metrics.groups.exclude": "['a']",
    "analysis.capacity.nodes": "[{cores: 4}]",
    "analysis.capacity.nodes[].groups.include": "['a']",
    "analysis.capacity.nodes[].groups.exclude": "['a']",
    "analysis.capacity.target_utilisation": "0.5",
    "alerts.rules_file": "/tmp/rules.yaml",
    "alerts.dashboard_url": "https://other",
    "dashboard.runbook_url": "https://other",
    "dashboard.time_zone": "Asia/Kolkata",
    "analysis.spark.master": "yarn",
    "analysis.spark.driver_memory": "2g",
    "analysis.spark.conf": "{spark.a: b}",
    "lake.storage_options": "{aws_region: here}",
    "dashboard.cluster_notes": '{"staging": "a load test"}',
    "dashboard.host": "0.0.0.0",
    "clusters[].offsets_topic": "true",
    "clusters[].groups.include": "['a']",
    "clusters[].system": "kafka",
    "clusters[rocketmq].system": "rocketmq",
    "clusters[rocketmq].groups.include": "['a']",
    "clusters[rocketmq].groups.exclude": "['a']",
    "clusters[rocketmq].ask_members": "false",
    "clusters[rocketmq].secret_key": "${env:X}",
    "clusters[rocketmq].tls.enabled": "true",
    "clusters[rocketmq].tls.verify": "false",
    "clusters[rocketmq].tls.verify_host_name": "false",
    "clusters[].groups.exclude": "['a']",
    "clusters[].external_offsets": "[{name: b, type: files, path: /y}]",
    "clusters[].external_offsets[flink].jobs": "{a: b}",
    "clusters[].external_offsets[flink].token": "${env:X}",
    "clusters[].external_offsets[flink].url": "http://other",
    "clusters[].external_offsets[sql].url": "sqlite:///other",
    "clusters[].external_offsets[files].format": "csv",
    **{f"clusters[].external_offsets[{kind}].timeout_seconds": "7" for kind in ("spark", "sql", "files", "flink")},
    "clusters[].lag_objectives": "[{groups: {}, lag_objective_seconds: 7}]",
    "clusters[].lag_objectives[].groups.include": "['a']",
    "clusters[].lag_objectives[].groups.exclude": "['a']",
}


#: The same for the settings of RocketMQ clusters …
_OTHER_OF_ROCKETMQ = {
    "system": "kafka",
    "groups.include": "['a']",
    "groups.exclude": "['a']",
    "ask_members": "false",
    "secret_key": "${env:X}",
    "tls.enabled": "true",
    "tls.verify": "false",
    "tls.verify_host_name": "false",
    "lag_objectives": "[{groups: {}, lag_objective_seconds: 7}]",
    "lag_objectives[].groups.include": "['a']",
    "lag_objectives[].groups.exclude": "['a']",
    "local_offsets": "{path: /y/*/*/offsets.json}",
    "local_offsets.path": "/y/*/*/offsets.json",
    "local_offsets.timeout_seconds": "7",
}
#: … and for those of channels, by the last part of the key.
_OTHER_OF_CHANNELS = {
    "name": "other",
    "url": "${env:OTHER}",
    "secret": "${env:OTHER}",
    "authorization": "${env:OTHER}",
    "routing_key": "${env:OTHER}",
    "password": "${env:OTHER}",
    "labels": "{team: shop}",
    "ca_file": "/tmp/ca.pem",
    "host": "other",
    "security": "tls",
    "username": "other",
    "sender": "other@there.example",
    "to": "[other@there.example]",
    "expire_seconds": "7777",
}
#: What a channel of each type must have.
_NEEDED = {
    "webhook": {"url": "http://h"},
    "alertmanager_webhook": {"url": "http://h"},
    "alertmanager": {"url": "http://h"},
    "pagerduty": {"routing_key": "${env:X}"},
    "slack": {"url": "${env:X}"},
    "teams": {"url": "${env:X}"},
    "email": {"host": "h", "sender": "a@h", "to": ["b@h"], "username": "me", "password": "${env:X}"},
    "apprise": {"url": "${env:X}"},
}


#: What a source of offsets of each type must have.
_SOURCES = {
    "spark": {"path": "/x", "group": "g"},
    "sql": {"url": "sqlite://", "query": "q"},
    "files": {"path": "/x"},
    "flink": {"url": "http://h"},
}
_ROCKETMQ = {
    "system": "rocketmq",
    "name_servers": "h:1",
    "access_key": "a",
    "secret_key": "${env:A}",
    "local_offsets": {"path": "/x/*/*/offsets.json"},
}


def _window(key: str) -> dict[str, Any]:
    """A maintenance window that has the setting of this key: some are of a single one, the others of every week."""
    if key.endswith(("starts_at", "ends_at")):
        return {"name": "w", "starts_at": "2026-11-21T00:00:00", "ends_at": "2026-11-22T00:00:00"}
    return {"name": "w", "days": ["mon"], "start_time": "22:00", "end_time": "23:00"}


@pytest.mark.parametrize("key", sorted(keys(Config)))
def test_the_documented_variable_sets_the_setting(key: str, tmp_path: Path) -> None:
    settings = tmp_path / "lagwise.yaml"
    kind = key.partition("channels[")[2].partition("]")[0]
    of_rocketmq = key.partition("clusters[rocketmq].")[2]
    channel = {"name": "a", "type": kind or "webhook", **_NEEDED[kind or "webhook"]}
    other = _OTHER_OF_CHANNELS.get(key.rpartition(".")[2], "77") if kind else _OTHER.get(key, "77")
    if of_rocketmq:
        other = _OTHER_OF_ROCKETMQ.get(of_rocketmq, "77")
    cluster: dict[str, Any] = {"bootstrap": "h:1"} if not of_rocketmq else _ROCKETMQ
    place = key.partition("external_offsets[")[2].partition("]")[0]
    if place:
        cluster["external_offsets"] = [{"name": "a", "type": place, **_SOURCES[place]}]
    tree = {
        "clusters": [{**cluster, "lag_objectives": [{"groups": {}, "lag_objective_seconds": 5}]}],
        "alerts": {"channels": [channel], "heartbeat": {"url": "https://h"}, "maintenance": [_window(key)]},
        "server": {"metrics": {"otlp": {"url": "https://h"}}, "tokens": [{"name": "a", "token": "${env:X}"}]},
        "analysis": {"capacity": {"nodes": [{"cores": 2}]}},
        "dashboard": {"sign_in": {"auth_file": "/tmp/auth.toml", "teams": [{"name": "a", "members": ["a"]}]}},
    }
    settings.write_text(json.dumps(tree))
    variable = documented_settings()[key][1].strip("`")
    before = load_config(settings, environment={})
    if key.endswith("].type"):  # another type has other settings, which are refused by the names of its own
        with pytest.raises(ConfigError, match=rf"\.0\.type \({variable}\): must be"):
            load_config(settings, environment={variable: "nonsense"})
        return
    if key.endswith("].system"):  # another system has other settings
        with pytest.raises(ConfigError):
            load_config(settings, environment={variable: "rocketmq" if key == "clusters[].system" else "kafka"})
        return
    assert load_config(settings, environment={variable: other}) != before


def test_the_example_can_be_used(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", page("configuration.md"), re.DOTALL)
    path = tmp_path / "lagwise.yaml"
    path.write_text(example, encoding="utf-8")
    assert load_config(path, environment={}).clusters[0].name == "shop"


def test_every_table_and_column_is_documented_and_no_other() -> None:
    sections = re.split(r"^### ", page("tables.md"), flags=re.MULTILINE)[1:]
    documented = {
        section.splitlines()[0]: {row[0].strip("`"): row[1:] for row in rows(section) if row[0].startswith("`")}
        for section in sections
    }
    assert set(documented) == {table.path for table in ALL_TABLES}
    for table in ALL_TABLES:
        columns = documented[table.path]
        assert list(columns) == [column.name for column in table.columns]
        for column in table.columns:
            _, null, meaning = columns[column.name]
            assert (null, meaning) == ("yes" if column.nullable else "no", column.meaning)


def test_every_command_has_its_section_and_no_other() -> None:
    """That the help in it is current is for `test_the_pages_are_current`, whose process no other test has touched."""
    sections = re.findall(r"^## lagwise (\S+)\n\n```text\nUsage: lagwise (\S+) ", page("cli.md"), re.MULTILINE)
    assert sections == [(name, name) for name in cli.commands]


@pytest.mark.parametrize(
    "name", [name for name, c in cli.commands.items() if "--json" in {o for p in c.params for o in p.opts}]
)
def test_every_json_output_is_described(name: str) -> None:
    section = page("cli.md").partition(f"\n## lagwise {name}\n")[2].partition("\n## lagwise ")[0]
    after_the_help = section.split("```")[2]
    assert "json`" in after_the_help


def described(name: str) -> set[str]:
    """Every word in code style in the description of a command's JSON."""
    section = page("cli.md").partition(f"\n## lagwise {name}\n")[2].partition("\n## lagwise ")[0]
    return set(re.findall(r"`([a-z0-9_]+)`", section.split("```", 2)[2]))


def test_the_described_keys_are_those_that_are_printed() -> None:
    assert set(PARTITION_COLUMNS) <= described("lag")
    workload = ["--t1", "12ms", "--t2", "3ms", "--cores", "8", "--peak", "2000", "--partitions", "480"]
    sizes = CliRunner().invoke(cli, ["size", *workload, "--json"], prog_name="lagwise")
    assert set(json.loads(sizes.stdout)) <= described("size")


def test_the_described_costs_are_those_that_are_measured() -> None:
    from dataclasses import fields

    from lagwise_collectors.pipeline import RunCost
    from lagwise_spark.jobs.tick import TickCost

    assert {field.name for field in fields(TickCost)} <= described("analyze")
    assert {field.name for field in fields(RunCost)} <= described("collect")


def test_the_described_demo_is_what_the_demo_prints() -> None:
    from datetime import UTC, datetime

    from lagwise_app.demo.expectations import ExpectedGroups
    from lagwise_app.demo.memory_use import MemoryUse
    from lagwise_app.demo.report import DemoOutcome, document
    from lagwise_app.demo.webhook_receiver import ReceivedAlert
    from lagwise_app.supervisor.supervisor import ProcessState, ProcessStatus
    from lagwise_sandbox.scenarios import SCENARIOS

    now = datetime.now(UTC)
    process = ProcessStatus("collector", ProcessState.RUNNING, 1, 0, "", None, None)
    printed = document(
        DemoOutcome(ExpectedGroups(SCENARIOS), [], now, 1.0, [process], MemoryUse(), [ReceivedAlert(now, True, {})]),
        wall_seconds=2.0,
    )
    words = described("demo")
    assert set(printed) <= words
    for key in ("groups", "alerts", "processes"):
        assert set(printed[key][0]) <= words


def test_the_described_freshness_is_what_status_prints() -> None:
    from dataclasses import fields

    from lagwise_app.doctor.diagnosis import Diagnosis
    from lagwise_app.terminal.lake_queries import ClusterFreshness, LakeFreshness

    assert {f.name for f in (*fields(LakeFreshness), *fields(ClusterFreshness))} <= described("status")
    assert {f.name for f in fields(Diagnosis)} <= described("doctor")
