"""Our own reading and writing of Kafka's protocol: by Kafka's definitions, and against answers that lie."""

import contextlib
import json
import re
import socket
import struct
import threading
import time
import zipfile
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.config import Cluster
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka_protocol import (
    controller_clock,
    group_messages,
    messages,
    offset_messages,
    sasl,
    schema,
    topic_messages,
)
from lagwise_collectors.kafka_protocol.columns import ColumnsOf, NumberLists
from lagwise_collectors.kafka_protocol.connection import Connection
from lagwise_collectors.kafka_protocol.schema import Api, ArrayOf, Field, Fixed, Kind, Sized, Struct
from lagwise_collectors.kafka_protocol.security import reach_of
from lagwise_collectors.kafka_protocol.wire import MalformedAnswer, Reader, Writer
from lagwise_sandbox.jars import KAFKA, broker_classpath, cache_folder
from tests.collectors import kafka_members

APIS = [
    one
    for module in (messages, group_messages, offset_messages, topic_messages, controller_clock, kafka_members)
    for one in vars(module).values()
    if isinstance(one, Api)
]
VERSIONS = [(api, version) for api in APIS for version in range(api.lowest, api.highest + 1)]
_FIXED = {
    "bool": schema.BOOL,
    "int8": schema.INT8,
    "int16": schema.INT16,
    "int32": schema.INT32,
    "int64": schema.INT64,
    "uint16": schema.UINT16,
    "uuid": schema.UUID,
}


class TestDeclarations:
    """The same fields as Kafka's own definitions, which lie in its jar, in each version that we speak."""

    @staticmethod
    @cache
    def definitions() -> dict[str, dict[str, Any]]:
        broker_classpath()  # fetches it
        [jar] = cache_folder(KAFKA).glob("kafka_2.13/org.apache.kafka.kafka-clients-*.jar")
        with zipfile.ZipFile(jar) as files:
            texts = {
                name.rpartition("/")[2].removesuffix(".json"): files.read(name).decode()
                for name in files.namelist()
                if name.startswith("common/message/") and name.endswith(".json")
            }
        return {name: json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M)) for name, text in texts.items()}

    @pytest.mark.broker
    @pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
    def test_they_are_kafkas(self, api: Api) -> None:
        for suffix, ours in (("Request", api.request), ("Response", api.response)):
            theirs = self.definitions()[f"{api.name}{suffix}"]
            assert theirs["apiKey"] == api.key
            assert _within(api.highest, theirs["validVersions"])
            structs = {one["name"]: one["fields"] for one in theirs.get("commonStructs", [])}
            for version in range(api.lowest, api.highest + 1):
                assert _within(version, theirs["flexibleVersions"]) == (version >= api.flexible_since)
                self._compare(ours, theirs["fields"], structs, version, f"{api.name}{suffix} v{version}")

    def _compare(
        self, ours: Struct, theirs: list[dict[str, Any]], structs: dict[str, Any], version: int, where: str
    ) -> None:
        mine = [one for one in ours.fields if one.since <= version <= one.until]
        expected = [one for one in theirs if _within(version, one["versions"]) and "tag" not in one]
        assert [one.name for one in mine] == [_snake(one["name"]) for one in expected], where
        for one, definition in zip(mine, expected, strict=True):
            self._compare_kind(one.kind, definition, structs, version, f"{where}.{one.name}")

    def _compare_kind(
        self, kind: Kind, definition: dict[str, Any], structs: dict[str, Any], version: int, where: str
    ) -> None:
        wanted, is_nullable = definition["type"], _within(version, definition.get("nullableVersions", "none"))
        if isinstance(kind, ArrayOf):
            assert wanted.startswith("[]"), where
            assert kind.is_nullable or not is_nullable, where
            element = {**definition, "type": wanted[2:], "nullableVersions": "none"}
            self._compare_kind(kind.element, element, structs, version, where)
        elif isinstance(kind, Struct):
            # A byte says whether it is there, so unlike elsewhere there must be one only where there is one.
            assert kind.is_nullable == is_nullable, where
            self._compare(kind, definition.get("fields") or structs[wanted], structs, version, where)
        elif isinstance(kind, Sized):
            assert wanted == ("string" if kind.is_text else "bytes"), where
            assert kind.is_nullable or not is_nullable, where
        else:
            assert kind == _FIXED[wanted], where


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _within(version: int, versions: str) -> bool:
    if versions == "none":
        return False
    low, _, high = versions.rstrip("+").partition("-")
    return int(low) <= version and (versions.endswith("+") or version <= int(high or low))


