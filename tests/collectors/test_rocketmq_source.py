"""The RocketMQ source against real brokers: right where RocketMQ's own tool is right, and where it is not."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lagwise.config import Config, NameFilter, RocketmqCluster
from lagwise.config.rocketmq import LocalOffsetFiles
from lagwise.domain.cluster_findings import ClusterFindingKind, cluster_findings
from lagwise.platform.errors import LagwiseError
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_collectors.protocol import Snapshot
from lagwise_collectors.rocketmq.source import RocketmqSource
from lagwise_collectors.run import collect_once
from lagwise_sandbox.rocketmq.servers import Rocketmq
from lagwise_sandbox.rocketmq.workload import RocketmqWorkload
from lagwise_sandbox.server_properties import ADMIN, PASSWORDS
from tests.collectors.kafka import eventually, rows

pytestmark = pytest.mark.broker

_SPECS = (
    "topic:orders:4",
    "topic:quiet:4",
    "topic:fails:2",
    "topic:popped:2",
    "produce:orders:0:40",
    "produce:quiet:1600:0",
    "produce:fails:40:0",
    "produce:popped:100:20",
    "consume:fail:G_FAIL:fails:5",
    "consume:leave:G_QUIET:quiet:10:5",
    "consume:orderly:G_ORDER:orders:1",
    "consume:broadcast:G_BCAST:orders:1",
    "consume:pop:G_POP:popped:300",
    "consume:concurrent:G_TWO:orders:1",
    "consume:concurrent:G_TWO:orders:1",
    "consume:concurrent:G_TAGS:orders#sandbox || other:1",
    "consume:concurrent:G_TAGS:orders:1",
)


class Scene:
    """A workload on the shared cluster, and a source that watches it."""

    def __init__(self, rocketmq: Rocketmq) -> None:
        self.rocketmq = rocketmq
        self.source = RocketmqSource(cluster_of(rocketmq))

    def look(self) -> "Seen":
        return Seen(self.source.collect())


class Seen:
    """One sample, asked in short."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.ends = {(row["topic"], row["partition"]): row for row in rows(snapshot, WATERMARKS)}

    def group(self, name: str) -> dict[str, Any]:
        return next((row for row in rows(self.snapshot, GROUPS) if row["group"] == name), {})

    def commits(self, group: str, topic: str) -> list[dict[str, Any]]:
        return [r for r in rows(self.snapshot, COMMITS) if r["group"] == group and r["topic"] == topic]

    def lag(self, group: str, topic: str) -> int | None:
        """Lag over all queues; None where it is not known of one of them."""
        its = self.commits(group, topic)
        if not its or any(row["committed"] is None for row in its):
            return None
        ends = [self.ends[topic, row["partition"]] for row in its]
        pairs = zip(ends, its, strict=True)
        return sum(end["high_watermark"] - max(end["log_start"], row["committed"]) for end, row in pairs)

    def stored(self, topic: str) -> int:
        return sum(row["high_watermark"] - row["log_start"] for (t, _), row in self.ends.items() if t == topic)


def cluster_of(rocketmq: Rocketmq, **changes: Any) -> RocketmqCluster:
    settings: dict[str, Any] = {"system": "rocketmq", "name_servers": rocketmq.name_servers, "timeout_seconds": 5.0}
    return RocketmqCluster(**{**settings, **changes})


@pytest.fixture(scope="module")
def scene(rocketmq: Rocketmq) -> Iterator[Scene]:
    with RocketmqWorkload(rocketmq, _SPECS):
        scene = Scene(rocketmq)
        yield scene
        scene.source.close()


def once(cluster: RocketmqCluster) -> Snapshot:
    with closing(RocketmqSource(cluster)) as source:
        return source.collect()


def progress(rocketmq: Rocketmq, group: str) -> dict[tuple[str, str, int], tuple[int, int, int]]:
    """What ``mqadmin consumerProgress`` says: broker offset, consumer offset and difference by queue."""
    said = rocketmq.mqadmin("consumerProgress", "-g", group)
    found = re.findall(r"^(\S+) +(broker-\w) +(\d+) +(\d+) +(-?\d+) +(-?\d+) +", said, re.MULTILINE)
    return {(topic, broker, int(queue)): (int(end), int(at), int(lag)) for topic, broker, queue, end, at, lag in found}


