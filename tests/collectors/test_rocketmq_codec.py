"""Frames and bodies of RocketMQ's remoting protocol: as real servers send them, and mutilated."""

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise_collectors.rocketmq.remoting import requests, response_bodies
from lagwise_collectors.rocketmq.remoting.connection import Signer
from lagwise_collectors.rocketmq.remoting.errors import MalformedResponse
from lagwise_collectors.rocketmq.remoting.frames import LONGEST_FRAME, Frame, Request, decode, encode, length_of
from lagwise_collectors.rocketmq.remoting.requests import ConsumeStats
from tests.collectors.mutilated import mutilated

#: Bodies as a broker 5.5.0 sent them, shortened: a name and the body in each line.
_GOLDEN = (Path(__file__).with_name("golden") / "rocketmq_bodies.txt").read_bytes().splitlines()
BODIES = {name.decode(): body for name, body in (line.split(b" ", 1) for line in _GOLDEN)}
BROKERS, OFFSETS, STATS, GROUPS = (BODIES[name] for name in ("BROKERS", "OFFSETS", "STATS", "GROUPS"))
TOPICS, ONLINE, TOLD, RUNTIME = (BODIES[name] for name in ("TOPICS", "ONLINE", "TOLD", "RUNTIME"))

PARSERS: list[tuple[Callable[[bytes], Any], bytes]] = [
    (response_bodies.read, BROKERS),
    (requests.offsets_of, OFFSETS),
    (requests.ranges_of, STATS),
    (requests.groups_of, GROUPS),
    (requests.topics_of, TOPICS),
    (requests.online_group_of, ONLINE),
    (requests.member_report_of, TOLD),
    (requests.runtime_of, RUNTIME),
]


def json_frame(header: dict[str, Any], body: bytes = b"") -> bytes:
    """A frame with a JSON header, without its length."""
    encoded = json.dumps(header).encode()
    return struct.pack(">I", len(encoded)) + encoded + body


def binary_frame(
    code: int = 0,
    opaque: int = 7,
    flag: int = 1,
    remark: str = "",
    fields: dict[str, str] | None = None,
    body: bytes = b"",
) -> bytes:
    """A frame with a binary header, as a broker with ROCKETMQ_SERIALIZE_TYPE=ROCKETMQ sends it."""
    named = b"".join(
        struct.pack(">h", len(k.encode())) + k.encode() + struct.pack(">i", len(v.encode())) + v.encode()
        for k, v in (fields or {}).items()
    )
    said = remark.encode()
    header = (
        struct.pack(">hbhiii", code, 0, 513, opaque, flag, len(said)) + said + struct.pack(">i", len(named)) + named
    )
    return struct.pack(">I", 1 << 24 | len(header)) + header + body


def test_a_request_is_a_frame_of_its_own_length() -> None:
    frame = encode(Request(203, "members", {}), 9, {"consumerGroup": "g"})
    assert length_of(frame[:4]) == len(frame) - 4
    sent = json.loads(frame[8 : 8 + struct.unpack(">I", frame[4:8])[0]])
    assert sent == {
        "code": 203,
        "language": "OTHER",
        "version": 500,
        "opaque": 9,
        "flag": 0,
        "serializeTypeCurrentRPC": "JSON",
        "extFields": {"consumerGroup": "g"},
    }


@pytest.mark.parametrize(
    "frame",
    [
        json_frame({"code": 17, "opaque": 7, "flag": 1, "remark": "nö", "extFields": {"offset": "599"}}, b"{}"),
        binary_frame(17, 7, 1, "nö", {"offset": "599"}, b"{}"),
    ],
)
def test_both_header_formats_decode_alike(frame: bytes) -> None:
    assert decode(frame) == Frame(17, 7, True, "nö", {"offset": "599"}, b"{}")


