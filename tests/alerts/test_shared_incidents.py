"""Shared incidents: twenty groups that got worse together are one message, and nobody waits for it or misses an end."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, insert, select

from lagwise.config import Config
from lagwise.domain.correlation import GroupTraits, SharedThing, ThingKind
from lagwise.platform.errors import ConfigError
from lagwise_alerts.model import AlertKind, AlertState, Decision, Notification, Resolution, Severity
from lagwise_alerts.notify.message import document, summary
from lagwise_alerts.notify.mute import MuteResult
from lagwise_alerts.notify.mute_state import Acknowledgement, Matcher, MuteState, Silence
from lagwise_alerts.outbox import store
from lagwise_alerts.outbox.database import ACKNOWLEDGEMENTS, DELIVERIES, columns_of, transaction
from lagwise_alerts.outbox.operator_store import load_mute_state
from lagwise_alerts.rules.rule_file import RuleBook, load_rules
from lagwise_alerts.stages import decide_and_mute
from tests.alerts.night import OTHERS, TWENTY, Night
from tests.alerts.support import (
    CLUSTER,
    at,
    write_yaml,
)

RULES = """
owners:
  - {groups: {include: ["other-0.*"]}, team: billing, downstream: payments-db, channels: [billing]}
repeat_every: {page: 1h}
rules:
  - {name: losing, severity: page, when: {statuses: [losing_data]}}
  - {name: stopped, severity: page, when: {statuses: [stopped, stalled]}}
  - {name: behind, severity: warn, when: {statuses: [falling_behind]}}
  - {name: lost, severity: warn, when: {findings: [loss]}}
"""


def rules_of(tmp_path: Path, text: str = RULES) -> RuleBook:
    return load_rules(write_yaml(tmp_path / "rules.yaml", text), ["ops", "billing"])


def told(notifications: Iterable[Notification]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Event, subject and channels of what is sent to anybody."""
    return [
        (n.event.value, n.alert.subject.group or n.alert.subject.shared_by, n.channels)
        for n in notifications
        if n.channels
    ]


@pytest.fixture
def night(tmp_path: Path) -> Night:
    made = Night(rules_of(tmp_path))
    made.see(0, {})
    return made


ALL = ("ops", "billing")
ONCE = [("firing", "topic clicks", ALL)]


