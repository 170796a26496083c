"""`lagwise status`: who is shown, who is only counted, and what changed since the last look."""

import io
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from deltalake import write_deltalake
from rich.console import Console

from lagwise.config import Config
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.raw import SAMPLES
from lagwise.tables.store import Lake
from lagwise_app.cli import cli
from lagwise_app.status import snapshots
from lagwise_app.status.display import watch
from lagwise_app.status.groups import StatusFilters
from lagwise_app.status.snapshots import MARKED_FOR, ChangeTracker, StatusChange, StatusRequest
from tests.app.judged import HOSTILE, analyzed, append, group, sampled
from tests.app.test_cli import harmless

import pyarrow as pa  # isort: skip

AT = datetime(2026, 11, 21, 3, 14, 15, tzinfo=UTC)
#: Who is in the lake: cluster, group, status and state.
CAST = (
    ("prod", "billing", "stalled", "Stable"),
    ("prod", "billing-archive", "ok", "Stable"),
    ("prod", "ledger", "catching_up", "Stable"),
    ("prod", "moved-away", "ghost", "Empty"),
    ("test", "billing", "ok", "Stable"),
    ("test", "console-consumer-1", "unknown", "Empty"),
    ("test", "viewer", "unknown", "Stable"),
)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("LAGWISE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data(lake: Lake, tmp_path: Path) -> str:
    now = datetime.now(UTC)
    for cluster in ("prod", "test"):
        sampled(lake, now - timedelta(seconds=3), cluster=cluster)
    analyzed(lake, now - timedelta(seconds=2))
    judge(lake, CAST, now)
    return str(tmp_path)


def judge(lake: Lake, cast: Sequence[tuple[str, str, str, str]], at: datetime) -> None:
    """A round of the analysis."""
    rows = [
        group(name, status, cluster=cluster, state=state, as_of=at, reason="no_commit" if status == "unknown" else None)
        for cluster, name, status, state in cast
    ]
    write_deltalake(
        lake.location(GROUP_STATUS), pa.Table.from_pylist(rows, schema=GROUP_STATUS.arrow), mode="overwrite"
    )


def asked(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["status", *arguments], prog_name="lagwise")


def groups(shown: Result) -> list[str]:
    """The groups of the table, as cluster/group where it says so."""
    assert shown.exit_code == 0, shown.stderr
    lines = shown.stdout.splitlines()
    header = next(n for n, line in enumerate(lines) if line.startswith("status "))
    several = "cluster" in lines[header]
    rows = [re.split(r"\s{2,}", line) for line in lines[header + 1 : -1]]
    return [f"{row[1]}/{row[2]}" if several else row[1] for row in rows]


def test_groups_that_need_no_attention_are_only_counted(data: str) -> None:
    shown = asked("--data", data)
    assert groups(shown) == ["prod/billing", "test/viewer", "prod/ledger"]
    assert shown.stdout.splitlines()[-1] == (
        "3 of 7 groups need attention. Not shown: 1 unknown without members, 2 ok, 1 ghost (--all shows them)."
    )


def test_all_of_them(data: str) -> None:
    shown = asked("--data", data, "--all")
    assert len(groups(shown)) == 7
    assert shown.stdout.splitlines()[-1] == "7 groups."


def test_all_is_well(lake: Lake, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    sampled(lake, now)
    judge(lake, [("shop", "a", "ok", "Stable"), ("shop", "b", "ok", "Stable")], now)
    lines = asked("--data", str(tmp_path)).stdout.splitlines()
    assert lines[1:] == ["None of 2 groups needs attention. Not shown: 2 ok (--all shows them)."]


# options → groups, what the last line says
FILTERED: tuple[tuple[list[str], list[str], str], ...] = (
    (["--status", "ok"], ["prod/billing-archive", "test/billing"], "2 matching groups (7 in all)."),
    (["--status", "stalled", "--status", "unknown"], ["prod/billing", "test/console-consumer-1", "test/viewer"], "3 "),
    (
        ["--cluster", "prod"],
        ["billing", "ledger"],
        "2 of 4 matching groups need attention (7 in all). Not shown: 1 ok, ",
    ),
    (["--cluster", "prod", "--all"], ["billing", "ledger", "billing-archive", "moved-away"], "4 matching groups"),
    (["--group", "billing*"], ["billing"], "1 of 3 matching groups needs attention (7 in all). Not shown: 2 ok (--all"),
    (["--group", "billing", "--group", "view??"], ["prod/billing", "test/viewer"], "2 of 3 matching groups"),
    (["--owner", "payments"], ["billing", "ledger"], "2 of 4 matching groups need attention (7 in all)."),
    (["--owner", "payments", "--group", "l*"], ["ledger"], "1 matching group (7 in all)."),
)


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything of prod is the payments team's, but one group."""
    owners = [
        {"groups": {"include": ["view.*"]}, "team": "web"},
        {"clusters": {"include": ["prod"]}, "team": "payments"},
    ]
    (tmp_path / "rules.yaml").write_text(json.dumps({"owners": owners, "rules": []}))
    monkeypatch.setenv("LAGWISE_ALERTS__RULES_FILE", str(tmp_path / "rules.yaml"))


@pytest.mark.parametrize(("options", "expected", "says"), FILTERED, ids=[" ".join(row[0]) for row in FILTERED])
def test_filters(data: str, rules: None, options: list[str], expected: list[str], says: str) -> None:
    shown = asked("--data", data, *options)
    assert groups(shown) == expected
    assert shown.stdout.splitlines()[-1].startswith(says)


@pytest.mark.parametrize(("options", "expected", "says"), FILTERED, ids=[" ".join(row[0]) for row in FILTERED])
def test_json_holds_all_that_match_the_quiet_ones_too(
    data: str, rules: None, options: list[str], expected: list[str], says: str
) -> None:
    document = json.loads(asked("--data", data, "--json", *options).stdout)
    assert document["groups_total"] == 7
    assert len(document["groups"]) == int(re.findall(r"(?:of )?(\d+)(?= match|\s*$)", says)[0])
    assert {g["group"] for g in document["groups"]} >= {name.split("/")[-1] for name in expected}
    assert set(document["groups"][0]) == {column.name for column in GROUP_STATUS.columns}


def test_json_is_complete_without_filters(data: str) -> None:
    assert len(json.loads(asked("--data", data, "--json").stdout)["groups"]) == 7


def test_nothing_matches(data: str) -> None:
    shown = asked("--data", data, "--group", "Billing")
    assert (shown.exit_code, shown.stdout.splitlines()[-1]) == (0, "None of 7 groups matches.")


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--cluster", "prd"], 1, "lagwise: no cluster is named 'prd'; known clusters: prod, test [unknown_name]\n"),
        (
            ["--owner", "nobody"],
            1,
            "the alert rules have no team 'nobody' under `owners`; known teams: payments, web [unknown_name]\n",
        ),
        (["--status", "fine"], 2, "'fine' is not one of 'losing_data'"),
        (["--watch", "--json"], 2, "--watch and --json cannot be combined"),
    ],
)
def test_what_cannot_be_shown(data: str, rules: None, options: list[str], code: int, says: str) -> None:
    shown = asked("--data", data, *options)
    assert (shown.exit_code, shown.stdout) == (code, "")
    assert says in shown.stderr


