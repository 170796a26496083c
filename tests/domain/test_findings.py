"""What retry and dead-letter topics tell, and a loss that is over: each row is one, and what must be said, or not."""

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
from lagwise.domain.subscriptions import Subscription, subscription_findings
from lagwise.domain.vocabulary import TopicRole

LOOK = "Look at the newest of them for what could not be processed; they wait there until somebody replays them."
DEAD, RETRY = TopicRole.DEAD_LETTER, TopicRole.RETRY


def topic(role: TopicRole, **facts: Any) -> SideTopic:
    name = "orders.DLT" if role is DEAD else "orders-retry-0"
    return SideTopic(
        **({"name": name, "role": role, "records": 312, "added": 0, "added_within_seconds": 3600.0} | facts)
    )


@pytest.mark.parametrize(
    ("why", "side", "kind", "sentence", "remedy"),
    [
        (
            "it grows",
            topic(DEAD, added=14),
            FindingKind.DEAD_LETTERS,
            "14 records were given up within 1 h: they went to orders.DLT; it holds 312.",
            LOOK,
        ),
        (
            "by one, and how much it holds is not known",
            topic(DEAD, added=1, records=None, added_within_seconds=120.0),
            FindingKind.DEAD_LETTERS,
            "1 record was given up within 2 min: it went to orders.DLT.",
            LOOK,
        ),
        (
            "records wait to be tried again, and more come",
            topic(RETRY, readers=1, lag=120, added=40),
            FindingKind.RETRIES,
            "120 records wait in orders-retry-0 to be tried again, and 40 came within 1 h.",
            None,
        ),
        (
            "the last one waits",
            topic(RETRY, readers=1, lag=1, added=None),
            FindingKind.RETRIES,
            "1 record waits in orders-retry-0 to be tried again.",
            None,
        ),
        (
            "nobody reads what is to be tried again",
            topic(RETRY, readers=0, added=40),
            FindingKind.UNREAD_RETRIES,
            "40 records were sent to be tried again within 1 h, but no group reads orders-retry-0.",
            "Start the consumer of that topic.",
        ),
    ],
)
def test_what_is_said(why: str, side: SideTopic, kind: FindingKind, sentence: str, remedy: str | None) -> None:
    assert side_topic_findings([side]) == [Finding(kind, sentence, remedy)], why


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
GET_THEM = (
    "They are in the log no more: if they matter, get them from where they came from. A consumer that finds its "
    "records deleted skips to the end by default, past those that are still kept: with auto.offset.reset=earliest it "
    "goes on with the oldest of them."
)


@pytest.mark.parametrize(
    ("why", "lost", "sentence"),
    [
        (
            "it is over",
            Lost(18_240, 18_240, 1610.0, 1610.0),
            "18,240 records were deleted before this group read them, in the minutes before 14:03:10 UTC.",
        ),
        (
            "it went on, and some that were deleted may have been read",
            Lost(12_000, 14_500, 3600.0, 1610.0),
            "Between 12,000 and 14,500 records were deleted before this group read them, since 13:30:00 UTC, most "
            "recently in the minutes before 14:03:10 UTC.",
        ),
        (
            "it goes on",
            Lost(12_000, 14_500, 3600.0, 0.0),
            "Between 12,000 and 14,500 records were deleted before this group read them, since 13:30:00 UTC.",
        ),
        (
            "a single one",
            Lost(1, 1, 60.0, 60.0),
            "1 record was deleted before this group read it, in the minutes before 14:29:00 UTC.",
        ),
    ],
)
def test_what_was_lost_and_when_is_told(why: str, lost: Lost, sentence: str) -> None:
    assert loss_findings(lost, NOW) == [Finding(FindingKind.LOSS, sentence, GET_THEM)], why


@pytest.mark.parametrize(
    ("why", "lost", "records_lost"),
    [
        ("there was none", NOTHING_LOST, 0),
        ("it goes on, and the sentence of the status tells all of it", Lost(5, 5, 90.0, 0.0), 5),
        ("it is missing for longer than a day, which the sentence of the status tells", Lost(5, 5, None, None), 5),
    ],
)
def test_what_is_not_told(why: str, lost: Lost, records_lost: int) -> None:
    assert loss_findings(lost, NOW, records_lost=records_lost) == [], why


