"""What retry and dead-letter topics tell, and a loss that is over: each row is one, and what must be said, or not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lagwise.domain.findings import (
    Finding,
    FindingKind,
    Loss,
    SideTopic,
    in_order,
    last_loss,
    loss_findings,
    side_topic_findings,
)
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


class TestLoss:
    NOW = datetime(2026, 3, 5, 14, 30, tzinfo=UTC)
    AT = datetime(2026, 3, 5, 14, 3, 10, tzinfo=UTC)

    def test_what_was_lost_and_when_is_told_once_it_is_over(self) -> None:
        assert loss_findings(Loss(self.AT, 18_240), self.NOW) == [
            Finding(
                FindingKind.LOSS,
                "At least 18.2 k records were deleted before this group read them, most recently in the minutes before "
                "14:03:10 UTC.",
                "Kafka has them no more: if they matter, get them from where they came from.",
            )
        ]

    @pytest.mark.parametrize(
        ("why", "loss", "now"),
        [
            ("there was none", None, NOW),
            ("it goes on: the sentence of the status tells it", Loss(NOW, 5), NOW),
            ("it is two days ago", Loss(AT, 5), AT + timedelta(days=2)),
        ],
    )
    def test_what_is_not_told(self, why: str, loss: Loss | None, now: datetime) -> None:
        assert loss_findings(loss, now) == [], why

    @pytest.mark.parametrize(
        ("why", "before", "records_lost", "was_losing", "after"),
        [
            ("nothing lost, ever", None, 0, False, None),
            ("the first", None, 7, False, Loss(NOW, 7)),
            ("it becomes more", Loss(AT, 7), 12, True, Loss(NOW, 12)),
            ("some were caught up on by a reset: so many it was", Loss(AT, 12), 7, True, Loss(NOW, 12)),
            ("over: when it was is kept", Loss(AT, 12), 0, True, Loss(AT, 12)),
            ("another one", Loss(AT, 12), 7, False, Loss(NOW, 7)),
        ],
    )
    def test_the_last_one(
        self, why: str, before: Loss | None, records_lost: int, was_losing: bool, after: Loss | None
    ) -> None:
        assert last_loss(before, records_lost, self.NOW, was_losing=was_losing) == after, why