class TestTogether:
    def test_twenty_groups_are_one_notification(self, night: Night) -> None:
        assert told(night.see(15, dict.fromkeys(TWENTY, "stopped"))) == ONCE
        assert night.members == TWENTY
        (shared,) = night.shared
        assert shared.sentence.startswith(
            "20 groups got worse at the same time. All 20 read topic clicks; of the 30 groups that are well, none does."
        )
        assert (shared.severity, shared.status, shared.state) == (Severity.PAGE, "stopped", AlertState.FIRING)
        assert shared.numbers.lag_records == 200, "10 of each"

    def test_the_same_again_says_nothing_and_changes_nothing(self, night: Night) -> None:
        night.see(15, dict.fromkeys(TWENTY, "stopped"))
        before = dict(night.alerts)
        assert not told(night.see(15, dict.fromkeys(TWENTY, "stopped")))
        assert night.alerts == before

    def test_nobody_waits_for_the_evidence_and_whoever_comes_later_joins_silently(self, night: Night) -> None:
        first = night.see(15, dict.fromkeys(TWENTY[:2], "stopped"))
        assert sorted(told(first)) == [("firing", TWENTY[0], ALL), ("firing", TWENTY[1], ALL)]
        assert told(night.see(30, dict.fromkeys(TWENTY[:12], "stopped"))) == ONCE
        assert not told(night.see(45, dict.fromkeys(TWENTY, "stopped")))
        assert night.members == TWENTY
        assert night.shared[0].sentence.startswith("20 groups got worse within 30 s. All 20 read topic clicks;")

    def test_what_fires_for_itself_meanwhile_is_notified_by_itself(self, night: Night) -> None:
        night.see(15, dict.fromkeys(TWENTY, "stopped"))
        both = dict.fromkeys([*TWENTY, "other-20"], "stopped")
        assert told(night.see(30, both)) == [("firing", "other-20", ALL)]

    def test_three_that_share_nothing_are_three(self, night: Night) -> None:
        seen = night.see(15, dict.fromkeys(["other-11", "other-12", "clicks-03"], "stopped"))
        assert sorted(group for _, group, _ in told(seen)) == ["clicks-03", "other-11", "other-12"]
        assert not night.shared

    def test_within_the_first_quarter_of_an_hour_of_watching_nothing_got_worse_together(self, tmp_path: Path) -> None:
        """What is found at first began at any time before."""
        for watched_since in (0, None):
            early = Night(rules_of(tmp_path), watched_since=watched_since)
            early.see(0, {})
            assert len(told(early.see(15, dict.fromkeys(TWENTY, "stopped")))) == 20

    def test_groups_that_got_worse_half_an_hour_apart_are_no_incident(self, night: Night) -> None:
        for number in range(4):
            seen = told(night.see(15 + 1800 * number, dict.fromkeys(TWENTY[: number + 1], "stopped")))
            assert [one for one in seen if one[0] == "firing"] == [("firing", TWENTY[number], ALL)]

    def test_a_whole_cluster_is_one(self, night: Night) -> None:
        assert told(night.see(15, dict.fromkeys([*TWENTY, *OTHERS], "stopped"))) == [("firing", "cluster kafka", ALL)]

    def test_what_their_owner_names_is_found(self, night: Night) -> None:
        seen = night.see(15, dict.fromkeys(OTHERS[:10], "stopped"))
        assert told(seen) == [("firing", "downstream payments-db", ("billing",))]

    def test_a_broker_is_found(self, night: Night) -> None:
        broker = SharedThing(ThingKind.BROKER, "3", CLUSTER)
        ill = [*TWENTY[:5], *OTHERS[20:25]]
        night.traits = {(CLUSTER, group): GroupTraits(frozenset({broker})) for group in ill}
        assert told(night.see(15, dict.fromkeys(ill, "stalled"))) == [("firing", "broker 3", ALL)]

    def test_it_can_be_turned_off(self, tmp_path: Path) -> None:
        off = Night(rules_of(tmp_path, RULES + "shared_incidents: null\n"))
        off.see(0, {})
        assert len(told(off.see(15, dict.fromkeys(TWENTY, "stopped")))) == 20