def test_a_damaged_table_is_named_with_what_to_do(data: str) -> None:
    (file,) = Path(data, "lake", GROUP_STATUS.path).glob("*.parquet")
    file.write_bytes(file.read_bytes()[:100])
    shown = asked("--data", data)
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert str(Path(data, "lake", GROUP_STATUS.path)) in shown.stderr
    assert shown.stderr.endswith("`lagwise doctor --repair` quarantines damaged files [table_unreadable]\n")


def test_verdicts_without_samples_are_stale(data: str) -> None:
    shutil.rmtree(Path(data, "lake", SAMPLES.path))
    judge(Lake(f"{data}/lake"), CAST, datetime.now(UTC) - timedelta(hours=1))
    shown = asked("--data", data)
    assert "No data yet" not in shown.stdout
    assert shown.stdout.count("STALE: data of ") == shown.stdout.count("is 1 h old; last sample never") == 2
    assert "billing" in shown.stdout


def test_hostile_names_match_as_they_are(data: str) -> None:
    append(Lake(f"{data}/lake"), GROUP_STATUS, group(HOSTILE, "stalled", cluster="prod"))
    shown = asked("--data", data, "--group", "evil*")
    assert shown.exit_code == 0
    assert harmless(shown.stdout)
    assert "1 matching group (8 in all)." in shown.stdout
    assert asked("--data", data, "--group", "' or '1'='1").stdout.splitlines()[-1] == "None of 8 groups matches."


