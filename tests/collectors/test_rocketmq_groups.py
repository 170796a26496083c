"""A group from what brokers and members say of it: who owns what, and how far a broadcasting one is."""

from collections.abc import Mapping
from typing import Any

import pytest

from lagwise.domain.vocabulary import BROADCAST_HINT, LOCAL_FILES, GroupState
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.rocketmq.ask_members import MemberAnswers, ReachableMembers
from lagwise_collectors.rocketmq.broker_reader import BrokerView
from lagwise_collectors.rocketmq.group_view import RocketmqGroup, add_member_lags, assemble_group
from lagwise_collectors.rocketmq.remoting.client import RocketmqBroker
from lagwise_collectors.rocketmq.remoting.errors import RocketmqTrouble
from lagwise_collectors.rocketmq.remoting.requests import MemberReport, OnlineGroup, Queue, QueueRange, TopicConfig

Q = [Queue("orders", "broker-a", number) for number in range(3)]
TOPICS = {"orders": TopicConfig(3, "delete"), "%RETRY%g": TopicConfig(1, "delete")}


def group_of(
    reported: dict[str, MemberReport | None],
    *,
    broadcasting: bool = False,
    pulling: bool = False,
    last: RocketmqGroup | None = None,
    local: Mapping[str, Mapping[Queue, int]] | None = None,
    fetched: Mapping[str, Any] | None = None,
    filters: Mapping[str, str] | None = None,
    asks_members: bool = True,
) -> RocketmqGroup:
    """The group ``g`` with these members, and what each answered (None: nothing)."""
    answers = MemberAnswers(lambda: 0.0)
    due = answers.due({"g": ReachableMembers(dict.fromkeys(reported, "broker-a"), broadcasting)})
    said = [reported[client] or RocketmqTrouble("member_timeout", "hangs") for _, client in due]
    answers.take(due, said, ErrorTally())
    view = BrokerView(RocketmqBroker("broker-a", "h:1", True, 1), topics=TOPICS)
    view.online["g"] = OnlineGroup(
        dict.fromkeys(reported, "10.0.0.1"), frozenset({"orders"}), broadcasting, pulling, filters or {}
    )
    view.fetched = {"g": {"orders": fetched or {}}}
    return assemble_group("g", [view], answers, last, is_lost=False, local=local, asks_members=asks_members)


def shares(group: RocketmqGroup) -> dict[str, list[int]]:
    return {member.client_id: [queue.queue for queue in member.queues] for member in group.members}


def test_members_own_the_queues_that_they_report() -> None:
    group = group_of({"a": MemberReport({Q[0]: 5, Q[1]: None}), "b": MemberReport({Q[2]: 7})})
    assert (group.state, group.type) == (GroupState.STABLE, "concurrent")
    assert group.owners == {Q[0]: "a", Q[1]: "a", Q[2]: "b"}
    assert shares(group) == {"a": [0, 1], "b": [2]}


def test_a_queue_that_no_member_reports_has_no_owner() -> None:
    assert group_of({"a": MemberReport({Q[0]: 5}), "b": MemberReport({Q[2]: 7})}).owners.get(Q[1]) is None


def test_the_remaining_queues_belong_to_the_only_silent_member() -> None:
    group = group_of({"a": MemberReport({Q[0]: 5}), "b": None})
    assert group.owners == {Q[0]: "a", Q[1]: "b", Q[2]: "b"}


def test_with_several_silent_members_the_owner_is_unknown() -> None:
    group = group_of({"a": MemberReport({Q[0]: 5}), "b": None, "c": None})
    assert group.owners == {Q[0]: "a", Q[1]: "one of 2 members", Q[2]: "one of 2 members"}


def test_a_single_member_owns_everything_even_if_it_cannot_answer() -> None:
    group = group_of({"a": None})
    assert (group.type, group.owners) == ("clustering", dict.fromkeys(Q, "a"))


def test_pull_consumers_do_not_report_what_they_own() -> None:
    group = group_of({"a": MemberReport(), "b": MemberReport()}, pulling=True)
    assert (group.type, group.owners) == ("pull", dict.fromkeys(Q, "one of 2 members"))


def test_members_that_pop_share_every_queue() -> None:
    popping = MemberReport(is_popping=True, unacknowledged=4)
    group = group_of({"a": popping, "b": popping})
    assert (group.type, group.unacknowledged) == ("pop", 8)
    assert shares(group) == {"a": [0, 1, 2], "b": [0, 1, 2]}
    assert group_of({"a": popping, "b": None}).unacknowledged is None


def test_a_broadcasting_group_is_as_far_as_its_slowest_member() -> None:
    group = group_of(
        {"a": MemberReport({Q[0]: 9, Q[1]: 4, Q[2]: 1}), "b": MemberReport({Q[0]: 2, Q[1]: 8})}, broadcasting=True
    )
    assert group.progress == {Q[0]: 2, Q[1]: 4, Q[2]: None}
    assert group.owners == {Q[0]: "b", Q[1]: "a", Q[2]: "a"}
    assert shares(group) == {"a": [0, 1, 2], "b": [0, 1, 2]}