class TestItsLife:
    def test_it_ends_with_its_last_member_and_only_once(self, night: Night) -> None:
        night.see(15, dict.fromkeys(TWENTY, "stopped"))
        for second in range(30, 106, 15):
            assert not told(night.see(second, {TWENTY[7]: "stopped"}))
        assert night.members == [TWENTY[7]]
        seen = [told(night.see(second, {})) for second in range(120, 196, 15)]
        assert [one for one in seen if one] == [[("resolved", "topic clicks", ALL)]]
        assert not night.alerts

    def test_the_end_of_what_was_notified_by_itself_is_notified_too(self, night: Night) -> None:
        night.see(15, dict.fromkeys(TWENTY[:1], "stopped"))
        night.see(30, dict.fromkeys(TWENTY, "stopped"))
        ends = [one for second in range(45, 121, 15) for one in told(night.see(second, {}))]
        assert sorted(ends) == [("resolved", TWENTY[0], ALL), ("resolved", "topic clicks", ALL)]

    def test_it_is_notified_again_when_it_becomes_more_severe_but_not_for_each_member(self, night: Night) -> None:
        assert told(night.see(15, dict.fromkeys(TWENTY, "falling_behind"))) == ONCE
        assert night.shared[0].severity is Severity.WARN
        worse = [("escalated", "topic clicks", ALL)]
        assert told(night.see(30, dict.fromkeys(TWENTY, "falling_behind") | {TWENTY[3]: "stopped"})) == worse
        assert not told(night.see(45, dict.fromkeys(TWENTY, "stopped")))
        assert told(night.see(60, dict.fromkeys(TWENTY, "stopped") | {TWENTY[4]: "losing_data"})) == worse
        assert not told(night.see(75, dict.fromkeys(TWENTY, "losing_data")))

    def test_findings_on_the_same_loss_stay_inhibited(self, night: Night) -> None:
        night.lost_from = 30
        losing = dict.fromkeys(TWENTY, "losing_data")
        assert told(night.see(15, losing)) == ONCE
        assert not [one for second in (30, 45, 60) for one in told(night.see(second, losing))]

    def test_it_is_repeated_as_one(self, night: Night) -> None:
        night.see(15, dict.fromkeys(TWENTY, "stopped"))
        all_ = dict.fromkeys(TWENTY, "stopped")
        seen = [one for second in range(30, 3700, 60) for one in told(night.see(second, all_))]
        assert seen == [("repeated", "topic clicks", ALL)]

    def test_a_group_that_gets_worse_much_later_is_another_trouble(self, night: Night) -> None:
        some = dict.fromkeys(TWENTY[:12], "stopped")
        for second in range(15, 2000, 60):
            night.see(second, some)
        assert told(night.see(2000, some | {TWENTY[15]: "stopped"})) == [("firing", TWENTY[15], ALL)]

    def test_groups_that_join_do_not_keep_the_door_open_for_others(self, night: Night) -> None:
        for second in range(15, 600, 60):
            night.see(second, dict.fromkeys(TWENTY[:12], "stopped"))
        for second in range(600, 1200, 60):
            assert not told(night.see(second, dict.fromkeys(TWENTY[:13], "stopped"))), "ten minutes later: it joins"
        alone = [("firing", TWENTY[13], ALL)]
        assert told(night.see(1200, dict.fromkeys(TWENTY[:14], "stopped"))) == alone, "ten minutes after that one"

    def test_many_that_get_worse_much_later_are_a_worsening(self, night: Night) -> None:
        some = dict.fromkeys(TWENTY[:12], "stopped")
        for second in range(15, 2000, 60):
            night.see(second, some)
        assert told(night.see(2000, dict.fromkeys(TWENTY, "stopped"))) == [("escalated", "topic clicks", ALL)]
        assert night.members == TWENTY

    def test_a_channel_that_hears_of_a_member_later_hears_of_it(self, tmp_path: Path) -> None:
        owner = 'owners: [{groups: {include: ["clicks-0.*"]}, channels: [ops]}]\n'
        made = Night(rules_of(tmp_path, owner + RULES[RULES.index("repeat_every") :]))
        made.see(0, {})
        assert told(made.see(15, dict.fromkeys(TWENTY[:10], "stopped"))) == [("firing", "topic clicks", ("ops",))]
        assert told(made.see(30, dict.fromkeys(TWENTY, "stopped"))) == [("firing", "topic clicks", ("billing",))]
        ends = [one for second in range(45, 121, 15) for one in told(made.see(second, {}))]
        assert ends == [("resolved", "topic clicks", ALL)]


def acknowledged(night: Night, second: float, severity: Severity = Severity.PAGE) -> MuteState:
    """The state in which somebody has acknowledged the shared incident."""
    (shared,) = night.shared
    return MuteState(
        acknowledgements={shared.incident_id: Acknowledgement(shared.incident_id, severity, "me", at(second), "")}
    )


def play(
    night: Night, first: float, last: float, statuses: Mapping[str, str]
) -> list[tuple[str, str, tuple[str, ...]]]:
    """What is told while a minute after the other brings the same."""
    seconds = [*range(int(first), int(last), 60), last]
    return [one for second in seconds for one in told(night.see(second, statuses))]


WORSE = [("escalated", "topic clicks", ALL)]
HOUR = 3600.0


