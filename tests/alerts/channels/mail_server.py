"""A real SMTP server on a free loopback port that behaves as well or as badly as a test asks."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


@dataclass
class MailServer:
    """What it took, who signed in, and what it answers to recipients and to the mail."""

    port: int = 0
    mails: list[Envelope] = field(default_factory=list)
    signed_in: list[str] = field(default_factory=list)
    password: str | None = None
    to_answers: dict[str, str] = field(default_factory=dict)
    data_answer: str = "250 OK"
    in_the_clear: list[bool] = field(default_factory=list)

    async def handle_RCPT(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        answer = self.to_answers.get(address, "250 OK")
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:
        if self.data_answer.startswith("250"):
            self.mails.append(envelope)
            assert server.transport is not None
            self.in_the_clear.append(server.transport.get_extra_info("ssl_object") is None)
        return self.data_answer

    def authenticate(
        self, _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.signed_in.append(data.login.decode())
        return AuthResult(success=data.password.decode() == self.password, handled=False)


@contextmanager
def mail_server(
    context: ssl.SSLContext | None = None, *, tls_at_once: bool = False, **settings: Any
) -> Iterator[MailServer]:
    """A running server; with a context it speaks TLS, after STARTTLS or at once."""
    server = MailServer(**settings)
    options: dict[str, Any] = {"authenticator": server.authenticate, "auth_require_tls": context is not None}
    if server.password is not None:
        options["auth_required"] = True
    if context is not None and not tls_at_once:
        options |= {"tls_context": context, "require_starttls": True}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    controller = Controller(
        server, hostname="127.0.0.1", port=port, ssl_context=context if tls_at_once else None, **options
    )
    controller.start()
    server.port = port
    try:
        yield server
    finally:
        controller.stop()


@contextmanager
def silent_server(greeting: bytes = b"") -> Iterator[int]:
    """A server that says no more than its greeting; its port."""
    stop = threading.Event()

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(greeting)
            stop.wait(20)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stop.set()
            thread.join()
