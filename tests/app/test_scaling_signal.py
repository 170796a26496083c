"""What autoscalers are told, over real HTTP from a real lake."""

import http.client
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from lagwise.config import Config
from lagwise.domain.capacity.scaling import ScalingPolicy, Why
from lagwise.platform import health
from lagwise.platform.errors import ConfigError
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.membership import ASSIGNMENTS
from lagwise.tables.raw import GROUPS
from lagwise.tables.store import Lake
from lagwise_app.answers.groups import UnknownGroup
from lagwise_app.scaling.lake_cache import LakeCache, TopicRate
from lagwise_app.scaling.signal import DividedWork, StaleData, UndecidedSignal, divided_work, mixed_rate, signal
from lagwise_app.server.serve import serve_scaling_forever
from lagwise_app.supervisor.effective_settings import free_port
from lagwise_app.supervisor.processes import product_processes
from tests.app.judged import HOSTILE, append, group, partition, row

pytestmark = pytest.mark.thorough

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def watched(lake: Lake, members: Sequence[int | None], name: str = "billing", at: datetime = NOW) -> None:
    """How many members the group had in each of the last minutes, the newest last."""
    rows = [
        row(GROUPS, cluster="shop", group=name, member_count=count, sampled_at=at - timedelta(minutes=ago))
        for ago, count in enumerate(reversed(members))
    ]
    append(lake, GROUPS, *rows)


def write(
    lake: Lake,
    name: str = "billing",
    *,
    at: datetime = NOW,
    rate: float = 500.0,
    history_rate: float | None = None,
    lag: int = 0,
    members: Sequence[int | None] = (2,) * 60,
    state: str = "Stable",
    known: bool = True,
) -> None:
    """A group of two members on eight partitions: 500 records a second for an hour, a member can do 100.

    ``history_rate`` where the minutes of the hour had another rate than the newest samples have.
    """
    append(lake, GROUP_STATUS, group(name, "ok", as_of=at, members=members[-1], state=state))
    watched(lake, members, name, at)
    append(
        lake,
        PARTITION_STATUS,
        *[partition(name, n, as_of=at, produce_rate_per_second=rate / 8) for n in range(8)],
        partition(name, 0, as_of=at, topic="left", status="ghost"),
    )
    minutes = [at - timedelta(minutes=n) for n in range(60)]
    arrived = rate if history_rate is None else history_rate
    shared = {"cluster": "shop", "group": name, "status": "ok", "lag": lag, "produce_rate_per_second": arrived}
    append(lake, GROUP_HISTORY, *[row(GROUP_HISTORY, as_of=minute, **shared) for minute in minutes])
    if known:
        one = row(CAPACITY, cluster="shop", group=name, topic="orders", partitions=8, member_rate_per_second=100.0)
        append(lake, CAPACITY, one)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(str(tmp_path / "lake"))
    made.create(GROUP_STATUS, PARTITION_STATUS, GROUP_HISTORY, CAPACITY, ASSIGNMENTS, GROUPS)
    return made


def asked(lake: Lake, **values: Any) -> Any:
    return signal(LakeCache(lake), "shop", "billing", ScalingPolicy(**values), NOW, stale_after_seconds=60.0)


def test_a_group_that_needs_more_gets_them(lake: Lake) -> None:
    write(lake)
    found = asked(lake)
    # 500/s at 70 % are 714/s; four members hold two partitions each and do 400/s, eight do 800/s.
    assert (found.desired.replicas, found.desired.why) == (8, Why.MORE_NEEDED)
    assert (found.running, found.held, found.partitions, found.replica_rate_per_second) == (2, 2, 8, 100.0)


#: Four members carry 250/s at 70 %, and eight are only too many at 55 %: in between nothing is to change.
IN_THE_BAND = 250.0


@pytest.mark.parametrize("dip", [(8, 5), (8, 5, 3), (8, 5, 3, 0), (8, 6, 4, 2, 4, 6)], ids=str)
def test_a_deployment_takes_no_replicas_away(lake: Lake, dip: tuple[int, ...]) -> None:
    """Its members go and come again: an autoscaler that follows them down deletes those that are starting."""
    write(lake, rate=IN_THE_BAND, members=(8,) * 30 + dip)
    found = asked(lake, min_replicas=2)
    assert (found.running, found.held, found.desired.replicas) == (dip[-1], 8, 8)


