"""Every decoder of bytes from outside reads or refuses whatever comes: no other error, no hang, bounded memory.

RocketMQ's frames and bodies have their own module.
"""

import json
import random
import resource
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from lagwise.config.external_offsets import FlinkJobs
from lagwise.domain.capacity.service_times import ServiceTimes, parse_service_times
from lagwise.domain.vocabulary import Engine
from lagwise_collectors.external_offsets import json_csv_files
from lagwise_collectors.external_offsets.flink_checkpoints import FlinkReader
from lagwise_collectors.external_offsets.model import OffsetSourceTrouble, groups_of_records
from lagwise_collectors.external_offsets.spark_checkpoint import kafka_offsets
from lagwise_collectors.kafka_protocol.wire import MalformedAnswer
from lagwise_collectors.offsets_topic.ledger import Ledger
from lagwise_collectors.sample_diff.events import as_rows
from tests.collectors.flink_server import RECORDED, FlinkServer
from tests.collectors.mutilated import mutilated
from tests.collectors.offsets_records import Rec
from tests.collectors.test_kafka_protocol import VERSIONS, encoded, values_of
from tests.collectors.test_offsets_records import _KEYS, _VALUES

pytestmark = pytest.mark.thorough

#: Whether something could be read, of bytes that a source of chance has damaged. Any error is a defect.
Attempt = Callable[[random.Random], bool]

_CI, _LONG = 3_000, 1_000_000
_MOST_GROWTH_MIB = 300
#: A ledger that has been fed so many records is replaced: it remembers what it was told.
_RECORDS_OF_LEDGER = 2_000


def kafka_answers() -> Attempt:
    """Answers of all types, in all versions."""
    whole: list[tuple[Any, int, bytes]] = []

    @settings(max_examples=300, phases=[Phase.generate], derandomize=True, database=None)
    @given(data=st.data())
    def collect(data: st.DataObject) -> None:
        api, version = data.draw(st.sampled_from(VERSIONS))
        whole.append((api, version, encoded(api, version, data.draw(values_of(api.response, version)))))

    collect()

    def attempt(chance: random.Random) -> bool:
        api, version, body = chance.choice(whole)
        try:
            api.decode(mutilated(body, chance), version)
        except MalformedAnswer:
            return False
        return True

    return attempt


def offsets_topic() -> Attempt:
    """Records of ``__consumer_offsets``: what cannot be read is counted, and the next record is read."""
    ledgers = [Ledger(lambda _name: True)]
    fed = [0]

    def attempt(chance: random.Random) -> bool:
        if fed[0] % _RECORDS_OF_LEDGER == 0:
            ledgers[0] = Ledger(lambda _name: True)
            ledgers[0].retention_ms = 1000
        key, value = chance.choice(_KEYS), chance.choice(_VALUES)
        if chance.random() < 0.3:
            key = mutilated(key, chance)
        ledgers[0].feed([Rec(key, mutilated(value, chance), chance.randrange(-1, 2**62), fed[0])])
        fed[0] += 1
        taken = ledgers[0].take()
        as_rows(taken.events, "shop").validate(full=True)
        return not taken.errors

    return attempt


def texts(whole: Sequence[str], read: Callable[[str], object]) -> Attempt:
    def attempt(chance: random.Random) -> bool:
        try:
            read(mutilated(chance.choice(whole).encode(), chance).decode())
        except (UnicodeDecodeError, OffsetSourceTrouble):  # the file's reader refuses what is not UTF-8
            return False
        return True

    return attempt


def spark_checkpoints() -> Attempt:
    head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1795280175323, "conf": {}})
    sources = [json.dumps({"orders": {"0": 12, "1": 7}, "grüße": {"0": 4_000_000_000}}), "-", json.dumps({"x": {}})]
    return texts(
        ["\n".join(["v1", head, *sources]), "\n".join(["v2", head, *(f"{n}:{s}" for n, s in enumerate(sources))])],
        lambda text: kafka_offsets(text, "checkpoint/offsets/7"),
    )


def offset_files() -> Attempt:
    records = [
        {"group": "mill", "topic": "orders", "partition": n, "offset": 10**n, "updated_at": "2026-11-21T03:00:00Z"}
        for n in range(4)
    ]
    lines = [",".join(records[0]), *(",".join(str(value) for value in one.values()) for one in records)]
    as_json = [
        json.dumps(records),
        "\n".join(json.dumps(one) for one in records),
        json.dumps({"orders": {"0": 12, "1": None}, "ü": {"3": 7}}),
    ]

    def read(form: str) -> Callable[[str], object]:
        return lambda text: groups_of_records(
            ({"group": "mill"} | one for one in json_csv_files._records(text, f"offsets.{form}", None)),
            Engine.FILES,
            where="files",
        )

    of_json, of_csv = texts(as_json, read("json")), texts(["\n".join(lines)], read("csv"))
    return lambda chance: (of_json if chance.random() < 0.5 else of_csv)(chance)


def probe_metadata() -> Attempt:
    whole = ["lw1 t1=0.016 t2=0.004 tq=0.001 n=50 at=1795280175 c=8 s=10.5 tl=0.00004 cores=4 cpu=0.0045"]

    def attempt(chance: random.Random) -> bool:
        found = parse_service_times(mutilated(whole[0].encode(), chance).decode(errors="replace"))
        assert found is None or isinstance(found, ServiceTimes)
        return found is not None

    return attempt


DECODERS: tuple[Callable[[], Attempt], ...] = (
    kafka_answers,
    offsets_topic,
    spark_checkpoints,
    offset_files,
    probe_metadata,
)


def check(attempt: Attempt, count: int) -> None:
    chance = random.Random(7)
    for _ in range(1_000):  # what is made once, such as caches
        attempt(chance)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read = sum(attempt(chance) for _ in range(count))
    assert count / 100 < read < count * 99 / 100, "the damage was neither always fatal nor never"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _MOST_GROWTH_MIB * 1024


@pytest.mark.parametrize("decoder", DECODERS)
def test_mutilated_bytes_are_read_or_refused(decoder: Callable[[], Attempt]) -> None:
    check(decoder(), _CI)


@pytest.mark.parametrize(("text", "says"), [("", "was truncated"), ("\n{}\n{}", "not a known version")])
def test_a_checkpoint_without_a_version(text: str, says: str) -> None:
    with pytest.raises(OffsetSourceTrouble, match=says):
        kafka_offsets(text, "checkpoint/offsets/7")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("decoder", DECODERS)
def test_a_million_mutilated_inputs_are_read_or_refused(decoder: Callable[[], Attempt]) -> None:
    check(decoder(), _LONG)


@pytest.mark.parametrize("count", [40, pytest.param(20_000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_mutilated_answers_of_flink_are_read_or_refused(count: int) -> None:
    """Over real HTTP: a round asks for some six answers, of which one is mutilated."""
    chance, server = random.Random(7), FlinkServer("healthy")
    whole = dict(server.answers)
    documents = [path for path, found in whole.items() if not path.endswith("/metrics")]
    read = refused = 0
    with server.running() as url:
        settings_ = FlinkJobs.model_validate({"name": "jobs", "url": url})
        reader = FlinkReader(settings_, lambda: datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
        for _ in range(count):
            path = chance.choice(documents)
            server.answers = {**whole, path: mutilated(json.dumps(whole[path]).encode(), chance)}
            try:
                found = reader.read()
            except OffsetSourceTrouble:
                refused += 1
                continue
            read += 1
            assert all(group.error or group.offsets is not None for group in found.groups.values())
    assert read
    assert refused
    assert RECORDED["healthy"] == whole
