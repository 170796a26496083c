"""The command line: answers as text and as JSON, errors as one line, nothing obeyed that a stranger wrote."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner, Result

from lagwise.platform.logs import DEBUG_VARIABLE
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.minutes import MINUTES
from lagwise.tables.raw import SAMPLES
from lagwise.tables.store import Lake
from lagwise_app.cli import cli
from lagwise_app.terminal.lake_queries import PARTITION_COLUMNS
from tests.app.judged import HOSTILE, analyzed, append, group, partition, row, sampled
from tests.domain.lags import statistics_of

pytestmark = pytest.mark.thorough


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("LAGWISE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv(DEBUG_VARIABLE, "0")
    monkeypatch.chdir(tmp_path)


def lagwise(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="lagwise")


def answer(*arguments: str) -> Any:
    shown = lagwise(*arguments)
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.count("\n") == 1
    return json.loads(shown.stdout)


@pytest.mark.parametrize("option", ["--config", "--debug"])
def test_an_option_of_every_command_after_the_command_is_told_its_place(option: str) -> None:
    shown = lagwise("doctor", option, "settings.yaml")
    assert shown.exit_code == 2
    assert f"No such option '{option}'. It belongs before the command: lagwise {option} … COMMAND" in shown.stderr
    assert "belongs before" not in lagwise("doctor", "--nonsense").stderr


@pytest.fixture
def data(lake: Lake, tmp_path: Path) -> str:
    """A data folder with three groups, sampled and analyzed just now."""
    now = datetime.now(UTC)
    sampled(lake, now - timedelta(seconds=3), errors={"timeout": 2})
    analyzed(lake, now - timedelta(seconds=2))
    append(
        lake,
        GROUP_STATUS,
        group("billing", "ok", as_of=now, lag=0, lag_seconds=0.0),
        group(HOSTILE, "stalled", as_of=now, lag=12_345_678, lag_seconds=3723.0, sentence=f"Because of {HOSTILE}."),
        group("viewer", "unknown", as_of=now, reason="no_commit"),
    )
    append(
        lake,
        PARTITION_STATUS,
        partition(
            HOSTILE,
            0,
            topic=HOSTILE,
            log_start=5,
            committed=12,
            high_watermark=12_345_690,
            lag=12_345_678,
            lag_seconds=3723.0,
            lag_seconds_is_lower_bound=True,
            status="stalled",
            reasons=["stalled", "falling_behind"],
            client_id=HOSTILE,
        ),
        partition("viewer", 0, status="unknown", reason="no_commit", reasons=["unknown"]),
    )
    return str(tmp_path)


def harmless(text: str) -> bool:
    """No control character but the newline, and nothing that reorders or hides text."""
    return re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", text) is None


def test_status_as_json(data: str) -> None:
    document = answer("status", "--data", data, "--json")
    assert [(g["group"], g["status"], g["reason"]) for g in document["groups"]] == [
        (HOSTILE, "stalled", None),
        ("viewer", "unknown", "no_commit"),
        ("billing", "ok", None),
    ]
    assert set(document["groups"][0]) == {column.name for column in GROUP_STATUS.columns}
    assert document["groups"][0]["partitions_by_status"] == {"stalled": 2}
    assert document["freshness"]["stale"] is False
    assert document["freshness"]["clusters"][0]["errors"] == {"timeout": 2}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", document["freshness"]["as_of"])


def test_damaged_history_is_left_out_of_answers_and_named(data: str) -> None:
    lake = Lake(f"{data}/lake")
    sampled(lake, datetime.now(UTC) - timedelta(minutes=5), cluster="elsewhere")
    file = next(
        f
        for f in lake.files(SAMPLES)
        if lake.query("select 1 from read_parquet(?) where cluster = 'shop'", [f], over=[])
    )
    Path(file).write_bytes(b"PAR1 no parquet any more")
    shown = lagwise("status", "--json", "--data", data)
    assert shown.exit_code == 0, shown.stderr
    assert [g["group"] for g in json.loads(shown.stdout)["groups"]][-1] == "billing"
    assert re.fullmatch(
        r"lagwise: 1 row left out: raw/samples/day=\S+ is truncated \(.*\); see `lagwise doctor`\n", shown.stderr
    )


def test_groups_are_never_shown_in_part(data: str) -> None:
    """One that is missing would pass for one that is well."""
    for file in Lake(f"{data}/lake").files(GROUP_STATUS):
        Path(file).unlink()
    shown = lagwise("status", "--json", "--data", data)
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "group_status" in shown.stderr


def test_status_as_text(data: str) -> None:
    shown = lagwise("status", "--data", data, "--all")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert re.match(r"Data as of \d\d:\d\d:\d\d UTC, .* old$", lines[0])
    assert lines[1] == "Errors in the last sample: timeout ×2"
    assert [line.split()[0] for line in lines[3:]] == ["stalled", "unknown:", "ok", "3"]
    assert "1 h 2 min" in shown.stdout
    assert "12.3 M" in shown.stdout


def test_lag_as_json(data: str) -> None:
    document = answer("lag", HOSTILE, "--data", data, "--json")
    assert (document["group"], document["status"], document["partitions_total"]) == (HOSTILE, "stalled", 2)
    (only,) = document["partitions"]
    assert tuple(only) == PARTITION_COLUMNS
    expected = {
        "topic": HOSTILE,
        "partition": 0,
        "log_start": 5,
        "committed": 12,
        "high_watermark": 12_345_690,
        "lag": 12_345_678,
        "lag_seconds": 3723.0,
        "status": "stalled",
        "reason": None,
    }
    assert expected.items() <= only.items()
    page = urlsplit(document["dashboard_url"])
    assert parse_qs(page.query)["group"] == [HOSTILE]
    assert document["trends"] == []


def test_lag_as_text_has_every_digit(data: str) -> None:
    shown = lagwise("lag", HOSTILE, "--data", data)
    assert shown.exit_code == 0
    assert "12,345,690" in shown.stdout
    assert "Dashboard: http://127.0.0.1:8501/group?cluster=" in shown.stdout
    assert "Its lag over" not in shown.stdout
    assert "≥ 1 h 2 min" in shown.stdout


def test_lag_says_what_would_help_against_the_likely_cause(data: str) -> None:
    lake = Lake(f"{data}/lake")
    rows = lake.read(GROUP_STATUS).to_pylist()
    for one in rows:
        if one["group"] == HOSTILE:
            one |= {"what_changed": "waiting_rose", "what_changed_sentence": "T1 rose.", "what_changed_remedy": "Look."}
            one["sentence"] += " T1 rose."
    lake.replace(GROUP_STATUS, GROUP_STATUS.from_rows(rows))
    assert "What would help: Look." in lagwise("lag", HOSTILE, "--data", data).stdout
    document = answer("lag", HOSTILE, "--data", data, "--json")
    assert (document["what_changed"], document["what_changed_remedy"]) == ("waiting_rose", "Look.")


def test_a_finding_that_the_sentence_tells_as_the_cause_is_not_told_twice(data: str) -> None:
    lake = Lake(f"{data}/lake")
    rows = lake.read(GROUP_STATUS).to_pylist()
    for one in rows:
        if one["group"] == HOSTILE:
            one["sentence"] += " At 12:05:33 UTC, members crashed: once."
            kinds = (("rebalances", "Members crashed: once."), ("assignment", "2 members are idle."))
            one["findings"] = [{"kind": kind, "sentence": text, "remedy": None} for kind, text in kinds]
    lake.replace(GROUP_STATUS, GROUP_STATUS.from_rows(rows))
    shown = " ".join(lagwise("lag", HOSTILE, "--data", data).stdout.split())
    assert shown.count("embers crashed: once.") == 1
    assert "Also: 2 members are idle." in shown
    assert len(answer("lag", HOSTILE, "--data", data, "--json")["findings"]) == 2, "machines get both"


def test_lag_shows_its_growth(data: str) -> None:
    """Five minutes in which it grew by ten a second."""
    judged = answer("lag", HOSTILE, "--data", data, "--json")
    lake, end = Lake(f"{data}/lake"), datetime.fromisoformat(judged["as_of"]).replace(second=0, microsecond=0)
    minutes = []
    for minute in (end - timedelta(minutes=n) for n in range(5, 0, -1)):
        lags = [(t, 10.0 * (t + (minute - end).total_seconds()) + 5000 + t % 2) for t in (5.0, 20.0, 35.0, 50.0)]
        its = {name: sums[0] for name, sums in statistics_of([lags], [[(15.0, 150.0)] * 4]).items()}
        key = {"cluster": judged["cluster"], "group": HOSTILE, "topic": HOSTILE, "partition": 0, "minute": minute}
        key |= {"first_at": minute}
        minutes.append(row(MINUTES, **key, **its))
    append(lake, MINUTES, *minutes)
    (growth,) = answer("lag", HOSTILE, "--data", data, "--json")["trends"]
    assert (growth["window_seconds"], growth["partitions"]) == (300.0, 1)
    assert growth["low_per_second"] < 10.0 < growth["high_per_second"]
    assert growth["slope_per_second"] == pytest.approx(10.0, rel=0.01)
    assert "Lag over 5 min: grows by 10.0 records/s (" in lagwise("lag", HOSTILE, "--data", data).stdout


def test_what_is_not_known_is_a_dash_and_a_null(data: str) -> None:
    assert answer("lag", "viewer", "--data", data, "--json")["partitions"][0]["lag"] is None
    assert lagwise("lag", "viewer", "--data", data).stdout.splitlines()[-1].split()[2:7] == ["—"] * 5


@pytest.mark.parametrize(
    "arguments",
    [("status",), ("status", "--json"), ("lag", HOSTILE), ("lag", HOSTILE, "--json"), ("lag", HOSTILE + "!")],
)
def test_hostile_names_are_shown_and_not_obeyed(data: str, arguments: tuple[str, ...]) -> None:
    shown = lagwise(*arguments, "--data", data)
    assert harmless(shown.stdout)
    assert harmless(shown.stderr)
    assert "[bold red]x[/bold red]" in (shown.stdout + shown.stderr).replace("\n", "")


def test_stale_data_is_called_stale(lake: Lake, tmp_path: Path) -> None:
    append(lake, GROUP_STATUS, group("g", "ok"))
    sampled(lake, datetime.now(UTC) - timedelta(hours=2, minutes=1))
    shown = lagwise("status", "--data", str(tmp_path))
    assert shown.stdout.startswith("STALE: data is ")
    assert "last sample 2 h" in shown.stdout
    assert "last analysis never" in shown.stdout


def test_no_data_yet_is_no_error(tmp_path: Path) -> None:
    assert lagwise("status", "--data", str(tmp_path)).stdout.startswith("No data yet")
    assert answer("status", "--data", str(tmp_path), "--json")["groups"] == []
    assert list(tmp_path.iterdir()) == []  # asking creates nothing


def test_an_unknown_group_is_one_line_and_exit_code_1(data: str) -> None:
    shown = lagwise("lag", "nobody", "--data", data)
    assert (shown.exit_code, shown.stdout) == (1, "")
    said = "no group 'nobody' has been analysed; `lagwise status --all` lists the groups"
    assert shown.stderr == f"lagwise: {said} [unknown_name]\n"
    as_json = lagwise("lag", "nobody", "--data", data, "--json")
    assert (as_json.exit_code, as_json.stdout) == (1, "")
    assert json.loads(as_json.stderr) == {"error": {"code": "unknown_name", "message": said}}


def test_an_error_of_the_system_has_a_code_too(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    work = ("--t1", "12ms", "--t2", "3ms", "--cores", "8", "--peak", "2000", "--partitions", "480")
    shown = lagwise("size", *work, "--csv", str(tmp_path / "full"))
    assert (shown.exit_code, shown.stderr) == (1, "lagwise: [Errno 28] No space left on device [disk_full]\n")


@pytest.mark.parametrize("arguments", [("nonsense",), ("lag",), ("status", "--nonsense"), ("collect", "--json")])
def test_wrong_usage_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    shown = lagwise(*arguments)
    assert shown.exit_code == 2
    assert "Traceback" not in shown.stderr


def test_bad_settings_are_named_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text('nonsense: 1\n"ev\\u001b[2Jil": 2\ndashboard: {port: x}', encoding="utf-8")
    shown = lagwise("--config", "bad.yaml", "status")
    assert shown.exit_code == 1
    lines = shown.stderr.splitlines()
    assert lines[0] == "lagwise: the settings in bad.yaml cannot be used:"
    assert len(lines) == 4
    assert harmless(shown.stderr)


def test_a_damaged_lake_is_one_line(lake: Lake, data: str) -> None:
    for commit in (Path(lake.location(GROUP_STATUS)) / "_delta_log").glob("*.json"):
        commit.write_text("not JSON", encoding="utf-8")
    shown = lagwise("status", "--data", data)
    assert shown.exit_code == 1
    assert shown.stderr.startswith("lagwise: cannot read the table ")
    assert shown.stderr.count("\n") == 1


def test_a_damaged_file_is_one_line_and_names_the_table(lake: Lake, data: str) -> None:
    for file in Path(lake.location(GROUP_STATUS)).rglob("*.parquet"):
        file.write_bytes(b"junk")
    for command in (("status",), ("lag", "billing")):
        shown = lagwise(*command, "--data", data)
        assert shown.exit_code == 1
        assert shown.stderr.startswith("lagwise: cannot read ")
        assert "group_status" in shown.stderr
        assert shown.stderr.count("\n") == 1


def test_a_cluster_that_was_never_read_is_named_with_the_reason(data: str, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "other" / "lake"))
    lake.create(SAMPLES)
    sampled(lake, datetime.now(UTC), errors={"unreachable": 1}, groups=0)
    shown = lagwise("status", "--data", str(tmp_path / "other"))
    assert shown.stdout.startswith("The cluster shop cannot be read: unreachable; `lagwise doctor` explains why.")
    assert "not analysed" not in shown.stdout


def test_where_there_is_no_lake_the_answer_says_so(tmp_path: Path) -> None:
    shown = lagwise("lag", "billing", "--data", str(tmp_path / "nowhere"))
    assert (shown.exit_code, shown.stderr.count("\n")) == (1, 1)
    assert "has no results: no analysis has written to it yet" in shown.stderr


def test_the_unexpected_is_one_line_too_unless_debugging(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("a\nb")

    monkeypatch.setattr("lagwise_app.cli.shared.open_lake", explode)
    monkeypatch.setattr(sys.modules["lagwise_app.cli.status"], "open_lake", explode)
    shown = lagwise("status")
    assert (shown.exit_code, shown.stderr) == (
        1,
        "lagwise: unexpected ZeroDivisionError: a\\nb (--debug shows the stack trace)\n",
    )
    assert isinstance(lagwise("--debug", "status").exception, ZeroDivisionError)


@pytest.mark.parametrize(
    ("module", "command", "extra"),
    [
        ("confluent_kafka", "collect", "kafka"),
        ("pyspark", "analyze", "spark"),
        ("confluent_kafka", "up", "kafka"),
        ("streamlit", "dashboard", "dashboard"),
        ("mcp", "mcp", "mcp"),
        ("mcp", "up", "mcp"),
        ("opentelemetry", "up", "otlp"),
        ("pyspark", "demo", "spark"),
    ],
)
def test_a_missing_extra_is_named(tmp_path: Path, module: str, command: str, extra: str) -> None:
    script = f"""
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
sys.argv = ["lagwise", {command!r}]
from lagwise_app.cli import main
main()
"""
    environment = os.environ | {
        "LAGWISE_CLUSTERS__0__BOOTSTRAP": "127.0.0.1:1",
        "LAGWISE_CLUSTERS__0__TIMEOUT_SECONDS": "1",
        "LAGWISE_DATA": str(tmp_path / "data"),
        "LAGWISE_MCP__PORT": "8604",
        "LAGWISE_SERVER__PORT": "8603",
        "LAGWISE_SERVER__METRICS__OTLP__URL": "http://127.0.0.1:4318/v1/metrics",
    }
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert f"install lagwise[{extra}]" in ran.stderr.splitlines()[-1]


def test_help_is_light() -> None:
    script = """