class TestNoPageIsLost:
    """Stories in which a shared incident might swallow a page that its members would have sent by themselves."""

    @pytest.fixture
    def night(self, tmp_path: Path) -> Night:
        """Without repeats, which would hide what is not told."""
        made = Night(rules_of(tmp_path, RULES.replace("repeat_every: {page: 1h}\n", "")))
        made.see(0, {})
        return made

    def test_it_drops_to_a_warning_and_becomes_a_page_again(self, night: Night) -> None:
        assert told(night.see(15, dict.fromkeys(TWENTY, "stopped"))) == ONCE
        assert not play(night, 75, 615, dict.fromkeys(TWENTY, "falling_behind"))
        assert night.shared[0].severity is Severity.WARN
        assert play(night, 675, 7800, dict.fromkeys(TWENTY, "stopped")) == WORSE

    def test_a_member_gets_worse_hours_after_the_others(self, night: Night) -> None:
        first = dict.fromkeys(TWENTY, "falling_behind") | {TWENTY[0]: "stopped"}
        assert told(night.see(15, first)) == ONCE
        two = {TWENTY[0]: "stopped", TWENTY[1]: "falling_behind"}
        assert not play(night, 75, 6 * HOUR, two)
        assert told(night.see(6 * HOUR + 60, dict.fromkeys(TWENTY[:2], "stopped"))) == WORSE
        assert not play(night, 6 * HOUR + 120, 7 * HOUR, dict.fromkeys(TWENTY[:2], "stopped")), "once"

    def test_a_silenced_member_says_nothing_about_the_others(self, night: Night) -> None:
        night.state = MuteState(silences=(Silence(1, Matcher(group=TWENTY[0]), at(0), at(HOUR), "", "me", at(0)),))
        ill = dict.fromkeys(TWENTY, "falling_behind") | {TWENTY[0]: "stopped"}
        (warning,) = night.see(15, ill)
        assert (told([warning]), warning.severity, warning.status) == (ONCE, Severity.WARN, "falling_behind")
        assert not told(night.see(30, ill))
        (page,) = night.see(45, ill | {TWENTY[1]: "stopped"})
        assert (told([page]), page.severity) == (WORSE, Severity.PAGE)

    def test_what_an_acknowledged_member_is_like_says_nothing_about_the_others(self, night: Night) -> None:
        ill = dict.fromkeys(TWENTY, "falling_behind") | {TWENTY[0]: "stopped"}
        assert told(night.see(15, ill)) == ONCE
        mine = next(one.incident_id for one in night.alerts.values() if one.subject.group == TWENTY[0])
        night.state = MuteState(acknowledgements={mine: Acknowledgement(mine, Severity.PAGE, "me", at(20), "")})
        assert not told(night.see(30, ill))
        assert told(night.see(45, ill | {TWENTY[1]: "stopped"})) == WORSE

    def test_a_page_is_sent_when_the_acknowledgement_of_its_member_is_taken_back(self, night: Night) -> None:
        """Then the next one is not compared with a page that went down to a warning for those who read it."""
        ill = dict.fromkeys(TWENTY, "falling_behind") | {TWENTY[0]: "stopped"}
        assert told(night.see(15, ill)) == ONCE
        mine = next(one.incident_id for one in night.alerts.values() if one.subject.group == TWENTY[0])
        night.state = MuteState(acknowledgements={mine: Acknowledgement(mine, Severity.PAGE, "me", at(20), "")})
        assert not told(night.see(30, ill))
        night.state = MuteState()
        assert told(night.see(45, ill)) == WORSE
        assert not told(night.see(60, ill))

    def test_where_all_members_are_silenced_what_was_notified_stays_what_the_next_is_compared_with(
        self, night: Night
    ) -> None:
        night.state = MuteState(silences=(Silence(1, Matcher(group=TWENTY[0]), at(0), at(HOUR), "", "me", at(0)),))
        first = dict.fromkeys(TWENTY[:12], "falling_behind") | {TWENTY[0]: "stopped"}
        assert told(night.see(15, first)) == ONCE
        assert not play(night, 30, 210, {TWENTY[0]: "stopped"}), "all others have ended"
        assert told(night.see(240, {TWENTY[0]: "stopped", TWENTY[15]: "stopped"})) == WORSE

    def test_what_a_silence_hid_is_notified_when_the_silence_ends(self, night: Night) -> None:
        """A second outbreak of silenced groups is not what was notified of the first."""
        night.state = MuteState(silences=(Silence(1, Matcher(group="clicks-1.*"), at(0), at(9600), "", "me", at(0)),))
        first = dict.fromkeys(TWENTY[:8], "stopped")
        assert told(night.see(15, first)) == ONCE
        assert not play(night, 75, 9000, first)
        assert not play(night, 9060, 9540, first | dict.fromkeys(TWENTY[10:], "stopped"))
        assert told(night.see(9600, first | dict.fromkeys(TWENTY[10:], "stopped"))) == WORSE

    def test_an_acknowledgement_is_not_one_of_a_later_outbreak(self, night: Night) -> None:
        assert told(night.see(15, dict.fromkeys(TWENTY[:8], "stopped"))) == ONCE
        night.state = acknowledged(night, 30)
        one = {TWENTY[0]: "stopped"}
        assert not play(night, 75, 6 * HOUR, one)
        two = one | {TWENTY[8]: "stopped"}
        assert told(night.see(6 * HOUR + 60, two)) == [("firing", TWENTY[8], ALL)]
        assert told(night.see(6 * HOUR + 600, dict.fromkeys([TWENTY[0], *TWENTY[8:]], "stopped"))) == WORSE
        assert not night.state.acknowledgements, "nobody has taken on what came back: it is repeated again"

    def test_an_acknowledgement_is_not_one_by_those_who_have_not_heard_of_it(self, tmp_path: Path) -> None:
        owner = 'owners: [{groups: {include: ["clicks-0.*"]}, channels: [ops]}]\n'
        made = Night(rules_of(tmp_path, owner + RULES[RULES.index("rules:") :]))
        made.see(0, {})
        some = dict.fromkeys(TWENTY[:10], "stopped")
        assert told(made.see(15, some)) == [("firing", "topic clicks", ("ops",))]
        made.state = acknowledged(made, 30)
        assert told(made.see(75, dict.fromkeys(TWENTY, "stopped"))) == [("firing", "topic clicks", ("billing",))]
        assert not told(made.see(90, dict.fromkeys(TWENTY, "stopped")))
        assert made.state.acknowledgements, "ops goes on with it"

    def test_what_a_silence_withheld_from_a_channel_is_sent_though_others_have_acknowledged_it(
        self, tmp_path: Path
    ) -> None:
        owner = 'owners: [{groups: {include: ["clicks-0.*"]}, channels: [ops]}]\n'
        made = Night(rules_of(tmp_path, owner + RULES[RULES.index("rules:") :]))
        made.see(0, {})
        assert told(made.see(15, dict.fromkeys(TWENTY[:10], "stopped"))) == [("firing", "topic clicks", ("ops",))]
        silence = Silence(1, Matcher(kind="shared_incident"), at(0), at(200), "", "me", at(0))
        made.state = replace(acknowledged(made, 30), silences=(silence,))
        all_ = dict.fromkeys(TWENTY, "stopped")
        assert not play(made, 75, 190, all_)
        assert [channels for _, _, channels in told(made.see(200, all_))] == [("billing",)]
        assert not told(made.see(215, all_))

    def test_a_renamed_channel_is_repeated_to_under_its_new_name(self, tmp_path: Path) -> None:
        made = Night(rules_of(tmp_path))
        made.see(0, {})
        all_ = dict.fromkeys(TWENTY, "stopped")
        assert told(made.see(15, all_)) == ONCE
        text = write_yaml(tmp_path / "rules.yaml", RULES.replace("[billing]", "[money]"))
        made.book = load_rules(text, ["ops", "money"])
        assert play(made, 75, HOUR + 60, all_) == [("repeated", "topic clicks", ("ops", "money"))]

    def test_it_is_repeated_as_often_as_the_most_often_repeated_member(self, tmp_path: Path) -> None:
        text = RULES.replace(
            "when: {statuses: [falling_behind]}", "repeat_every: 10m, when: {statuses: [falling_behind]}"
        )
        made = Night(rules_of(tmp_path, text))
        made.see(0, {})
        ill = dict.fromkeys(TWENTY, "falling_behind") | {TWENTY[0]: "stopped"}
        assert told(made.see(15, ill)) == ONCE
        assert play(made, 75, 1300, ill) == [("repeated", "topic clicks", ALL)] * 2


