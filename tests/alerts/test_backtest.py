"""What ``lagwise alert backtest`` says would have been sent is what is sent when the same happens."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lagwise.domain.group_record import GroupNumbers
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.tables.analysis import GROUP_HISTORY, STATUS_CHANGES
from lagwise.tables.raw import SAMPLES
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from lagwise.traces.trace import read_trace
from lagwise_alerts.backtest import lake_history, trace_history
from lagwise_alerts.backtest.backtest import LOSS_AHEAD, Backtest, PastSituation, run_backtest, untestable_rules
from lagwise_alerts.evaluate.observation import CollectionRow, LakeSnapshot, observe
from lagwise_alerts.model import AlertKind, AlertSubject, Condition, GroupCondition
from lagwise_alerts.rules.rule_file import RuleBook, load_rules
from lagwise_app.cli import cli
from lagwise_app.replay.trace_events import events_of
from tests.alerts.support import CLUSTER, LakeWriter, Player, at, book, write_yaml

pytestmark = pytest.mark.thorough

TRACES = Path(__file__).resolve().parents[1] / "traces"
RULES = """
owners: [{groups: {include: [payments]}, team: payments}]
repeat_every: {page: 5m}
rules:
  - name: stopped
    when: {statuses: [stopped]}
    severity: page
    for: 10s
    keep_firing_for: 1m
    only_if_seen_active: true
  - {name: behind, severity: warn, for: 1m, keep_firing_for: 1m, when: {statuses: [falling_behind]}}
  - {name: expired, severity: info, when: {statuses: [unknown], unknown_reasons: [expired]}}
  - {name: much, severity: warn, keep_firing_for: 30s, when: {lag_above: 1000}, labels: {team: payments}}
  - {name: old, severity: page, keep_firing_for: 30s, when: {lag_seconds_above: 10m}, groups: {exclude: [archive]}}
  - {name: storm, severity: warn, keep_firing_for: 1m, when: {rebalance_storm: true}}
  - {name: blind, severity: page, keep_firing_for: 30s, when: {stale: collection, older_than: 1m}}
  - {name: late, severity: page, keep_firing_for: 30s, when: {stale: analysis, older_than: 1m}}
