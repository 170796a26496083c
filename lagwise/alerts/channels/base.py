"""What every channel obeys: it is given the document ``lagwise.alert.v1`` and says what became of it."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Message:
    """One message: the document as JSON (ASCII), and the key that all attempts to deliver it share."""

    idempotency_key: str
    body: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an attempt. ``error`` is None where the receiver has the message, else one line without secrets.

    ``refused``: the receiver understood and said no, so that trying again hardly helps. ``retry_after_seconds`` is how
    long the receiver asked to be left alone.
    """

    error: str | None = None
    refused: bool = False
    retry_after_seconds: float | None = None


class Channel(Protocol):
    """A way to a receiver. Used by one thread at a time."""

    @property
    def name(self) -> str:
        """Its name in the settings."""

    @property
    def receiver(self) -> str:
        """Where it leads, for logs: a host, never an address that may carry a token."""

    def send(self, message: Message) -> Outcome:
        """Try once, within the channel's timeout. Whatever goes wrong is an outcome, not an exception."""

    def close(self) -> None:
        """Let go of connections."""