class TestItsEnd:
    @staticmethod
    def end(night: Night, first: float) -> Notification:
        """Its end, while groups recover."""
        seen = [one for second in range(int(first), int(first) + 300, 15) for one in night.see(second, {})]
        (end,) = (one for one in seen if one.alert.subject.kind is AlertKind.SHARED_INCIDENT)
        return end

    def test_where_all_groups_recover_it_is_over(self, night: Night) -> None:
        night.see(15, dict.fromkeys(TWENTY, "stopped"))
        end = self.end(night, 30)
        assert end.alert.resolution is Resolution.RECOVERED
        assert summary(end) == "Shared incident on topic clicks on kafka is over"
        assert end.sentence == "The alerts of all its groups have ended."

    def test_a_group_that_vanished_long_before_the_others_recovered_is_not_over(self, night: Night) -> None:
        night.see(15, dict.fromkeys(TWENTY, "stopped"))
        night.gone = {TWENTY[3]}
        rest = dict.fromkeys(set(TWENTY) - night.gone, "stopped")
        play(night, 30, 630, rest)
        assert len(night.members) == 19
        (shared,) = night.shared
        assert shared.state is AlertState.FIRING
        end = self.end(night, 690)
        assert end.alert.resolution is Resolution.GROUP_GONE
        said = "Shared incident on topic clicks on kafka: alerts ended, not all by recovery (group gone)"
        assert summary(end) == said
        assert end.sentence.endswith(
            "Not all groups have recovered: one at least no longer exists, or is no longer watched."
        )

    def test_a_message_before_the_end_has_no_resolution(self, night: Night) -> None:
        settings = Config.model_validate({"clusters": [{"name": CLUSTER, "bootstrap": "broker:9092"}]})
        night.see(15, dict.fromkeys(TWENTY, "falling_behind"))
        play(night, 30, 330, {TWENTY[3]: "falling_behind"})
        (worse,) = night.see(360, {TWENTY[3]: "stopped"})
        assert worse.alert.resolution is Resolution.RECOVERED, "of the others, so far"
        assert document(worse, settings)["resolution"] is None

    @pytest.mark.parametrize("traits", ["host", "cluster"])
    def test_a_title_names_a_cluster_once_and_only_where_there_is_one(self, night: Night, traits: str) -> None:
        host = GroupTraits(frozenset({SharedThing(ThingKind.HOST, "10.0.0.7")}))
        ill = [*TWENTY[:5], *OTHERS[20:25]] if traits == "host" else [*TWENTY, *OTHERS]
        night.traits = {(CLUSTER, group): host for group in ill} if traits == "host" else {}
        (begin,) = night.see(15, dict.fromkeys(ill, "stopped"))
        name = "host 10.0.0.7" if traits == "host" else "cluster kafka"
        assert summary(begin) == f"Shared incident on {name}: {len(ill)} groups in trouble, the worst stopped"