"""
#: By group: from which second on it has which status, how many records are unread, and how old the oldest is.
STORY: Mapping[str, Sequence[tuple[int, str, int, float]]] = {
    "orders": [(0, "ok", 0, 0.0), (60, "stopped", 50, 30.0), (600, "ok", 0, 0.0)],
    "payments": [(0, "ok", 5, 1.0), (120, "catching_up", 1001, 20.0), (300, "ok", 1000, 5.0)],
    "archive": [(0, "ok", 10, 900.0), (240, "falling_behind", 20, 900.0), (420, "ok", 10, 900.0)],
    "old": [(0, "lagging", 10, 601.0), (200, "lagging", 10, 599.0)],
    "abandoned": [(0, "stopped", 700, 99.0)],
    "expired": [(0, "ok", 0, 0.0), (90, "unknown:expired", 0, 0.0)],
    "gone": [(0, "ok", 0, 0.0), (60, "stopped", 4, 4.0), (300, "-", 0, 0.0)],
    "well": [(0, "ok", 0, 0.0)],
}
#: No samples come, and no ticks finish, between these seconds.
BLIND, STUCK, END = (700, 900), (1000, 1200), 1500


def _now(group: str, second: int) -> tuple[str, int, float] | None:
    word, lag, age = next((w, lag, a) for start, w, lag, a in reversed(STORY[group]) if start <= second)
    return None if word == "-" else (word, lag, age)


def _seconds() -> Iterator[tuple[int, bool, bool]]:
    """Each 15 s: whether a sample came, and whether the analysis judged."""
    for second in range(0, END, 15):
        yield second, not BLIND[0] <= second < BLIND[1], not STUCK[0] <= second < STUCK[1]


def _play_live(rules: RuleBook) -> Player:
    """The same as the alert process would have seen it."""
    player = Player(rules)
    groups: list[Condition] = []
    newest = judged = unread_since = None
    since: dict[str, tuple[str, int]] = {}
    for second, sampled, analysed in _seconds():
        if sampled:
            newest = second
            unread_since = second if unread_since is None else unread_since
        if sampled and analysed:
            judged, unread_since, groups = second, None, []
            for group in STORY:
                shown = _now(group, second)
                if shown is None:
                    continue
                word, lag, age = shown
                if since.get(group, ("", 0))[0] != word:
                    since[group] = (word, second)
                groups.append(_condition(group, word, second, since[group][1], lag, age))
        row = CollectionRow(
            CLUSTER,
            None if newest is None else at(newest),
            15.0,
            (),
            None if judged is None else at(judged),
            None if unread_since is None else at(unread_since),
        )
        seen = observe(
            LakeSnapshot(collections={CLUSTER: row}),
            clusters=(),
            analysis_interval_seconds=15.0,
            active=set(),
            watching_since=None,
            now=at(second),
        )
        player.see(second, type(seen)((*seen.conditions, *groups), seen.clusters))
    return player


def _condition(group: str, word: str, second: int, since: int, lag: int, age: float) -> GroupCondition:
    status, _, reason = word.partition(":")
    return GroupCondition(
        subject=AlertSubject(AlertKind.GROUP, CLUSTER, group),
        as_of=at(second),
        valid_for_seconds=120.0,
        status=Status(status),
        reason=UnknownReason(reason) if reason else None,
        since=at(since),
        sentence="",
        seen_active=group != "abandoned",
        numbers=GroupNumbers(lag_records=lag, lag_seconds=age),
    )


@pytest.fixture
def lake_of_the_past(lake: Lake) -> Lake:
    """What collectors and the analysis would have left of it."""
    history: list[dict[str, Any]] = []
    changes: list[dict[str, Any]] = []
    samples: list[dict[str, Any]] = []
    ticks: list[dict[str, Any]] = []
    before: dict[str, str] = {}
    for second, sampled, analysed in _seconds():
        moment = at(second)
        if sampled:
            samples.append(_sample(second))
        if not (sampled and analysed):
            continue
        ticks.append(
            {
                "started_at": moment,
                "finished_at": moment,
                "wall_seconds": 1.0,
                "samples": 1,
                "group_partitions": 1,
                "progress": [{"cluster": CLUSTER, "read_until": moment, "finished_until": None}],
            }
        )
        for group in STORY:
            shown = _now(group, second)
            if shown is None:
                continue
            word, lag, age = shown
            status, _, reason = word.partition(":")
            key = {"cluster": CLUSTER, "group": group}
            history.append({**key, "as_of": moment, "status": status, "lag": lag, "lag_seconds": age})
            if before.get(group) != word:
                change = {"at": moment, "before": before.get(group, "").partition(":")[0] or None, "after": status}
                changes.append({**key, "topic": None, **change, "reason": reason or None})
                before[group] = word
    lake.append(GROUP_HISTORY, GROUP_HISTORY.from_rows(history))
    lake.append(STATUS_CHANGES, STATUS_CHANGES.from_rows(changes))
    lake.append(SAMPLES, SAMPLES.from_rows(samples))
    lake.append(TICKS, TICKS.from_rows(ticks))
    return lake


def _sample(second: int) -> dict[str, Any]:
    moment = at(second)
    times = ("started_at", "commits_read_at", "watermarks_read_at", "finished_at", "written_at")
    counts = dict.fromkeys(("groups", "group_partitions", "partitions"), 8)
    return {
        "sample_id": str(second),
        "cluster": CLUSTER,
        "system": "kafka",
        **dict.fromkeys(times, moment),
        "interval_seconds": 15.0,
        **counts,
        "wall_seconds": 0.1,
        "cpu_seconds": 0.1,
        "errors": [],
    }


def _of_lake(lake: Lake, rules: RuleBook, since: int = 0) -> Backtest:
    span = lake_history.HistorySpan(at(since), at(END), 15.0)
    return run_backtest(rules, lake_history.situations(lake, span, rules), at(since), at(END))


def _as_tuples(notified: Any) -> list[tuple[Any, ...]]:
    return [
        (n.decided_at, n.event.value, n.severity.value, n.alert.subject, n.alert.rule, n.status, n.alert.labels)
        for n in notified
    ]


@pytest.fixture
def rules(tmp_path: Path) -> RuleBook:
    return load_rules(write_yaml(tmp_path / "rules.yaml", RULES), ("ops",))


class TestTheLakesPast:
    def test_is_notified_as_it_would_have_been_live(self, lake_of_the_past: Lake, rules: RuleBook) -> None:
        live = _play_live(rules)
        found = _of_lake(lake_of_the_past, rules)
        assert _as_tuples(found.notifications) == _as_tuples(live.notified)
        assert {alert.fingerprint for alert in found.firing} == set(live.alerts)
        said = {(n.alert.rule, n.alert.subject.group, n.event.value) for n in found.notifications}
        # Guards the comparison: the story is rich enough to prove anything.
        assert said >= {
            ("stopped", "orders", "firing"),
            ("stopped", "orders", "repeated"),
            ("stopped", "orders", "resolved"),
            ("much", "payments", "firing"),
            ("much", "payments", "resolved"),
            ("behind", "archive", "firing"),
            ("old", "old", "firing"),
            ("expired", "expired", "firing"),
            ("stopped", "gone", "resolved"),
            ("blind", None, "firing"),
            ("late", None, "resolved"),
        }
        assert not {n.alert.subject.group for n in found.notifications} & {"abandoned", "well"}

    def test_of_a_lake_with_nothing_in_it_there_is_nothing(self, lake: Lake, rules: RuleBook) -> None:
        found = _of_lake(lake, rules)
        assert (found.moments, found.notifications, found.firing) == (0, (), ())

    def test_begins_in_the_middle_with_what_stands_then(self, lake_of_the_past: Lake, rules: RuleBook) -> None:
        """That a group was alive before is known from elsewhere, and since when it has its status from its changes."""
        alive = frozenset({AlertSubject(AlertKind.GROUP, CLUSTER, "orders").fingerprint})
        span = lake_history.HistorySpan(at(300), at(END), 15.0, alive)
        found = run_backtest(rules, lake_history.situations(lake_of_the_past, span, rules), at(300), at(END))
        first = found.notifications[0]
        assert (first.alert.subject.group, first.event.value, first.decided_at) == ("orders", "firing", at(300))
        assert first.alert.since == at(60)

    def test_mirrored_groups_are_left_out_as_they_are_live(self, lake_of_the_past: Lake, rules: RuleBook) -> None:
        mirrored = frozenset({AlertSubject(AlertKind.GROUP, CLUSTER, "orders").fingerprint})
        span = lake_history.HistorySpan(at(0), at(END), 15.0, mirrored=mirrored)
        found = run_backtest(rules, lake_history.situations(lake_of_the_past, span, rules), at(0), at(END))
        assert "orders" not in {n.alert.subject.group for n in found.notifications}

    def test_storms_last_from_hour_to_hour(self, lake_of_the_past: Lake, rules: RuleBook) -> None:
        writer = LakeWriter(lake_of_the_past)
        writer.storm(at(0) - timedelta(minutes=10), "well")
        writer.storm(at(600), "well")
        writer.storm(at(300), "orders", is_storm=False)
        found = _of_lake(lake_of_the_past, rules)
        notified = [n for n in found.notifications if n.alert.subject.kind is AlertKind.REBALANCE_STORM]
        assert [(n.alert.subject.group, n.event.value, n.decided_at) for n in notified] == [("well", "firing", at(0))]

    def test_findings_on_clusters_are_those_of_the_samples(self, lake: Lake) -> None:
        writer = LakeWriter(lake)
        leaderless = {"topic": None, "state": "no_leader", "partitions": 1, "named": "orders-3", "missing": ""}
        for second in range(0, END, 30):
            writer.sample(at(second), replicas=[leaderless] if 60 <= second < 300 else [])
            writer.tick(at(second))
        found = _of_lake(lake, book())
        kind = AlertKind.NO_LEADER
        assert [(n.alert.subject.kind, n.event.value, n.decided_at) for n in found.notifications] == [
            (kind, "firing", at(180)),
            (kind, "resolved", at(600)),
        ]

    def test_a_status_of_the_future_is_unknown(self, lake: Lake, rules: RuleBook) -> None:
        row = {"cluster": CLUSTER, "group": "g", "as_of": at(0), "status": "sleepy", "lag": 5000, "lag_seconds": 9000.0}
        lake.append(GROUP_HISTORY, GROUP_HISTORY.from_rows([row]))
        found = _of_lake(lake, rules)
        assert [(n.alert.rule, n.status) for n in found.notifications] == [("old", "unknown")]


def test_interest_leaves_out_nothing(lake_of_the_past: Lake, rules: RuleBook) -> None:
    """Subjects that no rule looks for are left out of the backtest: with all of them the result is the same."""
    span = lake_history.HistorySpan(at(0), at(END), 15.0)
    situations = list(lake_history.situations(lake_of_the_past, span, rules))
    whole = Player(rules)
    for past in situations:
        whole.see((past.now - at(0)).total_seconds(), past.situation)
    assert _as_tuples(run_backtest(rules, situations, at(0), at(END)).notifications) == _as_tuples(whole.notified)


class TestTraces:
    @pytest.mark.parametrize(
        ("trace", "notified"),
        [
            ("one-rebalance", []),
            ("bursts", []),
            ("poison-pill", [("firing", "stalled"), ("resolved", "catching_up")]),
            ("collector-gap", [("firing", "stale"), ("resolved", "fresh"), ("firing", "stopped")]),
        ],
    )
    def test_default_rules(self, trace: str, notified: list[tuple[str, str]]) -> None:
        situations = self._situations(trace)
        found = run_backtest(book(), situations, situations[0].now, situations[-1].now)
        assert [(n.event.value, n.status) for n in found.notifications] == notified

    def test_a_crash_loop_pages_once_whatever_its_status_and_those_that_keep_pace_do_not(self) -> None:
        """That they read too little shows through the noise of their restarts, and warns; they page when records have
        been getting older for longer than the objective."""
        situations = self._situations("crash-loop")
        found = run_backtest(book(), situations, situations[0].now, situations[-1].now)
        said = [
            (n.alert.subject.group, n.event.value, n.alert.rule, n.alert.severity.value) for n in found.notifications
        ]
        assert [one for one in said if one[0] == "exports"] == [
            ("exports", "firing", "falling_behind", "warn"),
            ("exports", "escalated", "getting_older", "page"),
            ("exports", "resolved", "getting_older", "page"),
        ]
        said_of = {group: {one[2] for one in said if one[0] == group} for group, *_ in said}
        assert said_of == {group: {"falling_behind", "getting_older"} for group in ("invoices", "exports", "reports")}
        paged = {
            n.alert.subject.group: (n.event.value, (n.decided_at - situations[0].now).total_seconds())
            for n in found.notifications
            if n.alert.rule == "getting_older" and n.event.value != "resolved"
        }
        assert paged == {
            "invoices": ("escalated", 1920),
            "exports": ("escalated", 2760),
            "reports": ("escalated", 1860),
        }

    def test_a_loss_is_notified_once_for_each_group(self) -> None:
        situations = self._situations("retention-overrun")
        found = run_backtest(book(), situations, situations[0].now, situations[-1].now)
        lost = [n for n in found.notifications if n.status == "losing_data"]
        assert len(lost) == len({n.alert.subject.group for n in lost}) == 2
        assert {n.alert.subject.kind for n in found.notifications} == {AlertKind.GROUP}

    def _situations(self, name: str) -> list[PastSituation]:
        trace = read_trace(TRACES / name)
        return list(trace_history.situations(trace, events_of(trace), "trace"))


def test_rules_that_cannot_be_tried_are_named_with_what_they_look_for(tmp_path: Path) -> None:
    text = """
