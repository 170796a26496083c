"""What holds for every history: the definition is asked twice, and what changed between must not matter (or must)."""

import random
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest

from lagwise.domain.evaluation import Evaluation, evaluate
from lagwise.domain.groups import GroupVerdict
from lagwise.domain.verdict_rollup import Pair
from lagwise.domain.vocabulary import Status, UnknownReason
from tests.domain.judged_histories import Row, Rows, cases, changed

pytestmark = pytest.mark.thorough

#: What is said of a lag.
OF_LAG = {Status.STOPPED, Status.STALLED, Status.FALLING_BEHIND, Status.LAGGING, Status.CATCHING_UP}


def test_the_histories_are_rich_enough_to_prove_anything() -> None:
    """Guards the tests below: every word comes up in them, of partitions and (but for the two rarest) of groups."""
    partitions = Counter(judged.verdict.status for case in cases() for judged in case.evaluation.partitions.values())
    reasons = Counter(judged.verdict.reason for case in cases() for judged in case.evaluation.partitions.values())
    groups = Counter(verdict.status for case in cases() for verdict in case.evaluation.groups.values())
    assert set(partitions) == set(Status)
    assert set(reasons) == {None, *UnknownReason} - {UnknownReason.NOT_COMMITTING}
    assert set(groups) >= set(Status) - {Status.GHOST, Status.CATCHING_UP}


def test_judging_twice_gives_the_same_and_leaves_the_rows_alone() -> None:
    for case in cases():
        before = {table: [dict(row) for row in its_rows] for table, its_rows in case.rows.items()}
        assert evaluate(case.rows, case.at) == case.evaluation, case
        assert case.rows == before, case


def test_the_order_of_rows_does_not_matter() -> None:
    chance = random.Random(1)
    for case in cases():
        shuffled = {table: chance.sample(its_rows, len(its_rows)) for table, its_rows in case.rows.items()}
        assert evaluate(shuffled, case.at) == case.evaluation, case


def test_what_came_later_does_not_matter() -> None:
    """Verdicts on the past are those that were given then: a replay may be handed the whole history."""
    left_out = 0
    for case in cases():
        until = {
            table: [row for row in its_rows if _time(row) <= case.at.as_of] for table, its_rows in case.rows.items()
        }
        left_out += sum(map(len, case.rows.values())) - sum(map(len, until.values()))
        assert evaluate(until, case.at) == case.evaluation, case
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

    for case in cases():
        at = replace(case.at, as_of=case.at.as_of + by)
        assert evaluate(changed(case.rows, shifted), at) == case.evaluation, case


@pytest.mark.parametrize("by", [1, 5_000_000_000])
def test_a_constant_on_all_offsets_changes_no_verdict(by: int) -> None:
    """Offsets are places and not amounts: of a topic that was trimmed a billion times the verdict is the same."""
    offsets = ("committed", "next_record", "log_start", "high_watermark", "last_stable")

    def raised(_: str, row: Row) -> Row:
        return {**row, **{name: row[name] + by for name in offsets if row.get(name) is not None}}

    for case in cases():
        found = evaluate(changed(case.rows, raised), case.at)
        assert _verdicts(found) == _verdicts(case.evaluation), case
        assert found.groups == case.evaluation.groups, case


def test_names_do_not_matter() -> None:
    """Not even their order: groups and topics are given names that sort the other way round."""
    for case in cases():
        names = sorted({"elsewhere", *_names(case.rows)})
        new = {name: f"{len(names) - n:02d} <b>None</b>" for n, name in enumerate(names)}
        found = evaluate(changed(case.rows, partial(_renamed, new)), case.at)
        expected = {
            Pair(new[pair.group], new[pair.topic], pair.partition): judged.verdict
            for pair, judged in case.evaluation.partitions.items()
        }
        assert _verdicts(found) == expected, case
        assert {name: _of_group(v) for name, v in found.groups.items()} == {
            new[name]: _of_group(v) for name, v in case.evaluation.groups.items()
        }, case


