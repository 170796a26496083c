"""Who asks, what they may see, and how often they may ask."""

import hmac
import ipaddress
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lagwise.config.server import ServerSettings
from lagwise.config.visibility import Visibility
from lagwise.platform.errors import ConfigError
from lagwise.platform.secrets import resolve
from lagwise_app.server.refusal import Refusal

Need = Literal["viewer", "metrics"]

#: So many addresses are counted each by itself; further ones together.
_MOST_COUNTED = 10_000
_OTHERS = "others"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the name of its token, or its address where no token is required."""

    name: str
    role: Need = "viewer"
    visibility: Visibility = field(default_factory=Visibility)

    def may(self, need: Need) -> bool:
        """Whether it may ask what needs this role. Metrics are of all groups."""
        return self.role == need or (need == "metrics" and self.visibility.is_unlimited)


@dataclass(frozen=True, slots=True)
class _Token:
    secret: bytes
    caller: Caller


class Access:
    """The tokens that the server knows. Without any, programs of this machine may ask what needs the role ``open_to``,
    and others what needs ``open_to_others``."""

    def __init__(
        self, tokens: Sequence[tuple[str, Caller]], open_to: Need = "viewer", open_to_others: Need = "viewer"
    ) -> None:
        self._open_to, self._open_to_others = open_to, open_to_others
        secrets = [secret for secret, _ in tokens]
        if len(set(secrets)) < len(secrets):
            raise ConfigError("two tokens of `server` are the same: nobody could tell whose limits hold")
        self._tokens = [_Token(f"Bearer {secret}".encode(), caller) for secret, caller in tokens]

    @classmethod
    def of(cls, settings: ServerSettings, host: str | None = None) -> "Access":
        """The tokens of the settings, read from where they are, for a server that listens on ``host`` where that is
        another address than theirs. Raises ConfigError."""
        tokens = [(resolve(one.token), Caller(one.name, one.role, one.visibility)) for one in settings.tokens]
        if settings.token is not None:
            tokens.append((resolve(settings.token), Caller("server.token")))
        # Who opened the port for Prometheus must not thereby have opened the rest.
        is_own = is_loopback(settings.host if host is None else host)
        return cls(tokens, "viewer" if is_own else "metrics", "metrics")

    def caller(self, authorization: str, address: str, *, is_local: bool) -> Caller | None:
        """Who sends this header from there; None if a token is required, and it is none. ``is_local`` says whether a
        program of this machine asks for itself.

        Takes the same time whichever token it is, and however much of one is right.
        """
        if not self._tokens:
            return Caller(address, self._open_to if is_local else self._open_to_others)
        sent, found = authorization.encode("latin-1", "replace"), None
        for token in self._tokens:
            if hmac.compare_digest(sent, token.secret):
                found = token.caller
        return found


def is_loopback(host: str) -> bool:
    """Whether a host, as a name or an address, is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class RateLimit:
    """How often each caller may ask: ``burst`` requests at once, and ``per_second`` in the long run."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds_each, self._most_ahead, self._clock = 1 / per_second, burst / per_second, clock
        #: Until when the requests of each caller would have taken, had they come evenly.
        self._taken_until: dict[str, float] = {}
        self._counting = threading.Lock()

    def count(self, caller: str) -> None:
        """Count a request. Raises Refusal if it comes too soon."""
        with self._counting:
            now = self._clock()
            if caller not in self._taken_until and len(self._taken_until) >= _MOST_COUNTED:
                self._taken_until = {name: until for name, until in self._taken_until.items() if until > now}
                caller = caller if len(self._taken_until) < _MOST_COUNTED else _OTHERS
            until = max(self._taken_until.get(caller, now), now) + self._seconds_each
            ahead = until - now - self._most_ahead
            if ahead > 1e-9:
                seconds = math.ceil(ahead)
                raise Refusal(429, f"too many requests: ask again in {seconds} s", {"Retry-After": str(seconds)})
            self._taken_until[caller] = until