rules:
  - {name: a, severity: warn, when: {findings: [loss, retries]}}
  - {name: b, severity: warn, when: {seconds_to_loss_below: 1h}}
  - {name: c, severity: warn, when: {capacity: [short]}}
  - {name: d, severity: warn, when: {statuses: [stopped], lag_above: 5}}
"""
    rules = load_rules(write_yaml(tmp_path / "rules.yaml", text))
    assert untestable_rules(rules, lake_history.KINDS, frozenset()) == {
        "a": "loss, retries",
        "b": LOSS_AHEAD,
        "c": "capacity",
    }
    assert untestable_rules(rules, trace_history.KINDS, trace_history.NUMBERS) == {"a": "retries", "c": "capacity"}


class TestTheCommand:
    def _run(self, *arguments: str) -> Any:
        return CliRunner().invoke(cli, ["alert", "backtest", *arguments])

    def test_prints_the_notifications_of_a_trace(self) -> None:
        ran = self._run(str(TRACES / "poison-pill"))
        assert ran.exit_code == 0
        lines = ran.output.splitlines()
        assert lines[0] == "poison-pill, 14 rules of Lagwise:"
        assert lines[1].split("  ")[-1] == "Group thumbnailer on trace is stalled (stalled)"
        assert lines[3] == "1 alert (1 page), 2 messages."
        assert "left_topics" in lines[4]

    def test_json_has_the_same_content(self) -> None:
        ran = self._run(str(TRACES / "poison-pill"), "--json", "--cluster", "prod")
        (found,) = json.loads(ran.output)["backtests"]
        assert (found["trace"], found["alerts"], found["messages"], found["firing"]) == ("poison-pill", 1, 2, [])
        first = found["events"][0]
        assert (first["event"], first["severity"], first["cluster"], first["group"]) == (
            "firing",
            "page",
            "prod",
            "thumbnailer",
        )
        assert first["at_seconds"] == 675

    def test_of_an_empty_lake_says_so(self, tmp_path: Path) -> None:
        ran = self._run("--data", str(tmp_path))
        assert ran.exit_code == 0
        assert "The lake has no history of that time." in ran.output

    def test_of_a_lake_rests_on_the_given_rules_and_the_time_asked_for(self, lake: Lake, tmp_path: Path) -> None:
        now = datetime.now(UTC)
        columns = {"cluster": CLUSTER, "group": "orders", "status": "falling_behind", "lag": 5, "lag_seconds": 1.0}
        rows = [{**columns, "as_of": now - timedelta(seconds=seconds)} for seconds in range(600, 0, -15)]
        lake.append(GROUP_HISTORY, GROUP_HISTORY.from_rows(rows))
        file = write_yaml(tmp_path / "rules.yaml", RULES)
        arguments = ("--data", str(Path(lake.uri).parent), "--rules", str(file), "--json")
        for last, begins_seconds_ago in (("1h", 600), ("2m", 120)):
            ran = self._run(*arguments, "--last", last)
            assert ran.exit_code == 0, ran.output
            (found,) = json.loads(ran.output)["backtests"]
            ((rule, event, notified_at),) = [(e["rule"], e["event"], e["at"]) for e in found["events"]]
            assert (rule, event) == ("behind", "firing")
            waited = datetime.fromisoformat(notified_at) - (now - timedelta(seconds=begins_seconds_ago))
            assert timedelta(seconds=59) <= waited <= timedelta(seconds=90)

    def test_a_bad_file_is_refused(self, tmp_path: Path) -> None:
        file = write_yaml(tmp_path / "rules.yaml", RULES.replace("page", "loud"))
        ran = self._run("--rules", str(file), "--data", str(tmp_path))
        assert ran.exit_code == 1
        assert "rules.0.severity" in ran.output

    def test_a_bad_duration_is_refused(self, tmp_path: Path) -> None:
        ran = self._run("--last", "3", "--data", str(tmp_path))
        assert ran.exit_code == 2
        assert "30s or 1h30m" in ran.output
