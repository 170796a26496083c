"""The generic webhook: the document by POST, signed, with what a receiver needs to check and deduplicate it.

The signature is the HMAC-SHA256 of ``timestamp + "." + body`` under the channel's secret. The timestamp is signed with
the body so that a receiver can reject a recorded message that is replayed later.
"""

import hashlib
import hmac

from lagwise.config.channels import Webhook
from lagwise.platform.secrets import resolve
from lagwise_alerts.channels.base import Message
from lagwise_alerts.channels.http import HttpChannel, Post


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The value of ``X-Lagwise-Signature``: ``v1=`` and the HMAC-SHA256 in hex."""
    digest = hmac.new(secret.encode("utf-8"), timestamp.encode("ascii") + b"." + body, hashlib.sha256)
    return f"v1={digest.hexdigest()}"


class WebhookChannel(HttpChannel[Webhook]):
    """Posts the document as it is."""

    def secrets(self) -> tuple[str, ...]:
        """The key of the signature, and the header."""
        key = resolve(self._settings.secret) if self._settings.secret is not None else ""
        return (key, *super().secrets())

    def post(self, message: Message) -> Post:
        """The document, its key, and its signature."""
        body = message.body.encode("ascii")
        timestamp = str(int(self._clock().timestamp()))
        headers = {"Idempotency-Key": message.idempotency_key, "X-Lagwise-Timestamp": timestamp}
        if self._settings.secret is not None:
            headers["X-Lagwise-Signature"] = sign(resolve(self._settings.secret), timestamp, body)
        return Post(body, headers)
