"""The rules that Lagwise is compared with say what their published sources say, and the page shows the figures.

Every row of the proof tables says where it is known from: a rule that was made worse than it is would prove nothing.
"""

import math
import statistics
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import pytest

from benchmarks.verdicts import page
from benchmarks.verdicts.__main__ import PAGE, PICTURE, public_traces, scores_of_baselines
from benchmarks.verdicts.burrow import Burrow, Code, Commit, status_of
from benchmarks.verdicts.lag_exporter import LagExporter, LookupTable, Point
from benchmarks.verdicts.overdue import overdue
from benchmarks.verdicts.rules import LAGWISE, exactly_right, said_by, score_of_lagwise, statuses_of
from benchmarks.verdicts.score import (
    Onset,
    Score,
    Stretch,
    figures_of,
    known_truth_shares,
    onsets_of,
    score_of,
    stretches_of,
)
from benchmarks.verdicts.seen import ALARM, QUIET, UNKNOWN, Pair, Reading, Sample
from benchmarks.verdicts.threshold import Threshold
from lagwise.traces.trace import Trace

pytestmark = pytest.mark.thorough


def commits(*offsets_and_lags: tuple[int, int | None], every_s: float = 10.0) -> list[Commit]:
    """Commits every ten seconds, the first one at 0."""
    return [Commit(every_s * n, offset, lag) for n, (offset, lag) in enumerate(offsets_and_lags)]


class BurrowRow(NamedTuple):
    name: str
    why: str
    commits: list[Commit]
    ends: list[int]
    now: float
    code: Code


GROWING = commits((100, 10), (110, 20), (120, 30), (130, 40))
STANDING = commits((100, 10), (100, 20), (100, 30), (100, 40))

BURROW = (
    BurrowRow("drained", "current lag 0 comes first", GROWING, [130], 35, Code.OK),
    BurrowRow("drained long ago", "… even before STOP: an idle topic is OK", GROWING, [130], 9999, Code.OK),
    BurrowRow("grows", "no lag decreases: WARN", GROWING, [150, 170], 35, Code.WARN),
    BurrowRow(
        "one dip", "one decrease clears WARN (#155)", commits((1, 30), (2, 40), (3, 39), (4, 99)), [103], 35, Code.OK
    ),
    BurrowRow("level lag", "equal lags do not decrease: WARN", commits((1, 9), (2, 9), (3, 9)), [12], 25, Code.WARN),
    BurrowRow("stands", "all offsets equal: STALL", STANDING, [120, 140], 35, Code.STALL),
    BurrowRow(
        "stands, a zero in the window",
        "any lag of 0 clears it (#745)",
        [Commit(0, 100, 0), *STANDING],
        [140],
        35,
        Code.OK,
    ),
    BurrowRow("silent for as long as the window", "not yet longer: WARN", GROWING, [150, 170], 60, Code.WARN),
    BurrowRow(
        "silent for longer than the window", "now − last > last − first: STOP", GROWING, [150, 170], 61, Code.STOP
    ),
    BurrowRow(
        "silent, but the broker's history reaches back to the commit",
        "an end ≤ committed forbids STOP (PR#338)",
        GROWING,
        [130, 170],
        61,
        Code.WARN,
    ),
    BurrowRow("one commit only", "width 0: STOP at once", commits((100, 0)), [101, 102], 0.1, Code.STOP),
    BurrowRow(
        "stopped with a zero in the window",
        "STOP is tested before the zeros: the code, not the wiki (#745)",
        commits((100, 0), (110, 5)),
        [150],
        21,
        Code.STOP,
    ),
    BurrowRow(
        "rewound",
        "back, and never again where it was: REWIND",
        commits((100, 5), (50, 60), (90, 30)),
        [130],
        25,
        Code.REWIND,
    ),
    BurrowRow(
        "rewound and past it",
        "a later offset reaches the old one",
        commits((100, 9), (50, 8), (101, 7)),
        [130],
        25,
        Code.OK,
    ),
    BurrowRow(
        "lag not known", "unknown lags are ignored", commits((1, None), (2, 5), (3, None), (4, 6)), [10], 35, Code.WARN
    ),
)


@pytest.mark.parametrize("row", BURROW, ids=lambda row: row.name)
def test_burrow(row: BurrowRow) -> None:
    assert status_of(row.commits, row.ends, row.now) is row.code, row.why


