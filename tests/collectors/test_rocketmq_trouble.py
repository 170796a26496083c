"""Servers that are unwell: one clear word each, and only what is theirs is lost."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lagwise.config import RocketmqCluster
from lagwise.domain.cluster_findings import cluster_findings
from lagwise.tables.raw import COMMITS, GROUPS, TOPICS, WATERMARKS
from lagwise_collectors.protocol import ErrorTally, Snapshot
from lagwise_collectors.rocketmq.ask_members import MemberAnswers, ReachableMembers
from lagwise_collectors.rocketmq.partition_numbers import BrokerNumbers
from lagwise_collectors.rocketmq.remoting.errors import RocketmqTrouble
from lagwise_collectors.rocketmq.remoting.requests import ConsumeStats, MemberReport, Queue
from lagwise_collectors.rocketmq.source import RocketmqSource
from tests.collectors.rocketmq_server import Broker, Server, name_server

pytestmark = pytest.mark.thorough


#: What a source's clock shows when the lab's shows 0: noon.
EPOCH = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()


class Lab:
    """Servers on loopback, ended with the test, and a source with a clock of the test's own."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.brokers: dict[str, dict[int, str]] = {}
        self.name_server = self.serve(name_server(self.brokers))
        self.now = 1000.0

    def serve(self, behaviour: Any) -> Server:
        return self._stack.enter_context(Server(behaviour))

    def broker(self, broker: Broker, number: int = 0) -> Server:
        server = self.serve(broker)
        self.brokers.setdefault(broker.name, {})[number] = server.address
        return server

    def source(self, name_servers: str = "", state: Path | None = None) -> RocketmqSource:
        cluster = RocketmqCluster(
            system="rocketmq", name_servers=name_servers or self.name_server.address, timeout_seconds=1.0
        )
        source = RocketmqSource(
            cluster,
            lambda: datetime.fromtimestamp(EPOCH + self.now, UTC),
            state=state,
            monotonic=lambda: self.now,
        )
        self._stack.callback(source.close)
        return source


@pytest.fixture
def lab() -> Iterator[Lab]:
    with ExitStack() as stack:
        yield Lab(stack)


def lags(snapshot: Snapshot) -> dict[tuple[str, int], int | None]:
    """Lag by topic and partition; None where the end is not known."""
    ends = {(row["topic"], row["partition"]): row["high_watermark"] for row in snapshot.rows(WATERMARKS).to_pylist()}
    return {
        (row["topic"], row["partition"]): None if (end := ends[row["topic"], row["partition"]]) is None else end - 40
        for row in snapshot.rows(COMMITS).to_pylist()
    }


def test_a_sample_of_a_broker(lab: Lab) -> None:
    lab.broker(Broker(topics={"orders": 2, "%RETRY%billing": 1, "other": 1}))
    snapshot = lab.source().collect()
    assert snapshot.errors == {}
    # Nothing is committed on the retry topic: members would begin at its first message.
    assert lags(snapshot) == {("orders", 0): 60, ("orders", 1): 60, ("%RETRY%billing", 0): 60}
    assert [row["committed"] for row in snapshot.rows(COMMITS).to_pylist()] == [0, 40, 40]
    topics = {row["topic"]: row for row in snapshot.rows(TOPICS).to_pylist()}
    assert topics["orders"]["retention_ms"] == 48 * 3_600_000
    assert (snapshot.header["groups"], snapshot.header["group_partitions"], snapshot.header["partitions"]) == (1, 3, 3)
    assert snapshot.header["commits_read_at"] <= snapshot.header["watermarks_read_at"]


def test_the_retries_of_a_group_that_went_away_are_not_forgotten(lab: Lab) -> None:
    """Whether there are any or not: a partition that is no longer reported looks like one that expired."""
    empty = Broker(
        topics={"orders": 1, "%RETRY%billing": 1, "%RETRY%never": 1}, groups={"billing": ["orders"], "never": []}
    )
    queue = '{"brokerName":"broker-a","queueId":0,"topic":"%s"}:{"lastUpdateTimestamp":0,"maxOffset":%d,"minOffset":0}'
    empty.instead[202] = lambda _code, fields: (
        0,
        ('{"offsetTable":{' + queue % (fields["topic"], 100 if fields["topic"] == "orders" else 0) + "}}").encode(),
    )
    lab.broker(empty)
    rows = lab.source().collect().rows(COMMITS).to_pylist()
    reported = [(row["group"], row["topic"], row["committed"]) for row in rows]
    assert reported == [("billing", "%RETRY%billing", 0), ("billing", "orders", 40)]