@cache
def values_of(kind: Kind, version: int) -> st.SearchStrategy[Any]:
    """Values of a type: what a broker may send."""
    match kind:
        case Fixed():
            if kind == schema.BOOL:
                return st.booleans()
            if kind == schema.UUID:
                return st.binary(min_size=16, max_size=16)
            bits = 8 * kind.format.size
            return (
                st.integers(0, 2**16 - 1)
                if kind == schema.UINT16
                else st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            )
        case Sized():
            value: st.SearchStrategy[Any] = st.text(max_size=5) if kind.is_text else st.binary(max_size=5)
            return st.none() | value if kind.is_nullable else value
        case ArrayOf():
            lists = st.lists(values_of(kind.element, version), max_size=2)
            return st.none() | lists if kind.is_nullable else lists
        case Struct():
            fields = {
                one.name: values_of(one.kind, version) if one.since <= version <= one.until else st.none()
                for one in kind.fields
            }
            structs = st.fixed_dictionaries(fields)
            return st.none() | structs if kind.is_nullable else structs
    raise AssertionError(kind)


def encoded(api: Api, version: int, value: Any) -> bytes:
    writer = Writer()
    api.response.write(writer, value, version, is_flexible=version >= api.flexible_since)
    return bytes(writer.data)


def as_rows(kind: Kind, value: Any, version: int) -> Any:
    """A value as rows, also where it was read as columns, for which an empty text is none."""
    if value is None:
        return None
    if isinstance(kind, Struct):
        return {one.name: as_rows(one.kind, value[one.name], version) for one in kind.fields}
    if isinstance(kind, ColumnsOf):
        return rows_of_columns(kind, value) if isinstance(value, dict) else rows_without_empty_texts(kind, value)
    if isinstance(kind, ArrayOf):
        return [as_rows(kind.element, one, version) for one in value]
    return value


def rows_of_columns(kind: ColumnsOf, value: dict[str, Any]) -> list[dict[str, Any]]:
    inner, _ = inner_of(kind)
    columns = {name: cells(column) for name, column in value.pop(inner).items()}
    every = iter(range(sum(counts := value.pop("rows"))))
    return [
        {name: column and column[number] for name, column in value.items()}
        | {
            inner: [
                {field: column and column[row] for field, column in columns.items()} for row in islice(every, count)
            ]
        }
        for number, count in enumerate(counts)
    ]


def cells(column: Any) -> list[Any] | None:
    if isinstance(column, NumberLists):
        numbers = iter(column.values.tolist())
        return [list(islice(numbers, count)) for count in column.counts.tolist()]
    return column.tolist() if isinstance(column, np.ndarray) else column