def sample(at: float, committed: int | None, end: int | None, *, owned: bool = True, partition: int = 0) -> Sample:
    return Sample(at, {Pair("g", "t", partition): Reading(committed, end, owned)})


class TestBurrowOverSamples:
    def test_a_member_commits_at_every_sample_and_an_engine_when_it_moves(self) -> None:
        """So one that stands still is STALL while a member owns it, and STOP when nobody does."""
        for owned, expected in ((True, Code.STALL), (False, Code.STOP)):
            rule = Burrow()
            for n in range(25):
                rule.see(sample(15.0 * n, min(10 * n, 50), 10 * n + 5, owned=owned))
            (kept,) = rule._partitions.values()
            assert status_of(list(kept.commits), list(kept.ends), 360.0) is expected
            assert rule.says("g") == ALARM

    def test_it_keeps_ten_commits(self) -> None:
        rule = Burrow()
        for n in range(30):
            rule.see(sample(15.0 * n, n, n))
        (kept,) = rule._partitions.values()
        assert [commit.offset for commit in kept.commits] == list(range(20, 30))

    def test_a_group_without_a_commit_is_not_found(self) -> None:
        rule = Burrow()
        rule.see(sample(0.0, None, 100))
        assert rule.says("g") == UNKNOWN


class TestLagExporter:
    def table(self, *points: tuple[int, float], size: int = 60) -> LookupTable:
        table = LookupTable(size)
        for offset, at in points:
            table.add(Point(offset, at))
        return table

    def test_between_two_points_the_time_is_interpolated(self) -> None:
        assert self.table((0, 0), (100, 30), (400, 60)).lag_seconds(250, 60) == 15

    def test_at_the_end_it_is_nothing(self) -> None:
        assert self.table((0, 0), (100, 30)).lag_seconds(100, 99) == 0

    def test_with_one_point_it_is_not_known(self) -> None:
        assert math.isnan(self.table((100, 0)).lag_seconds(50, 30))

    def test_before_the_table_it_is_read_off_a_line_for_years(self) -> None:
        """A topic of ten million old records, now at one in 30 s, read from the start: 9.5 years (#496)."""
        table = self.table(*[(10_000_000 + n, 30.0 * n) for n in range(60)])
        assert table.lag_seconds(0, 1770) / (365.25 * 86_400) == pytest.approx(9.5, abs=0.05)

    def test_on_a_topic_without_traffic_it_is_infinite(self) -> None:
        assert self.table((100, 0), (100, 30), (100, 60)).lag_seconds(50, 60) == math.inf

    def test_a_flat_stretch_is_two_points(self) -> None:
        table = self.table((100, 0), (100, 30), (100, 60), (100, 90), (200, 120))
        assert list(table.points) == [(100, 0), (100, 90), (200, 120)]

    def test_a_re_created_topic_leaves_the_old_table(self) -> None:
        table = self.table((5000, 0), (5100, 30), (10, 60), (20, 90))
        assert list(table.points) == [(5000, 0), (5100, 30)]

    def test_beyond_the_end_it_is_negative(self) -> None:
        """#138."""
        assert self.table((0, 0), (100, 30)).lag_seconds(200, 30) < 0

    def test_it_keeps_half_an_hour(self) -> None:
        assert LagExporter(300, 15)._size == 120
        assert LagExporter(300, 30)._size == 60
        assert len(self.table(*[(n, float(n)) for n in range(70)]).points) == 60

    def test_the_group_s_largest_lag_raises_the_alarm(self) -> None:
        rule = LagExporter(300, 15)
        for n in range(41):
            both = sample(15.0 * n, 10 * n, 10 * n).readings | sample(15.0 * n, 10, 10 * n, partition=1).readings
            rule.see(Sample(15.0 * n, both))
            assert rule.says("g") == (ALARM if 15 * (n - 1) > 300 else QUIET)


class TestThreshold:
    def test_the_partitions_are_summed(self) -> None:
        rule = Threshold(1000)
        rule.see(Sample(0.0, sample(0, 0, 600).readings | sample(0, 0, 400, partition=1).readings))
        assert rule.says("g") == QUIET
        rule.see(Sample(15.0, sample(0, 0, 600).readings | sample(0, 0, 401, partition=1).readings))
        assert rule.says("g") == ALARM

    def test_what_was_never_committed_is_left_out(self) -> None:
        rule = Threshold(1000)
        rule.see(Sample(0.0, sample(0, None, 6000).readings | sample(0, 0, 400, partition=1).readings))
        assert rule.says("g") == QUIET
        rule.see(sample(15.0, None, 6000))
        assert rule.says("g") == UNKNOWN


