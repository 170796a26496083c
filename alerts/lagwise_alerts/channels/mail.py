"""Mail through an SMTP server: plain text, one conversation per incident.

All mails of an incident have the same subject and refer to the same message, so mail programs show them as one thread.
A retry has the same ``Message-ID``, so servers can drop it. Control characters in names are escaped, and the standard
library refuses line breaks in headers.
"""

import json
import logging
import smtplib
import socket
import ssl
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any

from lagwise.config.channels import Email
from lagwise.domain.correlation import ThingKind
from lagwise.platform.errors import ConfigError
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.logs import escape
from lagwise.platform.secrets import resolve
from lagwise_alerts.channels.attempt_deadline import Attempt
from lagwise_alerts.channels.base import Channel, DeliveryOutcome, Message
from lagwise_alerts.channels.http import harmless, tls_context
from lagwise_alerts.channels.message_text import MessageText, cut, message_text, shared_by, some_lines
from lagwise_alerts.model import CLUSTER_FINDINGS, AlertKind, Severity
from lagwise_alerts.notify.group import SUMMARY_SCHEMA

log = logging.getLogger("lagwise.alerts")

_LONGEST_SUBJECT = 300
#: Limits of the list in a summary.
_MAX_LINES, _LONGEST_LINE = 200, 300
#: All answers of a server on one connection; some hundred bytes are usual.
_MAX_ANSWER_BYTES = 1_000_000
#: SMTP replies from this code on are permanent failures.
_PERMANENT = 500


def mail(document: Mapping[str, Any], settings: Email) -> EmailMessage:
    """The mail of a document."""
    words = message_text(document)
    domain = settings.sender.rpartition("@")[2]
    decided_at = datetime.fromisoformat(document["decided_at"])
    # A summary of many incidents is a conversation of its own; its key is a number that a new database gives again.
    is_summary = document["schema"] == SUMMARY_SCHEMA
    is_first = is_summary or document["sequence"] == 1
    notified_at = f"-{decided_at:%Y%m%dT%H%M%S.%f}" if is_summary else ""
    made = EmailMessage(policy=SMTP)
    made["From"] = Address("Lagwise", addr_spec=settings.sender)
    made["To"] = [Address(addr_spec=address) for address in settings.to]
    made["Subject"] = ("" if is_first else "Re: ") + cut(f"[Lagwise] {_about(document)}", _LONGEST_SUBJECT)
    made["Date"] = format_datetime(decided_at)
    made["Message-ID"] = f"<{document['idempotency_key']}{notified_at}@{domain}>"
    if not is_first:
        first = f"<{document['incident_id']}-1@{domain}>"
        made["In-Reply-To"] = first
        made["References"] = first
    made["Auto-Submitted"] = "auto-generated"
    made["X-Lagwise-Event"] = words.event
    made["X-Lagwise-Severity"] = words.severity.value
    if words.severity is Severity.PAGE and not words.is_over:
        made["Importance"] = "high"
    made.set_content(_plain_text(words), cte="quoted-printable")
    return made


def _about(document: Mapping[str, Any]) -> str:
    """The subject of the incident, in words that stay the same until it ends."""
    if document["schema"] == SUMMARY_SCHEMA:
        return escape(document["summary"])
    kind = AlertKind(document["kind"])
    if kind is AlertKind.ANALYSIS:
        return "The analysis"
    if kind is AlertKind.COLLECTION:
        return escape(f"The collection from {document['cluster']}")
    if kind in CLUSTER_FINDINGS:
        return escape(f"Cluster {document['cluster']}: {kind.value.replace('_', ' ')}")
    if kind is AlertKind.SHARED_INCIDENT:
        kinds = {one["kind"] for one in document["shared_incident"]["shared_by"]}
        is_named = document["cluster"] is None or ThingKind.CLUSTER in kinds
        where = "" if is_named else f" on {document['cluster']}"
        return escape(f"Shared incident on {shared_by(document)}{where}")
    topic = "" if kind is AlertKind.GROUP else f": {kind.value.replace('_', ' ')}"
    return escape(f"Group {document['group']} on {document['cluster']}") + topic


def _plain_text(words: MessageText) -> str:
    """The body. Its first line is the title, which mail programs show as a preview."""
    facts = "\n\n".join(f"{label}: {text}" for label, text in words.facts)
    facts += "\n".join(some_lines(words.lines, _MAX_LINES, _LONGEST_LINE))
    link = f"\n\nOpen in Lagwise:\n{words.link}" if words.link else ""
    return f"{words.symbol} {words.title}\n\n{facts}\n\nFirst command:\n{words.first_command}{link}\n"


class _Wire:
    """The connection of an attempt; None before it is made."""

    def __init__(self) -> None:
        self.server: smtplib.SMTP | None = None

    def socket(self) -> socket.socket | None:
        """The socket to shut down when the time of the attempt is over."""
        return None if self.server is None else self.server.sock