def test_groups_do_not_disturb_each_other() -> None:
    """A group among others is judged as it would be alone on the cluster."""
    for case in cases():
        for group, verdict in case.evaluation.groups.items():
            alone = {
                table: [row for row in its_rows if row.get("group", group) in (group, None)]
                for table, its_rows in case.rows.items()
            }
            found = evaluate(alone, case.at)
            assert found.groups == {group: verdict}, case
            assert found.partitions == {p: j for p, j in case.evaluation.partitions.items() if p.group == group}, case


def test_a_group_that_never_has_lag_gets_no_verdict_about_lag() -> None:
    """Whenever its commits and the ends are known, they are the same. What else may be wrong is not about lag: the
    commits are about to expire, or went back with a log that was truncated."""
    words: Counter[Status] = Counter()
    for case in cases():
        ends = {(r["sample_id"], r["topic"], r["partition"]): r["high_watermark"] for r in case.rows["watermarks"]}
        rows = changed(case.rows, partial(_without_lag, ends))
        for pair, judged in evaluate(rows, case.at).partitions.items():
            verdict = judged.verdict
            assert verdict.lag in (0, None), (case, pair)
            assert verdict.records_lost == 0, (case, pair)
            assert not OF_LAG & set(verdict.reasons), (case, pair)
            if Status.AT_RISK in verdict.reasons:
                assert verdict.seconds_to_loss == judged.evidence.seconds_to_expiry, (case, pair)
            if Status.REWOUND in verdict.reasons:
                assert (judged.evidence.rewound_from or 0) > (judged.evidence.committed or 0), (case, pair)
            words[verdict.status] += 1
    assert {Status.OK, Status.UNKNOWN} < set(words) <= set(Status) - OF_LAG - {Status.LOSING_DATA}


def test_a_policy_that_asks_for_less_finds_no_more() -> None:
    for case in cases():
        policy = case.at.policy
        patient = replace(policy, lag_objective_seconds=3 * policy.lag_objective_seconds)
        short = replace(policy, risk_horizon_seconds=policy.risk_horizon_seconds / 3)
        for laxer, word in ((patient, Status.LAGGING), (short, Status.AT_RISK)):
            found = evaluate(case.rows, replace(case.at, policy=laxer))
            for pair, judged in found.partitions.items():
                before = case.evaluation.partitions[pair].verdict
                trouble = set(Status) - {Status.OK, Status.UNKNOWN}
                now, then = set(judged.verdict.reasons) & trouble, set(before.reasons) & trouble
                assert now <= then <= now | {word}, (case, pair)


def test_partitions_are_those_committed_or_owned_now_or_ever_seen_committed() -> None:
    for case in cases():
        now = {_pair(r) for r in case.rows["commits"] if r["sample_id"] == case.at.sample_id}
        ends = {(r["sample_id"], r["topic"], r["partition"]): r for r in case.rows["watermarks"]}
        ever = set()
        for row in case.rows["commits"]:
            end = ends.get((row["sample_id"], row["topic"], row["partition"]))
            if end is None or row["sampled_at"] > case.at.as_of:
                continue
            offsets = (row["committed"], end["log_start"], end["high_watermark"])
            if None not in offsets and row["committed"] <= end["high_watermark"]:
                ever.add(_pair(row))
        assert set(case.evaluation.partitions) == now | ever, case
        listed = {r["group"] for r in case.rows["groups"] if r["sample_id"] == case.at.sample_id}
        assert set(case.evaluation.groups) == listed | {pair.group for pair in now | ever}, case


def _verdicts(evaluation: Evaluation) -> dict[Pair, object]:
    return {pair: judged.verdict for pair, judged in evaluation.partitions.items()}


def _of_group(verdict: GroupVerdict) -> tuple[object, ...]:
    """What of a group does not rest on names: not its worst partition among equals, nor the last digit of a sum."""
    n = verdict.numbers
    numbers = (n.lag_records, n.lag_seconds, n.seconds_to_loss, n.seconds_to_catch_up, n.records_lost)
    return verdict.status, verdict.reason, verdict.partitions, verdict.partitions_by_status, *numbers


def _names(rows: Rows) -> set[str]:
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
