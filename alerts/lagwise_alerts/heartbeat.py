"""The dead man's switch: an address that is fetched while all is well.

Somebody else's service tells people when that stops, whatever the reason: this machine, this process, the collection,
the analysis, a channel. A round that hangs feeds nothing: what it said last is believed for a short time only.
"""

import logging
import threading
import time
from dataclasses import dataclass

import httpx

from lagwise.config import Heartbeat
from lagwise.platform.errors import ConfigError
from lagwise.platform.log_throttle import LogThrottle
from lagwise.platform.secrets import resolve_address
from lagwise_alerts.channels.attempt import Attempt
from lagwise_alerts.channels.http import Wire

log = logging.getLogger("lagwise.alerts")

#: What a round said is believed for so many seconds beyond three rounds.
_BELIEVED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Said:
    unfit: str | None
    at: float


class DeadMansSwitch:
    """Fetches the address at its interval, in a thread of its own, as long as the last round said that all is well."""

    def __init__(self, settings: Heartbeat, round_seconds: float) -> None:
        self._settings = settings
        self._believed_seconds = 3 * round_seconds + _BELIEVED_SECONDS
        self._said: _Said | None = None
        self._log_throttle = LogThrottle(log)
        self._changed = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        # httpx logs every address in full, tokens included, at INFO; httpcore the headers at DEBUG.
        for name in ("httpx", "httpcore"):
            logging.getLogger(name).setLevel(logging.WARNING)

    def start(self) -> None:
        """Start to fetch; nothing is fetched before the first round has said something."""
        self._thread.start()

    def say(self, unfit: str | None) -> None:
        """What a round found: why all is not well, None where it is."""
        first = self._said is None
        self._said = _Said(unfit, time.monotonic())
        if first:
            self._changed.set()

    def stop(self, within_seconds: float) -> None:
        """Fetch no more."""
        self._stopped = True
        self._changed.set()
        self._thread.join(within_seconds)

    def _run(self) -> None:
        while not self._stopped:
            self.beat_if_well()
            self._changed.wait(self._settings.interval_seconds)
            self._changed.clear()

    def beat_if_well(self) -> None:
        """Fetch once, unless something is not well; says why not, once."""
        said = self._said
        if said is None:
            return
        age = time.monotonic() - said.at
        unfit = said.unfit if age <= self._believed_seconds else f"no round has ended for {age:.0f} s"
        if unfit is not None:
            self._log_throttle.say("unfit", f"the dead man's switch is not fed: {unfit}", same="unfit")
            return
        self._log_throttle.clear("unfit", "the dead man's switch is fed again")
        error = ping(self._settings)
        if error is None:
            self._log_throttle.clear("ping", "the dead man's switch can be reached again")
        else:
            self._log_throttle.say("ping", f"the dead man's switch ({error})")


def ping(settings: Heartbeat) -> str | None:
    """Fetch the address once; what went wrong, in one line without the address, which may carry a token."""
    try:
        url = httpx.URL(resolve_address(settings.url))
    except ConfigError as error:
        return str(error)
    except httpx.InvalidURL:
        return "its address is not a URL: give one that begins with https://"
    wire = Wire()
    with Attempt(settings.timeout_seconds, wire.socket) as attempt:
        try:
            client = httpx.Client(timeout=settings.timeout_seconds, follow_redirects=False)
            with client, client.stream("GET", url, extensions={"trace": wire.trace}) as answer:
                return None if answer.is_success else f"{url.host}: answered {answer.status_code}"
        except httpx.HTTPError as error:
            return f"{url.host}: {attempt.over if attempt.is_over else type(error).__name__}"
