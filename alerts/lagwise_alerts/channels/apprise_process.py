"""Sends one message through Apprise, in a process of its own: ``python -m lagwise_alerts.channels.apprise_process``.

Apprise reads what a receiver sends for as long as it comes. A process can be ended, and takes no more memory than it is
given. The order comes on standard input, what became of it goes to standard output, both as JSON; the address carries
tokens and stands in no argument.
"""

import json
import logging
import math
import resource
import signal
import sys
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from lagwise.platform.errors import ConfigError

if TYPE_CHECKING:
    import apprise

#: Of address space. Apprise itself takes a tenth of it.
_MAX_MEMORY_BYTES = 2 * 1024**3
#: Whoever started this process ends it before; if that process is gone, it ends by itself.
_GRACE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class AppriseOrder:
    """What is to be sent, and where to. ``silence_seconds`` is how long the receiver may keep silent,
    ``limit_seconds`` how long all of it may take."""

    url: str
    title: str
    body: str
    notify_type: str
    silence_seconds: float
    limit_seconds: float


@dataclass(frozen=True, slots=True)
class Done:
    """Whether it was sent, and what Apprise said of it: that may carry tokens."""

    sent: bool
    said: str


class AppriseLog(logging.Handler):
    """Catches what Apprise logs, which may carry tokens: none of it goes on to our own log, at any level."""

    #: Apprise's own, and that of its HTTP library, which logs whole addresses.
    _LOGGERS = ("apprise", "urllib3")

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == threading.get_ident():  # another channel may be sending, too
            self.lines.append(record.getMessage())

    def __enter__(self) -> "AppriseLog":
        for name in self._LOGGERS:
            logger = logging.getLogger(name)
            logger.addHandler(self)
            logger.setLevel(logging.WARNING)
            logger.propagate = False
        return self

    def __exit__(self, *_error: object) -> None:
        for name in self._LOGGERS:
            logging.getLogger(name).removeHandler(self)


def service_of(url: str, silence_seconds: float) -> "apprise.Apprise":
    """Apprise with the one service of this address. Raises ConfigError where either is not there."""
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
    with AppriseLog():
        understood = known.add(url)
    if not understood or len(known) != 1:
        raise ConfigError("its address is not one URL of a service that Apprise knows (service://…)")
    for service in known:
        service.socket_connect_timeout = service.socket_read_timeout = silence_seconds
        service.redirects = False  # they would carry the message to a host that nobody configured
    return known


def main() -> None:
    """Carry out the order on standard input."""
    order = AppriseOrder(**json.load(sys.stdin))
    signal.alarm(math.ceil(order.limit_seconds) + _GRACE_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    with AppriseLog() as log:
        sent = service_of(order.url, order.silence_seconds).notify(
            title=order.title, body=order.body, notify_type=order.notify_type, body_format="text"
        )
    json.dump(asdict(Done(bool(sent), " ".join(log.lines))), sys.stdout)


if __name__ == "__main__":
    main()