def test_the_next_name_server_is_asked_where_one_is_down(lab: Lab) -> None:
    lab.broker(Broker())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        down = f"127.0.0.1:{free.getsockname()[1]}"
    source = lab.source(f"{down},{lab.name_server.address}")
    assert source.collect().errors == {}
    assert set(lab.source(down).collect().errors) == {"unreachable"}


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (lambda _code, _fields: b"HTTP/1.1 400 Bad Request\r\n\r\n", "malformed"),
        (lambda _code, _fields: b"\0\0\0\x08\0\0\0\x04nope", "malformed"),
        (lambda _code, _fields: b"\0\0\0\xff\0\0", "unreachable"),
        (lambda _code, _fields: (0, b"{{{"), "malformed"),
        (lambda _code, _fields: (0, b'{"brokerAddrTable":[]}'), "malformed"),
        (lambda _code, _fields: (16, b""), "not_authorized"),
        (lambda _code, _fields: (99, b""), "code_99"),
        (lambda _code, _fields: (0, b"{}"), "no_broker"),
        (lambda _code, _fields: None, "timeout"),
    ],
)
def test_a_name_server_that_is_none_has_a_word(lab: Lab, behaviour: Any, kind: str) -> None:
    source = lab.source(lab.serve(behaviour).address)
    snapshot = source.collect()
    assert set(snapshot.errors) == {kind}
    assert "\n" not in snapshot.header["errors"][0]["example"]
    (check,) = source.check()
    assert not check.ok
    assert check.advice


@pytest.mark.parametrize("address", ["nowhere.invalid:1", "127.0.0.1", "127.0.0.1:x", ":9"])
def test_an_address_that_is_none_has_a_word(lab: Lab, address: str) -> None:
    assert set(lab.source(address).collect().errors) <= {"host_not_found", "setting_refused"}


@pytest.mark.parametrize("code", [21, 43, 202])
def test_a_broker_that_hangs_costs_only_itself(lab: Lab, code: int) -> None:
    hanging = Broker("broker-b")
    lab.broker(Broker("broker-a"))
    lab.broker(hanging)
    source = lab.source()
    assert len(lags(source.collect())) == 4
    hanging.instead[code] = lambda _code, _fields: None
    began = time.monotonic()
    snapshot = source.collect()
    assert time.monotonic() - began < 4  # its time-out of a second once, and not for each step
    assert set(snapshot.errors) == {"timeout"}
    # What was committed there last still stands, with unknown ends.
    assert lags(snapshot) == {("orders", 0): 60, ("orders", 1): 60, ("orders", 10_000): None, ("orders", 10_001): None}
    del hanging.instead[code]
    assert source.collect().errors == {}


def test_one_unreadable_topic_costs_only_itself(lab: Lab) -> None:
    def stats(code: int, fields: Any) -> Any:
        return (0, b'{"offsetTable":{"?":{}}}') if fields["topic"] == "bad" else Broker()(code, fields)

    lab.broker(Broker(topics={"orders": 2, "bad": 1}, groups={"billing": ["orders", "bad"]}, instead={202: stats}))
    snapshot = lab.source().collect()
    assert snapshot.errors == {"malformed": 1}
    assert lags(snapshot) == {("bad", 0): None, ("orders", 0): 60, ("orders", 1): 60}


def test_one_unreadable_group_costs_only_itself(lab: Lab) -> None:
    def members(_code: int, fields: Any) -> Any:
        return (1, b"") if fields["consumerGroup"] == "bad" else (206, b"")

    lab.broker(Broker(groups={"billing": ["orders"], "bad": ["orders"]}, instead={203: members}))
    snapshot = lab.source().collect()
    assert snapshot.errors == {"broker_failed": 1}
    states = {row["group"]: (row["state"], row["error"]) for row in snapshot.rows(GROUPS).to_pylist()}
    assert states == {"billing": ("Empty", None), "bad": (None, "broker_failed")}


