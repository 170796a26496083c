"""A member of every group, in a process of its own: it registers by heartbeats and answers what it is asked of itself.

One connection stands for the members of all groups, under one client id: the broker keeps members by group. Each says
that it owns every queue of every topic, which is as much as a member can have to say.

    python -m benchmarks.sample_rocketmq.members ADDRESS TOPICS QUEUES GROUPS
"""

import json
import socket
import struct
import sys
import threading
import time
from typing import Any

from benchmarks.sample_rocketmq.filling import Size, with_body
from lagwise_collectors.rocketmq.remoting.frames import Request, decode, encode, length_of

#: What is printed once all are registered.
READY = "READY"
_HEART_BEAT, _GET_CONSUMER_RUNNING_INFO = Request(34, "registering members"), 307
_BEAT_SECONDS = 20.0
_GROUPS_PER_BEAT = 50
_BROKER, _CLIENT = "broker-a", "bench@1"
_LENGTHS = struct.Struct(">II")


def main() -> None:
    address, *counts = sys.argv[1:]
    size = Size(*map(int, counts))
    host, _, port = address.rpartition(":")
    said = running_info(size)
    beats = [
        heartbeat(size, size.group_names[begin : begin + _GROUPS_PER_BEAT])
        for begin in range(0, size.groups, _GROUPS_PER_BEAT)
    ]
    with socket.create_connection((host, int(port))) as connection, connection.makefile("rb") as stream:
        sending = threading.Lock()

        def register() -> None:
            while True:
                for number, body in enumerate(beats):
                    with sending:
                        connection.sendall(with_body(encode(_HEART_BEAT, number, {}), body))
                time.sleep(_BEAT_SECONDS)

        threading.Thread(target=register, daemon=True).start()
        registered = 0
        while prefix := stream.read(4):
            frame = decode(stream.read(length_of(prefix)))
            if frame.is_response:
                if frame.code != 0:
                    raise SystemExit(f"registering members: the broker refuses with {frame.code}, {frame.remark}")
                registered += 1
                if registered == len(beats):
                    print(READY, flush=True)
            elif frame.code == _GET_CONSUMER_RUNNING_INFO:
                with sending:
                    connection.sendall(response(frame.opaque, said))


def response(opaque: int, body: bytes) -> bytes:
    """The frame of an answer that worked."""
    header = json.dumps({"code": 0, "language": "OTHER", "version": 500, "opaque": opaque, "flag": 1}).encode()
    return _LENGTHS.pack(4 + len(header) + len(body), len(header)) + header + body


def heartbeat(size: Size, groups: list[str]) -> bytes:
    """The body by which a client says in which groups it is, and what it reads there."""
    return json.dumps(
        {
            "clientID": _CLIENT,
            "producerDataSet": [],
            "consumerDataSet": [
                {
                    "groupName": group,
                    "consumeType": "CONSUME_PASSIVELY",
                    "messageModel": "CLUSTERING",
                    "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                    "unitMode": False,
                    "subscriptionDataSet": [_subscription(name) for name in [*size.topic_names, f"%RETRY%{group}"]],
                }
                for group in groups
            ],
        }
    ).encode()


def _subscription(topic: str) -> dict[str, Any]:
    return {"topic": topic, "subString": "*", "tagsSet": [], "codeSet": [], "subVersion": 1, "expressionType": "TAG"}


def running_info(size: Size) -> bytes:
    """What a member says of itself, as Java clients write it: objects as keys, and of each all they know."""
    now = int(time.time() * 1000)
    state = {
        "cachedMsgCount": 0,
        "cachedMsgMaxOffset": 0,
        "cachedMsgMinOffset": 0,
        "cachedMsgSizeInMiB": 0,
        "commitOffset": 1,
        "droped": False,
        "lastConsumeTimestamp": now,
        "lastLockTimestamp": now,
        "lastPullTimestamp": now,
        "locked": False,
        "transactionMsgCnt": 0,
        "transactionMsgMaxOffset": 0,
        "transactionMsgMinOffset": 0,
        "tryUnlockTimes": 0,
    }
    work = {"consumeFailedMsgs": 0, "consumeFailedTPS": 0.0, "consumeOKTPS": 5.0, "consumeRT": 12.5, "pullRT": 1.0}
    queues = ",".join(
        f"{_packed({'brokerName': _BROKER, 'queueId': queue, 'topic': topic})}:{_packed(state)}"
        for topic in size.topic_names
        for queue in range(size.queues)
    )
    statuses = _packed(dict.fromkeys(size.topic_names, work))
    properties = _packed({"PROP_CONSUMEORDERLY": "false", "PROP_THREADPOOL_CORE_SIZE": "20"})
    return f'{{"mqTable":{{{queues}}},"properties":{properties},"statusTable":{statuses}}}'.encode()


def _packed(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    main()