def test_what_a_server_asks_of_us_is_no_answer() -> None:
    assert not decode(json_frame({"code": 40, "opaque": 1, "flag": 0})).is_response


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"\0\0\0", "ends before its header"),
        (b"\0\0\0\xff{}", "longer than its frame"),
        (struct.pack(">I", 7 << 24), "unknown form 7"),
        (json_frame({"code": "0"}), "code is not a number"),
        (struct.pack(">I", 2) + b"[]", "not an object"),
        (struct.pack(">I", 2) + b"{x", "not JSON"),
        (json_frame({"extFields": [1]}), "not texts"),
        (json_frame({"remark": 5}), "not texts"),
        (struct.pack(">I", 1 << 24 | 5) + b"\0" * 5, "ends too soon"),
        (binary_frame(fields={"a": "b"})[:-3] + b"\0", "longer than its frame"),
        (binary_frame(remark="ab").replace(b"ab", b"\xff\xfe"), "not UTF-8"),
    ],
)
def test_what_is_no_frame_is_refused_with_the_reason(frame: bytes, why: str) -> None:
    with pytest.raises(MalformedResponse, match=why):
        decode(frame)


@pytest.mark.parametrize("length", [0, 3, LONGEST_FRAME + 1, 0x48545450])  # the last is "HTTP"
def test_no_frame_is_so_long_or_so_short(length: int) -> None:
    with pytest.raises(MalformedResponse, match="is announced"):
        length_of(struct.pack(">I", length))


def test_a_signature_covers_the_values_in_the_order_of_their_names() -> None:
    """The signature is what Java's `AclUtils.calSignature` made of the same fields."""
    signed = Signer("monitor", b"secret").signed({"consumerGroup": "G"})
    assert signed == {"consumerGroup": "G", "AccessKey": "monitor", "Signature": "BonDK/l8ZIw7ZeQiTIkV2rQl+pg="}


def test_bare_keys_and_object_keys_are_read() -> None:
    assert response_bodies.read(BROKERS)["brokerAddrTable"]["broker-a"]["brokerAddrs"]["1"] == "127.0.0.1:31911"
    key = next(iter(response_bodies.read(STATS)["offsetTable"]))
    assert key.fields() == {"brokerName": "broker-a", "queueId": 1, "topic": "orders"}


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"", None),
        (b" \n", None),
        (b"{0:{1:2}}", {"0": {"1": 2}}),
        (b'{"a{0:1}":{0:"{2:3},4:"}}', {"a{0:1}": {"0": "{2:3},4:"}}),
        (rb'{"q\"{0:1}":{0:1}}', {'q"{0:1}': {"0": 1}}),
        (b"{ 5 : [ {6 : 7}, 8 ] }", {"5": [{"6": 7}, 8]}),
        (b'[{{"b":1,"a":2}:3}]', [{response_bodies.ObjectKey((("a", 2), ("b", 1))): 3}]),
    ],
)
def test_text_in_strings_is_never_taken_for_a_key(body: bytes, value: Any) -> None:
    assert response_bodies.read(body) == value


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"a":',
        b"{0:1",
        b"{0 1}",
        b"{0:1}}",
        b"{{}:1",
        b'{{"a":[1]}:2',
        b"\xff",
        b"nix",
        b'{{"a":1}:}',
        b"[1,",
        b"[" * 9999,
        b"{0:" * 9999,
        b'{{"a":' * 9999,
        b"{1:" + b"9" * 5000 + b"}",
        b'{{"a":[]}:1}{',
    ],
)
def test_what_is_no_body_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedResponse):
        response_bodies.read(body)


def test_offsets_by_group_and_hints_of_broadcasting_apart_from_them() -> None:
    kept = requests.offsets_of(OFFSETS)
    assert kept.committed == {"billing": {"orders": {"0": 128, "1": 96}, "%RETRY%billing": {"0": 0}}}
    assert kept.fetched == {"screens": {"news": {"0": 7}}}
    assert requests.offsets_of(b'{"offsetTable":{"a@b@c":{0:1},"a@@broadcast":{0:1},"a":{0:1}}}') == ({}, {})