def test_what_was_never_committed_is_not_offset_0(lab: Lab) -> None:
    body = b'{"offsetTable":{"orders@billing":{0:0,1:-1}}}'
    lab.broker(Broker(topics={"orders": 3}, instead={43: lambda _code, _fields: (0, body)}))
    committed = {r["partition"]: r["committed"] for r in lab.source().collect().rows(COMMITS).to_pylist()}
    assert committed == {0: 0, 1: None, 2: None}


@pytest.mark.parametrize("offset", ['"x"', "1.5", "99999999999999999999", "{}", "true"])
def test_an_offset_that_is_no_number_costs_only_its_group(lab: Lab, offset: str) -> None:
    body = f'{{"offsetTable":{{"orders@billing":{{0:{offset},1:40}},"orders@good":{{0:40,1:40}}}}}}'.encode()
    groups = {"billing": ["orders"], "good": ["orders"]}
    lab.broker(Broker(groups=groups, instead={43: lambda _code, _fields: (0, body)}))
    snapshot = lab.source().collect()
    assert snapshot.errors == {"malformed": 1}
    committed = {(r["group"], r["partition"]): r["committed"] for r in snapshot.rows(COMMITS).to_pylist()}
    assert committed == {("billing", 0): None, ("billing", 1): None, ("good", 0): 40, ("good", 1): 40}


def test_a_connection_that_ended_between_samples_is_opened_again(lab: Lab) -> None:
    server = lab.broker(Broker())
    source = lab.source()
    source.collect()
    server.hang_up()
    lab.name_server.hang_up()
    assert source.collect().errors == {}


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_one(lab: Lab) -> None:
    broker = Broker()

    def late(code: int, fields: Any) -> Any:
        time.sleep(1.3)
        return 0, b'{"table":{"commitLogDiskRatio":"0.9"}}'

    lab.broker(broker)
    source = lab.source()
    source.collect()
    broker.instead[28] = late
    assert set(source.collect().errors) == {"config_timeout"}
    del broker.instead[28]
    for _ in range(3):
        assert len(lags(source.collect())) == 2


def test_a_slave_is_read_where_there_is_no_master(lab: Lab) -> None:
    lab.broker(Broker(), number=1)
    snapshot = lab.source().collect()
    assert snapshot.errors == {"no_master": 1}
    assert len(lags(snapshot)) == 2


@pytest.mark.parametrize(
    ("used", "kind", "kept_hours"),
    [
        ("0.75", None, 48),
        ("0.76", "disk_filling", 48),
        ("0.86", "disk_too_full", None),
        ("0.91", "disk_full", None),
        ("2", None, 48),
        ("much", None, 48),
    ],
)
def test_the_levels_of_a_full_disk(lab: Lab, used: str, kind: str | None, kept_hours: int | None) -> None:
    """Up to the second level messages are kept for their time; beyond it that is unknown without the log's size."""
    body = json.dumps({"table": {"commitLogDiskRatio": used}}).encode()
    lab.broker(Broker(instead={28: lambda _code, _fields: (0, body)}))
    snapshot = lab.source().collect()
    assert snapshot.errors == ({kind: 1} if kind else {})
    kept_ms = None if kept_hours is None else kept_hours * 3_600_000
    assert [row["retention_ms"] for row in snapshot.rows(TOPICS).to_pylist()] == [kept_ms]


def test_a_disk_that_is_too_full_leaves_as_much_as_there_is(lab: Lab) -> None:
    stored_ms = int((EPOCH + lab.now - 5 * 3600) * 1000)
    table = {
        "commitLogDiskRatio": "0.87",
        "consumeQueueDiskRatio": "0.87",
        "commitLogDirCapacity": "Total : 1000.0 GiB, Free : 130.0 GiB.",
        "commitLogMinOffset": "1000",
        "commitLogMaxOffset": "500000000000",
        "earliestMessageTimeStamp": str(stored_ms),
    }
    lab.broker(Broker(instead={28: lambda _code, _fields: (0, json.dumps({"table": table}).encode())}))
    source = lab.source()

    def kept_hours() -> tuple[list[float], str]:
        snapshot = source.collect()
        rows = snapshot.rows(TOPICS).to_pylist()
        return [row["retention_ms"] / 3_600_000 for row in rows], snapshot.header["errors"][0]["example"]

    hours, said = kept_hours()
    assert hours == [5]
    assert "87% full, so it deletes the oldest" in said
    assert said.endswith("they go back 5 h; beyond 90% it accepts no new ones")
    lab.now += 15
    assert kept_hours()[0] == []  # an estimate that hardly differs is no news of each topic
    lab.now += 3600
    assert kept_hours()[0] == [pytest.approx(6 + 15 / 3600)]


