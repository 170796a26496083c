"""The record of a group: what is declared once is everywhere, under the same name."""

from dataclasses import fields, replace
from datetime import UTC, datetime
from math import inf, nan

import pytest

from lagwise.domain.causes import Scope
from lagwise.domain.findings import Finding, FindingKind
from lagwise.domain.group_record import (
    NUMBER_FACTS,
    STORED_FACTS,
    GroupNumbers,
    GroupRecord,
    known_partitions,
    number_columns,
    numbers_of,
    record_of,
    row_of,
    sent_numbers,
)
from lagwise.domain.vocabulary import LossCause, Status

AS_OF = datetime(2026, 11, 24, 8, 0, tzinfo=UTC)
NUMBERS = GroupNumbers(
    lag_records=12,
    lag_seconds=3.5,
    lag_seconds_is_lower_bound=True,
    produce_rate_per_second=20.0,
    consume_rate_per_second=18.0,
    seconds_to_catch_up=6.0,
    seconds_to_loss=7200.0,
    seconds_to_loss_is_upper_bound=False,
    loss_cause=LossCause.EXPIRY,
    records_lost=7,
    transaction_seconds=61.0,
    members=3,
    worst_topic="orders",
    worst_partition=4,
    stands_still=True,
    known_partitions=5,
)
RECORD = GroupRecord(
    cluster="kafka",
    group="billing",
    as_of=AS_OF,
    status=Status.AT_RISK,
    reason=None,
    since=AS_OF,
    sentence="why",
    state="Stable",
    type="classic",
    idle_members=1,
    topics=("orders", "returns"),
    partitions=6,
    partitions_by_status={"at_risk": 5, "ghost": 2, "unknown": 1},
    numbers=NUMBERS,
    commits_seen=9,
    seconds_to_catch_up_low=5.0,
    seconds_to_catch_up_high=8.0,
    seconds_to_breach=60.0,
    seconds_to_breach_low=50.0,
    seconds_to_breach_high=None,
    seconds_to_loss_at_latest=9000.0,
    lost_at_least=7,
    lost_at_most=8,
    first_lost_at=AS_OF,
    last_lost_at=AS_OF,
    cause=Scope.MEMBER,
    findings=(Finding(FindingKind.LOSS, "lost", "get them"), Finding(FindingKind.JOB, "restarts")),
    cause_name="billing-1 on host-1",
)


def test_a_record_comes_back_from_its_row() -> None:
    assert record_of(row_of(RECORD)) == RECORD


def test_a_row_has_every_column_and_no_other() -> None:
    assert row_of(RECORD).keys() == {field.column for field in STORED_FACTS}


def test_every_field_is_declared_with_what_it_means() -> None:
    names = {field.name for field in (*STORED_FACTS, *NUMBER_FACTS)}
    assert names == {f.name for kind in (GroupRecord, GroupNumbers) for f in fields(kind)} - {"numbers"}
    assert all(field.fact.meaning for field in STORED_FACTS)


def test_an_amount_has_a_unit() -> None:
    amounts = [field for field in (*STORED_FACTS, *NUMBER_FACTS) if field.type in (int, float)]
    assert {field.name for field in amounts if field.fact.unit is None} == {"worst_partition"}


def test_a_row_is_of_plain_values() -> None:
    row = row_of(RECORD)
    assert (row["status"], row["loss_cause"], row["lag"]) == ("at_risk", "expiry", 12)
    assert type(row["status"]) is type(row["loss_cause"]) is str
    assert row["findings"][1] == {"kind": "job", "sentence": "restarts", "remedy": None}
    assert [one["status"] for one in row["partitions_by_status"]] == ["at_risk", "ghost", "unknown"]


def test_words_of_a_newer_version_are_none_to_act_on() -> None:
    row = row_of(RECORD) | {"status": "worse", "reason": "new", "cause": "planet", "loss_cause": "fire"}
    row["findings"] = [{"kind": "new", "sentence": "s", "remedy": None}, *row["findings"]]
    read = record_of(row)
    assert (read.status, read.reason, read.cause, read.numbers.loss_cause) == (Status.UNKNOWN, None, None, None)
    assert read.findings == RECORD.findings


@pytest.mark.parametrize("value", [nan, inf])
def test_what_is_no_number_is_not_known(value: float) -> None:
    read = record_of(row_of(RECORD) | {"lag_seconds": value})
    assert read.numbers == replace(NUMBERS, lag_seconds=None)


def test_receivers_are_sent_what_has_a_sentence_for_them() -> None:
    sent = sent_numbers(NUMBERS)
    assert list(sent)[:2] == ["lag_records", "lag_seconds"]
    assert sent.keys() == number_columns(NUMBERS).keys() - {"lag", "worst_topic", "worst_partition", "stands_still"} | {
        "lag_records"
    }


def test_stored_numbers_of_other_versions() -> None:
    assert numbers_of({"lag_records": 3, "loss_cause": "deletion", "of_tomorrow": 1}) == GroupNumbers(
        lag_records=3, loss_cause=LossCause.DELETION
    )


def test_known_partitions_are_none_where_nothing_is_known() -> None:
    assert known_partitions({"ok": 2, "stalled": 1, "ghost": 4, "unknown": 8}) == 3
    assert known_partitions({"ghost": 4, "unknown": 8}) is None