class TestScore:
    """On a trace whose truth is written here; times are those of a trace with an evaluation every 15 s."""

    def trace(self, name: str) -> Trace:
        return next(trace for trace in traces() if trace.name == name)

    def test_where_an_alarm_and_none_are_both_right_nothing_is_judged(self) -> None:
        its = stretches_of(self.trace("poison-pill"))
        assert [(s.from_s, s.to_s) for s in its if not s.is_certain] == []
        (trouble,) = [s for s in its if s.is_trouble]
        assert trouble == Stretch("thumbnailer", 705, 1800, frozenset({ALARM}))

    def test_trouble_begins_where_well_being_ended(self) -> None:
        assert onsets_of(self.trace("poison-pill")) == [Onset("thumbnailer", 600, 2130)]

    def test_what_began_while_the_collector_was_down_begins_with_the_next_sample(self) -> None:
        assert [onset.from_s for onset in onsets_of(self.trace("collector-gap"))] == [1500]

    def test_a_rule_that_always_cries_and_one_that_never_does(self) -> None:
        trace = self.trace("poison-pill")
        always, never = (
            score_of(trace, {(at, "thumbnailer"): word for at in trace.evaluation_times}) for word in (ALARM, QUIET)
        )
        assert always.right + never.right == pytest.approx(1.0)
        assert (always.delays, always.onsets, never.delays, never.onsets) == ((0.0,), 1, (), 1)
        # Raised once, at the start, and held from then on.
        assert (always.false_alarms, never.false_alarms) == (0, 0)

    def test_an_alarm_that_comes_and_goes_counts_each_time(self) -> None:
        trace = self.trace("idle-topic")
        flickers = {(at, "audit-writer"): ALARM if at % 60 == 0 else QUIET for at in trace.evaluation_times}
        score = score_of(trace, flickers)
        assert score.false_alarms == len([at for at in trace.evaluation_times if at % 60 == 0])

    def test_a_word_that_changes_counts_where_the_truth_does_not(self) -> None:
        """Not from one row of the truth to the next: before 600 s all is well, from 705 to 1,800 s there is trouble."""
        trace = self.trace("poison-pill")
        quiet = {(at, "thumbnailer"): "ok" for at in trace.evaluation_times}
        assert score_of(trace, quiet).switches == 0
        for changes, count in (([300.0], 2), ([705.0], 1), ([1200.0, 1215.0], 2), ([600.0], 1), ([630.0], 0)):
            flickers = quiet | {(at, "thumbnailer"): "stalled" for at in changes}
            assert score_of(trace, quiet, flickers).switches == count, changes

    def test_the_time_without_an_alarm_counts_while_records_are_older_than_the_objective(self) -> None:
        """Nothing is read from 600 to 2,100 s, whose first record is older than 300 s from 915 s on for certain."""
        trace = self.trace("poison-pill")
        late = sorted(at for at, _ in overdue(trace))
        assert 900 < late[0] <= 930
        half = {(at, "thumbnailer"): ALARM if at < late[len(late) // 2] else QUIET for at in trace.evaluation_times}
        assert score_of(trace, half).silent == pytest.approx(0.5, abs=0.02)

    def test_the_figures_are_means_over_traces_and_delays_are_pooled(self) -> None:
        one = Score(1.0, None, (10.0, 30.0), 2, 0, 1.0, 4, None)
        figures = figures_of(
            [one, replace(one, right=0.5, unknown=0.5, delays=(80.0,), onsets=2, false_alarms=3, silent=0.2)]
        )
        assert (figures.right, figures.unknown) == (0.75, 0.5)
        assert (figures.median_delay, figures.worst_delay, figures.found, figures.onsets) == (30.0, 80.0, 3, 4)
        assert figures.false_alarms_per_hour == 1.5
        assert (figures.switches, figures.silent) == (8, 0.2)


def test_a_table_can_be_read_again() -> None:
    figures = figures_of([Score(0.5, 1.0, (15.0,), 2, 1, 4.0, 7, 0.5)])
    of_days = {LAGWISE: ["0", "1"], "Burrow": ["5,234", "3"]}
    made = page.table({LAGWISE: figures, "Burrow": figures}, of_days)
    read = page.rows_of(page.with_table(f"{page.BEGIN}{page.END}", made))
    assert read == {name: [*page.cells_of(name, figures), *cells] for name, cells in of_days.items()}


class TestOverdue:
    """What is older than the objective, by the trace alone."""

    def late(self, name: str, group: str) -> list[float]:
        trace = next(trace for trace in traces() if trace.name == name)
        return sorted(at for at, its in overdue(trace) if its == group)

    @pytest.mark.parametrize(
        ("name", "group"),
        [
            ("commit-markers", "booker"),  # One offset behind, and no record in it.
            ("idle-topic", "audit-writer"),
            ("ghost-topic", "loyalty"),  # What it left unread it reads no more.
            ("open-transaction", "bookkeeper"),  # It cannot be read yet.
            ("foreign-commit", "audit"),
        ],
    )
    def test_nothing_is(self, name: str, group: str) -> None:
        assert self.late(name, group) == []

    def test_a_steady_backlog_of_nine_minutes_is_throughout(self) -> None:
        """Of what was there before the trace begins nobody knows the age: it is old when it has been seen for long."""
        trace = next(trace for trace in traces() if trace.name == "steady-backlog")
        (group,) = {group for _, group in overdue(trace)}
        late = self.late("steady-backlog", group)
        assert late == [at for at in trace.evaluation_times if at >= late[0]]

    def test_an_age_is_at_most_a_sample_too_little(self) -> None:
        """Against kafka-lag-exporter's, which is interpolated, where its table holds the record."""
        trace = next(trace for trace in traces() if trace.name == "falls-behind-and-recovers")

        def older_than(seconds: float) -> set[tuple[float, str]]:
            said = said_by(LagExporter(seconds, trace.sample_interval_s), trace)
            return {key for key, word in said.items() if word == ALARM}

        objective, interval = trace.lag_objective_s, trace.sample_interval_s
        assert older_than(objective + interval) <= overdue(trace) <= older_than(objective)


@cache
def traces() -> tuple[Trace, ...]:
    return tuple(public_traces())


def test_the_page_states_the_share_of_time_with_a_known_truth() -> None:
    shares = [share for trace in public_traces() for share in known_truth_shares(trace).values()]
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"the truth covers {100 * statistics.mean(shares):.0f} % of the groups' time" in text
    assert f"at least {100 * min(shares):.0f} % of each group" in text


def shown_rows() -> dict[str, list[str]]:
    """The rows of the page's table, without the healthy days, which take minutes."""
    return {name: row[: -page.DAYS] for name, row in page.rows_of(PAGE.read_text(encoding="utf-8")).items()}


def test_the_page_shows_what_the_other_rules_make_of_the_traces() -> None:
    shown = shown_rows()
    scores = scores_of_baselines(traces())
    assert list(shown) == [LAGWISE, *scores]
    for name, its in scores.items():
        assert shown[name] == page.cells_of(name, figures_of(its))


def test_the_picture_shows_every_trace_and_rule() -> None:
    picture = PICTURE.read_text(encoding="utf-8")
    for word in (*(trace.name for trace in traces()), *shown_rows()):
        assert f">{word.replace('>', '&gt;')}</text>" in picture


def test_the_page_shows_what_lagwise_makes_of_them() -> None:
    """Its words are exactly right, so it is right all the time."""
    scores = []
    for trace in traces():
        statuses = statuses_of(trace)
        assert exactly_right(trace, statuses) == 1.0
        scores.append(score_of_lagwise(trace, statuses))
    assert shown_rows()[LAGWISE] == page.cells_of(LAGWISE, figures_of(scores))
    assert figures_of(scores).right == 1.0


def test_the_page_is_written_only_between_its_markers() -> None:
    text = f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n"
    assert page.with_table(text, "new") == f"before\n{page.BEGIN}\n\nnew\n\n{page.END}\nafter\n"
    with pytest.raises(ValueError, match="lacks"):
        page.with_table("a page without a place", "new")
    with pytest.raises(ValueError, match="headings"):
        page.rows_of("a page without a table")