def test_a_broker_that_is_not_listed_any_more_is_down_at_first_and_then_gone(lab: Lab) -> None:
    lab.broker(Broker("broker-a"))
    lab.broker(Broker("broker-b", groups={"billing": ["orders"], "only-b": ["orders"]}))
    source = lab.source()
    source.collect()
    del lab.brokers["broker-b"]
    lab.now += 15
    snapshot = source.collect()
    assert snapshot.errors == {"broker_gone": 1}
    assert lags(snapshot)["orders", 10_000] is None
    states = {row["group"]: (row["state"], row["error"]) for row in snapshot.rows(GROUPS).to_pylist()}
    assert states == {"billing": (None, "unreachable"), "only-b": (None, "unreachable")}
    lab.now += 600
    snapshot = source.collect()
    assert snapshot.errors == {}
    assert lags(snapshot) == {("orders", 0): 60, ("orders", 1): 60}


def test_a_broker_that_left_is_a_finding_for_a_day_also_after_a_restart(lab: Lab, tmp_path: Path) -> None:
    state = tmp_path / "numbers.json"

    def found(source: RocketmqSource) -> dict[str, str]:
        findings = cluster_findings(source.collect().header)
        assert findings is not None
        return {finding.kind.value: finding.sentence for finding in findings}

    lab.broker(Broker("broker-a"))
    lab.broker(Broker("broker-b"))
    source = lab.source(state=state)
    assert found(source) == {}
    gone = lab.brokers.pop("broker-b")
    lab.now += 15
    assert found(source)["broker_gone"].startswith("Broker broker-b has been gone for 15 s:")
    lab.now += 3600
    source = lab.source(state=state)
    assert found(source)["broker_gone"].startswith("Broker broker-b has been gone for 1 h:")
    lab.brokers["broker-b"] = gone
    assert found(source) == {}, "it is back"
    del lab.brokers["broker-b"]
    lab.now += 86_400 - 60
    assert found(source).keys() == {"broker_gone"}
    lab.now += 120
    assert found(source) == {}, "it was removed"


@pytest.mark.parametrize("damage", [b"", b"[1]", b'{"broker-b": "x"}', b'{"broker-b": 1e300}', b"\xff"])
def test_a_damaged_file_of_brokers_costs_only_what_it_held(lab: Lab, tmp_path: Path, damage: bytes) -> None:
    state = tmp_path / "numbers.json"
    (tmp_path / "numbers.json.listed").write_bytes(damage)
    lab.broker(Broker("broker-a"))
    snapshot = lab.source(state=state).collect()
    assert snapshot.errors == {}
    assert [broker["name"] for broker in snapshot.header["brokers"]] == ["broker-a"]


@pytest.mark.parametrize(
    ("used", "kind"), [("0.74", None), ("0.76", "disk_filling"), ("0.86", "disk_too_full"), ("0.91", "disk_full")]
)
def test_the_three_levels_of_a_disk_are_findings(lab: Lab, used: str, kind: str | None) -> None:
    broker = Broker()
    broker.instead[28] = lambda _code, _fields: (0, json.dumps({"table": {"commitLogDiskRatio": used}}).encode())
    lab.broker(broker)
    header = lab.source().collect().header
    assert [broker["disk_used"] for broker in header["brokers"]] == [float(used)]
    found = cluster_findings(header)
    assert found is not None
    assert [one.kind.value for one in found] == ([] if kind is None else [kind])
    assert all(one.sentence.startswith(f"Broker broker-a: its disk is {used[2:]}% full") for one in found)


def test_a_broker_keeps_its_number_whoever_joins_and_leaves(lab: Lab, tmp_path: Path) -> None:
    state = tmp_path / "numbers.json"
    lab.broker(Broker("broker-m"))
    assert set(lags(lab.source(state=state).collect())) == {("orders", 0), ("orders", 1)}
    lab.broker(Broker("broker-a"))
    partitions = {("orders", 0), ("orders", 1), ("orders", 10_000), ("orders", 10_001)}
    later = lab.source(state=state).collect()
    assert set(lags(later)) == partitions
    assert {r["partition"]: r["label"] for r in later.rows(WATERMARKS).to_pylist()}[10_001] == "broker-a q1"