import sys
from click.testing import CliRunner
from lagwise_app.cli import cli
assert CliRunner().invoke(cli, ["--help"]).exit_code == 0
heavy = set("pydantic pyarrow duckdb deltalake rich sqlalchemy httpx pyspark confluent_kafka streamlit".split())
print(*sorted(heavy & set(sys.modules)))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


@pytest.mark.parametrize("name", list(cli.commands))
def test_every_command_teaches_by_help(name: str) -> None:
    shown = lagwise(name, "--help")
    assert shown.exit_code == 0
    if name != "alert":
        assert f"lagwise {name}" in shown.stdout.partition("\n")[2], "an example"
    assert len(cli.commands[name].get_short_help_str(60)) > 10


def test_the_version_is_printed() -> None:
    assert re.fullmatch(r"lagwise \d+\.\d+\.\d+\n", lagwise("--version").stdout)


def test_config_shows_what_holds_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGWISE_DATABASE", "postgresql://me:hunter2@host/db")
    monkeypatch.setenv("LAGWISE_CLUSTERS__0__BOOTSTRAP", "h:1")
    monkeypatch.setenv("LAGWISE_CLUSTERS__0__LIBRDKAFKA__SASL_PASSWORD", "${env:LAGWISE_SECRET_X}")
    monkeypatch.setenv("LAGWISE_SECRET_X", "hunter2")
    text = lagwise("config").stdout
    assert "bootstrap: h:1" in text
    assert "postgresql://me:[redacted]@host/db" in text
    document = answer("config", "--json")
    assert document["clusters"][0]["librdkafka"] == {"sasl.password": "${env:LAGWISE_SECRET_X}"}
    assert "hunter2" not in text + json.dumps(document)


