"""The generic webhook: the document by POST, signed, with what a receiver needs to check and deduplicate it.

The signature is the HMAC-SHA256 of ``timestamp + "." + body`` under the channel's secret. The timestamp is signed with
the body so that a receiver can refuse a recorded message that somebody plays back later.
"""

import contextlib
import hashlib
import hmac
import logging
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import unquote

import httpx

from lagwise.alerts.channels.base import Message, Outcome
from lagwise.config import Webhook
from lagwise.errors import ConfigError
from lagwise.logs import clean
from lagwise.secrets import REDACTED, resolve

#: Answers that are worth another try although they are 4xx: request timeout, too early, too many requests.
RETRYABLE_CLIENT_ERRORS = frozenset({408, 425, 429})

_MOST_ANSWER_BYTES = 16_384
_LONGEST_EXCERPT = 120
#: Parts of an address shorter than this are not worth hiding, and hiding them would blot out half the text.
_SHORTEST_HIDDEN = 6


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The value of ``X-Lagwise-Signature``: ``v1=`` and the HMAC-SHA256 in hex."""
    digest = hmac.new(secret.encode("utf-8"), timestamp.encode("ascii") + b"." + body, hashlib.sha256)
    return f"v1={digest.hexdigest()}"


@cache
def _user_agent() -> str:
    try:
        return f"lagwise/{version('lagwise')}"
    except PackageNotFoundError:  # run from a checkout that nobody installed
        return "lagwise"


class WebhookChannel:
    """Posts to one address. Redirects are not followed: they would carry the message to whom nobody named."""

    def __init__(self, settings: Webhook, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock
        self._client: httpx.Client | None = None

    @property
    def name(self) -> str:
        """Its name in the settings."""
        return self._settings.name

    @property
    def receiver(self) -> str:
        """Host of the address, and its port where one is given."""
        try:
            url = httpx.URL(resolve(self._settings.url))
        except (ConfigError, httpx.InvalidURL):
            return "an address that cannot be read"
        return f"{url.host}:{url.port}" if url.port else url.host

    def send(self, message: Message) -> Outcome:
        """Post once."""
        try:
            address = resolve(self._settings.url)
            secret = resolve(self._settings.secret) if self._settings.secret else None
            url = httpx.URL(address)
        except ConfigError as error:
            return Outcome(str(error))
        except httpx.InvalidURL:
            return Outcome("its address is not a URL: give one that begins with https://")
        if url.scheme not in ("http", "https") or not url.host:
            return Outcome("its address is not a URL: give one that begins with https://")
        body = message.body.encode("ascii")
        timestamp = str(int(self._clock().timestamp()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": _user_agent(),
            "Idempotency-Key": message.idempotency_key,
            "X-Lagwise-Timestamp": timestamp,
        }
        if secret is not None:
            headers["X-Lagwise-Signature"] = sign(secret, timestamp, body)
        return self._post(url, body, headers, _secret_parts(url, secret))

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _post(self, url: httpx.URL, body: bytes, headers: dict[str, str], hidden: tuple[str, ...]) -> Outcome:
        deadline = time.monotonic() + self._settings.timeout_seconds
        try:
            if self._client is None:
                _quiet_http_log()
                self._client = httpx.Client(
                    timeout=self._settings.timeout_seconds,
                    follow_redirects=False,
                    limits=httpx.Limits(max_connections=1),
                )
            with self._client.stream("POST", url, content=body, headers=headers) as response:
                excerpt = _excerpt(response, deadline, hidden)
                return self._outcome(response, excerpt)
        except httpx.TimeoutException:
            return Outcome(f"no answer within {self._settings.timeout_seconds:g} s")
        except httpx.ConnectError as error:
            return Outcome(f"cannot connect: {_hide(clean(str(error)), hidden) or 'no reason given'}")
        except httpx.HTTPError as error:
            return Outcome(f"the connection broke off ({type(error).__name__})")
        except OSError as error:  # a CA file (SSL_CERT_FILE) that cannot be read
            return Outcome(f"cannot set up the connection: {error.strerror or type(error).__name__}")

    def _outcome(self, response: httpx.Response, excerpt: str) -> Outcome:
        status = response.status_code
        if response.is_success:
            return Outcome()
        error = f"answered {status} {response.reason_phrase}".rstrip() + (f": {excerpt}" if excerpt else "")
        if response.is_redirect:
            error = f"answered {status}: redirects are not followed, give the final address"
        refused = 300 <= status < 500 and status not in RETRYABLE_CLIENT_ERRORS
        return Outcome(error, refused, _retry_after(response.headers.get("Retry-After"), self._clock()))


def _quiet_http_log() -> None:
    """httpx logs every address in full, tokens included, at INFO; httpcore the headers at DEBUG."""
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _excerpt(response: httpx.Response, deadline: float, hidden: tuple[str, ...]) -> str:
    """The beginning of the answer, harmless to show. Reading is bounded in size and time: the status is what counts."""
    seen = b""
    with contextlib.suppress(httpx.HTTPError):
        for chunk in response.iter_bytes():
            seen += chunk
            if len(seen) > _MOST_ANSWER_BYTES or time.monotonic() > deadline:
                break
    return _hide(clean(" ".join(seen.decode("utf-8", "replace").split())), hidden)[:_LONGEST_EXCERPT]


def _secret_parts(url: httpx.URL, secret: str | None) -> tuple[str, ...]:
    """What must not be shown, should a receiver echo it: the secret, and what in an address may be a token."""
    whole = url.raw_path.decode("ascii")
    parts = {secret or "", url.userinfo.decode("ascii"), whole.strip("/"), *re.split(r"[/?&=;]", whole)}
    forms = parts | {unquote(part) for part in parts}
    return tuple(sorted((form for form in forms if len(form) >= _SHORTEST_HIDDEN), key=len, reverse=True))


def _hide(text: str, hidden: tuple[str, ...]) -> str:
    for part in hidden:
        text = text.replace(part, REDACTED)
    return text


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
