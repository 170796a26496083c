"""One connection to a name server or broker, with pipelined and signed requests."""

import base64
import hashlib
import hmac
import itertools
import socket
import ssl
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lagwise.config import RocketmqCluster
from lagwise.platform.secrets import resolve
from lagwise_collectors.rocketmq.remoting.errors import RocketmqTrouble, trouble_of_os_error, trouble_of_response
from lagwise_collectors.rocketmq.remoting.frames import Frame, Request, decode, encode, length_of


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs requests of one user."""

    access_key: str
    secret_key: bytes

    def signed(self, fields: Mapping[str, str]) -> dict[str, str]:
        """The fields with the user's key and a signature: HMAC-SHA1 over the values in the order of their names, and
        over the body, which no request of ours has."""
        named = {**fields, "AccessKey": self.access_key}
        content = "".join(named[name] for name in sorted(named)).encode()
        digest = hmac.new(self.secret_key, content, hashlib.sha1).digest()
        return {**named, "Signature": base64.b64encode(digest).decode()}


def signer_of(cluster: RocketmqCluster) -> Signer | None:
    """The signer of a cluster that asks for one. Raises ConfigError where a secret is not there."""
    if cluster.access_key is None or cluster.secret_key is None:
        return None
    return Signer(resolve(cluster.access_key), resolve(cluster.secret_key).encode())


#: Requests in flight at once. More would only wait in the broker, whose threads others need, too.
_AHEAD = 32
_READ_BYTES = 256 * 1024

Answer = Frame | RocketmqTrouble


def body_of(answer: Answer) -> bytes:
    """The body of an answer. Raises it where it is trouble."""
    if isinstance(answer, RocketmqTrouble):
        raise answer
    return answer.body


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How servers are reached: timeout of one answer, TLS, user."""

    timeout_seconds: float
    tls: ssl.SSLContext | None = None
    signer: Signer | None = None


class Connection:
    """For one thread at a time. Once it is :attr:`broken`, all requests fail."""

    def __init__(self, address: str, reach: ConnectionSettings) -> None:
        """Connect. Raises RocketmqTrouble."""
        self.address = address
        self.broken = False
        self._reach = reach
        self._numbers = itertools.count(1)
        self._buffer = bytearray()
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise RocketmqTrouble("setting_refused", f"{address!r} is not host:port")
        host = host.strip("[]")
        try:
            self._socket = socket.create_connection((host, int(port)), reach.timeout_seconds)
        except OSError as error:
            raise trouble_of_os_error(error, address) from None
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if reach.tls is not None:
                self._socket = reach.tls.wrap_socket(self._socket, server_hostname=host)
        except OSError as error:
            self._socket.close()
            raise trouble_of_os_error(error, address) from None

    def close(self) -> None:
        """May be called twice."""
        self.broken = True
        self._socket.close()

    def ask_all(self, requests: Sequence[Request], *, within_seconds: float | None = None) -> list[Answer]:
        """The answer to each request, or its trouble, in their order.

        The timeout of each begins with the previous answer; all of them together have ``within_seconds``. Later answers
        are ignored. A connection that ended, or over which something unreadable came, is broken for all that are left.
        """
        answers: list[Answer | None] = [None] * len(requests)
        waiting: dict[int, int] = {}
        unsent = deque(range(len(requests)))
        over_at = None if within_seconds is None else time.monotonic() + within_seconds
        heard_at = time.monotonic()
        try:
            while unsent or waiting:
                self._send(requests, unsent, waiting)
                now = time.monotonic()
                until = min(heard_at + self._reach.timeout_seconds, over_at or float("inf"))
                if now >= until:
                    break
                frame = self._receive(until - now)
                if frame is None:
                    break
                position = waiting.pop(frame.opaque, None) if frame.is_response else None
                if position is None:
                    continue  # an answer that came too late, or a notice of the server's own
                heard_at = time.monotonic()
                answers[position] = frame if frame.code == 0 else self._refused(frame, requests[position])
        except RocketmqTrouble as trouble:
            self.close()
            return [trouble if answer is None else answer for answer in answers]
        return [self._late(r) if a is None else a for r, a in zip(requests, answers, strict=True)]

    def _send(self, requests: Sequence[Request], unsent: "deque[int]", waiting: dict[int, int]) -> None:
        if self.broken:
            raise RocketmqTrouble("unreachable", f"the connection to {self.address} was closed")
        frames = []
        while unsent and len(waiting) < _AHEAD:
            position, number = unsent.popleft(), next(self._numbers)
            request, signer = requests[position], self._reach.signer
            frames.append(encode(request, number, signer.signed(request.fields) if signer else request.fields))
            waiting[number] = position
        if not frames:
            return
        try:
            self._socket.settimeout(self._reach.timeout_seconds)
            self._socket.sendall(b"".join(frames))
        except OSError as error:
            raise trouble_of_os_error(error, self.address) from None

    def _receive(self, seconds: float) -> Frame | None:
        """The next frame; None where none came in time. Raises RocketmqTrouble."""
        deadline = time.monotonic() + seconds
        needed = 4
        while True:
            if len(self._buffer) >= 4:
                needed = 4 + length_of(bytes(self._buffer[:4]))
            if len(self._buffer) >= needed > 4:
                frame = bytes(memoryview(self._buffer)[4:needed])
                del self._buffer[:needed]
                return decode(frame)
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            try:
                self._socket.settimeout(left)
                received = self._socket.recv(_READ_BYTES)
            except TimeoutError:
                return None
            except OSError as error:
                raise trouble_of_os_error(error, self.address) from None
            if not received:
                raise RocketmqTrouble("unreachable", f"{self.address} closed the connection")
            self._buffer += received

    def _refused(self, frame: Frame, request: Request) -> RocketmqTrouble:
        return trouble_of_response(frame.code, frame.remark, f"{request.what} at {self.address}")

    def _late(self, request: Request) -> RocketmqTrouble:
        return RocketmqTrouble("timeout", f"{request.what} at {self.address}: no answer in time")
