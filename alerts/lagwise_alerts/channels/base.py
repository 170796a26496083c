"""The base of all channels: a channel sends the document ``lagwise.alert.v1`` and returns the outcome."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from lagwise.config.channels import AnyChannel

SettingsT = TypeVar("SettingsT", bound=AnyChannel)


@dataclass(frozen=True, slots=True)
class Message:
    """One message: the document as JSON (ASCII), and the key that all attempts to deliver it share.

    ``before`` is the document of the same incident that was delivered last; None where there is none, or the channel
    does not need it.
    """

    idempotency_key: str
    body: str
    before: str | None = None


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """An attempt. ``error`` is None where the receiver accepted the message, else a line without secrets.

    ``refused``: the receiver rejected the message, so that a retry hardly helps. ``retry_after_seconds`` is how long
    the receiver asked to wait. ``answer`` is its answer where it accepted the message, one line as well.
    """

    error: str | None = None
    refused: bool = False
    retry_after_seconds: float | None = None
    answer: str = field(default="", compare=False)


class Channel(ABC, Generic[SettingsT]):
    """A way to a receiver. Used by one thread at a time."""

    def __init__(self, settings: SettingsT, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock

    @property
    def name(self) -> str:
        """Its name in the settings."""
        return self._settings.name

    @property
    @abstractmethod
    def receiver(self) -> str:
        """The receiver, for logs: never an address, which may carry a token."""

    @abstractmethod
    def check(self) -> None:
        """Check the settings without contacting the receiver. Raises ConfigError."""

    @abstractmethod
    def send(self, message: Message) -> DeliveryOutcome:
        """Try once, within the channel's timeout. An error is an outcome, not an exception."""

    def close(self) -> None:
        """Close connections."""