def test_config_check_resolves_references_and_names_all_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lagwise("config", "--check").stdout.startswith("the settings are valid")
    monkeypatch.setenv("LAGWISE_DATABASE", "${env:LAGWISE_SECRET_NOWHERE}")
    monkeypatch.setenv("LAGWISE_ALERTS__CHANNELS", "[{name: a, url: 'http://h', secret: '${file:/nowhere}'}]")
    shown = lagwise("config", "--check")
    assert shown.exit_code == 1
    lines = shown.stderr.splitlines()
    assert lines[0] == "lagwise: the settings name secrets that cannot be read:"
    assert [line.partition(":")[0].strip() for line in lines[1:]] == ["database", "alerts.channels.0.secret"]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("LAGWISE_ALERTS__RULES_FILE", "/nowhere.yaml", "/nowhere.yaml"),
        ("LAGWISE_DASHBOARD__SIGN_IN__AUTH_FILE", "/nowhere.toml", "there is no file /nowhere.toml"),
        ("LAGWISE_DATABASE", "foo", "database"),
        ("LAGWISE_CLUSTERS", "[{bootstrap: 'h:1', librdkafka: {securty.protocol: SSL}}]", "securty.protocol"),
        ("LAGWISE_CLUSTERS", "[{bootstrap: 'h:1', librdkafka: {security.protocol: SASLSSL}}]", "security.protocol"),
    ],
)
def test_config_check_tries_what_needs_no_network(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    shown = lagwise("config", "--check")
    assert (shown.exit_code, shown.stderr.count("\n")) == (1, 1)
    assert says in shown.stderr


def test_a_misspelt_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGWISE_CLUSTERS", "[{bootstrap: 'h:1', librdkafka: {sasl.pasword: hunter2}}]")
    for command in (("config",), ("config", "--json"), ("config", "--check")):
        shown = lagwise(*command)
        assert "hunter2" not in shown.stdout + shown.stderr


def test_up_without_a_cluster_says_what_to_do() -> None:
    shown = lagwise("up")
    assert shown.exit_code == 1
    assert "add --bootstrap HOST:PORT" in shown.stderr


def test_bootstrap_is_for_one_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGWISE_CLUSTERS", "[{name: a, bootstrap: 'h:1'}, {name: b, bootstrap: 'h:2'}]")
    shown = lagwise("up", "--bootstrap", "h:3")
    assert shown.exit_code == 1
    assert "the settings have several (a, b)" in shown.stderr


def test_replay_of_nothing_that_is_a_trace_says_what_one_is(tmp_path: Path) -> None:
    (tmp_path / "judged.py").touch()
    (tmp_path / "__pycache__").mkdir()
    shown = lagwise("replay", str(tmp_path / "judged.py"), str(tmp_path / "__pycache__"))
    assert shown.exit_code == 2
    assert "no path is a trace (a folder with a trace.toml)" in shown.stderr