class TestWhoJoins:
    """Joining is silent, so that it needs as much as the evidence did."""

    BROKERS = tuple(SharedThing(ThingKind.BROKER, str(n), CLUSTER) for n in range(1, 4))

    @pytest.mark.parametrize("where", [(3,), (1, 2, 3), (1, 3), ()])
    def test_a_group_with_trouble_on_several_brokers_is_another_trouble(
        self, night: Night, where: tuple[int, ...]
    ) -> None:
        broker = self.BROKERS[2]
        ill = [*TWENTY[:5], *OTHERS[20:25]]
        late = OTHERS[11]
        night.traits = {(CLUSTER, group): GroupTraits(frozenset(self.BROKERS), None, 1 / 3) for group in OTHERS}
        night.traits |= {(CLUSTER, group): GroupTraits(frozenset({broker}), broker, 1 / 3) for group in ill}
        its = frozenset(self.BROKERS[n - 1] for n in where)
        night.traits |= {(CLUSTER, late): GroupTraits(its, broker if where == (3,) else None, 1 / 3)}
        assert told(night.see(15, dict.fromkeys(ill, "stalled"))) == [("firing", "broker 3", ALL)]
        expected = [] if where == (3,) else [("firing", late, ALL)]
        assert told(night.see(75, dict.fromkeys([*ill, late], "stalled"))) == expected

    def test_no_single_group_joins_that_of_a_whole_cluster(self, night: Night) -> None:
        """Every group is on the cluster."""
        ill = dict.fromkeys([*TWENTY, *OTHERS[:25]], "stopped")
        assert told(night.see(15, ill)) == [("firing", "cluster kafka", ALL)]
        assert told(night.see(300, ill | {OTHERS[27]: "stopped"})) == [("firing", OTHERS[27], ALL)]

    def test_groups_that_are_unknown_or_were_ill_before_did_not_get_worse_with_the_cluster(self, night: Night) -> None:
        before = dict.fromkeys(OTHERS[10:20], "unknown") | dict.fromkeys(OTHERS[20:], "falling_behind")
        play(night, 15, 2000, before)
        ill = [*TWENTY[:16], *OTHERS[:9]]
        seen = told(night.see(2060, before | dict.fromkeys(ill, "stopped")))
        assert sorted(subject for _, subject, _ in seen) == sorted(ill), "25 of 30 that were well, but of 50 in all"

    def test_a_newer_alert_on_something_else_hides_nothing(self, night: Night) -> None:
        night.since = dict.fromkeys(TWENTY, 15.0)
        seen = told(night.see(300, dict.fromkeys([*TWENTY, "other-20"], "stopped")))
        assert sorted(seen) == [("firing", "other-20", ALL), ("firing", "topic clicks", ALL)]

    def test_what_got_worse_long_before_is_another_trouble(self, night: Night) -> None:
        some = dict.fromkeys(TWENTY[:12], "stopped")
        play(night, 60, 3000, {})
        assert told(night.see(3060, some)) == ONCE
        night.since = {TWENTY[15]: 3060 - 119.0}
        assert not told(night.see(3075, some | {TWENTY[15]: "stopped"})), "two minutes before: it joins"
        night.since = {TWENTY[16]: 600.0}
        early = [("firing", TWENTY[16], ALL)]
        assert told(night.see(3090, some | dict.fromkeys(TWENTY[15:17], "stopped"))) == early

    def test_what_fires_hours_later_is_news_though_its_trouble_began_with_the_others(self, night: Night) -> None:
        """As with a rule that asks for hours of trouble: its alert is dated back by these."""
        some = dict.fromkeys(TWENTY[:12], "stopped")
        for second in range(15, 7000, 60):
            night.see(second, some)
        night.since = {TWENTY[15]: 30.0}
        late = [("firing", TWENTY[15], ALL)]
        assert told(night.see(7000, some | {TWENTY[15]: "stopped"})) == late

    def test_a_finding_is_not_inhibited_for_a_channel_that_has_heard_of_no_loss(self, tmp_path: Path) -> None:
        text = RULES.replace("when: {statuses: [losing_data]}", "channels: [ops], when: {statuses: [losing_data]}")
        made = Night(rules_of(tmp_path, text), lost_from=30)
        made.see(0, {})
        losing = dict.fromkeys(TWENTY, "losing_data")
        assert told(made.see(15, losing)) == [("firing", "topic clicks", ("ops",))]
        assert sorted(told(made.see(30, losing))) == [("firing", group, ALL) for group in TWENTY]