def terminal(width: int, height: int = 40) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None)


def drawn(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


class Script(threading.Event):
    """Stands for a person who looks on while things happen: before each look the next thing does, then it ends."""

    def __init__(self, *happens: Callable[[], Any]) -> None:
        super().__init__()
        self._happens = list(happens)

    def wait(self, timeout: float | None = None) -> bool:
        if not self._happens:
            return True
        self._happens.pop(0)()
        return False


class Night:
    """A lake, and a clock that a test sets."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.now = lake, AT
        self.cast = {(cluster, name): (status, state) for cluster, name, status, state in CAST}

    def becomes(self, cluster: str, name: str, status: str | None, after_seconds: float = 20.0) -> Callable[[], None]:
        """Time passes, and a round judges a group otherwise; None: it is gone."""

        def happen() -> None:
            self.now += timedelta(seconds=after_seconds)
            if status is None:
                del self.cast[cluster, name]
            else:
                self.cast[cluster, name] = status, "Stable"
            self.judge()

        return happen

    def passes(self, seconds: float) -> Callable[[], None]:
        def happen() -> None:
            self.now += timedelta(seconds=seconds)

        return happen

    def judge(self) -> None:
        judge(self.lake, [(*key, *of) for key, of in self.cast.items()], self.now)

    def watched(self, console: Console, *happens: Callable[[], Any], **filters: Any) -> None:
        for cluster in ("prod", "test"):
            sampled(self.lake, self.now, cluster=cluster)
        self.judge()
        watched = StatusRequest(self.lake, Config(), StatusFilters(**filters))
        watch(watched, console, Script(*happens), clock=lambda: self.now)


@pytest.fixture
def night(lake: Lake) -> Night:
    return Night(lake)


def test_on_a_pipe_changes_are_lines(night: Night) -> None:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    night.watched(
        console,
        night.becomes("prod", "billing", "ok"),
        night.passes(2.0),
        night.becomes("test", "billing", "stopped"),
        night.becomes("prod", "newcomer", "ok"),
        night.becomes("test", "viewer", None),
    )
    lines = drawn(console).splitlines()
    assert "3 of 7 groups need attention." in " ".join(lines)
    assert lines[-4:] == [
        "03:14:35 billing (prod) is ok, was stalled: Because it is ok.",
        "03:14:57 billing (test) is stopped, was ok: Because it is stopped.",
        "03:15:17 newcomer (prod) is ok, new: Because it is ok.",
        "03:15:37 viewer (test) is gone, was unknown",
    ]


def test_changes_of_groups_that_are_filtered_out_are_not_reported(night: Night) -> None:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    night.watched(
        console,
        night.becomes("prod", "billing", "ok"),
        night.becomes("prod", "ledger", "ok"),
        night.becomes("test", "billing", "stalled"),
        statuses=frozenset({"stalled"}),
        clusters=frozenset({"prod"}),
    )
    assert drawn(console).splitlines()[-2:] == [
        "1 matching group (7 in all).",
        "03:14:35 billing (prod) is ok, was stalled: Because it is ok.",
    ]


def frames(console: Console) -> list[list[str]]:
    """What was drawn, frame by frame, without what clears the screen."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", lambda m: "\f" if m[0] in ("\x1b[H", "\x1b[2J") else "", drawn(console))
    return [[line.rstrip() for line in part.splitlines()] for part in re.split("\f+", text) if part.strip()]