def test_fewer_members_for_good_are_what_is_held(lake: Lake) -> None:
    """Within the band those that have run for a quarter of an hour are left alone."""
    write(lake, rate=IN_THE_BAND, members=(8,) * 30 + (4,) * 17)
    found = asked(lake)
    assert (found.held, found.desired.replicas, found.desired.why) == (4, 4, Why.STEADY)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"members": (2,) * 30 + (None,)}, "the number of members is unknown"),
        ({"state": "PreparingRebalance"}, "the group is PreparingRebalance"),
        ({"state": "Reconciling"}, "the group is Reconciling"),
        ({"state": "Dead"}, "the group is Dead"),
        ({"members": (5,) * 10}, r"watched for 540 s, less than down_after_seconds \(900 s\)"),
        ({"known": False}, "the throughput of one replica is unknown"),
        ({"known": False, "members": (0,) * 60}, "the throughput of one replica is unknown"),
    ],
    ids=str,
)
def test_there_is_no_signal_where_the_state_is_unknown(lake: Lake, values: dict[str, Any], why: str) -> None:
    write(lake, **values)
    with pytest.raises(UndecidedSignal, match=why):
        asked(lake)


def test_a_group_that_was_switched_off_is_switched_on(lake: Lake) -> None:
    write(lake, members=(0,) * 60, state="Empty")
    assert (asked(lake, min_replicas=0).desired.replicas, asked(lake).desired.why) == (8, Why.MORE_NEEDED)


def test_a_quiet_night_is_not_skew(lake: Lake) -> None:
    """All that arrives in some minutes is on one partition, and a lag of an hour's traffic waits on all of them."""
    write(lake, rate=0.0, history_rate=8.0, lag=360_000, members=(4,) * 60)
    only = partition("billing", 8, as_of=NOW, produce_rate_per_second=8.0)
    append(lake, PARTITION_STATUS, only)
    # 208/s at 70 %: three members, three partitions each. With everything on one of them no number would do.
    assert asked(lake).desired.needed == 3


def test_more_members_than_can_have_work(lake: Lake) -> None:
    write(lake, rate=5_000.0, members=(30,) * 60)
    assert asked(lake, max_replicas=24).desired.replicas == 8


@pytest.mark.parametrize(
    ("assignor", "partitions", "replicas"),
    [("range", 8, 8), ("cooperative-sticky", 12, 12), (None, 12, 12)],
)
def test_the_partitions_that_members_can_share_are_the_assignors(
    lake: Lake, assignor: str | None, partitions: int, replicas: int
) -> None:
    """Eight partitions of one topic and four of another, and more to do than any number of members can."""
    write(lake, rate=5_000.0)
    other = [partition("billing", n, as_of=NOW, topic="refunds", produce_rate_per_second=1.0) for n in range(4)]
    append(lake, PARTITION_STATUS, *other)
    refunds = row(
        CAPACITY, cluster="shop", group="billing", topic="refunds", partitions=4, member_rate_per_second=100.0
    )
    append(lake, CAPACITY, refunds)
    append(lake, ASSIGNMENTS, row(ASSIGNMENTS, cluster="shop", group="billing", assignor=assignor))
    found = asked(lake)
    assert (found.partitions, found.desired.replicas) == (partitions, replicas)


def test_old_verdicts_are_not_acted_on(lake: Lake) -> None:
    write(lake, at=NOW - timedelta(seconds=61))
    with pytest.raises(StaleData, match="61 s old, more than 60 s"):
        asked(lake)


def test_an_unknown_group(lake: Lake) -> None:
    with pytest.raises(UnknownGroup, match="no group 'billing' is known in cluster 'shop'"):
        asked(lake)