class TestOperators:
    def silence(self, until: float, **pattern: str) -> Silence:
        return Silence(1, Matcher(**pattern), at(0), at(until), "deploy", "me", at(0))

    def test_silenced_groups_make_no_shared_incident_notify(self, night: Night) -> None:
        night.state = MuteState(silences=(self.silence(60, group="clicks-.*"),))
        assert not told(night.see(15, dict.fromkeys(TWENTY, "stopped")))
        assert len(night.shared) == 1
        assert told(night.see(60, dict.fromkeys(TWENTY, "stopped"))) == ONCE, "once for all, when the silence ends"

    def test_a_silence_on_shared_incidents_withholds_it(self, night: Night) -> None:
        night.state = MuteState(silences=(self.silence(60, kind="shared_incident"),))
        assert not told(night.see(15, dict.fromkeys(TWENTY, "stopped")))
        seen = night.see(60, dict.fromkeys(TWENTY, "stopped"))
        assert told(seen) == ONCE
        assert seen[0].shared_incident is not None, "the message names its members"

    def test_an_acknowledged_one_is_not_repeated_but_a_more_severe_one_is_notified(self, night: Night) -> None:
        night.see(15, dict.fromkeys(TWENTY, "falling_behind"))
        (shared,) = night.shared
        given = Acknowledgement(shared.incident_id, Severity.WARN, "me", at(20), "")
        night.state = MuteState(acknowledgements={shared.incident_id: given})
        more = dict.fromkeys(TWENTY, "falling_behind")
        assert not told(night.see(30, more))
        assert told(night.see(45, more | {TWENTY[0]: "stopped"})) == [("escalated", "topic clicks", ALL)]

    def test_members_are_acknowledged_by_themselves(self, night: Night) -> None:
        night.see(15, dict.fromkeys(TWENTY, "stopped"))
        mine = {a.incident_id for a in night.alerts.values() if a.shared_incident}
        night.state = MuteState(
            acknowledgements={one: Acknowledgement(one, Severity.PAGE, "me", at(20), "") for one in mine}
        )
        for second in range(30, 3700, 60):
            assert not told(night.see(second, dict.fromkeys(TWENTY, "stopped"))), "nothing left to repeat"