def test_decoding_the_other_bodies() -> None:
    ranges = requests.ranges_of(STATS)
    assert (ranges[1].start, ranges[1].end) == (4, 31)
    assert ranges[0].newest_at is None
    assert requests.groups_of(GROUPS) == {"billing"}
    assert requests.topics_of(TOPICS) == {"orders": requests.TopicConfig(8, "compact")}
    online = requests.online_group_of(ONLINE)
    assert (online.members, online.topics, online.is_broadcasting) == (
        {"10.0.0.2@billing": "127.0.0.1"},
        {"orders"},
        True,
    )
    assert online.filters == {"orders": "*"}
    reported = requests.member_report_of(TOLD)
    assert (reported.stats, reported.threads) == ({}, None)
    assert reported.progress == {
        requests.Queue("orders", "broker-a", 0): None,
        requests.Queue("orders", "broker-a", 1): 9,
    }
    assert (reported.is_orderly, reported.is_popping, reported.unacknowledged) == (True, True, 112)


@pytest.mark.parametrize(
    ("parse", "body"),
    [
        (requests.offsets_of, b'{"offsetTable":[1]}'),
        (requests.offsets_of, b'{"offsetTable":{"a@b":5}}'),
        (requests.ranges_of, b'{"offsetTable":{"orders":{}}}'),
        (requests.ranges_of, STATS.replace(b'"maxOffset":31', b'"maxOffset":"x"')),
        (requests.ranges_of, STATS.replace(b'"queueId":1', b'"queueId":1.5')),
        (requests.ranges_of, STATS.replace(b'"minOffset":4', b'"minOffset":99999999999999999999')),
        (requests.topics_of, b'{"topicConfigTable":{"orders":{}}}'),
        (requests.online_group_of, b'{"connectionSet":{}}'),
        (requests.online_group_of, b'{"connectionSet":[{"clientId":5}]}'),
        (requests.member_report_of, b'{"mqTable":{"x":{}}}'),
        (requests.groups_of, b"[]"),
        (requests.runtime_of, b'{"table":[]}'),
    ],
)
def test_a_body_of_another_shape_is_refused(parse: Callable[[bytes], Any], body: bytes) -> None:
    with pytest.raises(MalformedResponse):
        parse(body)


def whole(pairs: int = 40) -> list[bytes]:
    """Frames that are right, of both forms, with every kind of body."""
    found = [
        json_frame({"code": 0, "opaque": n, "flag": 1, "extFields": {"a": "b"}}, b) for n, (_, b) in enumerate(PARSERS)
    ]
    return found + [
        binary_frame(opaque=n, remark="r", fields={"k": "v" * pairs}, body=b) for n, (_, b) in enumerate(PARSERS)
    ]


def read_through(frame: bytes) -> bool:
    """Whether all of a frame could be read, each body by every parser; anything but Malformed is a defect."""
    try:
        body = decode(frame).body
    except MalformedResponse:
        return False
    read = False
    for parse, _ in PARSERS:
        try:
            parse(body)
            read = True
        except MalformedResponse:
            pass
    return read


@given(st.randoms(use_true_random=False), st.sampled_from(whole()))
def test_a_mutilated_frame_is_read_or_refused(chance: random.Random, frame: bytes) -> None:
    read_through(mutilated(frame, chance))


@given(st.binary(max_size=200))
def test_anything_is_read_or_refused(frame: bytes) -> None:
    read_through(frame)
    read_through(json_frame({"code": 0, "opaque": 0, "flag": 1}, frame))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_standard_json_is_read_as_json_reads_it(value: Any) -> None:
    assert response_bodies.read(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) == value


