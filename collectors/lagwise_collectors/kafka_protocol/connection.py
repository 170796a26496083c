"""One connection to one broker: framing, correlation, versions, TLS and signing in."""

import contextlib
import re
import selectors
import socket
import ssl
import struct
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError

from lagwise import __version__
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, kind_of
from lagwise_collectors.kafka_protocol import messages, wire
from lagwise_collectors.kafka_protocol.schema import Api, Row
from lagwise_collectors.kafka_protocol.security import Reach
from lagwise_collectors.kafka_protocol.wire import MalformedAnswer, Reader, Writer

_CLIENT_ID = "lagwise"
#: Kafka refuses a version with other characters.
_CLIENT_VERSION = re.sub(r"[^A-Za-z0-9.-]", "-", __version__)
#: As librdkafka's ``receive.message.max.bytes``. Ten million group-partitions take less.
_MOST_ANSWER_BYTES = 100_000_000
_READ_BYTES = 256 * 1024
_LENGTH = struct.Struct(">i")
_UNSUPPORTED_VERSION = 35
#: A session is given up at this share of its lifetime: signing in anew on a new connection is simpler than KIP-368.
_SHARE_OF_LIFETIME = 0.8


def trouble_of_code(code: int, message: str | None, what: str) -> KafkaTrouble:
    """An error in an answer."""
    error = KafkaError(code)
    return KafkaTrouble(kind_of(error), f"{what}: {message or error.str()}")


def trouble_of_os_error(error: OSError, address: str) -> KafkaTrouble:
    """What the operating system or TLS says of a connection."""
    if isinstance(error, TimeoutError):
        return KafkaTrouble("timeout", f"{address} does not answer in time")
    if isinstance(error, ssl.SSLCertVerificationError):
        return KafkaTrouble("tls_failed", f"{address}: the certificate was refused: {error.verify_message}")
    if isinstance(error, ssl.SSLError):
        return KafkaTrouble("tls_failed", f"{address}: {getattr(error, 'reason', None) or error}")
    if isinstance(error, socket.gaierror):
        return KafkaTrouble("host_not_found", f"the name of {address} cannot be resolved")
    return KafkaTrouble("unreachable", f"{address}: {error.strerror or error}")