def test_an_acknowledgement_that_is_void_is_deleted(engine: Engine) -> None:
    given = [Acknowledgement(name, Severity.PAGE, "me", at(0), "") for name in ("one", "other")]
    with transaction(engine) as connection:
        connection.execute(insert(ACKNOWLEDGEMENTS), [columns_of(one) for one in given])
    result = MuteResult(Decision(), no_longer_acknowledged=("one",))
    store.decide_and_queue(engine, lambda *_: result, lambda _: "", now=at(0))
    with transaction(engine, read_only=True) as connection:
        assert set(load_mute_state(connection, (), at(0)).acknowledgements) == {"other"}


def test_what_is_kept_in_a_database_decides_the_same(engine: Engine, tmp_path: Path) -> None:
    """Round by round as the alert process does it, against one that never forgets."""
    night = Night(rules_of(tmp_path))
    some, all_ = dict.fromkeys(TWENTY[:2], "falling_behind"), dict.fromkeys(TWENTY, "falling_behind")
    story = [{}, some, all_, all_, all_ | {TWENTY[4]: "stopped"}, {TWENTY[4]: "stopped"}, *([{}] * 6)]
    for number, statuses in enumerate(story):
        now = at(15 * number + 5)
        seen = night.situation(15 * number, statuses)
        decision = store.decide_and_queue(
            engine,
            lambda *stored, seen=seen, now=now: decide_and_mute(night.book, seen, *stored, now=now),
            lambda notification: notification.idempotency_key,
            now=now,
            remember=timedelta(hours=1),
        )
        assert list(decision.notifications) == night.see(15 * number, statuses)
        with transaction(engine, read_only=True) as connection:
            assert store.load_open(connection) == night.alerts
    with transaction(engine, read_only=True) as connection:
        sent = [tuple(row) for row in connection.execute(select(DELIVERIES.c.event, DELIVERIES.c.incident_id))]
    assert Counter(event for event, _ in sent) == {"firing": 6, "escalated": 2, "resolved": 6}, "to two channels each"
    assert len({incident for _, incident in sent}) == 3, "two that were alone at first, and one of all"


def test_the_settings_are_checked(tmp_path: Path) -> None:
    for text, why in (
        ("shared_incidents: {groups: 2}", "shared_incidents.groups"),
        ("shared_incidents: {window: 2m}", "shared_incidents.window"),
        ('owners: [{groups: {include: ["a"]}}]', "an owner needs a team, labels, channels or a downstream"),
    ):
        with pytest.raises(ConfigError, match=why):
            rules_of(tmp_path, f"{text}\nrules: []")
    assert rules_of(tmp_path, "rules: []").shared_incidents is not None
