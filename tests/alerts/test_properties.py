"""What holds for every history: hypothesis makes histories up, and these must hold for all of them."""

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lagwise.domain.vocabulary import Status
from lagwise_alerts.evaluate.rule_matching import is_too_old, match_rule
from lagwise_alerts.evaluate.rule_timers import TimerVerdict
from lagwise_alerts.model import AlertEvent, AlertState, Condition, GroupCondition, Notification, Resolution, Situation
from lagwise_alerts.outbox import store
from lagwise_alerts.outbox.database import create_tables, open_engine, transaction
from lagwise_alerts.stages import decide, decide_and_mute
from tests.alerts.support import Player, at, book, freshness, group_condition, observation

pytestmark = pytest.mark.thorough

RULES = book(("ops",))
GROUPS = ("a", "b")

WORDS = (
    "ok",
    "ok",
    "stopped",
    "stopped",
    "stalled",
    "falling_behind",
    "falling_behind",
    "losing_data",
    "at_risk",
    "catching_up",
    "lagging",
    "rewound",
    "ghost",
    "unknown",
    "unknown",
    "same",
    "same",
    "same",
    "missing",
)


@dataclass(frozen=True)
class Round:
    """Seconds since the round before, what each group shows, and how old the newest sample and verdict are."""

    pause: int
    words: tuple[str, ...]
    stands_still: bool
    without_errors: bool
    seen_active: bool


#: What a round is made of, each equally likely.
CHOICES: tuple[tuple[Any, ...], ...] = (
    (1, 5, 15, 15, 15, 16, 60, 300, 1200),
    *(WORDS,) * len(GROUPS),
    (False, False, False, False, True),
    (True, True, True, False),
    (True, True, True, False),
)


def _round(number: int) -> Round:
    chosen = []
    for choices in CHOICES:
        number, which = divmod(number, len(choices))
        chosen.append(choices[which])
    pause, *words, stands_still, without_errors, seen_active = chosen
    return Round(pause, tuple(words), stands_still, without_errors, seen_active)


#: One number a round: to draw every choice by itself takes hypothesis longer than the rules take to decide.
ROUNDS = st.lists(st.integers(0, math.prod(map(len, CHOICES)) - 1).map(_round), min_size=8, max_size=40)


def histories(rounds: list[Round]) -> list[tuple[float, Situation]]:
    """Times of decisions, and what is observed at each."""
    now = as_of = newest = 0.0
    shown: dict[str, tuple[str, float] | None] = dict.fromkeys(GROUPS)
    out = []
    for one in rounds:
        now += one.pause
        if not one.stands_still:
            as_of = newest = now
            for group, word in zip(GROUPS, one.words, strict=True):
                before = shown[group]
                if word == "missing":
                    shown[group] = None
                elif word != "same" and (before is None or before[0] != word):
                    shown[group] = (word, now)
        conditions: list[Condition] = [
            group_condition(as_of, word[0], group=group, since=word[1], seen_active=one.seen_active)
            for group, word in shown.items()
            if word is not None
        ]
        conditions.append(freshness(now, newest))
        out.append((now, observation(*conditions, judged_until=as_of, without_errors=one.without_errors)))
    return out


many = settings(max_examples=300)


@many
@given(ROUNDS)
def test_every_incident_begins_once_ends_at_most_once_and_counts_its_events(rounds: list[Round]) -> None:
    player = Player(RULES)
    for now, seen in histories(rounds):
        player.see(now, seen)
    by_incident: dict[str, list[Notification]] = defaultdict(list)
    by_subject: dict[str, str] = defaultdict(str)
    for notified in player.notified:
        by_incident[notified.alert.incident_id].append(notified)
        by_subject[notified.alert.fingerprint] += notified.event.value[0]
    for events in by_incident.values():
        letters = "".join(n.event.value[0] for n in events)
        assert re.fullmatch("fe*r?", letters), letters
        assert [n.alert.sequence for n in events] == list(range(1, len(events) + 1))
        assert len({n.alert.fingerprint for n in events}) == 1
    for letters in by_subject.values():
        assert re.fullmatch("(fe*r)*(fe*)?", letters), f"two alerts of one subject were open at once: {letters}"
    assert len({n.idempotency_key for n in player.notified}) == len(player.notified)


