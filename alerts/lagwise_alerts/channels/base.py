"""What every channel obeys: it is given the document ``lagwise.alert.v1`` and says what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Message:
    """One message: the document as JSON (ASCII), and the key that all attempts to deliver it share.

    ``before`` is the document of the same incident that the receiver was given last; None where it was given none, and
    for channels that do not ask for it.
    """

    idempotency_key: str
    body: str
    before: str | None = None


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """What became of an attempt. ``error`` is None where the receiver has the message, else one line without secrets.

    ``refused``: the receiver understood and said no, so that trying again hardly helps. ``retry_after_seconds`` is how
    long the receiver asked to be left alone. ``answer`` is what it said where it took the message, one line as well.
    """

    error: str | None = None
    refused: bool = False
    retry_after_seconds: float | None = None
    answer: str = field(default="", compare=False)


class Channel(Protocol):
    """A way to a receiver. Used by one thread at a time."""

    @property
    def name(self) -> str:
        """Its name in the settings."""

    @property
    def receiver(self) -> str:
        """Where it leads, for logs: a host, never an address that may carry a token."""

    def check(self) -> None:
        """Whether it could be used, as far as that can be told without the receiver. Raises ConfigError."""

    def send(self, message: Message) -> DeliveryOutcome:
        """Try once, within the channel's timeout. Whatever goes wrong is an outcome, not an exception."""

    def close(self) -> None:
        """Let go of connections."""


@runtime_checkable
class Repeating(Channel, Protocol):
    """A channel whose receiver forgets what it is not told again and again, and is told what was said before."""

    @property
    def repeat_seconds(self) -> float:
        """How often what fires is told again."""

    def repeat(self, bodies: Sequence[str]) -> DeliveryOutcome:
        """Tell again everything that fires: the documents that were delivered last."""
