"""The base of all channels over HTTP: one POST, limited in size and time, and the meaning of its answer.

Redirects are not followed: they would send the message to a host that is not configured. Certificates are always
checked. The answer of a receiver is untrusted: only its beginning is shown, without control characters and secrets.
"""

import contextlib
import logging
import re
import socket
import ssl
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import httpx

from lagwise.config.channels import Alertmanager, AlertmanagerWebhook, PagerDuty, Slack, Teams, Webhook
from lagwise.platform.errors import ConfigError
from lagwise.platform.logs import clean
from lagwise.platform.secrets import REDACTED, resolve, resolve_address
from lagwise_alerts.channels.attempt_deadline import Attempt
from lagwise_alerts.channels.base import Channel, DeliveryOutcome, Message

if TYPE_CHECKING:
    import httpcore

#: 4xx answers that are retried like others: request timeout, too early, too many requests.
RETRYABLE_CLIENT_ERRORS = frozenset({408, 425, 429})

_MAX_ANSWER_BYTES = 16_384
_LONGEST_EXCERPT = 120
#: Shorter parts of an address are not hidden: they occur in ordinary words.
_SHORTEST_HIDDEN = 6


#: Settings of a channel over HTTP.
HttpSettingsT = TypeVar("HttpSettingsT", bound=Webhook | AlertmanagerWebhook | Alertmanager | PagerDuty | Slack | Teams)


@dataclass(frozen=True, slots=True)
class Post:
    """A request: body and headers."""

    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class HttpChannel(Channel[HttpSettingsT]):
    """Posts to one address. Channels implement :meth:`post`, and :meth:`secrets` where they have more of them."""

    #: Appended to the address of the settings.
    path = ""

    def __init__(self, settings: HttpSettingsT, clock: Callable[[], datetime]) -> None:
        super().__init__(settings, clock)
        self._client: httpx.Client | None = None
        self._wire = Wire()

    @property
    def receiver(self) -> str:
        """Host of the address, and its port where one is given."""
        try:
            url = self._url()
        except ConfigError:
            return "an address that cannot be read"
        return f"{url.host}:{url.port}" if url.port else url.host

    @abstractmethod
    def post(self, message: Message) -> Post:
        """The request for a message. Raises ConfigError where a secret cannot be read."""

    def secrets(self) -> tuple[str, ...]:
        """Texts to hide in case a receiver echoes them. Raises ConfigError where a secret cannot be read."""
        return tuple(" ".join(self._authorization().values()).split())

    def is_accepted(self, status: int) -> bool:
        """Whether this status means that the receiver accepted the message."""
        return 200 <= status < 300

    def check(self) -> None:
        """Check address, secrets and certificate authorities. Raises ConfigError."""
        self._url()
        self.secrets()
        tls_context(self._settings.ca_file)

    def send(self, message: Message) -> DeliveryOutcome:
        """Post once."""
        try:
            return self.deliver(self.post(message))
        except ConfigError as error:
            return DeliveryOutcome(str(error))

    def deliver(self, post: Post) -> DeliveryOutcome:
        """Post this once. Raises ConfigError where the address or the authorities are invalid."""
        url = self._url()
        hidden = _secret_parts(url, self.path, self.secrets())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": _user_agent(),
            "Accept-Encoding": "identity",  # answers are not decompressed: a small one could become huge
            **post.headers,
            **self._authorization(),
        }
        deadline = time.monotonic() + self._settings.silence_seconds
        with Attempt(self._settings.attempt_timeout_seconds, self._wire.socket) as attempt:
            try:
                with self._connected().stream(
                    "POST", url, content=post.body, headers=headers, extensions={"trace": self._wire.trace}
                ) as response:
                    return self._outcome(response, _excerpt(response, deadline, hidden))
            except httpx.TimeoutException:
                return DeliveryOutcome(f"no answer within {self._settings.silence_seconds:g} s")
            except (httpx.HTTPError, httpx.InvalidURL) as error:  # the latter of an address that redirects name
                return DeliveryOutcome(attempt.over if attempt.is_over else _failure(error, hidden))
            except OSError as error:  # a CA file (SSL_CERT_FILE) that cannot be read
                return DeliveryOutcome(f"cannot set up the connection: {error.strerror or type(error).__name__}")

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _authorization(self) -> dict[str, str]:
        """The header ``Authorization``, where the settings have one. Raises ConfigError where its value is invalid."""
        reference: str | None = getattr(self._settings, "authorization", None)
        if reference is None:
            return {}
        value = resolve(reference)
        if not (value.isascii() and value.isprintable()):
            raise ConfigError(
                f"the value of {reference} is not a valid header: use one line of ASCII, such as Bearer TOKEN"
            )
        return {"Authorization": value}

    def _url(self) -> httpx.URL:
        try:
            given = resolve_address(self._settings.url)
            url = httpx.URL(given.rstrip("/") + self.path if self.path else given)
        except httpx.InvalidURL:
            url = None
        if url is None or url.scheme not in ("http", "https") or not url.host:
            raise ConfigError("its address is not a URL: give one that begins with https://")
        return url

    def _connected(self) -> httpx.Client:
        if self._client is None:
            quiet_http_log()
            ca_file = self._settings.ca_file
            self._client = httpx.Client(
                verify=True if ca_file is None else tls_context(ca_file),
                timeout=self._settings.silence_seconds,
                follow_redirects=False,
                limits=httpx.Limits(max_connections=1),
            )
        return self._client

    def _outcome(self, response: httpx.Response, excerpt: str) -> DeliveryOutcome:
        status = response.status_code
        answer = f"{status} {clean(response.reason_phrase)}".rstrip() + (f": {excerpt}" if excerpt else "")
        if self.is_accepted(status):
            return DeliveryOutcome(answer=answer)
        error = f"answered {answer}"
        if response.is_redirect:
            error = f"answered {status}: redirects are not followed, give the final address"
        refused = 300 <= status < 500 and status not in RETRYABLE_CLIENT_ERRORS
        return DeliveryOutcome(error, refused, _retry_after(response.headers.get("Retry-After"), self._clock()))


