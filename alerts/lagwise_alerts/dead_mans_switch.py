"""The dead man's switch (heartbeat): an address that is fetched while collection, analysis and delivery are healthy.

An external service notifies people when the requests stop, whatever the reason: this machine, this process, the
collection, the analysis, a channel. A round that hangs stops them, too: the result of a self-check expires.
"""

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import httpx

from lagwise.config.operating import Heartbeat
from lagwise.domain.humanise import duration
from lagwise.platform.errors import ConfigError
from lagwise.platform.log_events import LogEvent
from lagwise.platform.log_throttle import LogThrottle
from lagwise.platform.secrets import resolve_address
from lagwise_alerts.channels.attempt_deadline import Attempt
from lagwise_alerts.channels.http import Wire, quiet_http_log
from lagwise_alerts.model import AlertKind, FreshnessCondition, Situation
from lagwise_alerts.operate.queries import ChannelState

log = logging.getLogger("lagwise.alerts")

#: The result of a self-check expires this long after three rounds.
_VALID_SECONDS = 30.0
#: Older data is not fresh, unless three of its intervals are longer. The default rules page at this age, too.
OLDEST_DATA_SECONDS = 180.0
#: A message that has waited for longer than this, beyond the wait for a summary, is stuck.
LONGEST_WAIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class _SelfCheck:
    #: Why Lagwise cannot be relied on; None where it can.
    failure: str | None
    #: Of the monotonic clock, in seconds.
    at: float


class DeadMansSwitch:
    """Fetches the address at its interval, in its own thread, as long as the latest self-check passed."""

    def __init__(self, settings: Heartbeat, round_seconds: float) -> None:
        self._settings = settings
        self._valid_seconds = 3 * round_seconds + _VALID_SECONDS
        self._latest: _SelfCheck | None = None
        self._log_throttle = LogThrottle(log)
        self._changed = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        quiet_http_log()

    def start(self) -> None:
        """Start the thread. It fetches nothing before the first self-check."""
        self._thread.start()

    def update(self, failure: str | None) -> None:
        """Take the result of a round's self-check: why Lagwise cannot be relied on, None where it can."""
        first = self._latest is None
        self._latest = _SelfCheck(failure, time.monotonic())
        if first:
            self._changed.set()

    def stop(self, within_seconds: float) -> None:
        """Stop fetching."""
        self._stopped = True
        self._changed.set()
        self._thread.join(within_seconds)

    def _run(self) -> None:
        while not self._stopped:
            self.fetch_if_healthy()
            self._changed.wait(self._settings.interval_seconds)
            self._changed.clear()

    def fetch_if_healthy(self) -> None:
        """Fetch once, unless the self-check failed or expired. Logs why not, once."""
        latest = self._latest
        if latest is None:
            return
        age = time.monotonic() - latest.at
        failure = latest.failure if age <= self._valid_seconds else f"no round has ended for {age:.0f} s"
        if failure is not None:
            self._log_throttle.warn(LogEvent.HEARTBEAT_WITHHELD, f"no heartbeat is sent: {failure}", same="failure")
            return
        self._log_throttle.clear(LogEvent.HEARTBEAT_WITHHELD, "heartbeats are sent again")
        error = ping(self._settings)
        if error is None:
            self._log_throttle.clear(LogEvent.HEARTBEAT_FAILED, "the receiver of the heartbeat is reachable again")
        else:
            self._log_throttle.warn(LogEvent.HEARTBEAT_FAILED, f"the heartbeat failed ({error})")


def ping(settings: Heartbeat) -> str | None:
    """Fetch the address once. Returns what went wrong in one line, without the address, which may carry a token."""
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
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return f"{url.host}: {attempt.over if attempt.is_over else type(error).__name__}"


def self_check(
    situation: Situation, channels: Iterable[ChannelState], now: datetime, *, summary_seconds: float = 0.0
) -> str | None:
    """Why Lagwise cannot be relied on at the moment, in one line; None where it can.

    ``summary_seconds`` is how long a message may wait for a summary.
    """
    late = [_late(condition, now) for condition in situation.conditions if isinstance(condition, FreshnessCondition)]
    if not situation.clusters:
        late.append("no cluster is watched")
    late += [_undelivered(channel, now, summary_seconds) for channel in channels]
    return "; ".join(reason for reason in late if reason is not None) or None


def _late(condition: FreshnessCondition, now: datetime) -> str | None:
    if condition.newest_at is None:
        return f"{condition.subject} has brought no data"
    age = (now - condition.newest_at).total_seconds()
    if age <= max(OLDEST_DATA_SECONDS, condition.floor_seconds):
        return None
    if condition.subject.kind is AlertKind.ANALYSIS:
        return f"samples have waited for the analysis for {duration(round(age))}"
    return f"{condition.subject} has brought no data for {duration(round(age))}"


def _undelivered(channel: ChannelState, now: datetime, summary_seconds: float) -> str | None:
    if channel.waiting_since is not None:
        waited = (now - channel.waiting_since).total_seconds()
        if waited > LONGEST_WAIT_SECONDS + summary_seconds:
            return f"messages to channel {channel.channel} have waited for {duration(round(waited))}"
    if channel.gave_up_at is not None and (channel.delivered_at is None or channel.delivered_at < channel.gave_up_at):
        return f"the last message to channel {channel.channel} was given up"
    return None