AT = datetime(2026, 3, 5, 14, 3, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("why", "skips", "sentence"),
    [
        (
            "one partition: from where to where",
            [Skip(AT, "scores", 900_000, partition=3, before=1_000_000, after=1_900_000)],
            "Up to 900,000 records were skipped in the moments before 14:03:10 UTC: the committed offset of scores-3 "
            "leapt from 1,000,000 to 1,900,000, many times as fast as it was ever seen to read.",
        ),
        (
            "two of a topic at once, and one earlier",
            [
                Skip(AT.replace(hour=9), "scores", 77, partition=0, before=0, after=77),
                Skip(AT, "scores", 14_000, partition=0, before=0, after=14_000),
                Skip(AT, "scores", 13_000, partition=1, before=0, after=13_000),
            ],
            "Up to 27,000 records were skipped in the moments before 14:03:10 UTC: the committed offsets of 2 "
            "partitions of scores leapt to about the end, many times as fast as it was ever seen to read.",
        ),
        (
            "many, told together",
            [Skip(AT, "scores", 500_000, partitions=30)],
            "Up to 500,000 records were skipped in the moments before 14:03:10 UTC: the committed offsets of 30 "
            "partitions of scores leapt to about the end, many times as fast as it was ever seen to read.",
        ),
    ],
)
def test_what_was_skipped_is_told(why: str, skips: list[Skip], sentence: str) -> None:
    (finding,) = skip_findings(skips, NOW)
    assert (finding.kind, finding.sentence) == (FindingKind.SKIPPED, sentence), why


@pytest.mark.parametrize(
    ("why", "skips", "sentence"),
    [
        (
            "once, on one partition",
            [Skip(AT, "scores", 45_600, partition=3, before=100, after=45_700, from_log_start=True)],
            "Up to 45,600 records that were still kept were skipped in the moments before 14:03:10 UTC: those before "
            "them on scores-3 had been deleted, and the committed offset went on at about the end.",
        ),
        (
            "again and again: all of it",
            [
                Skip(AT.replace(hour=9), "scores", 60_000, partitions=12, from_log_start=True),
                Skip(AT, "scores", 40_000, partitions=30, from_log_start=True),
            ],
            "Up to 100,000 records that were still kept were skipped since 09:03:10 UTC, most recently in the moments "
            "before 14:03:10 UTC: those before them on scores had been deleted, and the committed offset went on at "
            "about the end.",
        ),
    ],
)
def test_what_was_skipped_after_a_deletion_is_told(why: str, skips: list[Skip], sentence: str) -> None:
    (finding,) = skip_findings(skips, NOW)
    assert (finding.kind, finding.sentence) == (FindingKind.SKIPPED, sentence), why
    assert finding.remedy is not None
    assert "reset the offsets to the earliest" in finding.remedy


def test_rocketmq_is_not_told_of_kafkas_settings() -> None:
    (lost,) = loss_findings(Lost(5, 7, 90.0, 0.0), NOW, system="rocketmq")
    assert lost.remedy == (
        "They are in the log no more: if they matter, get them from where they came from. Its consumers go on with the "
        "oldest message that is still kept."
    )
    (skipped,) = skip_findings([Skip(AT, "scores", 9, from_log_start=True)], NOW, "rocketmq")
    assert skipped.remedy == "They can be read until they are deleted, too: reset the offsets to the earliest."


def test_a_skip_to_the_end_and_one_after_a_deletion_are_told_apart() -> None:
    skips = [Skip(AT, "scores", 70, 1, 0, 30, 100), Skip(AT, "scores", 900, 1, 1, 100, 1_000, from_log_start=True)]
    sentences = [finding.sentence for finding in skip_findings(skips, NOW)]
    assert [sentence.split(" records ")[0] for sentence in sentences] == ["Up to 70", "Up to 900"]


def subscribed(*found: tuple[str, str, int | None, int | None]) -> list[Finding]:
    return subscription_findings([Subscription(*one) for one in found])


def test_members_that_subscribe_to_different_things_pass_messages_over() -> None:
    (finding,) = subscribed(("bills", "*", 3, 3), ("orders", "*", 1, 3), ("orders", "paid || sent", 2, 3))
    assert finding.kind is FindingKind.SUBSCRIPTIONS
    assert finding.sentence == (
        "Its members do not all subscribe to the same: orders by 1 of 3, orders (paid || sent) by 2 of 3."
    )
    (finding,) = subscribed(*[(f"topic{n}", "*", 1, 2) for n in range(9)])
    assert finding.sentence.endswith("topic5 by 1 of 2, and 3 more.")


@pytest.mark.parametrize("found", [(), [("orders", "paid", 2, 2)], [("orders", "paid", None, None)]])
def test_members_that_subscribe_alike_are_not_told_of(found: Any) -> None:
    assert subscribed(*found) == []