class _Server(smtplib.SMTP):
    """A connection that its attempt can shut down from the start, and that reads a limited number of bytes."""

    def __init__(self, wire: _Wire, *address: Any, **options: Any) -> None:
        wire.server = self
        super().__init__(*address, **options)

    def getreply(self) -> tuple[int, bytes]:
        """The next answer. Raises SMTPServerDisconnected where the answers exceed the limit."""
        if self.file is None and self.sock is not None:
            self.file = _Answers(self.sock)
        return super().getreply()


class _TlsServer(_Server, smtplib.SMTP_SSL):
    """The same, with TLS from the start."""


class _Answers:
    """The answers of a server on one connection, as the file from which smtplib reads lines; smtplib has no limit."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")
        self._left = _MAX_ANSWER_BYTES

    def readline(self, size: int) -> bytes:
        """The next line. Raises OSError beyond the limit."""
        line = self._file.readline(size)
        self._left -= len(line)
        if self._left < 0:
            raise OSError("its answers do not end")
        return line

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class MailChannel(Channel[Email]):
    """Sends through one server, with a connection per mail."""

    @property
    def receiver(self) -> str:
        """The server."""
        return f"{self._settings.host}:{self._settings.server_port}"

    def check(self) -> None:
        """Check password and certificate authorities. Raises ConfigError."""
        self._password()
        tls_context(self._settings.ca_file)

    def send(self, message: Message) -> DeliveryOutcome:
        """Send one mail."""
        try:
            made = mail(json.loads(message.body), self._settings)
            password, context = self._password(), tls_context(self._settings.ca_file)
        except ConfigError as error:
            return DeliveryOutcome(str(error))
        wire = _Wire()
        with Attempt(self._settings.attempt_timeout_seconds, wire.socket) as attempt:
            outcome = self._send_attempt(made, password, context, wire)
        return DeliveryOutcome(attempt.over) if attempt.is_over and outcome.error is not None else outcome

    def _send_attempt(
        self, made: EmailMessage, password: str | None, context: ssl.SSLContext, wire: _Wire
    ) -> DeliveryOutcome:
        try:
            with closing(self._connect(context, wire)) as server:
                if password is not None:
                    server.login(self._settings.username or "", password)
                outcome = self._send(server, made)
                with suppress(OSError, smtplib.SMTPException):  # the server has accepted the mail already
                    server.quit()
                return outcome
        except smtplib.SMTPRecipientsRefused as error:
            return self._refusal("refused every address:", *next(iter(error.recipients.values())))
        except smtplib.SMTPResponseException as error:
            return self._refusal("answered", error.smtp_code, error.smtp_error)
        except smtplib.SMTPNotSupportedError as error:
            return DeliveryOutcome(
                f"{self._harmless(error)} Nothing is sent in the clear instead: see `security`.", refused=True
            )
        except (smtplib.SMTPServerDisconnected, TimeoutError) as error:
            if TimeoutError in (type(error), type(error.__context__)):  # smtplib reports a timeout as a lost connection
                return DeliveryOutcome(f"no answer within {self._settings.silence_seconds:g} s")
            return DeliveryOutcome("the connection broke off")
        except (OSError, smtplib.SMTPException) as error:  # TLS errors are OSErrors
            return DeliveryOutcome(f"cannot connect: {self._harmless(error)}")

    def _connect(self, context: ssl.SSLContext, wire: _Wire) -> smtplib.SMTP:
        settings = self._settings
        address, timeout = (settings.host, settings.server_port), settings.silence_seconds
        if settings.security == "tls":
            return _TlsServer(wire, *address, timeout=timeout, context=context)
        server = _Server(wire, *address, timeout=timeout)
        if settings.security == "starttls":
            try:
                server.starttls(context=context)
            except BaseException:
                server.close()
                raise
        return server

    def _send(self, server: smtplib.SMTP, made: EmailMessage) -> DeliveryOutcome:
        refused = server.send_message(made)
        if not refused:
            return DeliveryOutcome(answer="250: the server accepted it")
        # No retry: the other recipients would get the mail twice.
        address, (code, reply) = next(iter(refused.items()))
        answer = f"accepted, but not for {len(refused)} of the addresses, {address}: {code} {self._harmless(reply)}"
        log.warning(
            "channel %s (%s): %s",
            self.name,
            self.receiver,
            answer,
            extra=event(LogEvent.DELIVERY_PARTLY_REFUSED, channel=self.name),
        )
        return DeliveryOutcome(answer=answer)

    def _refusal(self, what: str, code: int, reply: bytes | str) -> DeliveryOutcome:
        return DeliveryOutcome(f"{what} {code} {self._harmless(reply)}".rstrip(), refused=code >= _PERMANENT)

    def _harmless(self, reply: object) -> str:
        text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else str(reply)
        password = self._password()
        return harmless(text, [password] if password else [])

    def _password(self) -> str | None:
        return None if self._settings.password is None else resolve(self._settings.password)
