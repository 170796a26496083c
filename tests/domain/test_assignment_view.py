"""What is said of a group's assignment, from raw rows to sentences."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from lagwise.domain.assignment.bound import BoundCause
from lagwise.domain.assignment.findings import findings
from lagwise.domain.assignment.model import Member, Partition
from lagwise.domain.assignment.rows import assignment_rows, member_labels
from lagwise.domain.assignment.view import AssignmentView, assignment_view
from lagwise.tables.membership import ASSIGNMENTS

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def member(member_id: str, owned: str = "", **more: Any) -> dict[str, Any]:
    """A raw row of a member; what it owns is written ``orders-0 orders-1``."""
    by_topic: dict[str, list[int]] = {}
    for partition in owned.split():
        topic, _, number = partition.rpartition("-")
        by_topic.setdefault(topic, []).append(int(number))
    return {
        "group": "g",
        "member_id": member_id,
        "client_id": member_id,
        "host": "10.0.0.1",
        "static_instance_id": None,
        "assignment": [{"topic": topic, "partitions": numbers} for topic, numbers in by_topic.items()],
        "assigned_partitions": len(owned.split()),
        **more,
    }


def group(**more: Any) -> dict[str, Any]:
    return {"group": "g", "state": "Stable", "assignor": "range", "error": None, **more}


def rates_of(**topics: tuple[float | None, ...]) -> dict[Partition, float | None]:
    return {(topic, number): rate for topic, rates in topics.items() for number, rate in enumerate(rates)}


def row(
    members: list[dict[str, Any]], rates: Mapping[Partition, float | None], counts: Mapping[str, int | None]
) -> dict[str, Any]:
    [found] = assignment_rows("c", AT, [group()], members, counts, rates)
    return found


#: Story, members, partitions by topic, rates.
SAID: list[tuple[str, list[dict[str, Any]], dict[str, int | None], dict[Partition, float | None]]] = [
    (
        "all is well",
        [member("a", "orders-0 orders-1"), member("b", "orders-2 orders-3")],
        {"orders": 4},
        rates_of(orders=(10, 11, 9, 10)),
    ),
    (
        "more members than partitions",
        [member(name, f"orders-{n}" if n < 6 else "") for n, name in enumerate("abcdefgh")],
        {"orders": 6},
        rates_of(orders=(10,) * 6),
    ),
    (
        "many more members than partitions make no skew",
        [member(name, f"orders-{n}" if n < 3 else "") for n, name in enumerate("abcdefgh")],
        {"orders": 3},
        rates_of(orders=(10, 11, 10)),
    ),
    (
        "range over many small topics, rates unknown",
        [member("a", "p-0 q-0 r-0 s-0"), member("b"), member("c")],
        {"p": 1, "q": 1, "r": 1, "s": 1},
        {},
    ),
    (
        "one more than it would have, rates unknown",
        [member("a", "p-0 p-1 p-2"), member("b", "p-3")],
        {"p": 4},
        {},
    ),
    (
        "the hottest partition is the limit",
        [member("a", "orders-0 orders-3"), member("b", "orders-1"), member("c", "orders-2")],
        {"orders": 4},
        rates_of(orders=(6, 20, 19, 55)),
    ),
    (
        "another assignor would help",
        [member("a", "p-0 p-1 q-0 q-1"), member("b", "p-2 q-2"), member("c", "p-3 q-3")],
        {"p": 4, "q": 4},
        rates_of(p=(10, 10, 10, 10), q=(10, 10, 10, 10)),
    ),
    (
        "no assignor sees the traffic",
        [member("a", "t-0 t-1"), member("b", "t-2 t-3")],
        {"t": 4},
        rates_of(t=(50, 50, 1, 1)),
    ),
    (
        "no assignor would help",
        [member("a", "t-0 t-1 t-2 t-3"), member("b", "t-4 t-5 t-6 t-7")],
        {"t": 8},
        rates_of(t=(40, 5, 40, 3, 3, 3, 3, 3)),
    ),
    (
        "one rate is unknown",
        [member("a", "orders-0"), member("b", "orders-1")],
        {"orders": 2},
        rates_of(orders=(99, None)),
    ),
    (
        "a single member carries everything, as it must",
        [member("a", "orders-0 orders-1")],
        {"orders": 2},
        rates_of(orders=(99, 1)),
    ),
    (
        "nobody owns anything",
        [member("a"), member("b")],
        {},
        {},
    ),
]


@pytest.mark.parametrize(("members", "counts", "rates"), [case[1:] for case in SAID], ids=[c[0] for c in SAID])
def test_what_is_said(
    members: list[dict[str, Any]],
    counts: dict[str, int | None],
    rates: dict[Partition, float | None],
    golden_sentence: Callable[..., None],
) -> None:
    golden_sentence(*row(members, rates, counts)["sentences"])


def test_a_row_fits_the_table() -> None:
    members = [member("a", "orders-0 orders-3"), member("b", "orders-1"), member("c", "orders-2")]
    found = row(members, rates_of(orders=(6, 20, 19, 55)), {"orders": 4})
    assert list(found) == ASSIGNMENTS.arrow.names
    assert pa.Table.from_pylist([found], schema=ASSIGNMENTS.arrow).to_pylist() == [found]
    assert (found["group"], found["as_of"], found["assignor"], found["members"]) == ("g", AT, "range", 3)
    assert (found["partitions"], found["partitions_without_owner"], found["idle_members"]) == (4, 0, 0)
    assert (found["busiest_member"], found["busiest_share"], found["skew_by_count"]) == ("a", 0.61, 1.5)
    assert (found["hottest_topic"], found["hottest_partition"], found["hottest_share"]) == ("orders", 3, 0.55)
    assert (found["bound_share"], found["bound_cause"], found["useful_members"]) == (0.55, "hottest_partition", 2)
    assert found["attainable_share"] == pytest.approx(0.55)
    by_name = {alternative["assignor"]: alternative for alternative in found["alternatives"]}
    assert list(by_name) == ["range", "roundrobin", "sticky", "cooperative-sticky"]
    # Round-robin deals 0, 1, 2, 3 to a, b, c, a: the same. Range cuts 0 1 | 2 | 3.
    assert by_name["roundrobin"]["busiest_share"] == 0.61 and by_name["roundrobin"]["partitions_moved"] == 0
    assert by_name["range"]["busiest_share"] == 0.55 and by_name["range"]["partitions_moved"] == 3


def test_unknown_is_null_and_never_zero() -> None:
    members = [member("a", "orders-0"), member("b", "")]
    found = row(members, {}, {"orders": None})
    nulls = {name for name, value in found.items() if value is None}
    assert nulls == {
        "partitions", "partitions_without_owner", "skew_by_rate", "busiest_member", "busiest_share", "hottest_topic",
        "hottest_partition", "hottest_share", "bound_share", "bound_cause", "attainable_share", "useful_members",
    }  # fmt: skip
    assert (found["members"], found["idle_members"], found["skew_by_count"]) == (2, 1, 2.0)
    assert found["alternatives"] == []
    assert found["sentences"] == ["1 of 2 members is idle."]
    known_counts = row(members, {("orders", 0): 5.0}, {"orders": 2})
    assert known_counts["partitions_without_owner"] == 1
    assert known_counts["busiest_share"] is None, "the rate of orders-1 is not known"
    assert all(a["busiest_share"] is None and a["idle_members"] == 0 for a in known_counts["alternatives"])


@pytest.mark.parametrize(
    "changed", [{"state": "PreparingRebalance"}, {"state": "Reconciling"}, {"error": "timed_out"}, {"state": None}]
)
def test_what_is_not_settled_has_no_row(changed: dict[str, Any]) -> None:
    members = [member("a", "orders-0")]
    assert assignment_rows("c", AT, [group(**changed)], members, {"orders": 1}, {}) == []
    assert assignment_rows("c", AT, [group()], [], {"orders": 1}, {}) == []


def test_each_group_has_its_own_row_in_order_of_names() -> None:
    members = [member("a", "t-0", group="z"), member("b", "u-0 u-1", group="y"), member("c", "", group="y")]
    found = assignment_rows("c", AT, [group(group="z"), group(group="y")], members, {"t": 1, "u": 2}, {})
    assert [(r["group"], r["partitions"], r["idle_members"]) for r in found] == [("y", 2, 1), ("z", 1, 0)]


def test_a_partition_that_is_owned_exists() -> None:
    """The topic may have been described before a partition was added."""
    found = row([member("a", "orders-2"), member("b", "orders-0 orders-1")], {}, {"orders": 2})
    assert (found["partitions"], found["partitions_without_owner"]) == (3, 0)
    assert len(found["alternatives"]) == 4


def test_unread_partitions_make_no_assignment_better() -> None:
    found = row([member("a", "t-0"), member("b", "t-1")], rates_of(t=(10, 10, 10)), {"t": 3})
    assert (found["busiest_share"], found["attainable_share"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))


def test_members_are_distinguished() -> None:
    labels = member_labels(
        [
            member("app-1111-aaaaaa", client_id="app", host="h1"),
            member("app-2222-bbbbbb", client_id="app", host="h2"),
            member("app-3333-cccccc", client_id="app", host="h2"),
            member("web-4444-dddddd", client_id="web"),
            member("job-5555-eeeeee", client_id="web", static_instance_id="node-1"),
            member("x-6666-ffffff", client_id="evil\x1b[2J\nname" + "x" * 200, host=None),
        ]
    )
    assert list(labels.values())[:5] == ["app (h1)", "app (h2, …bbbbbb)", "app (h2, …cccccc)", "web", "node-1"]
    evil = list(labels.values())[5]
    assert evil.startswith("evil�[2J�name") and len(evil) == 60 and evil.isprintable()


class TestDifferentSubscriptions:
    """Known to callers who know the subscriptions; the rows cannot tell them."""

    def view(self) -> tuple[AssignmentView, tuple[str, ...]]:
        members = [
            Member("a", frozenset("t"), frozenset({("t", 0), ("t", 1)}), generation=1),
            Member("b", frozenset("tu"), frozenset({("u", 0)}), generation=1),
        ]
        view = assignment_view(members, {"t": 2, "u": 1}, rates_of(t=(40, 40), u=(20,)))
        return view, findings(view, {"a": "a", "b": "b"})

    def test_the_bound_holds_but_what_can_be_reached_is_not_stated(self) -> None:
        view, _ = self.view()
        assert (view.bound_share, view.bound_cause) == (pytest.approx(0.6), BoundCause.TOGETHER)
        assert view.attainable_share is None

    def test_an_assignor_that_helps_is_still_named(self, golden_sentence: Callable[..., None]) -> None:
        _, sentences = self.view()
        golden_sentence(*sentences)


def test_an_assignor_that_changes_nothing_leaves_the_bound_to_be_told(golden_sentence: Callable[..., None]) -> None:
    members = [
        Member("a", frozenset("t"), frozenset({("t", 0)}), generation=1),
        Member("b", frozenset("u"), frozenset({("u", 0), ("u", 1), ("u", 2), ("u", 3)}), generation=1),
    ]
    view = assignment_view(members, {"t": 1, "u": 4}, rates_of(t=(10,), u=(22.5,) * 4))
    golden_sentence(*findings(view, {"a": "a", "b": "b"}))


def test_the_own_assignor_is_the_next_rebalance(golden_sentence: Callable[..., None]) -> None:
    members = [member("a", "t-0 t-1 t-2 t-3"), member("b", "")]
    found = row(members, rates_of(t=(50, 1, 50, 1)), {"t": 4})
    golden_sentence(*found["sentences"])


class TestQueues:
    """RocketMQ's: queue 3 of the second broker is partition 10,003, and the ten thousand before it do not exist."""

    rates: ClassVar = {("t", 0): 30.0, ("t", 1): 30.0, ("t", 10_000): 30.0, ("t", 10_001): 10.0, ("other", 5): 99.0}

    def row(self, *owned: str) -> dict[str, Any]:
        members = [member(name, partitions) for name, partitions in zip("abc", owned, strict=False)]
        groups = [group(assignor=None, type="concurrent")]
        (found,) = assignment_rows("c", AT, groups, members, {"t": 4, "other": 6}, self.rates)
        return found

    def test_they_are_as_many_as_there_are(self) -> None:
        found = self.row("t-0 t-1", "t-10000 t-10001")
        assert (found["partitions"], found["partitions_without_owner"]) == (4, 0)
        assert found["alternatives"] == []
        assert found["sentences"] == []

    def test_a_partition_without_an_owner_is_distinguished(self) -> None:
        assert self.row("t-0 t-1", "t-10000")["partitions_without_owner"] == 1

    def test_no_assignor_of_kafka_is_advised(self, golden_sentence: Callable[..., None]) -> None:
        golden_sentence(*self.row("t-0 t-1 t-10000", "t-10001")["sentences"])

    def test_idle_members_are_told_without_a_remedy(self, golden_sentence: Callable[..., None]) -> None:
        golden_sentence(*self.row("t-0 t-1", "t-10000 t-10001", "")["sentences"][1:])
