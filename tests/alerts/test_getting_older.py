"""The default rule for groups whose oldest unread record keeps getting older: it speaks where no status does, and only
there."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lagwise.domain.aging import AgePace
from lagwise.domain.group_record import GroupNumbers
from lagwise.traces.trace import read_trace
from lagwise_alerts.backtest import trace_history
from lagwise_alerts.backtest.backtest import run_backtest
from lagwise_alerts.evaluate.unread_ages import UnreadAges
from lagwise_app.replay.trace_events import events_of
from tests.alerts.support import Player, at, book, group_condition, observation
from tests.traces.make import pairs, steps
from tests.traces.world import World

BREAKS, MENDED, END = 900, 4500, 6300
OBJECTIVE = 300.0
TRACES = Path(__file__).resolve().parents[1] / "traces"


def climbs(second: float) -> float:
    """A consumer restarts every minute and reads four fifths of what is written."""
    return 0.2 * second + second % 60


def wanders(second: float) -> float:
    return 400.0 + second % 60


def creeps(second: float) -> float:
    return 0.08 * second


def told(word: str, age: Callable[[float], float]) -> list[tuple[int, str, str, str]]:
    """What is notified of a group that is well, has this word and age from ``BREAKS`` to ``MENDED``, and is well again:
    the second, the event, the rule and the severity."""
    status, _, reason = word.partition(":")
    player, ages, pace = Player(book()), UnreadAges(), AgePace(OBJECTIVE, 15.0, 5.0)
    said = []
    for second in range(0, END, 15):
        is_well = not BREAKS <= second < MENDED
        condition = group_condition(
            second,
            "ok" if is_well else status,
            reason=None if is_well else reason,
            since=BREAKS if not is_well else 0 if second < BREAKS else MENDED,
            numbers=GroupNumbers(lag_seconds=1.0 if is_well else age(second - BREAKS)),
        )
        key = ("kafka", "orders")
        older = ages.see(key, at(second), condition.numbers, pace)
        notified = player.see(second, observation(replace(condition, is_getting_older=older), judged_until=second))
        said += [(second, n.event.value, n.alert.rule, n.alert.severity.value) for n in notified]
    return said


@pytest.mark.parametrize("word", ["unknown:rebalancing", "unknown:too_few_samples", "lagging"])
def test_who_cannot_be_judged_pages_once_it_is_late_and_is_over_when_it_is_well(word: str) -> None:
    """The age is above the objective at times from 1,200 s after the break on, and always after 1,500 s; then the rule
    waits for five minutes."""
    (began, *_), (ended, *_) = said = told(word, climbs)
    assert [one[1:] for one in said] == [("firing", "getting_older", "page"), ("resolved", "getting_older", "page")]
    assert BREAKS + 1200 + 300 <= began <= BREAKS + 1500 + 15 + 300
    assert ended == MENDED + 15 * 60


@pytest.mark.parametrize(
    ("why", "word", "age", "rules"),
    [
        ("it is not late yet", "unknown:rebalancing", creeps, []),
        ("it comes back to where it was", "unknown:rebalancing", wanders, []),
        ("its status says that it recovers", "catching_up", climbs, []),
        ("its rhythm is known", "ok", climbs, []),
        ("commits were only left behind", "ghost", climbs, []),
        ("it has the page of its status", "stopped", climbs, ["stopped"]),
    ],
)
def test_who_is_left_alone(why: str, word: str, age: Callable[[float], float], rules: list[str]) -> None:
    assert [rule for _, event, rule, _ in told(word, age) if event != "resolved"] == rules, why


@pytest.mark.thorough
def test_no_job_of_cron_pages() -> None:
    assert rules_told(TRACES / "periodic-jobs") == {"stopped"}


@pytest.mark.thorough
def test_no_long_checkpoints_and_no_burst_that_drains_pages(tmp_path: Path) -> None:
    """A Flink job completes a checkpoint every ten minutes, and then commits what it had read when that began: its
    oldest unread record is up to twenty minutes old. A consumer reads twice as much as is written, but for a burst of
    ten minutes: after that less is unread all the time, but the rest of the burst gets older for half an hour."""
    every, last = 600, {"offset": 0.0}
    w = World("rhythms", "Whose oldest unread record gets older for minutes.", minutes=150, evaluate_every_s=60)
    w.topic("clicks", rate=20)
    (pair,) = pairs("clicks", 1)
    flink = w.group("flink", type="simple", engine=[pair], commits=False)
    flink.committed[pair] = 0

    def checkpoint(second: float) -> None:
        if second % every == 0:
            flink.committed[pair], last["offset"] = int(last["offset"]), flink.position[pair]

    w.every_second(checkpoint)
    w.topic("loads", rate=steps((0, 50), (3600, 400), (4200, 50)))
    w.group("burst", {"burst-1": pairs("loads", 1)}, speed=100)
    w.run()
    assert rules_told(w.write(tmp_path)) == {"falling_behind"}


def rules_told(folder: Path) -> set[str]:
    """The default rules whose alerts a trace would have sent."""
    trace = read_trace(folder)
    past = list(trace_history.situations(trace, events_of(trace), "trace"))
    found = run_backtest(book(), past, past[0].now, past[-1].now)
    return {n.alert.rule for n in found.notifications}
