"""The correctness proof of the capacity verdicts.

Every row says what is known of a group and what must follow. How to add a row: say in ``why`` why the verdict is right
(not what the code does). Changing a row that stands needs a reason in the commit.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.capacity.verdict import (
    CanDo,
    CapacityJudgement,
    CapacityVerdict,
    DemandAhead,
    SetUp,
    judge_capacity,
)
from lagwise.domain.humanise import significant
from lagwise.domain.sizing.ranges import OutOfRange

SHORT, TIGHT, ENOUGH, OVERSIZED, UNDECIDED = CapacityVerdict
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def day(number: int) -> datetime:
    return NOW + timedelta(days=number)


def ahead(*demands: tuple[float, float]) -> tuple[DemandAhead, ...]:
    """(mean, upper) of days 30, 60, 90."""
    return tuple(DemandAhead(day(30 * (i + 1)), mean, upper) for i, (mean, upper) in enumerate(demands))


#: With a target of 70 % the careful end, 950, leaves room for 665.
KNOWN = CanDo(950.0, 1_050.0)
FLAT = ahead((500, 600), (500, 600), (500, 600))
RUNNING = SetUp(nodes=6, partitions=48, threads_per_node=8)
FEWER = SetUp(nodes=3, partitions=48, threads_per_node=16)
MORE = SetUp(nodes=9, partitions=72, threads_per_node=8)


TEST = "Stop the group for 12 min."


class Row(NamedTuple):
    name: str
    why: str
    can_do: CanDo | None
    peak: float | None
    forecast: tuple[DemandAhead, ...]
    advised: SetUp | None
    verdict: CapacityVerdict
    until: datetime | None = None
    at_worst: datetime | None = None


ROWS = (
    # --- undecided ---
    Row("nothing known", "it never had a backlog, and T1 and T2 are not known", None, 500, FLAT, RUNNING, UNDECIDED),
    Row("no history of the traffic", "without a peak there is nothing to compare", KNOWN, None, (), RUNNING, UNDECIDED),
    Row("neither", "a new topic", None, None, (), None, UNDECIDED),
    Row(
        "did its peak and was not asked for more",
        "it did 500/s without a backlog; that is no proof of the 714/s that the slack asks for, nor against them",
        CanDo(500.0), 500, FLAT, MORE, UNDECIDED,
    ),
    Row(
        "a lower bound far below the peak",
        "seen at night only: a bound from below never says that it is short",
        CanDo(50.0), 500, FLAT, MORE, UNDECIDED,
    ),
    Row(
        "a lower bound that today's peak fits in, and the forecast does not",
        "whether it is enough at the horizon is not known",
        CanDo(800.0), 500, ahead((500, 600), (580, 700)), RUNNING, UNDECIDED,
    ),
    # --- short ---
    Row("peak above the best it can do", "1,050 at best, 1,200 come", KNOWN, 1_200, (), MORE, SHORT),
    Row(
        "short now, less ahead",
        "what is short today is short, whatever the forecast",
        KNOWN, 1_200, FLAT, MORE, SHORT,
    ),
    Row(
        "nothing at all is done", "a backlog that nobody reads is saturation too", CanDo(0.0, 0.0), 10, (), MORE, SHORT
    ),
    # --- tight ---
    Row("perhaps short", "the peak lies within the interval", KNOWN, 1_000, (), MORE, TIGHT),
    Row("at its very best just enough", "not surely short", KNOWN, 1_050, (), MORE, TIGHT),
    Row("carried without the slack", "900 of 950 is not 70 %", KNOWN, 900, (), MORE, TIGHT),
    Row("a hair above the slack", "666 of 665", KNOWN, 666, (), MORE, TIGHT),
    Row(
        "enough ends within the forecast",
        "700 on day 60 are above 665; the interval's end was above it on day 30",
        KNOWN, 500, ahead((600, 690), (700, 800), (800, 950)), MORE, TIGHT, day(60), day(30),
    ),
    Row(
        "enough ends within the forecast and comes again",
        "the first time counts",
        KNOWN, 500, ahead((700, 800), (500, 600)), MORE, TIGHT, day(30), day(30),
    ),
    # --- enough ---
    Row("enough now, no forecast", "how long is not known", KNOWN, 500, (), RUNNING, ENOUGH),
    Row("just at the slack", "665 of 665: a rounding error changes nothing", KNOWN, 950 * 0.7, (), RUNNING, ENOUGH),
    Row("enough to the horizon", "even at worst", KNOWN, 500, FLAT, RUNNING, ENOUGH),
    Row(
        "enough, at worst not",
        "the mean stays below 665, the interval's end does not: to be watched, not to be acted on",
        KNOWN, 500, ahead((550, 640), (600, 700)), RUNNING, ENOUGH, None, day(60),
    ),
    Row("a bound that is enough", "800/s were done", CanDo(800.0), 500, ahead((500, 550)), RUNNING, ENOUGH),
    Row("nothing comes and nothing is known to be done", "0 of at least 0", CanDo(0.0), 0, (), RUNNING, ENOUGH),
    Row(
        "fewer would do today, but there is no forecast",
        "to take nodes away one must know what comes",
        KNOWN, 100, (), FEWER, ENOUGH,
    ),
    Row(
        "one node fewer would do",
        "five of six is not worth a change and would flicker",
        KNOWN, 100, ahead((100, 120)), SetUp(5, 48), ENOUGH,
    ),
    Row(
        "fewer advised than carry the worst of the forecast",
        "three of six nodes carry 332 with slack, and 340 are possible",
        KNOWN, 100, ahead((300, 340)), FEWER, ENOUGH,
    ),
    Row(
        "no answer to sizing",
        "without advice nothing says how few would do",
        KNOWN, 100, ahead((100, 120)), None, ENOUGH,
    ),
    # --- oversized ---
    Row("half would do", "three of six carry 332, 120 come at most", KNOWN, 100, ahead((100, 120)), FEWER, OVERSIZED),
    Row("two thirds would do", "just at the limit", KNOWN, 100, ahead((100, 120)), SetUp(4, 48), OVERSIZED),
    Row(
        "a lower bound is enough for that",
        "three of six nodes do at least 400, 280 with slack",
        CanDo(800.0), 100, ahead((100, 120)), FEWER, OVERSIZED,
    ),
    Row(
        "threads or partitions alone",
        "more of them than needed cost little, and partitions cannot be taken away",
        KNOWN, 100, ahead((100, 120)), SetUp(6, 12, 2), ENOUGH,
    ),
)  # fmt: skip


def judge(row: Row) -> CapacityJudgement:
    return judge_capacity(
        row.can_do, row.peak, row.forecast, target_utilisation=0.7, running=RUNNING, advised=row.advised, load_test=TEST
    )


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_the_verdict_is_right(row: Row) -> None:
    judgement = judge(row)
    assert judgement.verdict is row.verdict, row.why
    assert (judgement.enough_until, judgement.enough_until_at_worst) == (row.until, row.at_worst)
    assert (judgement.load_test is not None) == (row.verdict is UNDECIDED and row.peak is not None)
    ends_later = row.verdict is not TIGHT or row.until is not None
    assert judgement.is_exceeded == {UNDECIDED: None, SHORT: True, TIGHT: not ends_later}.get(row.verdict, False)
    assert judgement.sentence.endswith(".") and "None" not in judgement.sentence and ".." not in judgement.sentence


def test_every_verdict_is_proven() -> None:
    assert {row.verdict for row in ROWS} == set(CapacityVerdict)


SAID = (
    "nothing known",
    "did its peak and was not asked for more",
    "peak above the best it can do",
    "carried without the slack",
    "perhaps short",
    "enough ends within the forecast",
    "enough, at worst not",
    "enough to the horizon",
    "enough now, no forecast",
    "half would do",
)


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name: str, golden_sentence: Callable[..., None]) -> None:
    golden_sentence(judge(next(row for row in ROWS if row.name == name)).sentence)


def test_members_where_nodes_are_not_known() -> None:
    def judged(running: int, advised: int) -> str:
        of = (SetUp(number, 48, unit="member") for number in (running, advised))
        return judge_capacity(
            KNOWN, 900, FLAT, target_utilisation=0.7, **dict(zip(("running", "advised"), of, strict=True))
        ).sentence

    assert judged(6, 9).endswith("Advice: 9 members on 48 partitions instead of 6 members on 48 partitions.")
    assert "Advice" not in judged(6, 6)


def test_without_a_load_test_that_would_help_there_is_no_word_of_one() -> None:
    asked: dict[str, Any] = {"target_utilisation": 0.7, "running": RUNNING, "advised": None}
    said = judge_capacity(None, 500.0, FLAT, **asked)
    assert said.sentence.endswith("500 messages/s arrive at peak.") and said.load_test is None


@pytest.mark.parametrize(
    ("rate", "verdict", "ends"),
    [
        (1_200.0, SHORT, "kept free: at least 150 are missing."),
        (1_000.0, TIGHT, "kept free: the objective is perhaps not kept."),
        (900.0, TIGHT, "kept free: the objective is kept, but without that slack."),
        (500.0, ENOUGH, "also at worst (600)."),
    ],
)
def test_where_an_objective_decides_its_rate_is_named_and_no_peak(
    rate: float, verdict: CapacityVerdict, ends: str
) -> None:
    judged = judge_capacity(
        KNOWN, rate, FLAT, target_utilisation=0.7, running=RUNNING, advised=None, objective_seconds=90.0
    )
    assert judged.verdict is verdict
    assert judged.sentence.startswith(f"{significant(rate)} messages/s keep the objective of 1 min 30 s; it can do ")
    assert judged.sentence.endswith(ends)
    assert "peak" not in judged.sentence


# --- what must hold of all -------------------------------------------------------------------------------------------

rates = st.floats(0.0, 2_000.0)
forecasts = st.lists(st.tuples(rates, rates), max_size=4).map(lambda f: ahead(*((min(p), max(p)) for p in f)))
intervals = st.tuples(rates, rates).map(lambda pair: CanDo(min(pair), max(pair)))


@given(intervals, rates, forecasts, st.integers(1, 12), st.floats(1.0, 3.0))
def test_who_can_do_more_is_never_judged_worse(
    can_do: CanDo, peak: float, forecast: tuple[DemandAhead, ...], nodes: int, factor: float
) -> None:
    def judged(capability: CanDo) -> CapacityJudgement:
        advised = SetUp(nodes, 48)
        return judge_capacity(capability, peak, forecast, target_utilisation=0.7, running=RUNNING, advised=advised)

    assert can_do.high is not None
    one, better = judged(can_do), judged(CanDo(can_do.low * factor, can_do.high * factor))
    order = [SHORT, TIGHT, ENOUGH, OVERSIZED]
    assert order.index(better.verdict) >= order.index(one.verdict)
    at_worst, until = one.enough_until_at_worst, one.enough_until
    assert until is None or (at_worst is not None and at_worst <= until)
    assert one.verdict is not ENOUGH or until is None


@given(rates, rates, forecasts)
def test_a_lower_bound_never_means_too_little_capacity(
    low: float, peak: float, forecast: tuple[DemandAhead, ...]
) -> None:
    judgement = judge_capacity(CanDo(low), peak, forecast, target_utilisation=0.7, running=RUNNING, advised=FEWER)
    assert judgement.verdict in (UNDECIDED, ENOUGH, OVERSIZED)


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"peak_per_second": -1.0}, "peak_per_second"),
        ({"peak_per_second": math.nan}, "peak_per_second"),
        ({"target_utilisation": 0.0}, "target_utilisation"),
        ({"target_utilisation": 1.1}, "target_utilisation"),
        ({"forecast": tuple(reversed(FLAT))}, "forecast"),
    ],
)
def test_what_cannot_be_is_refused(changed: dict[str, Any], named: str) -> None:
    asked: dict[str, Any] = {
        "can_do": KNOWN, "peak_per_second": 500.0, "forecast": FLAT, "target_utilisation": 0.7, "running": RUNNING,
        "advised": FEWER,
    }  # fmt: skip
    with pytest.raises(OutOfRange) as refused:
        judge_capacity(**(asked | changed))
    assert refused.value.argument == named


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: CanDo(-1.0), "low"),
        (lambda: CanDo(math.nan, 5.0), "low"),
        (lambda: CanDo(5.0, 4.0), "high"),
        (lambda: CanDo(5.0, math.inf), "high"),
        (lambda: DemandAhead(NOW, math.nan, 1.0), "mean"),
        (lambda: DemandAhead(NOW, 2.0, 1.0), "upper"),
        (lambda: SetUp(-1, 1), "nodes"),
        (lambda: SetUp(1, 0), "partitions"),
        (lambda: SetUp(1, 1, 0), "threads_per_node"),
    ],
)
def test_inputs_that_cannot_be_are_refused(make: Any, named: str) -> None:
    with pytest.raises(OutOfRange) as refused:
        make()
    assert refused.value.argument == named