def test_retries_that_the_official_tool_does_not_know_of_are_backlog(scene: Scene) -> None:
    """The tool shows a retry topic from the group's first commit on it. This group ends before that.

    Its client learns of the new retry topic after 30 s, and commits for the first time after 10 s.
    """
    specs = ("topic:given-up:2", "produce:given-up:40:0", "consume:fail:G_GIVEN_UP:given-up:5")
    with RocketmqWorkload(scene.rocketmq, specs, name="given-up"):
        eventually(lambda: any(row["committed"] for row in scene.look().commits("G_GIVEN_UP", "given-up")))
    seen = eventually(lambda: (s := scene.look()).lag("G_GIVEN_UP", "%RETRY%G_GIVEN_UP") and s)
    assert 0 < seen.lag("G_GIVEN_UP", "%RETRY%G_GIVEN_UP") <= 40
    known_to_the_tool = {topic for topic, _, _ in progress(scene.rocketmq, "G_GIVEN_UP")}
    assert "given-up" in known_to_the_tool
    assert "%RETRY%G_GIVEN_UP" not in known_to_the_tool


def test_a_group_at_rest_is_as_the_official_tool_has_it(scene: Scene) -> None:
    seen = eventually(lambda: (s := scene.look()).group("G_QUIET").get("state") == "Empty" and s)
    ours = {}
    for row in seen.commits("G_QUIET", "quiet"):
        end = seen.ends["quiet", row["partition"]]
        broker, queue = end["label"].split(" q")
        assert row["committed"] is not None
        lag = end["high_watermark"] - max(end["log_start"], row["committed"])
        ours["quiet", broker, int(queue)] = end["high_watermark"], row["committed"], lag
    assert ours == {key: value for key, value in progress(scene.rocketmq, "G_QUIET").items() if key[0] == "quiet"}
    assert 0 < seen.lag("G_QUIET", "quiet") < 1600
    assert seen.group("G_QUIET")["member_count"] == 0
    assert {row["owner"] for row in seen.commits("G_QUIET", "quiet")} == {None}


def test_queues_of_two_brokers_are_partitions_of_one_topic(scene: Scene) -> None:
    seen = scene.look()
    orders = {partition: row["label"] for (topic, partition), row in seen.ends.items() if topic == "orders"}
    assert orders == {
        **{queue: f"broker-a q{queue}" for queue in range(4)},
        **{10_000 + queue: f"broker-b q{queue}" for queue in range(4)},
    }
    assert {row["leader"] for (topic, _), row in seen.ends.items() if topic == "orders"} == {0, 1}


def test_a_queue_that_was_never_committed_is_not_at_offset_0(scene: Scene) -> None:
    """Queues that were added after the group had left. RocketMQ's tool has it at 0 there."""
    for broker in ("broker-a", "broker-b"):
        address = scene.rocketmq.address(broker)
        scene.rocketmq.mqadmin("updateTopic", "-b", address, "-t", "quiet", "-r", "5", "-w", "5")
    committed = {row["partition"]: row["committed"] for row in scene.look().commits("G_QUIET", "quiet")}
    assert {partition for partition, offset in committed.items() if offset is None} == {4, 10_004}
    assert progress(scene.rocketmq, "G_QUIET")["quiet", "broker-a", 4] == (0, 0, 0)


def test_a_broadcasting_group_lags_by_what_its_members_did_not_finish(scene: Scene) -> None:
    def keeps_up(more_than: int) -> Seen | None:
        seen = scene.look()
        lag = seen.lag("G_BCAST", "orders")
        # At most a second's messages, of all that there are. Its members learn of a queue up to 30 s late.
        return seen if lag is not None and lag < 40 and seen.stored("orders") > more_than else None

    seen = eventually(lambda: keeps_up(300))
    assert seen.group("G_BCAST")["type"] == "broadcasting"
    lags = [row["lag"] for row in rows(seen.snapshot, MEMBERS) if row["group"] == "G_BCAST"]
    assert lags == [seen.lag("G_BCAST", "orders")], "that of its only member is that of the group"
    eventually(lambda: keeps_up(seen.stored("orders") + 100))
    assert not progress_or_nothing(scene.rocketmq, "G_BCAST")