@given(st.dictionaries(st.text(), st.dictionaries(st.integers(0, 10**6), st.integers(-(2**62), 2**62))))
def test_maps_with_bare_keys_are_read_as_with_quoted_ones(value: dict[str, dict[int, int]]) -> None:
    maps = (json.dumps(k) + ":{" + ",".join(f"{n}:{v}" for n, v in inner.items()) + "}" for k, inner in value.items())
    text = "{" + ",".join(maps) + "}"
    assert response_bodies.read(text.encode()) == {
        k: {str(n): v for n, v in inner.items()} for k, inner in value.items()
    }


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_million_mutilated_frames_are_read_or_refused() -> None:
    chance, frames = random.Random(7), whole()
    read = sum(read_through(mutilated(frames[n % len(frames)], chance)) for n in range(1_000_000))
    assert 10_000 < read < 990_000  # the damage was neither always fatal nor never


WORK = {
    "properties": {"PROP_THREADPOOL_CORE_SIZE": "20", "consumeMessageBatchMaxSize": "1"},
    "statusTable": {
        "orders": {"consumeRT": 101.5, "consumeOKTPS": 19.7, "consumeFailedTPS": 0.0, "pullRT": 3.0, "pullTPS": 400},
        "idle": {"consumeRT": 0.0, "consumeOKTPS": 0.0},
    },
}


def test_a_members_work_is_reported_by_topic() -> None:
    reported = requests.member_report_of(json.dumps(WORK).encode())
    assert reported.stats == {"orders": ConsumeStats(0.1015, 1182)}
    assert reported.threads == 20


def test_a_member_reports_which_messages_it_wants() -> None:
    wanted = [
        {"topic": "orders", "subString": "sent||paid  ||sent", "expressionType": "TAG"},
        {"topic": "bills", "subString": "a > " + "9" * 500, "expressionType": "SQL92"},
        {"topic": "all", "subString": ""},
    ]
    reported = requests.member_report_of(json.dumps({"subscriptionSet": wanted}).encode())
    bills = reported.filters.pop("bills")
    assert reported.filters == {"orders": "paid || sent", "all": "*"}
    assert len(bills) <= 200
    assert bills.startswith("a > 999")
    other = {"topic": "bills", "subString": "a > " + "9" * 501, "expressionType": "SQL92"}
    assert requests.member_report_of(json.dumps({"subscriptionSet": [other]}).encode()).filters["bills"] != bills
    with pytest.raises(MalformedResponse):
        requests.member_report_of(b'{"subscriptionSet":[{"topic":5}]}')


def test_where_a_call_gets_many_messages_its_time_is_not_theirs() -> None:
    several = {**WORK, "properties": {**WORK["properties"], "consumeMessageBatchMaxSize": "32"}}
    assert requests.member_report_of(json.dumps(several).encode()).stats == {}


@pytest.mark.parametrize("value", ["fast", True, -1, 1e300, [1]])
def test_a_time_that_is_none_is_refused(value: object) -> None:
    broken = {**WORK, "statusTable": {"orders": {"consumeRT": value, "consumeOKTPS": 1.0}}}
    with pytest.raises(MalformedResponse):
        requests.member_report_of(json.dumps(broken).encode())


@pytest.mark.parametrize("threads", [None, "", "many", "-1", "0", "9" * 40, 20])
def test_threads_that_make_no_sense_are_not_known(threads: object) -> None:
    odd = {**WORK, "properties": {"PROP_THREADPOOL_CORE_SIZE": threads}}
    assert requests.member_report_of(json.dumps(odd).encode()).threads is None


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        (r"a\ud800b", "a\ufffdb"),
        (r"\uDC00", "\ufffd"),
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\\ud800", r"\ud800"),
        (r"\ud800\n\ud83d\ude00", "\ufffd\n\U0001f600"),
    ],
)
def test_half_a_character_is_none(text: str, read_as: str) -> None:
    """No table, log or file takes one, and any client can put it into its name."""
    assert response_bodies.read(b'{"a":"' + text.encode() + b'"}') == {"a": read_as}
    assert response_bodies.read(b'{0:"' + text.encode() + b'"}') == {"0": read_as}
    header = b'{"code":1,"flag":1,"remark":"' + text.encode() + b'"}'
    assert decode(struct.pack(">I", len(header)) + header).remark == read_as
