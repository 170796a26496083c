"""What holds for every history: the rules are asked twice, and what changed between must not matter (or must)."""

import random
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain

import pytest

from lagwise.domain.groups import GroupVerdict
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.traces.trace import Row, moment, sample_id
from tests.domain.judged_histories import VERDICT, differences, groups, histories, partitions, verdicts
from tests.traces.judged import Pair, judged

pytestmark = pytest.mark.thorough

#: What is said of a lag.
OF_LAG = {Status.STOPPED, Status.STALLED, Status.FALLING_BEHIND, Status.LAGGING, Status.CATCHING_UP}


def test_the_histories_are_rich_enough_to_prove_anything() -> None:
    """Guards the tests below: every word comes up in them, of partitions and (but for the two rarest) of groups."""
    assert {row.status for _, _, row in partitions()} == set(Status)
    of_groups = {UnknownReason.NOT_COMMITTING, UnknownReason.NO_TOPICS}
    assert {row.reason for _, _, row in partitions()} == {None, *UnknownReason} - of_groups
    assert {verdict.status for *_, verdict in groups()} >= set(Status) - {Status.GHOST, Status.CATCHING_UP}


def test_judging_twice_gives_the_same_and_leaves_the_rows_alone() -> None:
    for one in histories():
        before = {table: [dict(row) for row in its_rows] for table, its_rows in one.trace.rows.items()}
        for found, expected in zip(one.judged_again(one.trace), one.evaluations, strict=True):
            assert (found.partitions, found.groups) == (expected.partitions, expected.groups), str(one)
        assert one.trace.rows == before, str(one)


def test_the_order_of_rows_does_not_matter() -> None:
    chance = random.Random(1)
    for one in histories():
        shuffled = {table: chance.sample(its_rows, len(its_rows)) for table, its_rows in one.trace.rows.items()}
        for found, expected in zip(one.judged_again(replace(one.trace, rows=shuffled)), one.evaluations, strict=True):
            assert differences(found, expected) == [], str(one)


def test_what_came_later_does_not_matter() -> None:
    """Verdicts on the past are those that were given then: a replay may be handed the whole history."""
    left_out = 0
    for one in histories():
        for number, (sample, expected) in enumerate(zip(one.samples, one.evaluations, strict=True)):
            as_of = moment(one.trace.sample_times[sample])
            until = {table: [r for r in its_rows if _time(r) <= as_of] for table, its_rows in one.trace.rows.items()}
            left_out += sum(map(len, one.trace.rows.values())) - sum(map(len, until.values()))
            *_, (_, found) = judged(replace(one.trace, rows=until), one.samples[: number + 1], until["events"])
            assert differences(found, expected, VERDICT) == [], (str(one), sample)
    assert left_out > 10_000


@pytest.mark.parametrize(
    "by",
    [timedelta(hours=1), timedelta(hours=-35), timedelta(days=10_000), timedelta(hours=13)],
    ids=["an hour later", "35 earlier", "after the epoch's 31 bits", "in another part of the day"],
)
def test_whole_buckets_earlier_or_later_everything_is_the_same(by: timedelta) -> None:
    """All that is told are ages and times to come; buckets are whole hours at most, so they hold the same samples."""

    def shifted(_: str, row: Row) -> Row:
        return {**row, **{name: row[name] + by for name in ("sampled_at", "at", "committed_at") if row.get(name)}}

    for one in histories():
        times = tuple(at + by.total_seconds() for at in one.trace.sample_times)
        found = one.judged_again(replace(one.changed(shifted), sample_times=times))
        for now, expected in zip(found, one.evaluations, strict=True):
            assert differences(now, expected) == [], str(one)


@pytest.mark.parametrize("by", [1, 5_000_000_000])
def test_a_constant_on_all_offsets_changes_no_verdict(by: int) -> None:
    """Offsets are places and not amounts: of a topic that was trimmed a billion times the verdict is the same."""
    offsets = ("committed", "next_record", "log_start", "high_watermark", "last_stable")

    def raised(_: str, row: Row) -> Row:
        return {**row, **{name: row[name] + by for name in offsets if row.get(name) is not None}}

    for one in histories():
        for found, expected in zip(one.judged_again(one.changed(raised)), one.evaluations, strict=True):
            assert differences(found, expected, VERDICT) == [], str(one)


def test_names_do_not_matter() -> None:
    """Not even their order: groups and topics are given names that sort the other way round."""
    for one in histories():
        names = sorted({"elsewhere", *_names(one.trace.rows)})
        new = {name: f"{len(names) - n:02d} <b>None</b>" for n, name in enumerate(names)}
        for found, before in zip(one.judged_again(one.changed(partial(_renamed, new))), one.evaluations, strict=True):
            expected = {
                Pair(new[pair.group], new[pair.topic], pair.partition): its for pair, its in verdicts(before).items()
            }
            assert verdicts(found) == expected, str(one)
            assert {name: _of_group(v) for name, v in found.groups.items()} == {
                new[name]: _of_group(v) for name, v in before.groups.items()
            }, str(one)