# why: (topic, rate), member rates → mixed rate
MIXES = (
    ("one topic", [("a", 10.0)], {"a": 50.0}, 50.0),
    ("half and half: the times are added up", [("a", 10.0), ("b", 10.0)], {"a": 100.0, "b": 50.0}, 200 / 3),
    ("by their shares", [("a", 30.0), ("b", 10.0)], {"a": 100.0, "b": 50.0}, 80.0),
    ("not known of one", [("a", 10.0), ("b", 10.0)], {"a": 100.0}, None),
    ("not known of one on which nothing arrives", [("a", 10.0), ("b", 0.0)], {"a": 100.0}, 100.0),
    ("nothing arrives: the slowest", [("a", 0.0), ("b", 0.0)], {"a": 100.0, "b": 50.0}, 50.0),
    ("nothing is known", [("a", 10.0)], {"a": None}, None),
    ("no topic", [], {}, None),
)


@pytest.mark.parametrize(("topics", "rates", "mixed"), [m[1:] for m in MIXES], ids=[m[0] for m in MIXES])
def test_several_topics(topics: list[tuple[str, float]], rates: dict[str, float | None], mixed: float | None) -> None:
    found = mixed_rate([TopicRate(t, 8, rate) for t, rate in topics], rates)
    assert found == (None if mixed is None else pytest.approx(mixed))


# why: (topic, partitions, rate), hottest shares, by topic → units, share of the greatest
SHARED = (
    ("even", [("a", 4, 10.0)], {}, False, 4, 0.25),
    ("not known is even", [("a", 4, 10.0)], {"a": None}, False, 4, 0.25),
    ("a hot one", [("a", 4, 10.0)], {"a": 0.4}, False, 4, 0.4),
    ("of the busier topic", [("a", 4, 30.0), ("b", 2, 10.0)], {"a": 0.4, "b": 0.5}, False, 6, 0.3),
    ("dealt out topic by topic", [("a", 4, 30.0), ("b", 2, 10.0)], {"a": 0.4, "b": 0.5}, True, 4, 0.425),
    ("nothing arrives", [("a", 4, 0.0)], {"a": 0.4}, False, 4, None),
    ("no topic", [], {}, True, 0, None),
)


@pytest.mark.parametrize(
    ("topics", "shares", "is_by_topic", "units", "share"), [s[1:] for s in SHARED], ids=[s[0] for s in SHARED]
)
def test_what_members_share(
    topics: list[tuple[str, int, float]],
    shares: dict[str, float | None],
    is_by_topic: bool,
    units: int,
    share: float | None,
) -> None:
    found = divided_work([TopicRate(t, n, rate) for t, n, rate in topics], shares, is_by_topic=is_by_topic)
    assert found == DividedWork(units, None if share is None else pytest.approx(share))


@contextmanager
def serving(data: Path, **settings: Any) -> Iterator[Callable[..., tuple[int, dict[str, Any]]]]:
    port = free_port()
    config = Config.model_validate({"data": str(data), "scaling": {"port": port, **settings}})
    stop = threading.Event()
    thread = threading.Thread(target=serve_scaling_forever, args=(config, stop, data))
    thread.start()

    def get(path: str, **headers: str) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            assert answer.getheader("Content-Type") == "application/json"
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    try:
        while "scaling" not in health.read(data):
            thread.join(0.01)
        yield get
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def get(lake: Lake, tmp_path: Path) -> Iterator[Callable[..., tuple[int, dict[str, Any]]]]:
    write(lake, at=datetime.now(UTC))
    write(lake, HOSTILE, at=datetime.now(UTC))
    with serving(tmp_path) as get:
        yield get


def test_keda_reads_the_replicas(get: Callable[..., tuple[int, dict[str, Any]]]) -> None:
    status, answer = get("/scaling/shop/billing")
    assert (status, answer["replicas"], answer["why"]) == (200, 8, "more_needed")
    assert answer["running"] == 2
    assert get("/scaling/shop/billing?max=7&min=1")[1]["replicas"] == 4  # of seven, one has two all the same
    assert get("/scaling/shop/billing?utilisation=0.9&slack=0.1")[1]["replicas"] == 8
    assert get("/scaling/shop/billing?up_after_seconds=3500&down_after_seconds=3500")[1]["why"] == "more_needed"