def test_where_members_are_not_queried_their_offset_files_are_used(scene: Scene) -> None:
    """The file of a real client, which it writes below its home."""
    folder = scene.rocketmq.data / "home" / "workload" / ".rocketmq_offsets"
    files = LocalOffsetFiles(path=f"{folder}/*/*/offsets.json")
    cluster = cluster_of(scene.rocketmq, ask_members=False, local_offsets=files)
    with closing(RocketmqSource(cluster)) as source:
        seen = eventually(lambda: (s := Seen(source.collect())).lag("G_BCAST", "orders") is not None and s)
        assert 0 <= seen.lag("G_BCAST", "orders") <= seen.stored("orders")
        before = {row["partition"]: row["committed"] for row in seen.commits("G_BCAST", "orders")}

        def moved() -> bool:
            now = {row["partition"]: row["committed"] for row in Seen(source.collect()).commits("G_BCAST", "orders")}
            assert all(now[queue] >= before[queue] for queue in before)
            return all(now[queue] > before[queue] for queue in before)

        eventually(moved)


def progress_or_nothing(rocketmq: Rocketmq, group: str) -> dict[Any, Any]:
    try:
        return progress(rocketmq, group)
    except LagwiseError:
        return {}


def test_how_a_group_consumes_is_its_type(scene: Scene) -> None:
    wanted = {"G_ORDER": "orderly", "G_TWO": "concurrent", "G_BCAST": "broadcasting", "G_POP": "pop"}
    eventually(lambda: {name: scene.look().group(name).get("type") for name in wanted} == wanted)


def test_popped_messages_without_acknowledgement_are_reported(scene: Scene) -> None:
    """Lag does not show them: the offset is that of what was popped."""
    seen = eventually(lambda: (s := scene.look()).group("G_POP").get("unacknowledged") and s)
    assert 0 < seen.group("G_POP")["unacknowledged"] <= seen.stored("popped")
    assert scene.look().group("G_TWO")["unacknowledged"] is None


def test_members_report_how_long_a_message_takes(scene: Scene) -> None:
    """A millisecond, on one of two threads. Once a member has been at work for a minute, its rate is that of a minute:
    before that, its rate times a minute is more messages than there ever were."""

    def reported() -> list[dict[str, Any]]:
        seen = scene.look()
        found = [row for row in rows(seen.snapshot, SERVICE_TIMES) if row["group"] == "G_TWO"]
        assert sum(row["messages"] for row in found) <= seen.stored("orders")
        # A client that started late reads a burst first, and reports the rate of that until it has caught up.
        is_usual = all(row["messages"] <= 60 * 40 for row in found)
        return found if is_usual and len({row["member_id"] for row in found}) == 2 else []

    for row in eventually(reported):
        assert (row["topic"], row["source"], row["threads"], row["t1_seconds"]) == ("orders", "consume_rt", 2, None)
        assert 0.0005 < row["seconds_per_message"] < 0.1
        assert 0 < row["messages"] <= 60 * 40
        assert row["partition"] in (*range(4), *range(10_000, 10_004))


def test_two_members_share_the_queues(scene: Scene) -> None:
    def shared() -> list[dict[str, Any]] | None:
        found = scene.look()
        owners = {row["owner"] for row in found.commits("G_TWO", "orders")}
        members = [row for row in rows(found.snapshot, MEMBERS) if row["group"] == "G_TWO"]
        return members if len(owners) == 2 and None not in owners else None

    members = eventually(shared)
    of_orders = [a["partitions"] for m in members for a in m["assignment"] if a["topic"] == "orders"]
    assert sorted(p for partitions in of_orders for p in partitions) == [0, 1, 2, 3, 10_000, 10_001, 10_002, 10_003]
    assert [len(partitions) for partitions in of_orders] == [4, 4]


