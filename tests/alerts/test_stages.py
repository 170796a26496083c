"""Decisions: every row of the proof table, and what a row cannot show."""

from dataclasses import replace
from pathlib import Path

import pytest

from lagwise.domain.group_record import GroupNumbers
from lagwise_alerts.model import AlertEvent, AlertKind, AlertState, AlertSubject, Resolution, Severity
from lagwise_alerts.rules.rule_file import RuleBook, load_rules
from tests.alerts.proof_table import ROWS, ROWS_BY_NAME, History, Row
from tests.alerts.support import CLUSTER, Player, at, book, freshness, group_condition, observation, write_yaml


def _play(row: Row, rules: RuleBook) -> Player:
    player = Player(rules)
    last = None
    for second, word in row.history:
        if word == "=":
            assert last is not None
            seen = observation(last, judged_until=(last.as_of - at(0)).total_seconds())
        elif word in ("-", "!"):
            seen = observation(judged_until=second, without_errors=word == "-")
        else:
            assert word is not None
            status, _, since = word.partition("@")
            status, _, known = status.partition("#")
            status, _, reason = status.partition(":")
            last = group_condition(
                second,
                status,
                since=float(since) if since else None,
                reason=reason or None,
                seen_active=row.seen_active,
                numbers=GroupNumbers(lag_records=10, lag_seconds=5.0, known_partitions=int(known) if known else None),
            )
            seen = observation(last, judged_until=second)
        for notification in player.see(second + 5, seen):
            assert notification.decided_at == at(second + 5)
    return player


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_proof_table(row: Row) -> None:
    player = _play(_with_running_since(row), book())
    notified = [
        ((n.decided_at - at(5)).total_seconds(), n.event.value, n.severity.value, n.status) for n in player.notified
    ]
    assert notified == row.notified, row.why


def _with_running_since(row: Row) -> Row:
    """The analysis gives the beginning of a status with each row; a history only where it is not the obvious."""
    history: History = []
    before, began = None, 0.0
    for second, word in row.history:
        if word in ("=", "-", "!") or "@" in str(word):
            history.append((second, word))
            before = str(word).partition("@")[0]
            if "@" in str(word):
                began = float(str(word).partition("@")[2])
            continue
        if word != before:
            before, began = word, second
        history.append((second, f"{word}@{began:g}"))
    return replace(row, history=history)


def test_every_row_has_a_name_of_its_own_and_a_reason() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all(row.why for row in ROWS)


class TestFindings:
    def _see(self, player: Player, seconds: int, status: str, *, is_found: bool, since: int = 0) -> None:
        player.see(
            seconds + 5,
            observation(
                group_condition(seconds, status, since=since),
                group_condition(seconds, status, kind=AlertKind.LEFT_TOPICS, is_found=is_found, since=seconds),
                judged_until=seconds,
            ),
        )

    def test_have_an_alert_of_their_own(self) -> None:
        """A topic that was left stays left for days: an outage in between begins and ends beside it."""
        player = Player(book())
        for seconds in range(0, 1500, 15):
            status, since = ("stalled", 300) if 300 <= seconds < 600 else ("ok", 600 if seconds >= 600 else 0)
            self._see(player, seconds, status, since=since, is_found=30 <= seconds < 900)
        notified = [
            ((n.decided_at - at(5)).total_seconds(), n.event.value, n.severity.value, n.alert.subject.kind.value)
            for n in player.notified
        ]
        assert notified == [
            (150, "firing", "warn", "left_topics"),
            (300, "firing", "page", "group"),
            (660, "resolved", "page", "group"),
            (1200, "resolved", "warn", "left_topics"),
        ]
        assert {alert.resolution for alert in player.ended} == {Resolution.RECOVERED}
        assert player.notified[3].alert.since == at(30), "since it was first seen"

    def test_are_held_while_the_group_cannot_be_judged(self) -> None:
        player = Player(book())
        for seconds in range(0, 1500, 15):
            is_blind = seconds >= 300
            self._see(player, seconds, "unknown" if is_blind else "ok", is_found=not is_blind)
        assert [n.event for n in player.notified] == [AlertEvent.FIRING]
        assert [alert.on_hold for alert in player.alerts.values()] == [True]

    def test_end_with_their_group(self) -> None:
        player = Player(book())
        for seconds in range(0, 180, 15):
            self._see(player, seconds, "ok", is_found=True)
        for seconds in range(180, 300, 15):
            player.see(seconds + 5, observation(judged_until=seconds))
        assert [alert.resolution for alert in player.ended] == [Resolution.GROUP_GONE]


