"""Mail through an SMTP server: plain text, one conversation per incident.

All mails of an incident have the same subject and refer to the same message, which is what mail programs go by; a retry
has the same ``Message-ID``, so that servers can drop it. Headers are made by the standard library, which refuses line
breaks in them; names are made harmless before.
"""

import json
import logging
import smtplib
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any

from lagwise.config.channels import Email
from lagwise.platform.errors import ConfigError
from lagwise.platform.logs import escape
from lagwise.platform.secrets import resolve
from lagwise_alerts.channels.attempt_deadline import Attempt
from lagwise_alerts.channels.base import DeliveryOutcome, Message
from lagwise_alerts.channels.http import harmless, tls_context
from lagwise_alerts.channels.message_text import MessageText, cut, message_text, some_lines
from lagwise_alerts.model import AlertKind, Severity
from lagwise_alerts.notify.group import SUMMARY_SCHEMA

log = logging.getLogger("lagwise.alerts")

_LONGEST_SUBJECT = 300
#: Of a summary.
_MAX_LINES, _LONGEST_LINE = 200, 300
#: That servers say on one connection: some hundred bytes are usual.
_MAX_ANSWER_BYTES = 1_000_000
#: Replies from here on are for good: the server understood and said no.
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
    made.set_content(_text(words), cte="quoted-printable")
    return made


def _about(document: Mapping[str, Any]) -> str:
    """What the incident is about, in words that stay the same until it is over."""
    if document["schema"] == SUMMARY_SCHEMA:
        return escape(document["summary"])
    kind = AlertKind(document["kind"])
    if kind is AlertKind.ANALYSIS:
        return "The analysis"
    if kind is AlertKind.COLLECTION:
        return escape(f"The collection from {document['cluster']}")
    topic = "" if kind is AlertKind.GROUP else f": {kind.value.replace('_', ' ')}"
    return escape(f"Group {document['group']} on {document['cluster']}") + topic


def _text(words: MessageText) -> str:
    """The mail's body. The title is its first line: lists of mails show it beside the subject."""
    facts = "\n\n".join(f"{label}: {text}" for label, text in words.facts)
    facts += "\n".join(some_lines(words.lines, _MAX_LINES, _LONGEST_LINE))
    link = f"\n\nOpen in Lagwise:\n{words.link}" if words.link else ""
    return f"{words.symbol} {words.title}\n\n{facts}\n\nFirst command:\n{words.first_command}{link}\n"


class _Wire:
    """The connection of an attempt, once it has one."""

    def __init__(self) -> None:
        self.server: smtplib.SMTP | None = None

    def socket(self) -> socket.socket | None:
        """Its socket, TLS or not."""
        return None if self.server is None else self.server.sock


class _Server(smtplib.SMTP):
    """A server that is known to the attempt before it has said a word, and whose answers end somewhere."""

    def __init__(self, wire: _Wire, *address: Any, **options: Any) -> None:
        wire.server = self
        super().__init__(*address, **options)

    def getreply(self) -> tuple[int, bytes]:
        """The next answer. Raises SMTPServerDisconnected where it does not end."""
        if self.file is None and self.sock is not None:
            self.file = _Answers(self.sock)
        return super().getreply()


class _TlsServer(_Server, smtplib.SMTP_SSL):
    """The same, with TLS from the start."""


class _Answers:
    """What a server says on one connection, as the file that smtplib reads lines from. (smtplib keeps all lines of an
    answer, however many come.)"""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")
        self._left = _MAX_ANSWER_BYTES

    def readline(self, size: int) -> bytes:
        """The next line. Raises OSError where there were too many."""
        line = self._file.readline(size)
        self._left -= len(line)
        if self._left < 0:
            raise OSError("its answers do not end")
        return line

    def close(self) -> None:
        """Read no more."""
        self._file.close()


class MailChannel:
    """Sends through one server; a connection per mail."""

    def __init__(self, settings: Email, clock: Callable[[], datetime]) -> None:
        self._settings = settings

    @property
    def name(self) -> str:
        """Its name in the settings."""
        return self._settings.name

    @property
    def receiver(self) -> str:
        """The server."""
        return f"{self._settings.host}:{self._settings.server_port}"

    def check(self) -> None:
        """Whether password and authorities can be read. Raises ConfigError."""
        self._password()
        tls_context(self._settings.ca_file)

    def send(self, message: Message) -> DeliveryOutcome:
        """Hand over one mail."""
        try:
            made = mail(json.loads(message.body), self._settings)
            password, context = self._password(), tls_context(self._settings.ca_file)
        except ConfigError as error:
            return DeliveryOutcome(str(error))
        wire = _Wire()
        with Attempt(self._settings.attempt_timeout_seconds, wire.socket) as attempt:
            outcome = self._hand_over(made, password, context, wire)
        return DeliveryOutcome(attempt.over) if attempt.is_over and outcome.error is not None else outcome

    def close(self) -> None:
        """Nothing is kept open."""

    def _hand_over(
        self, made: EmailMessage, password: str | None, context: ssl.SSLContext, wire: "_Wire"
    ) -> DeliveryOutcome:
        try:
            with closing(self._connected(context, wire)) as server:
                if password is not None:
                    server.login(self._settings.username or "", password)
                outcome = self._handed_over(server, made)
                with suppress(OSError, smtplib.SMTPException):  # whatever it says now, it has the mail
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
            if TimeoutError in (type(error), type(error.__context__)):  # smtplib takes silence for a hang-up
                return DeliveryOutcome(f"no answer within {self._settings.silence_seconds:g} s")
            return DeliveryOutcome("the connection broke off")
        except (OSError, smtplib.SMTPException) as error:  # TLS errors are OSErrors
            return DeliveryOutcome(f"cannot connect: {self._harmless(error)}")

    def _connected(self, context: ssl.SSLContext, wire: "_Wire") -> smtplib.SMTP:
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

    def _handed_over(self, server: smtplib.SMTP, made: EmailMessage) -> DeliveryOutcome:
        refused = server.send_message(made)
        if not refused:
            return DeliveryOutcome(answer="250: the server has it")
        # The others have their mail: it is not sent to them again for the sake of these.
        address, (code, said) = next(iter(refused.items()))
        answer = f"taken, but not for {len(refused)} of the addresses, {address}: {code} {self._harmless(said)}"
        log.warning("channel %s (%s): %s", self.name, self.receiver, answer)
        return DeliveryOutcome(answer=answer)

    def _refusal(self, what: str, code: int, said: bytes | str) -> DeliveryOutcome:
        return DeliveryOutcome(f"{what} {code} {self._harmless(said)}".rstrip(), refused=code >= _PERMANENT)

    def _harmless(self, said: object) -> str:
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        password = self._password()
        return harmless(text, [password] if password else [])

    def _password(self) -> str | None:
        return None if self._settings.password is None else resolve(self._settings.password)
