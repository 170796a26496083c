"""A TCP server that speaks RocketMQ's remoting protocol, and does what real servers do only when they are unwell."""

import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

#: What a request is answered with: a response code and a body, raw bytes in place of a frame, or nothing at all.
Reply = tuple[int, bytes] | bytes | None
Behaviour = Callable[[int, Mapping[str, str]], Reply]


class Server:
    """Answers as its ``behaviour`` says, on a port of its own. A context manager."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.asked: list[int] = []
        self._connections: list[socket.socket] = []
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                outer._connections.append(self.request)
                try:
                    while outer._answer(self.request):
                        pass
                except OSError:
                    pass  # the test's client went away

        class Threads(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False

        self._server = Threads(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def hang_up(self) -> None:
        """Close every connection there is; new ones are taken."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.hang_up()
        self._thread.join()

    def _answer(self, connection: socket.socket) -> bool:
        (length,) = struct.unpack(">I", _read(connection, 4))
        frame = _read(connection, length)
        (mark,) = struct.unpack_from(">I", frame)
        request = json.loads(frame[4 : 4 + mark])
        self.asked.append(request["code"])
        reply = self.behaviour(request["code"], request.get("extFields", {}))
        if reply is None:
            return True
        if isinstance(reply, bytes):
            connection.sendall(reply)
            return False
        connection.sendall(answer(request["opaque"], *reply))
        return True


def answer(opaque: int, code: int, body: bytes) -> bytes:
    """A whole frame that answers a request."""
    header = json.dumps(
        {"code": code, "opaque": opaque, "flag": 1, "remark": None if code == 0 else "no\n at X"}
    ).encode()
    return struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body


def _read(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = connection.recv(count - len(found))
        if not part:
            raise ConnectionError("the client is gone")
        found += part
    return found


@dataclass
class Broker:
    """A broker with topics (queues by name, each holding 100 messages) and groups that committed offset 40 on them."""

    name: str = "broker-a"
    topics: dict[str, int] = field(default_factory=lambda: {"orders": 2})
    groups: dict[str, list[str]] = field(default_factory=lambda: {"billing": ["orders"]})
    #: Codes that are answered in another way.
    instead: dict[int, Behaviour] = field(default_factory=dict)

    def __call__(self, code: int, fields: Mapping[str, str]) -> Reply:
        if code in self.instead:
            return self.instead[code](code, fields)
        match code:
            case 21:
                configs = {t: {"readQueueNums": n, "writeQueueNums": n} for t, n in self.topics.items()}
                return 0, _json({"topicConfigTable": configs})
            case 201:
                return 0, _json({"subscriptionGroupTable": {group: {} for group in self.groups}})
            case 203:
                return 206, b""
            case 43:
                pairs = [
                    f'"{topic}@{group}":{{' + ",".join(f"{q}:40" for q in range(self.topics[topic])) + "}"
                    for group, topics in self.groups.items()
                    for topic in topics
                ]
                return 0, ('{"offsetTable":{' + ",".join(pairs) + "}}").encode()
            case 202:
                topic = fields["topic"]
                stats = [
                    f'{{"brokerName":"{self.name}","queueId":{queue},"topic":"{topic}"}}:'
                    '{"lastUpdateTimestamp":1795344391230,"maxOffset":100,"minOffset":0}'
                    for queue in range(self.topics[topic])
                ]
                return 0, ('{"offsetTable":{' + ",".join(stats) + "}}").encode()
            case 26:
                return 0, b"fileReservedTime=48\ndiskMaxUsedSpaceRatio=75\n"
            case 28:
                return 0, _json({"table": {"commitLogDiskRatio": "0.2"}})
        return 3, b""


def name_server(brokers: Mapping[str, Mapping[int, str]]) -> Behaviour:
    """Lists brokers: addresses by id, by name. The mapping may change later."""

    def behaviour(code: int, _fields: Mapping[str, str]) -> Reply:
        if code != 106:
            return 3, b""
        entries = ",".join(
            f'"{name}":{{"brokerAddrs":{{' + ",".join(f'{number}:"{at}"' for number, at in its.items()) + "}}"
            for name, its in brokers.items()
        )
        return 0, ('{"brokerAddrTable":{' + entries + "}}").encode()

    return behaviour


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