@pytest.mark.parametrize("text", ["", "[]", '{"a": -1}', '{"a": 0, "b": 0}', '{"a": "0"}', "\0"])
def test_a_damaged_file_of_numbers_is_reported_and_rebuilt(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "numbers.json"
    file.write_text(text)
    numbers = BrokerNumbers(file)
    numbers.add(["x", "a"])
    assert (numbers["a"], numbers["x"]) == (0, 1)
    assert "brokers get new numbers" in caplog.text
    assert BrokerNumbers(file)["x"] == 1


def test_what_members_did_counts_after_a_minute_of_work() -> None:
    """Before that, they report a rate over less than a minute."""
    now = [0.0]
    answers = MemberAnswers(lambda: now[0])
    present = {"g": ReachableMembers({"a": "broker-a"}, is_broadcasting=True)}  # asked in each sample

    def reported(second: float, began: str, *topics: str) -> set[str]:
        now[0] = second
        said = MemberReport(stats={topic: ConsumeStats(0.01, 100) for topic in topics}, started=began)
        answers.take(answers.due(present), [said], ErrorTally())
        return {topic for _, _, topic, _ in answers.latest_stats()}

    assert reported(0, "1", "orders") == set()
    assert reported(59, "1", "orders") == set()
    assert reported(60, "1", "orders", "late") == {"orders"}
    assert reported(90, "1", "late") == set()
    assert reported(120, "1", "orders", "late") == {"orders", "late"}  # one that paused counts on
    assert reported(130, "2", "orders") == set()  # its process was started anew
    assert reported(190, "2", "orders") == {"orders"}
    answers.take(answers.due(present), [RocketmqTrouble("member_timeout", "hangs")], ErrorTally())
    assert list(answers.latest_stats()) == []


def test_members_are_asked_when_something_changed_and_else_rarely() -> None:
    now = [0.0]
    answers = MemberAnswers(lambda: now[0])
    both = {"g": ReachableMembers({"a": "broker-a", "b": "broker-a"}, is_broadcasting=False)}

    def ask(
        groups: dict[str, ReachableMembers], answer: Callable[[], MemberReport | RocketmqTrouble] = MemberReport
    ) -> list[str]:
        due = answers.due(groups)
        answers.take(due, [answer() for _ in due], ErrorTally())
        return [client for _, client in due]

    assert ask(both) == ["a", "b"]
    now[0] = 80.0
    assert ask(both) == ["a", "b"]  # queues may still move
    now[0] = 100.0
    assert ask(both) == []
    now[0] = 145.0
    assert ask(both) == ["a", "b"]  # a minute is over
    now[0] = 150.0
    one = {"g": ReachableMembers({"a": "broker-a"}, is_broadcasting=False)}
    assert ask(one) == ["a"]
    assert answers.of("g", "b") is None
    now[0] = 400.0
    assert ask(one, lambda: RocketmqTrouble("member_timeout", "hangs")) == ["a"]
    assert answers.of("g", "a") is None
    now[0] = 600.0
    assert ask(one) == []
    now[0] = 701.0
    assert ask(one) == ["a"]
    broadcasting = {"g": ReachableMembers({"a": "broker-a"}, is_broadcasting=True)}
    assert ask(broadcasting) == ["a"]
    many = {"g": ReachableMembers({f"c{n:03}": "broker-a" for n in range(300)}, is_broadcasting=False)}
    assert len(ask(many)) == 200
    assert ask(many)[:100] == [f"c{n:03}" for n in range(200, 300)]


def test_members_that_own_very_many_queues_take_turns() -> None:
    """An answer names each queue, and a sample is to take a second."""
    now = [0.0]
    answers = MemberAnswers(lambda: now[0])
    group = {"g": ReachableMembers({f"c{n}": "broker-a" for n in range(10)}, is_broadcasting=False)}
    owns = MemberReport({Queue("orders", "broker-a", queue): None for queue in range(3000)})
    for second, asked in ((0, range(10)), (100, range(3)), (115, range(3, 6)), (130, range(6, 9)), (145, [9])):
        now[0] = second
        due = answers.due(group)
        answers.take(due, [owns] * len(due), ErrorTally())
        assert [client for _, client in due] == [f"c{n}" for n in asked]
