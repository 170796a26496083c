"""The generic webhook: the document by POST, signed, with what a receiver needs to check and deduplicate it.

The signature is the HMAC-SHA256 of ``timestamp + "." + body`` under the channel's secret. The timestamp is signed with
the body so that a receiver can refuse a recorded message that somebody plays back later.
"""

import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime

from lagwise.config.channels import Webhook
from lagwise.platform.secrets import resolve
from lagwise_alerts.channels.base import Message
from lagwise_alerts.channels.http import HttpChannel, Post, authorization


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The value of ``X-Lagwise-Signature``: ``v1=`` and the HMAC-SHA256 in hex."""
    digest = hmac.new(secret.encode("utf-8"), timestamp.encode("ascii") + b"." + body, hashlib.sha256)
    return f"v1={digest.hexdigest()}"


class WebhookChannel(HttpChannel):
    """Posts the document as it is."""

    def __init__(self, settings: Webhook, clock: Callable[[], datetime]) -> None:
        super().__init__(settings, clock)
        self._webhook = settings

    def secrets(self) -> tuple[str, ...]:
        """The key of the signature, and the header."""
        key = resolve(self._webhook.secret) if self._webhook.secret is not None else ""
        return (key, *" ".join(authorization(self._webhook.authorization).values()).split())

    def post(self, message: Message) -> Post:
        """The document, its key, and its signature."""
        body = message.body.encode("ascii")
        timestamp = str(int(self._clock().timestamp()))
        headers = {"Idempotency-Key": message.idempotency_key, "X-Lagwise-Timestamp": timestamp}
        if self._webhook.secret is not None:
            headers["X-Lagwise-Signature"] = sign(resolve(self._webhook.secret), timestamp, body)
        return Post(body, headers | authorization(self._webhook.authorization))