def test_members_report_which_messages_they_want(scene: Scene) -> None:
    def wanted(group: str) -> list[dict[str, Any]] | None:
        return scene.look().group(group).get("subscriptions")

    def reported() -> list[dict[str, Any]] | None:
        found = wanted("G_TAGS")
        return found if found and {one["of"] for one in found} == {2} else None

    assert eventually(reported) == [
        {"topic": "orders", "filter": "*", "members": 1, "of": 2},
        {"topic": "orders", "filter": "other || sandbox", "members": 1, "of": 2},
    ]
    assert wanted("G_ORDER") == [{"topic": "orders", "filter": "*", "members": 1, "of": 1}]
    assert wanted("G_QUIET") is None


def test_for_a_broadcasting_group_that_is_not_queried_the_broker_has_a_hint(scene: Scene, rocketmq: Rocketmq) -> None:
    """Members report every five seconds to the brokers what they have fetched."""

    def hinted() -> Seen | None:
        seen = Seen(once(cluster_of(rocketmq, ask_members=False)))
        return seen if seen.lag("G_BCAST", "orders") is not None else None

    seen = eventually(hinted)
    assert seen.group("G_BCAST")["source"] == "broadcast hint"
    assert 0 <= seen.lag("G_BCAST", "orders") <= 40 * 30
    assert scene.look().group("G_BCAST")["source"] is None


def test_dead_letters_are_reported_for_their_group_alone(scene: Scene, rocketmq: Rocketmq) -> None:
    eventually(lambda: scene.look().stored("%DLQ%G_FAIL") == 40)
    topics = {row["topic"]: row for row in rows(once(cluster_of(rocketmq)), TOPICS)}
    assert (topics["%DLQ%G_FAIL"]["role"], topics["%DLQ%G_FAIL"]["main_topic"]) == ("dead_letter", "%RETRY%G_FAIL")
    assert (topics["%RETRY%G_FAIL"]["role"], topics["%RETRY%G_FAIL"]["main_topic"]) == ("retry", "%RETRY%G_FAIL")
    assert (topics["fails"]["role"], topics["fails"]["partitions"]) == (None, 4)
    assert topics["fails"]["retention_ms"] == 72 * 3_600_000


def test_only_selected_groups_are_read(rocketmq: Rocketmq, scene: Scene) -> None:
    cluster = cluster_of(rocketmq, groups=NameFilter(include=("G_QU.*",)))
    found = once(cluster)
    assert {row["group"] for row in rows(found, GROUPS)} == {"G_QUIET"}
    assert {row["topic"] for row in rows(found, WATERMARKS)} == {"quiet", "%RETRY%G_QUIET"}


def test_the_doctor_finds_everything_in_order(rocketmq: Rocketmq, scene: Scene) -> None:
    checks = RocketmqSource(cluster_of(rocketmq)).check()
    assert [check.name for check in checks if not check.ok] == []
    assert len(checks) == 13


@pytest.mark.process
def test_a_sample_is_in_the_lake(rocketmq: Rocketmq, scene: Scene, tmp_path: Path) -> None:
    config = Config(data=str(tmp_path), clusters=(cluster_of(rocketmq, name="shop"),))
    (cost,) = collect_once(config)
    assert not cost.errors
    lake = Lake(config.lake_uri)
    assert lake.read(SAMPLES)["system"].to_pylist() == ["rocketmq"]
    assert lake.read(COMMITS).num_rows == cost.rows["commits"] > 20
    numbers = tmp_path / "broker-numbers" / "cluster-shop.json"
    assert numbers.read_text() == '{"broker-a": 0, "broker-b": 1}'


def test_tls_on_the_same_port(rocketmq: Rocketmq, scene: Scene) -> None:
    trusting = cluster_of(rocketmq, tls={"enabled": True, "verify": False})
    assert not once(trusting).errors
    strict = once(cluster_of(rocketmq, tls={"enabled": True}))
    assert set(strict.errors) == {"tls_failed"}