def test_groups_do_not_disturb_each_other() -> None:
    """A group among others is judged as it would be alone on the cluster."""
    for one in histories():
        for group in {*chain.from_iterable(evaluation.groups for evaluation in one.evaluations)}:
            alone = {
                table: [row for row in its_rows if row.get("group", group) in (group, None)]
                for table, its_rows in one.trace.rows.items()
            }
            for found, before in zip(one.judged_again(replace(one.trace, rows=alone)), one.evaluations, strict=True):
                assert found.groups == {name: v for name, v in before.groups.items() if name == group}, str(one)
                assert found.partitions == {p: row for p, row in before.partitions.items() if p.group == group}, str(
                    one
                )


def test_a_group_that_never_has_lag_gets_no_verdict_about_lag() -> None:
    """Whenever its commits and the ends are known, they are the same. What else may be wrong is not about lag: the
    commits are about to expire, or went back with a log that was truncated."""
    words: Counter[Status] = Counter()
    for one in histories():
        ends = {(r["sample_id"], r["topic"], r["partition"]): r["high_watermark"] for r in one.trace.rows["watermarks"]}
        for evaluation in one.judged_again(one.changed(partial(_without_lag, ends))):
            for pair, row in evaluation.partitions.items():
                assert row.lag in (0, None), (str(one), pair)
                assert row.records_lost == 0, (str(one), pair)
                assert not OF_LAG & set(row.reasons), (str(one), pair)
                if Status.AT_RISK in row.reasons:
                    assert row.seconds_to_loss == row.seconds_to_expiry, (str(one), pair)
                if Status.REWOUND in row.reasons:
                    assert (row.rewound_from or 0) > (row.committed or 0), (str(one), pair)
                words[row.status] += 1
    assert {Status.OK, Status.UNKNOWN} < set(words) <= set(Status) - OF_LAG - {Status.LOSING_DATA}


def test_a_policy_that_asks_for_less_finds_no_more() -> None:
    """But that slow growth is falling behind as long as the objective will be missed, and lagging once it is."""
    slow = {Status.FALLING_BEHIND, Status.LAGGING}
    for one in histories():
        patient = replace(one.trace, lag_objective_s=3 * one.trace.lag_objective_s)
        short = replace(one.trace, risk_horizon_s=one.trace.risk_horizon_s / 3)
        for laxer, word in ((patient, Status.LAGGING), (short, Status.AT_RISK)):
            for found, expected in zip(one.judged_again(laxer), one.evaluations, strict=True):
                for pair, row in found.partitions.items():
                    trouble = set(Status) - {Status.OK, Status.UNKNOWN}
                    now, then = (set(its.reasons) & trouble for its in (row, expected.partitions[pair]))
                    assert now - slow <= then - slow <= now | {word}, (str(one), pair)
                    assert then & slow or not now & slow, (str(one), pair)


def test_partitions_are_those_committed_or_owned_now_or_ever_seen_committed() -> None:
    for one in histories():
        rows = one.trace.rows
        ends = {(r["sample_id"], r["topic"], r["partition"]): r for r in rows["watermarks"]}
        for sample, evaluation in zip(one.samples, one.evaluations, strict=True):
            now = {_pair(r) for r in rows["commits"] if r["sample_id"] == sample_id(sample)}
            ever = set()
            for row in rows["commits"]:
                end = ends.get((row["sample_id"], row["topic"], row["partition"]))
                if end is None or row["sampled_at"] > moment(one.trace.sample_times[sample]):
                    continue
                offsets = (row["committed"], end["log_start"], end["high_watermark"])
                if None not in offsets and row["committed"] <= end["high_watermark"]:
                    ever.add(_pair(row))
            assert set(evaluation.partitions) == now | ever, str(one)
            listed = {r["group"] for r in rows["groups"] if r["sample_id"] == sample_id(sample)}
            assert set(evaluation.groups) == listed | {pair.group for pair in now | ever}, str(one)


def _of_group(verdict: GroupVerdict) -> tuple[object, ...]:
    """What of a group does not rest on names: not its worst partition among equals, nor the last digit of a sum."""
    n = verdict.numbers
    numbers = (n.lag_records, n.lag_seconds, n.seconds_to_loss, n.seconds_to_catch_up, n.records_lost)
    return verdict.status, verdict.reason, verdict.partitions, verdict.partitions_by_status, *numbers


def _names(rows: dict[str, list[Row]]) -> set[str]:
    return {row[key] for its_rows in rows.values() for row in its_rows for key in ("group", "topic") if row.get(key)}


def _renamed(names: dict[str, str], _: str, row: Row) -> Row:
    new = {**row, **{key: names[row[key]] for key in ("group", "topic") if row.get(key) is not None}}
    if "assignment" in row:
        new["assignment"] = [{**one, "topic": names[one["topic"]]} for one in row["assignment"]]
    return new


def _without_lag(ends: dict[tuple[str, str, int], int | None], table: str, row: Row) -> Row:
    if table != "commits" or row["committed"] is None:
        return row
    end = ends.get((row["sample_id"], row["topic"], row["partition"]))
    return row if end is None else {**row, "committed": end}


def _pair(row: Row) -> Pair:
    return Pair(row["group"], row["topic"], row["partition"])


def _time(row: Row) -> datetime:
    at: datetime = row["at"] if "at" in row else row["sampled_at"]
    return at
