"""``lagwise alert backtest`` notifies of shared incidents as the alert process does."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lagwise.domain.correlation import GroupKey, GroupTraits, ThingKind
from lagwise.tables.analysis import GROUP_HISTORY, STATUS_CHANGES
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_alerts.backtest import lake_history
from lagwise_alerts.backtest.backtest import Backtest, run_backtest
from lagwise_alerts.backtest.lake_comparison import LakeComparison
from lagwise_alerts.model import AlertKind, AlertSubject
from lagwise_alerts.rules.rule_file import RuleBook, load_rules
from lagwise_app.cli import cli
from tests.alerts.night import OTHERS, TWENTY, Night
from tests.alerts.support import CLUSTER, LakeWriter, at, write_rows, write_yaml

pytestmark = pytest.mark.thorough

RULES = """
rules:
  - name: stopped
    when: {statuses: [stopped]}
    severity: page
    keep_firing_for: 1m
    only_if_seen_active: true
"""
#: When groups get worse, and when they are well again.
WORSE, WELL, END = 1800, 2100, 2400
#: From which second on which groups are stopped: of the readers of one topic, two are so before the others.
NIGHT: Sequence[tuple[int, Sequence[str]]] = [
    (0, []),
    (WORSE, TWENTY[:2]),
    (WORSE + 30, TWENTY),
    (WELL, TWENTY[9:10]),
    (WELL + 150, []),
]


def _stopped(night: Sequence[tuple[int, Sequence[str]]], second: int) -> Mapping[str, str]:
    return dict.fromkeys(next(groups for start, groups in reversed(night) if start <= second), "stopped")


def write_night(lake: Lake, night: Sequence[tuple[int, Sequence[str]]], start: datetime, every: int = 15) -> None:
    """What the analysis would have left of it."""
    history: list[dict[str, Any]] = []
    changes: list[dict[str, Any]] = []
    before: dict[str, str] = {}
    for second in range(0, END, every):
        moment = start + timedelta(seconds=second)
        for group, status in {**dict.fromkeys([*TWENTY, *OTHERS], "ok"), **_stopped(night, second)}.items():
            key = {"cluster": CLUSTER, "group": group}
            history.append({**key, "as_of": moment, "status": status, "lag": 10, "lag_seconds": 5.0})
            if before.get(group) != status:
                changes.append({**key, "topic": None, "at": moment, "before": before.get(group), "after": status})
                before[group] = status
    lake.append(GROUP_HISTORY, GROUP_HISTORY.from_rows(history))
    lake.append(STATUS_CHANGES, STATUS_CHANGES.from_rows(changes))


@pytest.fixture
def rules(tmp_path: Path) -> RuleBook:
    return load_rules(write_yaml(tmp_path / "rules.yaml", RULES), ("ops",))


@pytest.fixture
def writer(lake: Lake) -> LakeWriter:
    """Of a lake in which it is known now who reads what."""
    made = LakeWriter(lake)
    topics = {group: ["clicks" if group in TWENTY else "logs"] for group in [*TWENTY, *OTHERS]}
    made.groups(at(END), {group: {"status": "ok", "topics": its} for group, its in topics.items()})
    return made


def _backtest(lake: Lake, rules: RuleBook, since: int = 0) -> Backtest:
    alive = frozenset(AlertSubject(AlertKind.GROUP, CLUSTER, group).fingerprint for group in [*TWENTY, *OTHERS])
    span = lake_history.HistorySpan(at(since), at(END), 15.0, alive)
    return run_backtest(rules, lake_history.situations(lake, span, rules), at(since), at(END))


def _shared_by(found: Backtest) -> list[list[tuple[str, str]]]:
    shared = (n for n in found.notifications if n.alert.subject.kind is AlertKind.SHARED_INCIDENT)
    return [[(thing.kind.value, thing.name) for thing in n.alert.subject.things] for n in shared if n.event == "firing"]


class TestTheLakesPast:
    def test_is_notified_as_it_would_have_been_live(self, lake: Lake, writer: LakeWriter, rules: RuleBook) -> None:
        write_night(lake, NIGHT, at(0))
        found = _backtest(lake, rules)
        live = Night(rules, watched_since=0)
        expected = [n for second in range(0, END, 15) for n in live.see(second, _stopped(NIGHT, second)) if n.channels]
        as_tuples = [
            [(n.event, n.severity, n.alert.subject, n.alert.rule, n.status, n.alert.worsened_at) for n in its]
            for its in (found.notifications, expected)
        ]
        assert as_tuples[0] == as_tuples[1]
        said = [(n.event.value, n.alert.subject.group) for n in found.notifications]
        assert said == [
            *(("firing", group) for group in sorted(TWENTY[:2], key=_fingerprint)),
            ("firing", None),
            *(("resolved", group) for group in sorted(TWENTY[:2], key=_fingerprint)),
            ("resolved", None),
        ], "guards the comparison"
        assert {n.event.value for n in found.covered} == {"firing", "resolved"}
        for event in ("firing", "resolved"):
            assert sorted(n.alert.subject.group or "" for n in found.covered if n.event == event) == TWENTY[2:]
        assert len(found.shared_incidents) == 1
        assert not found.firing

    def test_what_fires_at_the_end_was_notified(self, lake: Lake, writer: LakeWriter, rules: RuleBook) -> None:
        """The two groups that were notified before the others, and the shared incident of these."""
        write_night(lake, NIGHT[:3], at(0))
        found = _backtest(lake, rules)
        assert [alert.subject.group for alert in found.firing] == [*sorted(TWENTY[:2], key=_fingerprint), None]
        assert {alert.incident_id for alert in found.firing} == set(found.incidents)

    def test_groups_that_no_rule_looks_for_are_what_is_well(self, lake: Lake, writer: LakeWriter) -> None:
        """Without them every group of the cluster would be in trouble, and the cluster what they share."""
        only = RULES.replace("    severity: page", '    groups: {include: ["clicks-.*"]}\n    severity: page')
        rules = load_rules(write_yaml(Path(lake.uri).parent / "only.yaml", only), ("ops",))
        write_night(lake, [(0, []), (WORSE, TWENTY)], at(0))
        assert _shared_by(_backtest(lake, rules)) == [[("topic", "clicks")]]

    def test_nothing_is_shared_where_the_rules_say_so(self, lake: Lake, writer: LakeWriter) -> None:
        off = load_rules(write_yaml(Path(lake.uri).parent / "off.yaml", f"shared_incidents: null\n{RULES}"), ("ops",))
        write_night(lake, NIGHT, at(0))
        found = _backtest(lake, off)
        assert {n.alert.subject.group for n in found.notifications if n.event == "firing"} == set(TWENTY)
        assert (found.covered, found.shared_incidents) == ((), frozenset())

    def test_in_the_first_quarter_of_an_hour_there_is_none(
        self, lake: Lake, writer: LakeWriter, rules: RuleBook
    ) -> None:
        write_night(lake, [(0, []), (600, TWENTY)], at(0))
        assert len(_backtest(lake, rules).notifications) == 20
        # But the backtest may begin there: how long the cluster has been watched is a question of the whole history.
        assert len(_backtest(lake, rules, since=300).notifications) == 20

    def test_what_was_watched_before_the_backtest_counts(self, lake: Lake, writer: LakeWriter, rules: RuleBook) -> None:
        write_night(lake, [(0, []), (WORSE, TWENTY)], at(0))
        assert _shared_by(_backtest(lake, rules, since=WORSE - 60)) == [[("topic", "clicks")]]

    def test_hosts_are_those_of_the_half_hour_before(self, lake: Lake, writer: LakeWriter, rules: RuleBook) -> None:
        ill = [*TWENTY[:4], *OTHERS[:4]]
        write_night(lake, [(0, []), (WORSE, ill)], at(0))
        seen = [
            {"group": group, "member_id": group, "host": "10.0.0.7" if group in ill else f"10.0.1.{number}"}
            for number, group in enumerate([*TWENTY, *OTHERS])
        ]
        write_rows(lake, MEMBERS, [{**row, "sampled_at": at(WORSE - 60)} for row in seen], WORSE - 60)
        # Where they moved afterwards, and where they were long before, is not what they shared.
        for second in (WORSE - 1860, WORSE + 60):
            moved = [{**row, "host": "10.0.9.9", "sampled_at": at(second)} for row in seen]
            write_rows(lake, MEMBERS, moved, second)
        assert _shared_by(_backtest(lake, rules)) == [[("host", "10.0.0.7")]]

    def test_brokers_are_those_of_the_partitions_in_trouble_then(
        self, lake: Lake, writer: LakeWriter, rules: RuleBook
    ) -> None:
        ill = [*TWENTY[:4], *OTHERS[:4]]
        write_night(lake, [(0, []), (WORSE, ill)], at(0))
        partitions = [
            {"group": group, "topic": f"of-{group}", "partition": number, "leader": number}
            for group in [*TWENTY, *OTHERS]
            for number in ((2, 3) if group in ill else (1, 2, 3))
        ]
        for table in (COMMITS, WATERMARKS):
            write_rows(lake, table, [{**row, "sampled_at": at(WORSE)} for row in partitions], WORSE)
        changes = [
            {**row, "at": at(second), "after": status}
            for row in partitions
            for second, status in ((0, "ok"), (WORSE, "stopped"), (WORSE + 60, "ok"))
            if status == "ok" or (row["group"] in ill and row["leader"] == 3)
        ]
        write_rows(lake, STATUS_CHANGES, changes, 0)
        assert _shared_by(_backtest(lake, rules)) == [[("broker", "3")]]
        # Also those that were in trouble before the backtest begins.
        assert _shared_by(_backtest(lake, rules, since=WORSE + 30)) == [[("broker", "3")]]

    @pytest.mark.parametrize(("join_within", "asked"), [("15m", [WORSE + 30, WORSE + 300]), ("1m", [WORSE + 30])])
    def test_what_groups_share_is_asked_for_only_where_it_may_matter(
        self, lake: Lake, writer: LakeWriter, join_within: str, asked: list[int]
    ) -> None:
        """Two groups are too few, and a shared incident that is open can still be too old for another group to join."""
        text = f"shared_incidents: {{join_within: {join_within}}}\n{RULES}"
        rules = load_rules(write_yaml(Path(lake.uri).parent / "rules.yaml", text), ("ops",))
        write_night(lake, [*NIGHT[:3], (WORSE + 300, [*TWENTY, OTHERS[0]])], at(0))
        read: list[datetime] = []
        comparison = LakeComparison.traits

        def traits(self: LakeComparison, now: datetime, interval_seconds: float) -> Mapping[GroupKey, GroupTraits]:
            read.append(now)
            return comparison(self, now, interval_seconds)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LakeComparison, "traits", traits)
            found = _backtest(lake, rules)
        assert read == list(map(at, asked))
        assert ("firing", OTHERS[0]) in {(n.event.value, n.alert.subject.group) for n in found.notifications}


def write_sampled(
    lake: Lake, at: datetime, cluster: str = CLUSTER, tables: Sequence[Table] = (GROUPS, WATERMARKS)
) -> None:
    """A sample of a cluster."""
    for table in tables:
        write_rows(lake, table, [{"cluster": cluster, "sampled_at": at}], 0)


def _fingerprint(group: str) -> str:
    return AlertSubject(AlertKind.GROUP, CLUSTER, group).fingerprint


class TestTheCommand:
    def _run(self, *arguments: object) -> Any:
        ran = CliRunner().invoke(cli, ["alert", "backtest", *map(str, arguments)])
        assert ran.exit_code == 0, ran.output
        return ran.output

    def test_of_a_lake_says_what_was_covered_and_what_it_no_longer_knows(
        self, lake: Lake, writer: LakeWriter, tmp_path: Path
    ) -> None:
        start = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=END)
        write_night(lake, [(0, []), (WORSE, TWENTY)], start)
        file = write_yaml(tmp_path / "rules.yaml", RULES)
        arguments = ("--data", Path(lake.uri).parent, "--rules", file, "--last", "1h")
        text = self._run(*arguments).splitlines()
        assert text[1].split("  ")[-1] == (
            "Shared incident on topic clicks on kafka: 20 groups in trouble, the worst stopped (stopped)"
        )
        assert text[2:] == [
            "1 alert (1 page), 1 message; 1 still firing at the end. "
            "1 shared incident replaces 20 messages on single groups.",
            "Groups of kafka are compared without brokers, hosts and client ids: the lake does not have them.",
        ]
        known_since = start + timedelta(seconds=2000)
        write_sampled(lake, known_since)
        (found,) = json.loads(self._run(*arguments, "--json"))["backtests"]
        assert (found["alerts"], found["messages"], found["shared_incidents"], found["covered"]) == (1, 1, 1, 20)
        assert found["not_compared"]["kinds"] == ["broker", "host", "client_id"]
        assert found["not_compared"]["clusters"] == [CLUSTER]
        assert datetime.fromisoformat(found["not_compared"]["until"]) == known_since
        (event,) = found["events"]
        assert found["firing"] == [event["incident_id"]]
        shared = event["shared_incident"]
        assert shared["shared_by"] == [{"kind": "topic", "name": "clicks", "cluster": CLUSTER}]
        assert (shared["id"], shared["groups"]) == (event["incident_id"], 20)

    @pytest.mark.parametrize(
        ("sampled", "expected"),
        [
            ({"a": (60, 60), "b": (60, 60)}, None),
            ({"a": (60, 60), "b": (1900, 2000)}, (["broker", "host", "client_id"], ["b"], 2000)),
            ({"a": (1900, 60), "b": (60, 2000)}, (["broker", "host", "client_id"], ["a", "b"], 2000)),
            ({"a": (60, 60), "b": (1900, 60)}, (["broker"], ["b"], 1900)),
            ({"a": (60, 2000), "b": (60, None)}, (["host", "client_id"], ["a", "b"], None)),
        ],
    )
    def test_what_is_not_known_of_one_of_several_clusters_is_said(
        self,
        lake: Lake,
        tmp_path: Path,
        sampled: Mapping[str, tuple[int, int | None]],
        expected: tuple[list[str], list[str], int | None] | None,
    ) -> None:
        """By cluster, since when leaders of partitions and since when members are known."""
        start = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=END)
        rows = [{"cluster": cluster, "group": "g", "as_of": start, "status": "ok"} for cluster in sampled]
        lake.append(GROUP_HISTORY, GROUP_HISTORY.from_rows(rows))
        for cluster, seconds in sampled.items():
            for table, second in zip((WATERMARKS, GROUPS), seconds, strict=True):
                if second is not None:
                    write_sampled(lake, start + timedelta(seconds=second), cluster, [table])
        file = write_yaml(tmp_path / "rules.yaml", RULES)
        arguments = ("--data", Path(lake.uri).parent, "--rules", file, "--last", "1h")
        (found,) = json.loads(self._run(*arguments, "--json"))["backtests"]
        if expected is None:
            assert found["not_compared"] is None
            return
        kinds, clusters, second = expected
        missing = found["not_compared"]
        assert (missing["kinds"], missing["clusters"]) == (kinds, clusters)
        until = None if second is None else start + timedelta(seconds=second)
        assert (missing["until"] and datetime.fromisoformat(missing["until"])) == until
        said = self._run(*arguments)
        assert f"Groups of {' and '.join(clusters)} are compared without " in said

    def test_of_a_trace_finds_what_its_groups_share(self, tmp_path: Path) -> None:
        write_trace(tmp_path / "killed")
        (found,) = json.loads(self._run(tmp_path / "killed", "--json"))["backtests"]
        (shared,) = {json.dumps(e["shared_incident"]["shared_by"]) for e in found["events"] if e["shared_incident"]}
        assert json.loads(shared) == [{"kind": "host", "name": "10.0.0.7", "cluster": None}]
        assert (found["shared_incidents"], found["covered"]) == (1, 4)
        assert found["not_compared"] == {
            "kinds": [ThingKind.BROKER, ThingKind.CLIENT_ID],
            "clusters": [],
            "until": None,
        }
        said = self._run(tmp_path / "killed")
        assert "Groups are compared without brokers and client ids: the trace does not have them." in said


def write_trace(folder: Path) -> None:
    """Twelve groups with a topic each; the members of four are on one host, which fails after 20 minutes."""
    fails_at, ends_at = 1200, 1500
    on_host = {number: "10.0.0.7" if number < 4 else f"10.0.1.{number}" for number in range(12)}
    folder.mkdir()
    files = {
        "watermarks.csv": ["time_s,topic,partition,log_start,high_watermark"],
        "commits.csv": ["time_s,group,topic,partition,committed"],
        "groups.csv": ["time_s,group,state,type"],
        "assignments.csv": ["time_s,group,member_id,client_id,host,topic,partition"],
    }
    for second in range(0, ends_at, 15):
        for number, host in on_host.items():
            group, topic = f"group-{number}", f"topic-{number}"
            has_failed = number < 4 and second >= fails_at
            committed = 10 * min(second, fails_at if number < 4 else second)
            files["watermarks.csv"].append(f"{second},{topic},0,0,{10 * second}")
            files["commits.csv"].append(f"{second},{group},{topic},0,{committed}")
            files["groups.csv"].append(f"{second},{group},{'Empty' if has_failed else 'Stable'},consumer")
            if not has_failed:
                files["assignments.csv"].append(f"{second},{group},{group}-1,,{host},{topic},0")
    for name, rows in files.items():
        (folder / name).write_text("\n".join(rows) + "\n")
    (folder / "topics.csv").write_text("topic,retention_ms,retention_bytes,cleanup_policy\n")
    (folder / "truth.csv").write_text("group,topic,partition,from_s,to_s,status\n")
    (folder / "trace.toml").write_text('name = "killed"\nsample_interval_s = 15\nevaluate_every_s = 15\n')
