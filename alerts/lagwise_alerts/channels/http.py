"""What the channels that speak HTTP share: one POST, bounded in size and time, and what its answer means.

Redirects are not followed: they would carry the message to whom nobody named. Certificates are always checked. What a
receiver answers is a stranger's text: its beginning is shown, without control characters and without secrets.
"""

import contextlib
import logging
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

import httpx

from lagwise.platform.errors import ConfigError
from lagwise.platform.logs import clean
from lagwise.platform.secrets import REDACTED, resolve, resolve_address
from lagwise_alerts.channels.attempt_deadline import Attempt
from lagwise_alerts.channels.base import DeliveryOutcome, Message

if TYPE_CHECKING:
    import httpcore

#: Answers that are worth another try although they are 4xx: request timeout, too early, too many requests.
RETRYABLE_CLIENT_ERRORS = frozenset({408, 425, 429})

_MOST_ANSWER_BYTES = 16_384
_LONGEST_EXCERPT = 120
#: Parts of an address shorter than this are not worth hiding, and hiding them would blot out half the text.
_SHORTEST_HIDDEN = 6


class HttpSettings(Protocol):
    """The settings that every channel over HTTP has."""

    @property
    def name(self) -> str:
        """Name of the channel."""

    @property
    def url(self) -> str:
        """Address, or the reference to one."""

    @property
    def silence_seconds(self) -> float:
        """How long the receiver may keep silent."""

    @property
    def attempt_timeout_seconds(self) -> float:
        """How long one attempt may take in all."""

    @property
    def ca_file(self) -> Path | None:
        """Authorities to trust in place of the public ones."""


@dataclass(frozen=True, slots=True)
class Post:
    """What is posted."""

    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class HttpChannel:
    """Posts to one address. What is posted is for the channels to say, in :meth:`post` and :meth:`secrets`."""

    #: Appended to the address of the settings.
    path = ""

    def __init__(self, settings: HttpSettings, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock
        self._client: httpx.Client | None = None
        self._wire = Wire()

    @property
    def name(self) -> str:
        """Its name in the settings."""
        return self._settings.name

    @property
    def receiver(self) -> str:
        """Host of the address, and its port where one is given."""
        try:
            url = self._url()
        except ConfigError:
            return "an address that cannot be read"
        return f"{url.host}:{url.port}" if url.port else url.host

    def post(self, message: Message) -> Post:
        """What is posted for a message. Raises ConfigError where a secret cannot be read."""
        raise NotImplementedError

    def secrets(self) -> tuple[str, ...]:
        """What must not be shown, should a receiver echo it. Raises ConfigError where it cannot be read."""
        return ()

    def is_taken(self, status: int) -> bool:
        """Whether an answer of this status means that the receiver has the message."""
        return 200 <= status < 300

    def check(self) -> None:
        """Whether address, secrets and authorities can be used. Raises ConfigError."""
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
        """Post this once. Raises ConfigError where the address or the authorities cannot be used."""
        url = self._url()
        hidden = _secret_parts(url, self.path, self.secrets())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": _user_agent(),
            "Accept-Encoding": "identity",  # answers are not unpacked: a small one could be a big one
            **post.headers,
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
            except httpx.HTTPError as error:
                return DeliveryOutcome(attempt.over if attempt.is_over else _failure(error, hidden))
            except OSError as error:  # a CA file (SSL_CERT_FILE) that cannot be read
                return DeliveryOutcome(f"cannot set up the connection: {error.strerror or type(error).__name__}")

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._client is not None:
            self._client.close()
            self._client = None

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
            _quiet_http_log()
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
        if self.is_taken(status):
            return DeliveryOutcome(answer=answer)
        error = f"answered {answer}"
        if response.is_redirect:
            error = f"answered {status}: redirects are not followed, give the final address"
        refused = 300 <= status < 500 and status not in RETRYABLE_CLIENT_ERRORS
        return DeliveryOutcome(error, refused, _retry_after(response.headers.get("Retry-After"), self._clock()))


class Wire:
    """The connection that an HTTP client uses, as its transport tells while it works."""

    def __init__(self) -> None:
        self._stream: httpcore.NetworkStream | None = None

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Takes what happens, in the form of httpcore's extension ``trace``."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._stream = info["return_value"]

    def socket(self) -> socket.socket | None:
        """The latest connection's; None before the first."""
        found: socket.socket | None = None if self._stream is None else self._stream.get_extra_info("socket")
        return found


def _failure(error: httpx.HTTPError, hidden: Iterable[str]) -> str:
    if isinstance(error, httpx.ConnectError):
        return f"cannot connect: {harmless(str(error), hidden) or 'no reason given'}"
    return f"the connection broke off ({type(error).__name__})"


def authorization(reference: str | None) -> dict[str, str]:
    """The header ``Authorization`` of a setting. Raises ConfigError where there is none, or it can be no header."""
    if reference is None:
        return {}
    value = resolve(reference)
    if not (value.isascii() and value.isprintable()):
        raise ConfigError(f"what {reference} names cannot be a header: one line in ASCII, such as Bearer TOKEN")
    return {"Authorization": value}


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """A context that checks certificates and names: against these authorities, or against the machine's.

    Raises ConfigError where the file is none.
    """
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file.expanduser()))
    except ssl.SSLError as error:
        raise ConfigError(f"there is no certificate in {ca_file}: name a PEM file in ca_file") from error
    except OSError as error:
        raise ConfigError(f"cannot read the file {ca_file}, named by ca_file: {error.strerror}") from error


def harmless(text: str, secrets: Iterable[str]) -> str:
    """The beginning of a stranger's text as it may be shown: on one line, without control characters and secrets."""
    shown = clean(" ".join(text.split()))
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_HIDDEN:
            shown = shown.replace(secret, REDACTED)
    return shown[:_LONGEST_EXCERPT]


def address_parts(address: str) -> set[str]:
    """Whatever in the path, the query and the user of an address may be a token, as written and decoded."""
    parts = {*re.split(r"[/?&=;:@]", address), address}
    return parts | {unquote(part) for part in parts}


@cache
def _user_agent() -> str:
    try:
        return f"lagwise/{version('lagwise')}"
    except PackageNotFoundError:  # run from a checkout that nobody installed
        return "lagwise"


def _quiet_http_log() -> None:
    """httpx logs every address in full, tokens included, at INFO; httpcore the headers at DEBUG."""
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _excerpt(response: httpx.Response, deadline: float, hidden: Iterable[str]) -> str:
    """The beginning of the answer, harmless to show. Reading is bounded in size and time: the status is what counts."""
    seen = b""
    with contextlib.suppress(httpx.HTTPError):
        for chunk in response.iter_raw():
            seen += chunk
            if len(seen) > _MOST_ANSWER_BYTES or time.monotonic() > deadline:
                break
    return harmless(seen.decode("utf-8", "replace"), hidden)


def _secret_parts(url: httpx.URL, ours: str, secrets: Iterable[str]) -> set[str]:
    """What must not be shown, should a receiver echo it: the secrets, and what in an address may be a token.

    The end of the address that is ``ours`` is none.
    """
    whole = url.raw_path.decode("ascii").removesuffix(ours)
    return {*secrets, whole.strip("/")} | address_parts(whole) | address_parts(url.userinfo.decode("ascii"))


def _retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds of a Retry-After header, which is a number of seconds or a date (RFC 9110, 10.2.3)."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())