def rows_without_empty_texts(kind: ColumnsOf, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
    inner, fields = inner_of(kind)
    texts = {one.name for one in fields if isinstance(one.kind, Sized)}
    return [
        {
            **outer,
            inner: [
                {name: (cell or None) if name in texts else cell for name, cell in one.items()} for one in outer[inner]
            ],
        }
        for outer in value
    ]


def inner_of(kind: ColumnsOf) -> tuple[str, tuple[Field, ...]]:
    """Name and fields of the inner structures."""
    assert isinstance(kind.element, Struct)
    [inner] = [one for one in kind.element.fields if isinstance(one.kind, ArrayOf)]
    assert isinstance(inner.kind, ArrayOf)
    assert isinstance(inner.kind.element, Struct)
    return inner.name, inner.kind.element.fields


class TestAnswers:
    @settings(max_examples=60)
    @given(data=st.data())
    def test_what_was_written_is_read(self, data: st.DataObject) -> None:
        api, version = data.draw(st.sampled_from(VERSIONS))
        value = data.draw(values_of(api.response, version))
        found = api.decode(encoded(api, version, value), version)
        assert as_rows(api.response, found, version) == as_rows(api.response, value, version)

    @settings(max_examples=60)
    @given(version=st.integers(2, 9), count=st.integers(0, 1100), data=st.data())
    def test_columns_are_the_rows_whatever_the_lengths_of_texts(
        self, version: int, count: int, data: st.DataObject
    ) -> None:
        """One by one, in blocks, and in more rows than are read at once."""
        text = data.draw(st.sampled_from(["", None, "as long", "é" * 70, "x" * 126, "x" * 127]))
        odd = data.draw(st.dictionaries(st.integers(0, 1100), st.none() | st.text(max_size=200), max_size=2))
        offsets = [data.draw(st.sampled_from([0, -1, 2**63 - 1])) for _ in range(3)]
        partitions = [
            {
                "partition_index": number,
                "committed_offset": offsets[number % 3],
                "committed_leader_epoch": number % 2 - 1 if version >= 5 else None,
                "metadata": odd.get(number, text),
                "error_code": number % 5,
            }
            for number in range(count)
        ]
        topics = [{"name": "t", "partitions": partitions}, {"name": "u", "partitions": partitions[:2]}]
        value: dict[str, Any] = dict.fromkeys(("throttle_time_ms", "topics", "error_code", "groups"))
        value["throttle_time_ms"] = 0 if version >= 3 else None
        if version >= 8:
            value["groups"] = [{"group_id": "g", "topics": topics, "error_code": 0}]
        else:
            value |= {"topics": topics, "error_code": 0}
        api, body = offset_messages.OFFSET_FETCH, encoded(offset_messages.OFFSET_FETCH, version, value)
        found = api.decode(body, version)
        assert as_rows(api.response, found, version) == as_rows(api.response, value, version)
        if count:
            with pytest.raises(MalformedAnswer):
                api.decode(body[: -data.draw(st.integers(1, min(40, len(body) - 1)))], version)

    @settings(max_examples=60)
    @given(version=st.integers(4, 12), count=st.integers(0, 40), data=st.data())
    def test_columns_with_arrays_are_the_rows_whatever_their_lengths(
        self, version: int, count: int, data: st.DataObject
    ) -> None:
        """In blocks where all partitions have as many replicas as the first one, one by one otherwise."""
        usual = data.draw(st.sampled_from([0, 1, 3, 127, 200]))
        odd = data.draw(st.dictionaries(st.integers(0, 40), st.integers(0, 5), max_size=2))
        partitions = [
            {
                "error_code": number % 3,
                "partition_index": number,
                "leader_id": number % 4 - 1,
                "leader_epoch": 7 if version >= 7 else None,
                "replica_nodes": list(range(odd.get(number, usual))),
                "isr_nodes": list(range(odd.get(number, usual)))[:2],
                "offline_replicas": [] if version >= 5 else None,
            }
            for number in range(count)
        ]
        topic = {
            "error_code": 0,
            "topic_id": b"0123456789abcdef" if version >= 10 else None,
            "is_internal": False,
            "topic_authorized_operations": 0 if version >= 8 else None,
        }
        value: dict[str, Any] = {
            "throttle_time_ms": 0,
            "brokers": [],
            "cluster_id": None,
            "controller_id": 1,
            "topics": [
                {**topic, "name": "t", "partitions": partitions},
                {**topic, "name": "u", "partitions": partitions[:2]},
            ],
            "cluster_authorized_operations": 0 if 8 <= version <= 10 else None,
        }
        api, body = topic_messages.METADATA, encoded(topic_messages.METADATA, version, value)
        found = api.decode(body, version)
        assert as_rows(api.response, found, version) == as_rows(api.response, value, version)
        with pytest.raises(MalformedAnswer):
            api.decode(body[: -data.draw(st.integers(1, min(40, len(body) - 1)))], version)

    @pytest.mark.parametrize(
        "version", range(offset_messages.LIST_OFFSETS.lowest, offset_messages.LIST_OFFSETS.highest + 1)
    )
    def test_columns_are_written_as_their_rows_are(self, version: int) -> None:
        topics = {"name": ["t", "empty", "u"], "rows": [2, 0, 1]}
        columns = {
            "partition_index": np.array([0, 5, 2**31 - 1]),
            "current_leader_epoch": np.full(3, -1),
            "timestamp": np.array([-1, -2, 2**62]),
        }
        numbers = iter(range(3))
        rows = [
            {
                "name": name,
                "partitions": [
                    {field: int(column[row]) for field, column in columns.items()} for row in islice(numbers, count)
                ],
            }
            for name, count in zip(topics["name"], topics["rows"], strict=True)
        ]
        head = {"replica_id": -1, "isolation_level": 1}
        api = offset_messages.LIST_OFFSETS
        written = api.encode({**head, "topics": {**topics, "partitions": columns}}, version)
        assert written == api.encode({**head, "topics": rows}, version)

    @settings(max_examples=300)
    @given(data=st.data())
    def test_bytes_that_lie_are_malformed_and_no_other_error(self, data: st.DataObject) -> None:
        api, version = data.draw(st.sampled_from(VERSIONS))
        body = bytearray(encoded(api, version, data.draw(values_of(api.response, version))))
        for _ in range(data.draw(st.integers(1, 4))):
            if body:
                body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
        cut = data.draw(st.integers(0, len(body)))
        for one in (bytes(body), bytes(body[:cut]), bytes(body) + b"\0"):
            with contextlib.suppress(MalformedAnswer):
                api.decode(one, version)

    @pytest.mark.parametrize("count", [2**31 - 1, 1_000_000, -2])
    def test_an_array_that_announces_more_than_there_is_takes_no_memory(self, count: int) -> None:
        body = struct.pack(">ihi", 0, 0, count)
        with pytest.raises(MalformedAnswer, match="elements"):
            group_messages.LIST_GROUPS.decode(body, 1)
        columns = struct.pack(">iih", 0, 1, 1) + b"t" + struct.pack(">i", count)
        with pytest.raises(MalformedAnswer, match="elements"):
            offset_messages.OFFSET_FETCH.decode(columns, 3)

    def test_an_integer_that_never_ends(self) -> None:
        with pytest.raises(MalformedAnswer, match="32 bits"):
            Reader(b"\xff" * 100).varint()
        with pytest.raises(MalformedAnswer, match="32 bits"):
            Reader(b"\xff\xff\xff\xff\x1f").varint()

    def test_optional_fields_of_newer_brokers_are_passed_over(self) -> None:
        value = {"throttle_time_ms": 0, "error_code": 0, "groups": []}
        body = encoded(group_messages.LIST_GROUPS, 5, value)[:-1] + b"\x02" + b"\x00\x03abc" + b"\x63\x00"
        assert group_messages.LIST_GROUPS.decode(body, 5) == value

    def test_a_null_where_a_value_must_be(self) -> None:
        with pytest.raises(MalformedAnswer, match="null"):
            messages.SASL_HANDSHAKE.decode(struct.pack(">hih", 0, 1, -1), 1)


class TestScram:
    def test_the_example_of_rfc_7677(self) -> None:
        exchange = sasl.scram("sha256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
        assert next(exchange) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
        said = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        assert exchange.send(said) == (
            b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        )
        with pytest.raises(StopIteration):
            exchange.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")

    @pytest.mark.parametrize(
        "said",
        [
            b"r=ours-and-theirs,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4000000000",
            b"r=ours-and-theirs,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0",
            b"r=ours-and-theirs,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=" + b"9" * 5000,
            b"r=ours-and-theirs,s=!,i=4096",
            b"r=ours,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            b"r=theirs,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            b"e=other-error",
            b"\xff\xfe",
        ],
    )
    def test_a_server_that_says_something_else_is_refused(self, said: bytes) -> None:
        exchange = sasl.scram("sha256", "user", "pencil", "ours")
        next(exchange)
        with pytest.raises(KafkaTrouble) as refused:
            exchange.send(said)
        assert refused.value.kind == "authentication_failed"

    def test_a_server_that_does_not_know_the_password_is_refused(self) -> None:
        exchange = sasl.scram("sha512", "user", "pencil", "ours")
        next(exchange)
        exchange.send(b"r=ours-and-theirs,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
        with pytest.raises(KafkaTrouble, match="did not prove"):
            exchange.send(b"v=AAAA")


class TestServersThatAreNoBroker:
    """Whatever answers on the port costs the timeout at most, and little memory."""

    @pytest.fixture
    def listening(self) -> Iterator[socket.socket]:
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield server

    @pytest.mark.parametrize(
        ("answer", "kind"),
        [
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", "malformed"),
            (struct.pack(">i", 2**31 - 1), "malformed"),
            (struct.pack(">i", -5), "malformed"),
            (struct.pack(">ii", 4, 77), "malformed"),
            (struct.pack(">iih", 6, 1, 0), "malformed"),
            (b"", "unreachable"),
            (None, "timeout"),
        ],
    )
    def test_its_answer(self, listening: socket.socket, answer: bytes | None, kind: str) -> None:
        done = threading.Event()

        def serve() -> None:
            peer, _ = listening.accept()
            with peer:
                peer.recv(1024)
                if answer is None:
                    done.wait(30)
                else:
                    peer.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        port = listening.getsockname()[1]
        cluster = Cluster(bootstrap=f"127.0.0.1:{port}")
        with pytest.raises(KafkaTrouble) as refused:
            Connection("127.0.0.1", port, reach_of(cluster), time.monotonic() + (0.5 if answer is None else 20))
        done.set()
        thread.join()
        assert refused.value.kind == kind


def test_fields_are_declared_in_the_versions_that_we_speak() -> None:
    """A field that no version has would be dead."""
    for api in APIS:
        for one in _all_fields(api.request) + _all_fields(api.response):
            assert one.since <= api.highest, (api.name, one.name)
            assert one.until >= api.lowest, (api.name, one.name)


def _all_fields(kind: Kind) -> list[Field]:
    if isinstance(kind, ArrayOf):
        return _all_fields(kind.element)
    if not isinstance(kind, Struct):
        return []
    return [found for one in kind.fields for found in (one, *_all_fields(one.kind))]