class TestTheAlertItself:
    def test_one_incident_from_firing_to_resolved(self) -> None:
        player = _play(_with_running_since(ROWS_BY_NAME["worse is told in the same alert"]), book())
        player.see(50, observation(group_condition(45, "ok"), judged_until=45))
        player.see(405, observation(group_condition(400, "ok", since=45), judged_until=400))
        assert [n.event for n in player.notified] == [
            AlertEvent.FIRING,
            AlertEvent.ESCALATED,
            AlertEvent.ESCALATED,
            AlertEvent.RESOLVED,
        ]
        assert len({n.alert.incident_id for n in player.notified}) == 1
        assert {n.alert.fingerprint for n in player.notified} == {
            AlertSubject(AlertKind.GROUP, CLUSTER, "orders").fingerprint
        }
        assert [n.alert.sequence for n in player.notified] == [1, 2, 3, 4]
        assert len({n.idempotency_key for n in player.notified}) == 4
        assert player.notified[2].previous_status == "stopped"
        assert player.notified[2].previous_severity is Severity.PAGE
        assert player.notified[3].previous_status == "losing_data"
        assert player.ended[0].resolution is Resolution.RECOVERED
        assert player.ended[0].resolved_at == at(405)
        assert not player.alerts

    @pytest.mark.parametrize(
        ("name", "resolutions"),
        [
            ("an unknown that was there before hides nothing", [Resolution.RECOVERED]),
            ("unknown for good ends an alert after an hour", [Resolution.UNKNOWN]),
        ],
    )
    def test_only_what_is_known_to_be_well_has_recovered(self, name: str, resolutions: list[Resolution]) -> None:
        player = _play(_with_running_since(ROWS_BY_NAME[name]), book())
        assert [alert.resolution for alert in player.ended] == resolutions

    def test_where_unknown_is_the_trouble_another_unknown_is_not_its_end(self, tmp_path: Path) -> None:
        file = tmp_path / "rules.yaml"
        when = "{statuses: [unknown], unknown_reasons: [expired]}"
        write_yaml(file, f"rules: [{{name: gone, severity: page, when: {when}}}]")
        player = Player(load_rules(file, ("ops",)))
        for seconds in range(0, 900, 15):
            reason = "expired" if seconds < 60 else "unreadable"
            numbers = GroupNumbers(known_partitions=2)
            since = 0 if seconds < 60 else 60
            seen = group_condition(seconds, "unknown", reason=reason, since=since, numbers=numbers)
            player.see(seconds + 5, observation(seen))
        assert [n.event for n in player.notified] == [AlertEvent.FIRING]

    def test_a_pending_alert_is_kept_but_not_notified(self) -> None:
        player = Player(book())
        player.see(5, observation(group_condition(0, "falling_behind")))
        (alert,) = player.alerts.values()
        assert alert.state is AlertState.PENDING
        assert not player.notified

    def test_a_pending_alert_that_passes_leaves_nothing(self) -> None:
        player = Player(book())
        player.see(5, observation(group_condition(0, "falling_behind")))
        player.see(20, observation(group_condition(15, "ok")))
        assert not player.alerts
        assert not player.ended

    def test_an_alert_of_a_group_that_is_unknown_says_that_it_is_on_hold(self) -> None:
        player = Player(book())
        player.see(5, observation(group_condition(0, "stopped")))
        player.see(20, observation(group_condition(15, "unknown", reason="unreadable")))
        (alert,) = player.alerts.values()
        assert (alert.on_hold, alert.status, alert.sentence) == (True, "stopped", "orders is stopped")

    def test_it_is_not_ended_by_a_history_that_cannot_be_read(self) -> None:
        """After a restart it cannot be told whether the group was ever active; the alert was right when it fired."""
        player = Player(book())
        player.see(5, observation(group_condition(0, "stopped")))
        for seconds in range(15, 300, 15):
            player.see(seconds + 5, observation(group_condition(seconds, "stopped", since=0, seen_active=None)))
        assert [n.event for n in player.notified] == [AlertEvent.FIRING]
        assert [alert.on_hold for alert in player.alerts.values()] == [True]

    def test_an_alert_on_stale_data_says_that_it_is_on_hold(self) -> None:
        player = Player(book())
        condition = group_condition(0, "stopped")
        player.see(5, observation(condition))
        assert [a.on_hold for a in player.alerts.values()] == [False]
        player.see(200, observation(condition))
        assert [a.on_hold for a in player.alerts.values()] == [True]
        player.see(215, observation(group_condition(210, "stopped", since=0)))
        assert [a.on_hold for a in player.alerts.values()] == [False]

    def test_fingerprints_of_subjects_differ(self) -> None:
        subjects = [
            AlertSubject(AlertKind.GROUP, "a", "bc"),
            AlertSubject(AlertKind.GROUP, "ab", "c"),
            AlertSubject(AlertKind.GROUP, "a", "collection"),
            AlertSubject(AlertKind.COLLECTION, "a"),
            AlertSubject(AlertKind.ANALYSIS),
        ]
        assert len({s.fingerprint for s in subjects}) == len(subjects)

    def test_the_fingerprint_never_changes(self) -> None:
        assert AlertSubject(AlertKind.GROUP, "kafka", "orders").fingerprint == "1c8b8db22f7cd28a"