def test_a_broker_that_dies_costs_only_its_own_queues(scene: Scene) -> None:
    """The last of this scene: it takes one of the shared cluster's brokers away for a while."""
    before = scene.look()
    assert cluster_findings(before.snapshot.header) == []
    brokers = before.snapshot.header["brokers"]
    assert [(broker["name"], broker["gone_at"]) for broker in brokers] == [("broker-a", None), ("broker-b", None)]
    assert all(0 < broker["disk_used"] < 1 for broker in brokers)
    assert [broker["clock_ahead_seconds"] for broker in brokers] == [pytest.approx(0, abs=2)] * 2
    scene.rocketmq.kill_broker("broker-b")
    try:
        seen = eventually(lambda: (s := scene.look()).snapshot.errors and s)
        assert set(seen.snapshot.errors) <= {"unreachable", "broker_gone", "timeout"}
        for (topic, partition), row in seen.ends.items():
            assert (row["error"] is None) == (partition < 10_000), (topic, partition)
        assert seen.ends.keys() == before.ends.keys()
        assert len(seen.commits("G_QUIET", "quiet")) == 10
        assert seen.group("G_ORDER")["state"] == "Stable"
        gone = eventually(lambda: cluster_findings(scene.look().snapshot.header))
        assert [finding.kind for finding in gone] == [ClusterFindingKind.BROKER_GONE]
        assert gone[0].sentence.startswith("Broker broker-b has been gone for")
    finally:
        scene.rocketmq.start_broker("broker-b")
    after = eventually(lambda: (s := scene.look()) and not s.snapshot.errors and s)
    assert all(topic.startswith("%RETRY%") for topic, _ in after.ends.keys() - before.ends.keys()), (
        "only a retry topic of popped messages may have been created meanwhile"
    )
    assert {k: after.ends[k]["label"] for k in before.ends} == {k: r["label"] for k, r in before.ends.items()}


def test_a_secured_broker_asks_who_is_there(secured_rocketmq: Rocketmq, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers with binary headers, too: its environment says so."""
    anonymous = once(cluster_of(secured_rocketmq))
    assert set(anonymous.errors) == {"not_authorized"}
    monkeypatch.setenv("SANDBOX_SECRET", "wrong-one")
    signed = {"access_key": ADMIN, "secret_key": "${env:SANDBOX_SECRET}"}
    assert set(once(cluster_of(secured_rocketmq, **signed)).errors) == {"not_authorized"}
    monkeypatch.setenv("SANDBOX_SECRET", PASSWORDS[ADMIN])
    specs = ["topic:orders:2", "produce:orders:20:0", "consume:concurrent:G:orders:1"]
    with (
        RocketmqWorkload(secured_rocketmq, specs, user=ADMIN),
        closing(RocketmqSource(cluster_of(secured_rocketmq, **signed))) as source,
    ):
        eventually(lambda: Seen(source.collect()).lag("G", "orders") == 0)
        failed = [check for check in RocketmqSource(cluster_of(secured_rocketmq)).check() if not check.ok]
        assert "Get, List on Cluster:*" in str(failed[0].privilege)


def test_the_rights_that_the_doctor_names_are_enough(
    secured_rocketmq: Rocketmq, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = secured_rocketmq.address("broker-a")
    user, password = "monitor", PASSWORDS["monitor"]
    secured_rocketmq.mqadmin("createUser", "-b", broker, "-u", user, "-p", password, "-t", "Normal")
    monkeypatch.setenv("SANDBOX_SECRET", password)
    cluster = cluster_of(secured_rocketmq, access_key=user, secret_key="${env:SANDBOX_SECRET}")
    specs = ["topic:orders:2", "produce:orders:20:0", "consume:concurrent:G_RIGHTS:orders:1"]
    with RocketmqWorkload(secured_rocketmq, specs, user=ADMIN, name="rights"):
        eventually(lambda: any(not check.ok for check in RocketmqSource(cluster).check()))
        secured_rocketmq.mqadmin(
            "createAcl", "-b", broker, "-s", f"User:{user}",
            "-r", "Topic:*,Group:*,Cluster:*", "-a", "Get,List", "-d", "Allow",
        )  # fmt: skip
        eventually(lambda: Seen(once(cluster)).lag("G_RIGHTS", "orders") == 0)
        assert [check.name for check in RocketmqSource(cluster).check() if not check.ok] == []