def row(frame: list[str], name: str) -> str:
    return next(line for line in frame if f" {name} " in line)


def test_on_a_terminal_what_changed_is_marked_for_a_minute(night: Night) -> None:
    console = terminal(100)
    night.watched(
        console,
        night.becomes("prod", "billing", "ok"),
        night.becomes("prod", "ledger", "stopped"),
        night.becomes("prod", "newcomer", "stalled"),
        night.becomes("test", "viewer", None, after_seconds=15.0),
        night.passes(MARKED_FOR.total_seconds() + 1),
    )
    first, better, worse, new, gone, later = frames(console)
    assert row(first, "billing").startswith("  stalled ")
    assert "(was" not in "".join(first)
    # A group that is well again is not simply gone from the screen.
    assert row(better, "billing").startswith("▼ ok ")
    assert "(was stalled until 03:14:35) Because it is ok." in row(better, "billing")
    assert "2 of 7 groups need attention." in " ".join(better)
    assert row(worse, "ledger").startswith("▲ stopped ")
    assert row(new, "newcomer").startswith("+ stalled ")
    assert "viewer (test) is gone, was unknown" in gone
    assert any(line.startswith("In the last minute: ▲ worse, ▼ better, + new.") for line in gone)
    assert not any(line.startswith(("▲", "▼", "+ ")) for line in later)
    assert not any("viewer" in line or " billing " in line for line in later)


def test_a_terminal_that_is_too_small_says_what_it_leaves_out(night: Night) -> None:
    for n in range(50):
        night.cast["prod", f"g-{n:02d}"] = "stalled", "Stable"
    for width, height in ((40, 15), (100, 15)):
        console = terminal(width, height=height)
        night.watched(console)
        [frame] = frames(console)
        assert len(frame) <= height
        assert "Ctrl-C ends." in " ".join(frame), "the last lines are wrapped, too"
    shown = [line for line in frame if line.startswith("  stalled ")]
    assert f"… and {53 - len(shown)} more groups: a taller window or a filter shows them" in frame
    assert "53 of 57 groups need attention." in " ".join(frame)


def test_a_lake_that_cannot_be_read_for_a_while_leaves_what_was_known(night: Night) -> None:
    console, lines = terminal(120), Console(file=io.StringIO(), width=80, color_system=None)
    log = Path(night.lake.location(GROUP_STATUS)) / "_delta_log"

    def breaks() -> None:
        newest = sorted(log.glob("*.json"))[-1]
        night.becomes("prod", "ledger", "stopped")()
        file = sorted(log.glob("*.json"))[-1]
        assert file != newest
        file.rename(file.with_suffix(".away"))
        file.write_text("{")

    def heals() -> None:
        for away in log.glob("*.away"):
            away.rename(away.with_suffix(".json"))

    night.watched(console, breaks, heals)
    first, broken, healed = frames(console)
    assert any(
        line.startswith("The lake cannot be read, so this is the state of the last read: cannot read the table")
        for line in broken
    )
    assert row(broken, "billing") == row(first, "billing")
    assert row(healed, "ledger").startswith("▲ stopped ")
    night.watched(lines, breaks, heals)
    printed = drawn(lines)
    assert printed.count("The lake cannot be read, so this is the state of the last read") == 1


