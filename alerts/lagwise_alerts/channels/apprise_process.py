"""Sends one message through Apprise, in a process of its own: ``python -m lagwise_alerts.channels.apprise_process``.

Apprise reads an answer for as long as the receiver sends it. A process can be ended, and its memory can be limited. The
order comes on standard input and the result goes to standard output, both as JSON: the address carries tokens, so it is
no argument.
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

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError

if TYPE_CHECKING:
    import apprise

#: Limit of the address space. Apprise itself takes a tenth of it.
_MAX_MEMORY_BYTES = 2 * 1024**3
#: The parent ends this process at its limit. If the parent is gone, this process ends by itself that much later.
_GRACE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class AppriseOrder:
    """A message and its destination."""

    url: str
    title: str
    body: str
    notify_type: str
    #: How long the receiver may send nothing.
    silence_seconds: float
    #: How long sending may take in all.
    limit_seconds: float


@dataclass(frozen=True, slots=True)
class AppriseResult:
    """Whether the message was sent."""

    sent: bool
    #: The lines that Apprise logged; they may carry tokens.
    log: str


class AppriseLog(logging.Handler):
    """Collects the lines that Apprise logs. They may carry tokens, so none of them reaches the log of Lagwise."""

    #: The logger of Apprise, and that of its HTTP library, which logs whole addresses.
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
    """Apprise with the service of this address. Raises ConfigError where Apprise or the service is missing."""
    try:
        import apprise
    except ModuleNotFoundError:
        raise ConfigError(
            "channels of the type apprise need Apprise: install lagwise[apprise]", code=ErrorCode.EXTRA_MISSING
        ) from None
    # Apprise writes nothing to disk, starts no event loop, and expands no escapes or emojis in the text.
    asset = apprise.AppriseAsset(
        async_mode=False,
        secure_logging=True,
        interpret_escapes=False,
        interpret_emojis=False,
        storage_mode="memory",
    )
    services = apprise.Apprise(asset=asset)
    with AppriseLog():
        is_valid = services.add(url)
    if not is_valid or len(services) != 1:
        raise ConfigError("its address is not one URL of a service that Apprise knows (service://…)")
    for service in services:
        service.socket_connect_timeout = service.socket_read_timeout = silence_seconds
        service.redirects = False  # a redirect would send the message to a host that is not configured
    return services


def main() -> None:
    """Send the message on standard input."""
    order = AppriseOrder(**json.load(sys.stdin))
    signal.alarm(math.ceil(order.limit_seconds) + _GRACE_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    with AppriseLog() as log:
        sent = service_of(order.url, order.silence_seconds).notify(
            title=order.title, body=order.body, notify_type=order.notify_type, body_format="text"
        )
    json.dump(asdict(AppriseResult(sent=bool(sent), log=" ".join(log.lines))), sys.stdout)


if __name__ == "__main__":
    main()