def test_names_are_strangers(get: Callable[..., tuple[int, dict[str, Any]]]) -> None:
    status, answer = get(f"/scaling/shop/{quote(HOSTILE, safe='')}")
    assert (status, answer["group"], answer["replicas"]) == (200, HOSTILE, 8)
    assert get("/scaling/shop/" + quote("' or 1=1 --", safe=""))[0] == 404


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/scaling/shop/nobody", 404, "no group 'nobody' is known in cluster 'shop'"),
        ("/scaling/shop", 404, "the path must be /scaling/CLUSTER/GROUP"),
        ("/", 404, "the path must be /scaling/CLUSTER/GROUP"),
        ("/scaling/shop/../../etc/passwd", 404, "the path must be /scaling/CLUSTER/GROUP"),
        ("/scaling/shop/billing?mim=2", 400, "unknown parameter 'mim'"),
        ("/scaling/shop/billing?min=two", 400, "min must be a whole number, not 'two'"),
        ("/scaling/shop/billing?min=2&min=3", 400, "min is given twice"),
        ("/scaling/shop/billing?min=9&max=3", 400, "max must be a whole number from 9 to 100,000, not 3"),
        ("/scaling/shop/billing?utilisation=nan", 400, "utilisation must be a number from 0.01 to 1, not nan"),
        ("/scaling/shop/billing?up_after_seconds=1e9", 400, "up_after_seconds must be from 0 to 1 day"),
    ],
)
def test_what_cannot_be_answered(
    get: Callable[..., tuple[int, dict[str, Any]]], path: str, status: int, says: str
) -> None:
    answered, document = get(path)
    assert answered == status
    assert says in document["error"]
    assert "replicas" not in document


def test_stale_data_is_an_error_to_the_autoscaler(lake: Lake, tmp_path: Path) -> None:
    write(lake, at=datetime.now(UTC) - timedelta(hours=1))
    with serving(tmp_path) as get:
        status, document = get("/scaling/shop/billing")
    assert status == 503
    assert "s old, more than 300 s" in document["error"]


def test_no_number_where_it_is_unknown(lake: Lake, tmp_path: Path) -> None:
    write(lake, at=datetime.now(UTC), known=False)
    with serving(tmp_path) as get:
        status, document = get("/scaling/shop/billing?min=2")
    assert (status, set(document)) == (503, {"error"})
    assert "the throughput of one replica is unknown" in document["error"]


def test_a_token(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(lake, at=datetime.now(UTC))
    monkeypatch.setenv("SCALING_TOKEN", "s3cret")
    with serving(tmp_path, token="${env:SCALING_TOKEN}") as get:
        assert get("/scaling/shop/billing")[0] == 401
        assert get("/scaling/shop/billing", Authorization="Bearer wrong")[0] == 401
        assert get("/scaling/shop/billing", Authorization="Bearer s3cret")[0] == 200
        assert get("/healthz") == (200, {"ok": True})
        health.Heart(tmp_path, "probe").beat("")
    assert "s3cret" not in str(health.read(tmp_path))


def test_a_caller_that_goes_away_is_no_error(
    lake: Lake, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path) as get:
        port = int(health.read(tmp_path)["scaling"].line.split(":")[2].split("/")[0])
        with socket.create_connection(("127.0.0.1", port)) as caller:
            caller.send(b"GET /healthz HT")
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not an end
        assert get("/healthz")[0] == 200
    assert "Traceback" not in caplog.text + "".join(capfd.readouterr())


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        config = Config.model_validate({"data": str(tmp_path), "scaling": {"port": port}})
        with pytest.raises(ConfigError, match=rf"cannot listen on 127\.0\.0\.1:{port} \(scaling\): Address already in"):
            serve_scaling_forever(config, threading.Event(), tmp_path)


def test_it_is_part_of_the_product_only_if_asked_for(tmp_path: Path) -> None:
    def names(**scaling: Any) -> list[str]:
        config = Config.model_validate({"data": str(tmp_path), "scaling": scaling})
        return [part.name for part in product_processes(config, tmp_path / "x.yaml", dashboard=False)]

    assert "scaling" not in names()
    assert names(port=8602)[-1] == "scaling"