class Connection:
    """For one thread. Once something went wrong on it, it :attr:`is_broken` and every request fails.

    Answers come in the order of the requests: several may be sent before the first one is received.
    """

    def __init__(self, host: str, port: int, reach: Reach, deadline: float) -> None:
        """Connect, ask for the versions, sign in. ``deadline`` is of ``time.monotonic``. Raises KafkaTrouble."""
        self.address = f"{host}:{port}"
        self.is_broken = False
        #: Whether anything was answered on it: one that was may have been closed by the broker since.
        self.has_served = False
        self._number = 0
        self._buffer = bytearray()
        self._expires_at = float("inf")
        self._versions: dict[int, tuple[int, int]] = {}
        try:
            self._socket = socket.create_connection((host, port), max(0.001, deadline - time.monotonic()))
        except (OSError, UnicodeError) as error:  # UnicodeError: a host name that IDNA cannot encode
            os_error = error if isinstance(error, OSError) else socket.gaierror()
            raise trouble_of_os_error(os_error, self.address) from None
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if reach.tls is not None:
                self._socket = reach.tls.wrap_socket(self._socket, server_hostname=host)
            # A source that is dropped without being closed ends its connections, as those of librdkafka end.
            weakref.finalize(self, self._socket.close)
            self._versions = self._ask_versions(deadline)
            if reach.exchange is not None:
                self._sign_in(reach, deadline)
            self.has_served = False  # the handshake is no request: a broker that closes now is no stale connection
        except OSError as error:
            self.close()
            raise trouble_of_os_error(error, self.address) from None
        except BaseException:
            self.close()
            raise

    @property
    def is_usable(self) -> bool:
        """Whether requests may be sent: it is not broken, and its session is young enough."""
        return not self.is_broken and time.monotonic() < self._expires_at

    def fileno(self) -> int:
        """Of the socket; negative once it is closed."""
        return self._socket.fileno()

    @property
    def has_bytes(self) -> bool:
        """Whether bytes of an answer were taken from the socket already."""
        return bool(self._buffer) or (isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0)

    def close(self) -> None:
        """May be called twice."""
        self.is_broken = True
        self._socket.close()

    def shut_down(self) -> None:
        """End what another thread waits for."""
        # The method of plain sockets: that of TLS would change the object that the other thread reads from.
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def version_of(self, api: Api) -> int:
        """The newest version that both sides speak. Raises KafkaTrouble (``not_supported``)."""
        lowest, highest = self._versions.get(api.key, (0, -1))
        version = min(highest, api.highest)
        if version < max(lowest, api.lowest):
            raise KafkaTrouble("not_supported", f"the broker {self.address} does not speak {api.name}")
        return version

    def ask(self, api: Api, value: Mapping[str, Any], deadline: float) -> Row:
        """Send a request and wait for its answer. Raises KafkaTrouble."""
        return self.receive(api, self.send(api, value, deadline), deadline)

    def send(self, api: Api, value: Mapping[str, Any], deadline: float, *, version: int | None = None) -> int:
        """Send a request; the number by which its answer is received. Raises KafkaTrouble."""
        version = self.version_of(api) if version is None else version
        self._number += 1
        header = Writer()
        header.fixed(wire.INT16, api.key)
        header.fixed(wire.INT16, version)
        header.fixed(wire.INT32, self._number)
        header.text(_CLIENT_ID, is_compact=False)  # whatever the version: KIP-482 left it as it was
        if version >= api.flexible_since:
            header.varint(0)
        frame = bytes(header.data) + api.encode(value, version)
        try:
            self._socket.settimeout(_left(deadline, self.address))
            self._socket.sendall(_LENGTH.pack(len(frame)) + frame)
        except OSError as error:
            self.close()
            raise trouble_of_os_error(error, self.address) from None
        return self._number

    def receive(self, api: Api, number: int, deadline: float, *, version: int | None = None) -> Row:
        """The answer to a request. Raises KafkaTrouble, after which the connection is broken."""
        version = self.version_of(api) if version is None else version
        try:
            frame = self._frame(deadline)
            reader = Reader(frame)
            if reader.fixed(wire.INT32) != number:
                raise MalformedAnswer(f"{self.address} answers a request that was not sent")
            # The header of this answer alone has no tagged fields, so that every client can read it (KIP-511).
            if version >= api.flexible_since and api is not messages.API_VERSIONS:
                reader.skip_tagged_fields()
            row = api.decode(reader.take(reader.left), version)
        except OSError as error:
            self.close()
            raise trouble_of_os_error(error, self.address) from None
        except KafkaTrouble:
            self.close()
            raise
        self.has_served = True
        return row

    def _frame(self, deadline: float) -> bytes:
        """The bytes of the next answer. Memory is taken as they come, not as they are announced."""
        needed = _LENGTH.size
        while True:
            if len(self._buffer) >= _LENGTH.size:
                length = _LENGTH.unpack_from(self._buffer)[0]
                if not _LENGTH.size <= length <= _MOST_ANSWER_BYTES:
                    raise MalformedAnswer(f"{self.address} announces an answer of {length} bytes")
                needed = _LENGTH.size + length
                if len(self._buffer) >= needed:
                    frame = bytes(memoryview(self._buffer)[_LENGTH.size : needed])
                    del self._buffer[:needed]
                    return frame
            self._socket.settimeout(_left(deadline, self.address))
            received = self._socket.recv(_READ_BYTES)
            if not received:
                raise KafkaTrouble("unreachable", f"{self.address} closed the connection")
            self._buffer += received

    def _ask_versions(self, deadline: float) -> dict[int, tuple[int, int]]:
        api = messages.API_VERSIONS
        value = {"client_software_name": _CLIENT_ID, "client_software_version": _CLIENT_VERSION}
        number = self.send(api, value, deadline, version=api.highest)
        frame = self._frame(deadline)
        reader = Reader(frame)
        if reader.fixed(wire.INT32) != number:
            raise MalformedAnswer(f"{self.address} answers a request that was not sent")
        body = reader.take(reader.left)
        # A broker that does not know our version answers with this error, in version 0.
        is_older = body[:2] == struct.pack(">h", _UNSUPPORTED_VERSION)
        answer = api.decode(body, 0 if is_older else api.highest)
        if is_older:
            answer = self.receive(api, self.send(api, {}, deadline, version=0), deadline, version=0)
        if answer["error_code"]:
            raise trouble_of_code(answer["error_code"], None, f"{self.address}: ApiVersions")
        return {one["api_key"]: (one["min_version"], one["max_version"]) for one in answer["api_keys"]}

    def _sign_in(self, reach: Reach, deadline: float) -> None:
        answer = self.ask(messages.SASL_HANDSHAKE, {"mechanism": reach.mechanism}, deadline)
        if answer["error_code"]:
            offered = ", ".join(answer["mechanisms"]) or "none"
            raise KafkaTrouble("authentication_failed", f"{self.address} has no {reach.mechanism}, it has: {offered}")
        assert reach.exchange is not None
        exchange = reach.exchange()
        ours = next(exchange)
        while True:
            answer = self.ask(messages.SASL_AUTHENTICATE, {"auth_bytes": ours}, deadline)
            if answer["error_code"]:
                raise trouble_of_code(answer["error_code"], answer["error_message"], self.address)
            try:
                ours = exchange.send(answer["auth_bytes"])
            except StopIteration:
                break
        if answer["session_lifetime_ms"]:
            self._expires_at = time.monotonic() + _SHARE_OF_LIFETIME * answer["session_lifetime_ms"] / 1000


def readable(connections: Sequence[Connection], deadline: float) -> Sequence[Connection]:
    """The connections on which an answer begins, after waiting for one; all of them where waiting is of no use."""
    ready = [one for one in connections if one.is_broken or one.has_bytes]
    if ready or len(connections) == 1:
        return ready or connections
    with selectors.DefaultSelector() as selector:
        for one in connections:
            selector.register(one, selectors.EVENT_READ)
        events = selector.select(max(0.0, deadline - time.monotonic()))
    # None until the deadline: receiving says so of each.
    return [one for one in connections if any(key.fileobj is one for key, _ in events)] or connections


def _left(deadline: float, address: str) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError(f"{address} does not answer in time")
    return left
