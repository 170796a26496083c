"""What retry and dead-letter topics tell, and a loss that is over: each row is one, and what must be said, or not."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from lagwise.domain.findings import (
    Finding,
    FindingKind,
    SideTopic,
    Skip,
    in_order,
    loss_findings,
    side_topic_findings,
    skip_findings,
)
from lagwise.domain.loss.records import NOTHING_LOST, Lost
from lagwise.domain.subscription_findings import Subscription, subscription_findings
from lagwise.domain.vocabulary import TopicRole

DEAD, RETRY = TopicRole.DEAD_LETTER, TopicRole.RETRY


def topic(role: TopicRole, **facts: Any) -> SideTopic:
    name = "orders.DLT" if role is DEAD else "orders-retry-0"
    return SideTopic(
        **({"name": name, "role": role, "records": 312, "added": 0, "added_within_seconds": 3600.0} | facts)
    )


@pytest.mark.parametrize(
    ("why", "side", "kind"),
    [
        (
            "it grows",
            topic(DEAD, added=14),
            FindingKind.DEAD_LETTERS,
        ),
        (
            "by one, and how much it holds is not known",
            topic(DEAD, added=1, records=None, added_within_seconds=120.0),
            FindingKind.DEAD_LETTERS,
        ),
        (
            "records wait to be tried again, and more come",
            topic(RETRY, readers=1, lag=120, added=40),
            FindingKind.RETRIES,
        ),
        (
            "the last one waits",
            topic(RETRY, readers=1, lag=1, added=None),
            FindingKind.RETRIES,
        ),
        (
            "nobody reads what is to be tried again",
            topic(RETRY, readers=0, added=40),
            FindingKind.UNREAD_RETRIES,
        ),
    ],
)
def test_what_is_said(why: str, side: SideTopic, kind: FindingKind, golden_sentence: Callable[..., None]) -> None:
    (finding,) = side_topic_findings([side])
    assert finding.kind is kind, why
    golden_sentence(finding.sentence, finding.remedy)


@pytest.mark.parametrize(
    ("why", "side"),
    [
        ("old dead letters are no news", topic(DEAD, added=0)),
        ("nobody knows yet whether it grows", topic(DEAD, added=None)),
        ("all is tried again", topic(RETRY, readers=2, lag=0, added=40)),
        ("how far the readers are is not known", topic(RETRY, readers=1, lag=None, added=40)),
        ("an old retry topic that nobody uses any more", topic(RETRY, readers=0, added=0)),
        ("the same, emptied by retention", topic(RETRY, readers=0, records=0, added=40)),
    ],
)
def test_what_is_not_worth_a_word(why: str, side: SideTopic) -> None:
    assert side_topic_findings([side]) == [], why


def test_the_most_urgent_comes_first_and_of_those_the_one_that_grows_most() -> None:
    found = side_topic_findings(
        [
            topic(RETRY, name="a-retry", readers=1, lag=5, added=900),
            topic(DEAD, name="b.DLT", added=2),
            topic(DEAD, name="a.DLT", added=7),
        ]
    )
    assert [f.kind for f in found] == [FindingKind.DEAD_LETTERS, FindingKind.DEAD_LETTERS, FindingKind.RETRIES]
    assert "a.DLT" in found[0].sentence
    storm = Finding(FindingKind.REBALANCES, "…")
    assert in_order([storm, *found])[-1] is storm


NOW = datetime(2026, 3, 5, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("why", "lost"),
    [
        (
            "it is over",
            Lost(18_240, 18_240, 1610.0, 1610.0),
        ),
        (
            "it went on, and some that were deleted may have been read",
            Lost(12_000, 14_500, 3600.0, 1610.0),
        ),
        (
            "it goes on",
            Lost(12_000, 14_500, 3600.0, 0.0),
        ),
        (
            "a single one",
            Lost(1, 1, 60.0, 60.0),
        ),
    ],
)
def test_what_was_lost_and_when_is_told(why: str, lost: Lost, golden_sentence: Callable[..., None]) -> None:
    (finding,) = loss_findings(lost, NOW)
    assert finding.kind is FindingKind.LOSS, why
    golden_sentence(finding.sentence, finding.remedy)


@pytest.mark.parametrize(
    ("why", "lost", "records_lost"),
    [
        ("there was none", NOTHING_LOST, 0),
        ("it goes on, and the sentence of the status tells all of it", Lost(5, 5, 90.0, 0.0), 5),
        ("it is missing for longer than a day, which the sentence of the status tells", Lost(5, 5, None, None), 5),
    ],
)
def test_no_loss_is_reported_where(why: str, lost: Lost, records_lost: int) -> None:
    assert loss_findings(lost, NOW, records_lost=records_lost) == [], why


def test_what_is_missing_now_is_a_part_of_what_was_lost() -> None:
    (finding,) = loss_findings(Lost(12_000, 14_500, 3600.0, 0.0), NOW, records_lost=9_000)
    assert finding.sentence.startswith("In all, between 12,000 and 14,500 records were deleted before this group read")


AT = datetime(2026, 3, 5, 14, 3, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("why", "skips"),
    [
        (
            "one partition: from where to where",
            [Skip(AT, "scores", 900_000, partition=3, before=1_000_000, after=1_900_000)],
        ),
        (
            "two of a topic at once, and one earlier",
            [
                Skip(AT.replace(hour=9), "scores", 77, partition=0, before=0, after=77),
                Skip(AT, "scores", 14_000, partition=0, before=0, after=14_000),
                Skip(AT, "scores", 13_000, partition=1, before=0, after=13_000),
            ],
        ),
        (
            "many, told together",
            [Skip(AT, "scores", 500_000, partitions=30)],
        ),
    ],
)
def test_what_was_skipped_is_told(why: str, skips: list[Skip], golden_sentence: Callable[..., None]) -> None:
    (finding,) = skip_findings(skips, NOW)
    assert finding.kind is FindingKind.SKIPPED, why
    golden_sentence(finding.sentence, finding.remedy)


@pytest.mark.parametrize(
    ("why", "skips"),
    [
        (
            "once, on one partition",
            [Skip(AT, "scores", 45_600, partition=3, before=100, after=45_700, from_log_start=True)],
        ),
        (
            "again and again: all of it",
            [
                Skip(AT.replace(hour=9), "scores", 60_000, partitions=12, from_log_start=True),
                Skip(AT, "scores", 40_000, partitions=30, from_log_start=True),
            ],
        ),
    ],
)
def test_what_was_skipped_after_a_deletion_is_told(
    why: str, skips: list[Skip], golden_sentence: Callable[..., None]
) -> None:
    (finding,) = skip_findings(skips, NOW)
    assert finding.kind is FindingKind.SKIPPED, why
    golden_sentence(finding.sentence, finding.remedy)
    assert finding.remedy is not None
    assert "reset the offsets to the earliest" in finding.remedy


def test_rocketmq_is_not_told_of_kafkas_settings(golden_sentence: Callable[..., None]) -> None:
    (lost,) = loss_findings(Lost(5, 7, 90.0, 0.0), NOW, system="rocketmq")
    (skipped,) = skip_findings([Skip(AT, "scores", 9, from_log_start=True)], NOW, "rocketmq")
    golden_sentence(lost.remedy, skipped.remedy)
    assert "auto.offset.reset" not in f"{lost.remedy} {skipped.remedy}"


def test_a_skip_to_the_end_and_one_after_a_deletion_are_distinguished() -> None:
    skips = [Skip(AT, "scores", 70, 1, 0, 30, 100), Skip(AT, "scores", 900, 1, 1, 100, 1_000, from_log_start=True)]
    sentences = [finding.sentence for finding in skip_findings(skips, NOW)]
    assert [sentence.split(" records ")[0] for sentence in sentences] == ["Up to 70", "Up to 900"]


def subscribed(*found: tuple[str, str, int | None, int | None]) -> list[Finding]:
    return subscription_findings([Subscription(*one) for one in found])


def test_members_that_subscribe_to_different_things_pass_messages_over(golden_sentence: Callable[..., None]) -> None:
    (finding,) = subscribed(("bills", "*", 3, 3), ("orders", "*", 1, 3), ("orders", "paid || sent", 2, 3))
    assert finding.kind is FindingKind.SUBSCRIPTIONS
    golden_sentence(finding.sentence, finding.remedy)
    (finding,) = subscribed(*[(f"topic{n}", "*", 1, 2) for n in range(9)])
    golden_sentence(finding.sentence, case="(of many, six are named)")


@pytest.mark.parametrize("found", [(), [("orders", "paid", 2, 2)], [("orders", "paid", None, None)]])
def test_members_with_equal_subscriptions_are_not_reported(found: Any) -> None:
    assert subscribed(*found) == []