def test_each_broadcasting_member_lags_by_what_it_has_not_read_itself() -> None:
    reported = {
        "a": MemberReport({Q[0]: 9, Q[1]: 4, Q[2]: 1}),
        "b": MemberReport({Q[0]: 2, Q[1]: 8}),
        "c": MemberReport(dict.fromkeys(Q, 99)),
    }
    group = group_of(reported, broadcasting=True)
    ends = {Q[0]: QueueRange(5, 10, None), Q[1]: QueueRange(0, 10, None), Q[2]: QueueRange(0, 10, None)}
    add_member_lags(group, ends)
    # Of c, whose offsets are those of a topic that was there before, nothing is unread; b does not report a queue.
    assert {member.client_id: member.lag for member in group.members} == {"a": 1 + 6 + 9, "b": None, "c": 0}
    add_member_lags(group, {q: ends[q] for q in (Q[0], Q[1])})
    assert [member.lag for member in group.members] == [None, None, None]
    shared = group_of({"a": MemberReport(dict.fromkeys(Q, 1))})
    add_member_lags(shared, ends)
    assert shared.members[0].lag is None


def test_with_a_silent_broadcasting_member_the_slowest_is_unknown() -> None:
    group = group_of({"a": MemberReport(dict.fromkeys(Q, 9)), "b": None}, broadcasting=True)
    assert group.progress == dict.fromkeys(Q)


def test_what_a_group_was_it_stays_while_its_members_are_silent_or_gone() -> None:
    orderly = group_of({"a": MemberReport({Q[0]: 1}, is_orderly=True)})
    assert orderly.type == "orderly"
    assert group_of({"a": None}, last=orderly).type == "orderly"
    gone = assemble_group(
        "g", [BrokerView(RocketmqBroker("broker-a", "h:1", True, 1))], MemberAnswers(lambda: 0.0), orderly, False
    )
    assert (gone.state, gone.type, gone.members) == (GroupState.EMPTY, "orderly", [])


def test_without_member_queries_the_broker_knows_what_all_broadcasting_members_have_fetched() -> None:
    """A hint, and marked as one: nobody is further than that, so lag is at least what is left from there on."""
    fetched = {"0": 50, "1": 40, "2": "x"}
    hinted = group_of({"a": None, "b": None}, broadcasting=True, fetched=fetched, asks_members=False)
    assert hinted.progress == {Q[0]: 50, Q[1]: 40, Q[2]: None}
    assert hinted.source == BROADCAST_HINT
    local = {"a": {Q[0]: 30, Q[1]: 45}}
    with_a_file = group_of({"a": None, "b": None}, broadcasting=True, fetched=fetched, local=local, asks_members=False)
    assert with_a_file.progress == {Q[0]: 30, Q[1]: 40, Q[2]: None}


def test_where_members_are_asked_there_is_no_hint() -> None:
    """One that is silent for a moment would make its group leap ahead to what was fetched, and back again; and one that
    has finished nothing yet has said so."""
    fetched = {"0": 50, "1": 50, "2": 50}
    silent = group_of({"a": MemberReport(dict.fromkeys(Q, 30)), "b": None}, broadcasting=True, fetched=fetched)
    assert (silent.progress, silent.source) == (dict.fromkeys(Q), None)
    nothing_yet = group_of({"a": MemberReport(dict.fromkeys(Q))}, broadcasting=True, fetched=fetched)
    assert (nothing_yet.progress, nothing_yet.source) == (dict.fromkeys(Q), None)
    clustering = group_of({"a": None}, fetched=fetched, asks_members=False)
    assert (clustering.progress, clustering.source) == (None, None)


@pytest.mark.parametrize(
    ("local", "source"), [({"a": {Q[0]: 3}}, None), ({"gone": dict.fromkeys(Q, 3)}, LOCAL_FILES), (None, None)]
)
def test_files_are_named_where_they_hold_what_members_do_not_report(
    local: Mapping[str, Mapping[Queue, int]] | None, source: str | None
) -> None:
    assert group_of({"a": MemberReport(dict.fromkeys(Q, 5))}, broadcasting=True, local=local).source == source


def test_what_members_subscribe_to_and_how_many_of_them() -> None:
    paid, all_of_it = {"orders": "paid", "%RETRY%g": "*"}, {"orders": "*", "%RETRY%g": "*", "bills": "*"}
    reported = {
        "a": MemberReport(filters=paid),
        "b": MemberReport(filters=all_of_it),
        "c": MemberReport(filters=paid),
        "d": None,
    }
    assert group_of(reported, filters={"orders": "late"}).subscriptions == [
        ("bills", "*", 1, 3),
        ("orders", "*", 1, 3),
        ("orders", "paid", 2, 3),
    ]
    assert group_of({"a": None}, filters={"orders": "late"}).subscriptions == [("orders", "late", None, None)]