def test_long_names_and_narrow_terminals_cut_nothing(lake: Lake) -> None:
    """Names are copied from the screen, and the sentence is what matters."""
    name, why = (
        "team-with-a-very-long-name." * 6,
        "Forty-two words would be too many, but these twelve must all be there.",
    )
    append(lake, GROUP_STATUS, group(name, "stalled", sentence=why), group("short", "stopped", sentence=why))
    sampled(lake, AT)
    for width in (200, 100, 60, 20):
        console = terminal(width)
        from lagwise_app.status.groups import overview, read_groups
        from lagwise_app.status.table import table

        found = overview(read_groups(lake), StatusFilters(), everything=False)
        lines = [line for one in table(found.rows, console).groups for line in one]
        text = " ".join(" ".join(lines).split())
        assert name in text
        assert text.count(why) == 2, width
        assert all(len(line) <= width for line in lines if name not in line and width > 30), width


def test_a_round_that_ends_meanwhile_gives_the_groups_of_before_no_later_time(
    lake: Lake, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, later = snapshots.read_groups, datetime.now(UTC) + timedelta(seconds=15)

    def and_then_a_round_ends(its: Lake) -> Any:
        rows = read(its)
        judge(lake, CAST, later)
        return rows

    monkeypatch.setattr(snapshots, "read_groups", and_then_a_round_ends)
    config = Config.model_validate({"data": data})
    snapshot = snapshots.SnapshotReader(StatusRequest(Lake(lake.uri), config, StatusFilters())).read(later)
    assert snapshot.fresh is not None
    assert snapshot.fresh.as_of is not None
    assert snapshot.fresh.as_of < later


def test_changes_are_between_looks() -> None:
    changes, later = ChangeTracker(), AT + timedelta(seconds=10)
    assert changes.update({("c", "a"): "ok", ("c", "b"): "stalled"}, AT) == []
    worse = StatusChange(later, ("c", "a"), "ok", "stopped")
    gone = StatusChange(later, ("c", "b"), "stalled", None)
    assert changes.update({("c", "a"): "stopped"}, later) == [worse, gone]
    assert (worse.is_worse, gone.is_worse, StatusChange(AT, ("c", "a"), "stopped", "ok").is_worse) == (
        True,
        False,
        False,
    )
    assert changes.update({("c", "a"): "stopped"}, later) == []
    assert changes.recent(later + timedelta(seconds=60)) == {("c", "a"): worse, ("c", "b"): gone}
    assert changes.recent(later + timedelta(seconds=61)) == {}


@pytest.mark.process
def test_it_loads_nothing_that_it_can_do_without(data: str) -> None:
    """Each of these takes a tenth of a second or more, of the one second that an answer may take at 3 a.m."""
    code = (
        "import sys; sys.argv[0] = 'lagwise'\n"
        "from lagwise_app.cli import cli\n"
        "cli.main(standalone_mode=False)\n"
        "print(sorted({'pandas', 'duckdb', 'psutil', 'pyarrow.compute', 'pyarrow.dataset', 'sqlalchemy', 'httpx'}"
        " & {*sys.modules}), file=sys.stderr)"
    )
    for options in ([], ["--all"], ["--json"]):
        ran = subprocess.run(
            [sys.executable, "-c", code, "status", "--data", data, *options],
            capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        assert ran.stderr.strip() == "[]", options


@pytest.mark.process
def test_watching_in_a_real_terminal_until_ctrl_c(lake: Lake, data: str) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "lagwise", "status", "--data", data, "--watch"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=subprocess.PIPE, env=environment) as process:
        os.close(slave)
        screen = ""

        def until(text: str) -> None:
            nonlocal screen
            deadline = time.monotonic() + 60
            while text not in screen:
                assert time.monotonic() < deadline, screen
                if select.select([master], [], [], 0.1)[0]:
                    screen += os.read(master, 65536).decode(errors="replace")

        try:
            until("need attention")
            assert "\x1b[?1049h" in screen  # a screen of its own, so that what was there before comes back
            judge(lake, [("prod", "billing", "losing_data", "Stable"), *CAST[1:]], datetime.now(UTC))
            until("was stalled until")
            process.send_signal(signal.SIGINT)
            until("\x1b[?1049l")
            assert process.stderr is not None
            assert (process.wait(20), process.stderr.read()) == (0, b"")
        finally:
            process.kill()
            os.close(master)