def test_a_verdict_that_is_old_when_first_seen_is_not_believed() -> None:
    """The alert process starts while the analysis has been down since yesterday."""
    player = Player(book())
    for now in range(1200, 1500, 5):
        player.see(now, observation(group_condition(0, "stopped"), judged_until=0))
    assert not player.notified
    assert not player.alerts


def test_a_group_that_was_missing_when_all_stood_still_is_not_gone() -> None:
    """The newest verdicts are from hours ago; what has become of the group since, nobody knows."""
    player = Player(book())
    player.see(5, observation(group_condition(0, "stopped"), judged_until=0))
    player.see(10_000, observation(judged_until=90))
    assert [n.event for n in player.notified] == [AlertEvent.FIRING]
    player.see(10_005, observation(judged_until=10_000))
    assert [n.event for n in player.notified] == [AlertEvent.FIRING, AlertEvent.RESOLVED]


class TestRulesThatChange:
    def test_a_removed_rule_ends_its_alert_and_says_why(self) -> None:
        player = Player(book())
        player.see(5, observation(group_condition(0, "stopped")))
        player.rules = RuleBook(tuple(r for r in player.rules.rules if r.name != "stopped"), ("ops",))
        (notified,) = player.see(10, observation(group_condition(0, "stopped")))
        assert notified.event is AlertEvent.RESOLVED
        assert notified.alert.resolution is Resolution.RULE_CHANGED

    def test_putting_it_back_is_another_incident(self) -> None:
        whole = book()
        player = Player(whole)
        player.see(5, observation(group_condition(0, "stopped")))
        player.rules = RuleBook(tuple(r for r in whole.rules if r.name != "stopped"), ("ops",))
        player.see(10, observation(group_condition(0, "stopped")))
        player.rules = whole
        player.see(15, observation(group_condition(0, "stopped")))
        assert [n.event for n in player.notified] == [AlertEvent.FIRING, AlertEvent.RESOLVED, AlertEvent.FIRING]
        assert player.notified[0].alert.incident_id != player.notified[2].alert.incident_id

    def test_a_cluster_that_is_no_longer_watched_ends_its_alerts(self) -> None:
        player = Player(book())
        player.see(5, observation(group_condition(0, "stopped")))
        (notified,) = player.see(10, observation(clusters=["other"]))
        assert notified.alert.resolution is Resolution.CLUSTER_REMOVED

    def test_an_alert_that_was_never_notified_ends_silently(self) -> None:
        player = Player(book())
        player.see(5, observation(group_condition(0, "falling_behind"), group_condition(0, "at_risk", group="other")))
        assert len(player.alerts) == 2
        player.see(95, observation(group_condition(90, "falling_behind", since=0), judged_until=90))
        assert [alert.subject.group for alert in player.alerts.values()] == ["orders"]
        player.see(100, observation(clusters=["another"]))
        assert (player.alerts, player.notified, player.ended) == ({}, [], [])

    def test_the_end_goes_to_channels_that_are_still_there_and_to_no_new_ones(self) -> None:
        player = Player(book(("ops", "old")))
        player.see(5, observation(group_condition(0, "stopped")))
        player.rules = book(("ops", "new"))
        player.see(20, observation(group_condition(15, "ok")))
        (notified,) = player.see(95, observation(group_condition(90, "ok", since=15)))
        assert (notified.event, notified.channels) == (AlertEvent.RESOLVED, ("ops",))

    def test_the_end_goes_to_whoever_heard_of_the_beginning(self) -> None:
        rules = tuple(
            r.model_copy(update={"channels": ("team",)}) if r.name == "falling_behind" else r for r in book().rules
        )
        player = Player(RuleBook(rules, ("ops", "team")))
        player.see(5, observation(group_condition(0, "falling_behind", since=-600)))
        player.see(20, observation(group_condition(15, "stopped")))
        player.see(35, observation(group_condition(30, "ok")))
        player.see(205, observation(group_condition(130, "ok", since=30)))
        player.see(310, observation(group_condition(235, "ok", since=30)))
        assert [(n.event.value, set(n.channels)) for n in player.notified] == [
            ("firing", {"team"}),
            ("escalated", {"ops", "team"}),
            ("resolved", {"ops", "team"}),
        ]