@many
@given(ROUNDS)
def test_whatever_has_begun_ends_once_all_is_well_for_long(rounds: list[Round]) -> None:
    player = Player(RULES)
    end = 0.0
    for now, seen in histories(rounds):
        player.see(now, seen)
        end = now
    began_well = end + 15
    for i in range(125):  # longer than the calm that ends what flaps
        now = began_well + i * 15
        well = [group_condition(now, "ok", group=group, since=began_well) for group in GROUPS]
        player.see(now, observation(*well, freshness(now, now), judged_until=now))
    assert not player.alerts
    events = [n.event for n in player.notified]
    assert events.count(AlertEvent.FIRING) == events.count(AlertEvent.RESOLVED) == len(player.ended)


@many
@given(ROUNDS)
def test_only_fresh_and_known_trouble_is_notified_and_only_fresh_and_known_calm_ends_it(rounds: list[Round]) -> None:
    player = Player(RULES)
    for now, seen in histories(rounds):
        conditions = {c.subject: c for c in seen.conditions}
        for notified in player.see(now, seen):
            condition = conditions.get(notified.alert.subject)
            if condition is None:
                assert notified.alert.resolution is Resolution.GROUP_GONE
                continue
            verdicts = {match_rule(rule, condition, at(now)).verdict for rule in RULES.rules}
            assert not is_too_old(condition, at(now))
            assert (TimerVerdict.MATCH in verdicts) == (notified.event is not AlertEvent.RESOLVED)
            if isinstance(condition, GroupCondition):
                assert condition.status is not Status.UNKNOWN


@many
@given(ROUNDS)
def test_deciding_again_on_the_same_changes_nothing(rounds: list[Round]) -> None:
    player = Player(RULES)
    for now, seen in histories(rounds):
        player.see(now, seen)
        again = decide(RULES, seen, player.alerts, at(now), player.ended_lately)
        assert not again.notifications
        assert not again.changed
        assert not again.cancelled


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROUNDS)
def test_a_process_restarted_before_every_round_notifies_the_same(tmp_path: Path, rounds: list[Round]) -> None:
    """Each round with a new engine on the same database, against one player that never forgets."""
    file = tmp_path / "lagwise.db"
    for left in tmp_path.glob("lagwise.db*"):
        left.unlink()
    player = Player(RULES)
    for now, seen in histories(rounds):
        engine = open_engine(f"sqlite:///{file}")
        create_tables(engine)
        decision = store.decide_and_queue(
            engine,
            lambda *stored, seen=seen, now=now: decide_and_mute(RULES, seen, *stored, now=at(now)),
            lambda n: n.idempotency_key,
            now=at(now),
            remember=timedelta(hours=1),
        )
        with transaction(engine, read_only=True) as connection:
            kept = store.load_open(connection)
        engine.dispose()
        assert list(decision.notifications) == player.see(now, seen)
        assert kept == player.alerts


@many
@given(ROUNDS, st.randoms(use_true_random=False))
def test_groups_do_not_disturb_each_other(rounds: list[Round], random: object) -> None:
    """A group among others is told of exactly as it would be alone, with the collection from its cluster."""
    together, alone = Player(RULES), Player(RULES)
    for now, seen in histories(rounds):
        together.see(now, seen)
        only = tuple(c for c in seen.conditions if c.subject.group in ("a", None))
        alone.see(now, Situation(only, seen.clusters))
    assert [n for n in together.notified if n.alert.subject.group in ("a", None)] == alone.notified


def test_the_histories_are_rich_enough_to_prove_anything() -> None:
    """Guards the tests above: the made-up histories do contain firing, escalation, resolution and holds."""
    events: dict[str, int] = defaultdict(int)

    # Hypothesis also draws constants of the modules that happen to be loaded, so that the counts differ a little.
    @settings(max_examples=600)
    @given(ROUNDS)
    def play(rounds: list[Round]) -> None:
        player = Player(RULES)
        for now, seen in histories(rounds):
            for notified in player.see(now, seen):
                events[notified.event.value] += 1
                if notified.alert.resolution:
                    events[notified.alert.resolution.value] += 1
            events["held"] += sum(alert.on_hold for alert in player.alerts.values())
            events["pending"] += sum(alert.state is AlertState.PENDING for alert in player.alerts.values())

    play()
    for kind in ("firing", "escalated", "resolved", "recovered", "group_gone", "held", "pending"):
        assert events[kind] >= 20, dict(events)
