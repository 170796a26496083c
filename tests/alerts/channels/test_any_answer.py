"""A receiver may answer anything: an attempt succeeds or fails with one line, whatever came."""

import contextlib
import random
import resource
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from lagwise_alerts.channels import Channel
from tests.alerts.channels.documents import message
from tests.collectors.mutilated import mutilated

Make = Callable[..., Channel]

#: What an answer is made of before it is damaged.
ANSWERS = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    b'HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{"status": "success"}'[:-2],
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 503 Busy\r\nRetry-After: Fri, 27 Nov 2026 10:00:00 GMT\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"4\r\nbusy\r\n0\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00",
)
_MOST_GROWTH_MIB = 100
_MOST_CHARACTERS = 500


@contextlib.contextmanager
def answering(answers: Iterator[bytes]) -> Iterator[int]:
    """A server that gives the next of the answers to every request, and hangs up; its port."""

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(5)
                connection.recv(1 << 20)
                connection.sendall(next(answers))
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("count", [300, pytest.param(100_000, marks=[pytest.mark.long, pytest.mark.timeout(7200)])])
@pytest.mark.parametrize("kind", ["webhook", "alertmanager", "slack", "teams", "pagerduty"])
def test_any_answer(channel: Make, kind: str, count: int) -> None:
    chance, accepted = random.Random(f"{kind} {count}"), 0
    answers = (mutilated(chance.choice(ANSWERS), chance) for _ in iter(int, 1))
    with answering(answers) as port:
        address, key = {"secret_url": f"http://127.0.0.1:{port}"}, {"secret_routing_key": "r"}
        one = channel(kind, **address, **(key if kind == "pagerduty" else {}))
        for number in range(count):
            if number == count // 10:  # everything has been loaded by then
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            outcome = one.send(message())
            accepted += outcome.error is None
            for text in (outcome.error or "", outcome.answer):
                assert text.isprintable() and len(text) <= _MOST_CHARACTERS
            assert outcome.retry_after_seconds is None or outcome.retry_after_seconds >= 0
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mib < _MOST_GROWTH_MIB
    assert 0 < accepted < count