class TestStaleness:
    @pytest.mark.parametrize(
        ("why", "now", "newest", "floor", "watching_since", "fires"),
        [
            ("fresh", 1000, 990, 45, 0, False),
            ("just within what is allowed", 1000, 880, 45, 0, False),
            ("older than allowed", 1000, 879, 45, 0, True),
            ("old, but the interval is an hour", 1000, 0, 10800, -20000, False),
            ("never, and watched for long enough", 1000, None, 45, 0, True),
            ("never, but the process has just started", 1000, None, 45, 950, False),
            ("old since yesterday, but the process has just started", 1000, -86400, 45, 950, False),
            ("never, and nobody watches (a single round by hand)", 1000, None, 45, None, True),
        ],
    )
    def test_collection(
        self, why: str, now: float, newest: float | None, floor: float, watching_since: float | None, fires: bool
    ) -> None:
        player = Player(book())
        notified = player.see(now, observation(freshness(now, newest, floor=floor, watching_since=watching_since)))
        assert [n.status for n in notified] == (["stale"] if fires else []), why

    def test_fires_once_and_resolves_when_data_comes_again(self) -> None:
        player = Player(book())
        for now in range(0, 400, 5):
            player.see(now, observation(freshness(now, min(now, 100))))
        for now in range(400, 500, 5):
            player.see(now, observation(freshness(now, now - 3)))
        assert [(n.decided_at, n.event.value, n.severity.value, n.status) for n in player.notified] == [
            (at(225), "firing", "page", "stale"),
            (at(430), "resolved", "page", "fresh"),
        ]
        assert player.notified[0].alert.since == at(100)

    def test_a_restart_in_the_middle_neither_repeats_nor_ends_it(self) -> None:
        player = Player(book())
        for now in range(0, 300, 5):
            player.see(now, observation(freshness(now, 0, watching_since=0)))
        for now in range(300, 400, 5):
            player.see(now, observation(freshness(now, 0, watching_since=300)))
        assert [n.event for n in player.notified] == [AlertEvent.FIRING]
        assert len(player.alerts) == 1

    def test_while_the_collection_is_late_its_groups_are_held(self) -> None:
        player = Player(book())
        stopped, ok = group_condition(0, "stopped"), group_condition(0, "ok", group="payments")
        for now in range(0, 1200, 5):
            player.see(now, observation(stopped, ok, freshness(now, 0), judged_until=0))
        assert [(n.alert.subject.kind, n.event) for n in player.notified] == [
            (AlertKind.GROUP, AlertEvent.FIRING),
            (AlertKind.COLLECTION, AlertEvent.FIRING),
        ]

    def test_the_analysis_has_one_alert_for_all_clusters(self) -> None:
        player = Player(book())
        (notified,) = player.see(300, observation(freshness(300, 0, kind=AlertKind.ANALYSIS)))
        assert notified.alert.subject == AlertSubject(AlertKind.ANALYSIS)
        assert notified.alert.rule == "analysis_stale"


def test_the_loudest_comes_first() -> None:
    player = Player(book())
    notified = player.see(
        5,
        observation(
            group_condition(0, "falling_behind", group="a", since=-600),
            group_condition(0, "stopped", group="b"),
            group_condition(0, "falling_behind", group="c", since=-600),
            group_condition(0, "losing_data", group="d"),
        ),
    )
    assert [n.severity.value for n in notified] == ["page", "page", "warn", "warn"]
