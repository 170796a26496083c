"""Which processes there are, and what each is told."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lagwise.config import Config, load_config
from lagwise.platform.errors import ConfigError, LagwiseError
from lagwise_app.supervisor.effective_settings import (
    child_environment,
    dashboard_address,
    overridden,
    with_dashboard_port,
    write_settings,
)
from lagwise_app.supervisor.processes import product_processes


def config(**settings: object) -> Config:
    return Config.model_validate(settings)


def test_the_command_line_wins_and_keeps_the_rest() -> None:
    before = config(data="a", clusters=[{"name": "shop", "bootstrap": "h:1", "interval_seconds": 5}])
    after = overridden(before, bootstrap="h:2", data="b")
    assert (after.data, after.clusters[0].bootstrap) == ("b", "h:2")
    assert (after.clusters[0].name, after.clusters[0].interval_seconds) == ("shop", 5)
    assert overridden(before, bootstrap=None, data=None) == before
    assert overridden(Config(), bootstrap="h:1", data=None).clusters[0].name == "kafka"


@pytest.mark.parametrize(("bootstrap", "data"), [("", None), (None, "")])
def test_the_command_line_is_checked_too(bootstrap: str | None, data: str | None) -> None:
    with pytest.raises(ConfigError, match="the settings in the command line cannot be used"):
        overridden(Config(), bootstrap=bootstrap, data=data)


def test_the_children_s_file_means_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = config(
        data="here",
        alerts={
            "rules_file": "rules.yaml",
            "channels": [{"name": "chat", "type": "slack", "url": "${env:LAGWISE_SECRET_Y}", "ca_file": "ca.pem"}],
        },
        clusters=[{"bootstrap": "h:1", "librdkafka": {"sasl.password": "${env:LAGWISE_SECRET_X}"}}],
    )
    path = write_settings(before)
    monkeypatch.chdir("/")
    after = load_config(path, environment={})
    assert path == tmp_path / "here" / "effective.yaml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (after.lake_uri, after.state) == (str(tmp_path / "here" / "lake"), tmp_path / "here")
    assert after.alerts.rules_file == tmp_path / "rules.yaml"
    assert [channel.ca_file for channel in after.alerts.channels if channel.type == "slack"] == [tmp_path / "ca.pem"]
    assert after.clusters == before.clusters  # the secret is still a reference


def test_a_state_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LagwiseError, match="cannot write to the state folder"):
        write_settings(config(data=str(tmp_path / "file" / "data")))


def test_children_take_their_settings_from_the_file_alone(tmp_path: Path) -> None:
    env = child_environment(
        tmp_path / "effective.yaml",
        {
            "PATH": "/bin",
            "LAGWISE_DATA": "elsewhere",
            "LAGWISE_CLUSTERS__0__BOOTSTRAP": "h:1",
            "LAGWISE_CONFIG": "other.yaml",
            "LAGWISE_DEBUG": "1",
            "LAGWISE_SECRET_X": "hunter2",
        },
    )
    assert env == {
        "PATH": "/bin",
        "LAGWISE_CONFIG": str(tmp_path / "effective.yaml"),
        "LAGWISE_DEBUG": "1",
        "LAGWISE_SECRET_X": "hunter2",
        "PYTHONUNBUFFERED": "1",
    }


def test_a_free_port_is_found_and_linked() -> None:
    chosen = with_dashboard_port(config(dashboard={"port": 0}))
    assert chosen.dashboard.port > 0
    assert chosen.alerts.dashboard_url == f"http://127.0.0.1:{chosen.dashboard.port}"


def test_a_link_that_was_given_is_kept() -> None:
    chosen = with_dashboard_port(config(alerts={"dashboard_url": "https://lagwise.example"}, dashboard={"port": 1234}))
    assert chosen.dashboard.port == 1234
    assert chosen.alerts.dashboard_url == "https://lagwise.example"


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://127.0.0.1:80"),
        ("::1", "http://[::1]:80"),
        ("monitor.example", "http://monitor.example:80"),
    ],
)
def test_the_address_to_open(host: str, address: str) -> None:
    assert dashboard_address(host, 80) == address


def test_the_processes_are_four_and_need_no_shell(tmp_path: Path) -> None:
    specs = product_processes(config(data=str(tmp_path)), tmp_path / "effective.yaml")
    assert [spec.name for spec in specs] == ["collector", "analysis", "alerts", "dashboard"]
    assert all(spec.command[0] == sys.executable for spec in specs)
    assert all(spec.environment["LAGWISE_CONFIG"] == str(tmp_path / "effective.yaml") for spec in specs)
    assert [spec.line for spec in specs] == ["starting", "starting", "starting", "serves http://127.0.0.1:8501"]
    assert len(product_processes(config(data=str(tmp_path)), tmp_path / "effective.yaml", dashboard=False)) == 3


def test_servers_for_other_programs_run_where_they_have_a_port(tmp_path: Path) -> None:
    ports = {"scaling": {"port": 1}, "server": {"port": 2}, "mcp": {"port": 3}}
    found = {
        one.name: one.command[4:] for one in product_processes(config(data=str(tmp_path), **ports), tmp_path / "x")
    }
    others = {"scaling": ["scaling"], "server": ["serve"], "mcp": ["mcp", "--http"]}
    assert {name: command for name, command in found.items() if name in others} == others


@pytest.mark.process
def test_the_analysis_imports_nothing_that_the_first_verdicts_do_not_need() -> None:
    """What only forecasts and capacity verdicts need takes more CPU than all of the rest, before Spark is started."""
    code = "import lagwise_spark.run, sys; print(sorted({'scipy', 'pandas', 'statsforecast'} & {*sys.modules}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout.strip() == "[]"
