"""The state of the reader of ``__consumer_offsets`` in one file, which survives restarts.

The first line names the format and has a checksum of the rest: a JSON document (positions, topics, groups), and the
commits as an Arrow stream. The file is replaced atomically. One that is damaged, or of another topic, is ignored, and
the topic is read from the beginning.
"""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

from lagwise.platform.errors import LagwiseError
from lagwise_collectors.offsets_topic.classic_protocol import ClassicView
from lagwise_collectors.offsets_topic.commit_history import CommitHistory
from lagwise_collectors.offsets_topic.consumer_protocol import ConsumerGroup
from lagwise_collectors.offsets_topic.ledger import Ledger
from lagwise_collectors.offsets_topic.records import CommitKey, key_of
from lagwise_collectors.offsets_topic.tracked_groups import TrackedGroup
from lagwise_collectors.offsets_topic.wire_types import MalformedRecordError

_CLASSIC: TypeAdapter[ClassicView | None] = TypeAdapter(ClassicView | None)
_CONSUMER: TypeAdapter[ConsumerGroup | None] = TypeAdapter(ConsumerGroup | None)
_PAIRS = pa.schema([("key", pa.binary()), ("offset", pa.int64()), ("at_ms", pa.int64()), ("pause_ms", pa.int64())])

#: The topic and groups that a state is about. It cannot be used for others.
Identity = Mapping[str, Any]


class UnusableStateError(LagwiseError):
    """The file cannot be used; the message says why."""


def format_of(*types: TypeAdapter[Any]) -> bytes:
    """The name of the format, which stands for all fields of groups: with others it is another format.

    Pydantic fills missing fields with their defaults: an older state would be taken for one of empty groups.
    """
    shapes = json.dumps([one.json_schema() for one in types], sort_keys=True)
    return b"lagwise-offsets-topic-3-%08x" % zlib.crc32(shapes.encode())


_FORMAT = format_of(_CLASSIC, _CONSUMER)


def serialise(ledger: Ledger, identity: Identity) -> bytes:
    """The ledger as bytes. Call it right after :meth:`Ledger.take`: changes that were not taken are not in it."""
    groups = {
        name: {
            "classic": _CLASSIC.dump_python(group.classic, mode="json"),
            "consumer": _CONSUMER.dump_python(group.consumer, mode="json"),
        }
        for name, group in ledger.groups.by_name.items()
        if group.classic is not None or group.consumer is not None
    }
    head = {
        "identity": identity,
        "positions": {str(partition): offset for partition, offset in ledger.positions.items()},
        "topics": ledger.groups.topics,
        "groups": groups,
    }
    pairs = ledger.pairs.values()
    columns = [
        pa.array(ledger.pairs.keys(), pa.binary()),
        pa.array([pair.offset for pair in pairs], pa.int64()),
        pa.array([pair.at_ms for pair in pairs], pa.int64()),
        pa.array([pair.pause_ms for pair in pairs], pa.int64()),
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _PAIRS, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(pa.table(columns, schema=_PAIRS))
    text = json.dumps(head, sort_keys=True).encode()
    body: bytes = len(text).to_bytes(8, "big") + text + sink.getvalue().to_pybytes()
    return b"%s %08x\n" % (_FORMAT, zlib.crc32(body)) + body


def restore(path: Path, ledger: Ledger, identity: Identity) -> bool:
    """Fill an empty ledger from the file. False if there is none. Raises UnusableStateError, and then the
    ledger must be discarded."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UnusableStateError(f"it cannot be read: {error.strerror}") from error
    first, _, body = data.partition(b"\n")
    if first != b"%s %08x" % (_FORMAT, zlib.crc32(body)):
        raise UnusableStateError("it is damaged or of another version")
    size = int.from_bytes(body[:8], "big")
    head = json.loads(body[8 : 8 + size])
    if head["identity"] != json.loads(json.dumps(identity)):
        raise UnusableStateError("it is about another topic or other groups")
    try:
        _fill(ledger, head, pa.ipc.open_stream(body[8 + size :]).read_all())
    except (KeyError, TypeError, ValueError, MalformedRecordError, pa.ArrowInvalid) as error:
        # The checksum is right, so another version of Lagwise wrote this.
        raise UnusableStateError(f"it has unexpected contents ({type(error).__name__}: {error})") from error
    return True


def _fill(ledger: Ledger, head: Mapping[str, Any], pairs: pa.Table) -> None:
    ledger.positions.update({int(partition): offset for partition, offset in head["positions"].items()})
    ledger.groups.topics.update(head["topics"])
    for name, group in head["groups"].items():
        ledger.groups.by_name[name] = TrackedGroup(
            _CLASSIC.validate_python(group["classic"]), _CONSUMER.validate_python(group["consumer"])
        )
    for key, *values in zip(*(column.to_pylist() for column in pairs.columns), strict=True):
        parsed_key = key_of(key)
        assert isinstance(parsed_key, CommitKey)
        history = CommitHistory(parsed_key.group, parsed_key.topic, parsed_key.partition, *values)
        ledger.add(key, history)
