"""Any service that Apprise knows, through Apprise: a title and plain text.

Apprise says whether it worked and logs why not; that log is caught, and shown without what the address carries. It is
an extra of ours (``lagwise[apprise]``), imported when it is needed.
"""

import json
import logging
import threading
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from lagwise.alerts.channels.base import Message, Outcome
from lagwise.alerts.channels.facts import Telling, some_lines, tell
from lagwise.alerts.channels.http import address_parts, harmless
from lagwise.alerts.model import Severity
from lagwise.config import Apprise
from lagwise.errors import ConfigError
from lagwise.secrets import resolve

if TYPE_CHECKING:
    import apprise

_LONGEST_SERVICE = 40
#: Of a summary: many services take some thousand characters.
_MOST_LINES, _LONGEST_LINE = 10, 140


def text(told: Telling) -> str:
    """The body, for services that show plain text."""
    lines = [f"{label}: {fact}" for label, fact in told.facts] + some_lines(told.lines, _MOST_LINES, _LONGEST_LINE)
    return "\n".join([*lines, f"First command: {told.first_command}", *([told.link] if told.link else [])])


def notify_type(told: Telling) -> str:
    """How Apprise calls the severity (its ``NotifyType``)."""
    if told.is_over:
        return "success"
    return {Severity.PAGE: "failure", Severity.WARN: "warning", Severity.INFO: "info"}[told.severity]


class AppriseChannel:
    """Sends through one URL of Apprise's."""

    def __init__(self, settings: Apprise, clock: Callable[[], datetime]) -> None:
        self._settings = settings

    @property
    def name(self) -> str:
        """Its name in the settings."""
        return self._settings.name

    @property
    def receiver(self) -> str:
        """The kind of service: hosts of many carry the token."""
        try:
            scheme = resolve(self._settings.url).partition("://")[0]
        except ConfigError:
            return "an address that cannot be read"
        return f"{scheme if scheme.isalnum() and len(scheme) <= _LONGEST_SERVICE else 'a service'}, through Apprise"

    def check(self) -> None:
        """Whether Apprise is there and knows the service. Raises ConfigError."""
        self._service()

    def send(self, message: Message) -> Outcome:
        """Let Apprise send one message."""
        told = tell(json.loads(message.body))
        try:
            service = self._service()
        except ConfigError as error:
            return Outcome(str(error))
        with _Log() as said:
            sent = service.notify(
                title=f"{told.symbol} {told.title}", body=text(told), notify_type=notify_type(told), body_format="text"
            )
        if sent:
            return Outcome(answer="sent, says Apprise")
        why = harmless(" ".join(said.lines), address_parts(resolve(self._settings.url)))
        return Outcome(f"Apprise could not send it{f': {why}' if why else ''}")

    def close(self) -> None:
        """Nothing is kept open."""

    def _service(self) -> "apprise.Apprise":
        """Apprise with the one service. Raises ConfigError where either is not there."""
        try:
            import apprise
        except ModuleNotFoundError:
            raise ConfigError("channels of the type apprise need Apprise: install lagwise[apprise]") from None
        # Nothing is written to disk, run in a loop of its own, or read from the text (escapes, emojis).
        asset = apprise.AppriseAsset(
            async_mode=False,
            secure_logging=True,
            interpret_escapes=False,
            interpret_emojis=False,
            storage_mode="memory",
        )
        known = apprise.Apprise(asset=asset)
        with _Log():
            understood = known.add(resolve(self._settings.url))
        if not understood or len(known) != 1:
            raise ConfigError("its address is not one URL of a service that Apprise knows (service://…)")
        for service in known:
            service.socket_connect_timeout = service.socket_read_timeout = self._settings.timeout_seconds
            service.redirects = False  # they would carry the message to whom nobody named
        return known


class _Log(logging.Handler):
    """Catches what Apprise logs, which may carry tokens: none of it goes on to our own log, at any level."""

    #: Apprise's own, and that of its HTTP library, which logs whole addresses.
    _LOGGERS = ("apprise", "urllib3")

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == threading.get_ident():  # another channel may be sending, too: its tokens are its own
            self.lines.append(record.getMessage())

    def __enter__(self) -> "_Log":
        for name in self._LOGGERS:
            logger = logging.getLogger(name)
            logger.addHandler(self)
            logger.setLevel(logging.WARNING)
            logger.propagate = False
        return self

    def __exit__(self, *_error: object) -> None:
        for name in self._LOGGERS:
            logging.getLogger(name).removeHandler(self)
