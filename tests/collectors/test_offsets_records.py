"""Bytes of ``__consumer_offsets``: as Kafka 4.3's own classes write them in every version, and malformed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise_collectors.offsets_topic import records
from lagwise_collectors.offsets_topic.ledger import Ledger
from lagwise_collectors.offsets_topic.records import (
    ClassicGroup,
    ClassicMember,
    CommitKey,
    CommitRecord,
    CurrentAssignment,
    GroupKey,
    GroupMember,
    RecordType,
    UnknownVersionError,
)
from lagwise_collectors.offsets_topic.state_file import serialise
from lagwise_collectors.offsets_topic.wire_types import MalformedRecordError
from tests.collectors.offsets_records import Rec, commit_key, commit_value

#: Written by golden/WriteRecords.java.
GOLDEN = {
    name: bytes.fromhex(text)
    for name, text in json.loads((Path(__file__).parent / "golden" / "offsets_topic.json").read_text()).items()
}
TOPIC_ID = "XOEvkQFwQ7avCofSZzfbGQ"
AT_MS, OFFSET = 1795280175323, 4_000_000_000


@pytest.mark.parametrize(
    ("number", "about"),
    [
        (0, CommitKey("grüppe", "orders", 7)),
        (1, CommitKey("grüppe", "orders", 7)),
        (2, GroupKey(RecordType.CLASSIC_GROUP, "grüppe")),
        (3, GroupKey(RecordType.GROUP, "g")),
        (4, GroupKey(RecordType.PARTITIONS, "g")),
        (5, GroupKey(RecordType.MEMBER, "g", "m")),
        (6, GroupKey(RecordType.TARGET, "g")),
        (7, GroupKey(RecordType.TARGET_MEMBER, "g", "m")),
        (8, GroupKey(RecordType.CURRENT, "g", "m")),
        (11, None),
        (16, None),
        (17, None),
    ],
)
def test_keys_of_every_type(number: int, about: Any) -> None:
    assert records.key_of(GOLDEN[f"key.{number}"]) == about


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("metadata", [0, 6, 200])
def test_commits_of_every_version(version: int, metadata: int) -> None:
    value = GOLDEN[f"commit.v{version}.{metadata}"]
    assert records.commit_of(value) == (OFFSET, AT_MS)
    topic_id = TOPIC_ID if version == 4 and metadata else None
    assert records.full_commit_of(value) == CommitRecord(OFFSET, AT_MS, topic_id)


@pytest.mark.parametrize("version", range(5))
def test_classic_groups_of_every_version(version: int) -> None:
    a = ClassicMember(
        member_id="a-1",
        instance_id="node-1" if version >= 3 else None,
        client_id="a",
        host="/10.0.0.1",
        poll_ms=300_000 if version >= 1 else None,
        session_ms=45_000,
        topics=("bills", "orders"),
        owned=(("bills", 2), ("orders", 0), ("orders", 1)),
    )
    standby = replace(a, member_id="b-1", instance_id=None, owned=())
    assert records.classic_group_of(GOLDEN[f"group.v{version}"]) == ClassicGroup("consumer", 12, (a, standby))
    assert records.classic_group_of(GOLDEN[f"group.v{version}.empty"]) == ClassicGroup("consumer", 13, ())
    [worker] = records.classic_group_of(GOLDEN[f"group.v{version}.connect"]).members
    assert (worker.client_id, worker.topics, worker.owned) == ("a", (), ())


def test_records_of_kip_848_groups() -> None:
    assert records.epoch_of(GOLDEN["epoch"]) == 3
    assert records.epoch_of(GOLDEN["target"]) == 4
    assert records.topics_of(GOLDEN["partitions"]) == {TOPIC_ID: "orders"}
    assert records.member_of(GOLDEN["member"]) == GroupMember(
        "node-1", "a", "/10.0.0.1", ("bills", "orders", "~o.*"), 300_000
    )
    assert records.member_of(GOLDEN["member.converted"]) == GroupMember(None, "a", "/10.0.0.1", ("orders",), None)
    assert records.target_of(GOLDEN["target.member"]) == ((TOPIC_ID, 0), (TOPIC_ID, 2))
    assert records.current_of(GOLDEN["current"]) == CurrentAssignment(3, False, ((TOPIC_ID, 0), (TOPIC_ID, 1)))


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (records.commit_of, "commit.v4.0"),
        (records.full_commit_of, "commit.v4.0"),
        (records.classic_group_of, "group.v4"),
        (records.epoch_of, "epoch"),
        (records.member_of, "member"),
        (records.target_of, "target.member"),
        (records.current_of, "current"),
    ],
)
def test_an_unknown_version(read: Any, name: str) -> None:
    for version in (5, 300, -1):
        with pytest.raises(UnknownVersionError):
            read(version.to_bytes(2, "big", signed=True) + GOLDEN[name][2:])


def test_an_unknown_type() -> None:
    with pytest.raises(UnknownVersionError):
        records.key_of(b"\0\x40" + GOLDEN["key.3"][2:])


@pytest.mark.parametrize("name", [name for name in GOLDEN if not name.startswith("key.")])
def test_a_record_cut_short_is_garbage(name: str) -> None:
    read = next(read for start, read in READERS.items() if name.startswith(start))
    for size in range(len(GOLDEN[name]) - 1):
        try:
            read(GOLDEN[name][:size])
        except (MalformedRecordError, UnknownVersionError):
            continue
        # Only what stands behind everything we read may be missing.
        assert size >= len(GOLDEN[name]) - 40, f"{name} cut to {size} bytes was read"


READERS: dict[str, Any] = {
    "commit": records.commit_of,
    "group": records.classic_group_of,
    "epoch": records.epoch_of,
    "partitions": records.topics_of,
    "member": records.member_of,
    "target.member": records.target_of,
    "target": records.epoch_of,
    "current": records.current_of,
}

_KEYS = [value for name, value in GOLDEN.items() if name.startswith("key.")]
_VALUES = [value for name, value in GOLDEN.items() if not name.startswith("key.")]


@st.composite
def mangled(draw: st.DrawFn, whole: list[bytes]) -> bytes:
    """Real bytes, some of them changed, cut, or doubled."""
    data = bytearray(draw(st.sampled_from(whole)))
    for _ in range(draw(st.integers(0, 4))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    end = draw(st.integers(0, len(data)) | st.just(len(data)))
    return bytes(data[:end]) + draw(st.binary(max_size=6) | st.just(b""))


@given(
    st.lists(st.tuples(mangled(_KEYS) | st.none(), mangled(_VALUES) | st.none(), st.integers(-1, 2**62)), max_size=12)
)
@settings(max_examples=400, deadline=None)
def test_no_bytes_can_stop_the_reading(given: list[tuple[bytes | None, bytes | None, int]]) -> None:
    """Whatever is written there: no exception, every record is passed, rows and state can be made of the outcome."""
    from lagwise_collectors.offsets_topic.commit_history import cadence_rows
    from lagwise_collectors.sample_diff.events import as_rows

    ledger = Ledger(lambda name: True)
    ledger.retention_ms = 1000
    ledger.feed(Rec(key, value, at, n) for n, (key, value, at) in enumerate(given))
    ledger.feed([Rec(commit_key("g", "t", 0), commit_value(5, AT_MS), number=len(given))])
    taken = ledger.take()
    assert ledger.positions[0] == len(given) + 1
    assert ledger.pairs[commit_key("g", "t", 0)].offset == 5
    as_rows(taken.events, "shop").validate(full=True)
    cadence_rows(taken.committed, counted=True).validate(full=True)
    serialise(ledger, {})


def test_what_cannot_be_read_is_counted_by_kind_and_says_where() -> None:
    ledger = Ledger(lambda name: True)
    good = commit_key("g", "t", 0)
    ledger.feed(
        [
            Rec(good, commit_value(5, AT_MS), number=0),
            Rec(good, b"\0\4junk", number=1),
            Rec(None, b"", number=2),
            Rec(b"\0\x40xx", b"", number=3),
            Rec(good, b"\0\x09" + commit_value(6, AT_MS)[2:], number=4),
            Rec(GOLDEN["key.11"], b"whatever a share group is", number=5),
        ]
    )
    errors = ledger.take().errors
    assert errors.counts == {"offsets_topic_garbage": 2, "offsets_topic_unknown_version": 2}
    assert errors.example("offsets_topic_garbage").startswith("partition 0, offset 1: ")
    assert errors.example("offsets_topic_unknown_version") == "partition 0, offset 3: record type 64"
    assert ledger.pairs[good].offset == 5