class Wire:
    """Finds the socket of an HTTP client, from the trace events of its transport."""

    def __init__(self) -> None:
        self._stream: httpcore.NetworkStream | None = None

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Handle an event of httpcore's extension ``trace``."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._stream = info["return_value"]

    def socket(self) -> socket.socket | None:
        """The latest connection's; None before the first."""
        found: socket.socket | None = None if self._stream is None else self._stream.get_extra_info("socket")
        return found


def _failure(error: Exception, hidden: Iterable[str]) -> str:
    if isinstance(error, httpx.ConnectError):
        return f"cannot connect: {harmless(str(error), hidden) or 'no reason given'}"
    return f"the connection broke off ({type(error).__name__})"


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """A context that checks certificates and host names, against these authorities or those of the machine.

    Raises ConfigError where the file has no certificate.
    """
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file.expanduser()))
    except ssl.SSLError as error:
        raise ConfigError(f"there is no certificate in {ca_file}: name a PEM file in ca_file") from error
    except OSError as error:
        raise ConfigError(f"cannot read the file {ca_file}, named by ca_file: {error.strerror}") from error


def harmless(text: str, secrets: Iterable[str]) -> str:
    """The beginning of an untrusted text, safe to show: one line, without control characters and secrets."""
    shown = clean(" ".join(text.split()))
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_HIDDEN:
            shown = shown.replace(secret, REDACTED)
    return shown[:_LONGEST_EXCERPT]


def address_parts(address: str) -> set[str]:
    """The parts of an address that may be tokens (path, query, user), as written and decoded."""
    parts = {*re.split(r"[/?&=;:@]", address), address}
    return parts | {unquote(part) for part in parts}


@cache
def _user_agent() -> str:
    try:
        return f"lagwise/{version('lagwise')}"
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "lagwise"


def quiet_http_log() -> None:
    """httpx logs every address in full, tokens included, at INFO; httpcore the headers at DEBUG."""
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _excerpt(response: httpx.Response, deadline: float, hidden: Iterable[str]) -> str:
    """The beginning of the answer, safe to show. Reading is limited in size and time: only the status counts."""
    seen = b""
    with contextlib.suppress(httpx.HTTPError):
        for chunk in response.iter_raw():
            seen += chunk
            if len(seen) > _MAX_ANSWER_BYTES or time.monotonic() > deadline:
                break
    return harmless(seen.decode("utf-8", "replace"), hidden)


def _secret_parts(url: httpx.URL, ours: str, secrets: Iterable[str]) -> set[str]:
    """Texts to hide in case a receiver echoes them: the secrets, and parts of the address that may be tokens.

    ``ours`` is the end of the address that Lagwise appended: no secret.
    """
    whole = url.raw_path.decode("ascii").removesuffix(ours)
    return {*secrets, whole.strip("/")} | address_parts(whole) | address_parts(url.userinfo.decode("ascii"))


def _retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds of a Retry-After header, which is a number of seconds or a date (RFC 9110, 10.2.3)."""
    if value is None:
        return None
    seconds = value.strip(" \t")
    if seconds.isascii() and seconds.isdigit():
        return float(seconds)
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, OverflowError):  # the latter of a year with too many digits
        return None
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())
