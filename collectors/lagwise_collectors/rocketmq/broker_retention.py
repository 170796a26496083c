"""How long a broker keeps messages, by its settings and its disk, and the broker's health.

A broker keeps the messages of all topics in one commit log. It deletes whole files of it, ``fileReservedTime`` hours
after the last write to one, at the hour ``deleteWhen``; while the disk is fuller than ``diskMaxUsedSpaceRatio`` (75 %),
at any hour; while it is fuller than ``diskSpaceCleanForciblyRatio`` (85 %), the oldest files whatever their age; and
beyond ``diskSpaceWarningLevelRatio`` (90 %) it takes no messages (``DefaultMessageStore.CleanCommitLogService``).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lagwise.domain.humanise import duration, size
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.rocketmq.remoting import requests
from lagwise_collectors.rocketmq.remoting.client import RocketmqBroker, RocketmqClient
from lagwise_collectors.rocketmq.remoting.errors import RocketmqTrouble

#: A broker's settings are read again after this time.
CONFIG_SECONDS = 300.0
_HOUR_SECONDS = 3600.0
#: How fast a disk fills is estimated from a log that goes back this far, or on a disk that is filling already: the
#: initial load of a new broker says nothing about later hours.
_MIN_LOG_AGE_SECONDS = _HOUR_SECONDS
#: Shares of a disk are reported in hundredths, rounded up.
_ROUNDING = 0.01
#: Forced deletion frees a file or ten at a time: a disk that was beyond its level is taken to be so for an hour more,
#: unless far more was freed than that.
_FORCED_SECONDS = _HOUR_SECONDS
_FORCED_FREES = 0.05
#: More bytes than this that are stored and in no queue yet mean that the broker falls behind.
_DISPATCH_BEHIND_BYTES = 16 * 1024**2


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """A broker's settings. The levels ``filling``, ``forced`` and ``full`` are shares of the disk."""

    reserved_seconds: float | None = None
    filling: float = 0.75
    forced: float = 0.85
    full: float = 0.90
    deletes_forcibly: bool = True
    page_cache_busy_seconds: float = 1.0
    send_wait_seconds: float = 0.2
    pull_wait_seconds: float = 5.0

    @classmethod
    def of(cls, values: Mapping[str, str]) -> "BrokerSettings":
        """From the broker's configuration. Invalid values count as the default."""
        hours = _whole(values.get("fileReservedTime"))
        percents = {name: _whole(values.get(key)) for name, (key, _, _) in _LEVELS.items()}
        waits_ms = {name: _whole(values.get(key)) for name, key in _WAITS.items()}
        return cls(
            reserved_seconds=None if hours is None or hours > _MAX_HOURS else hours * _HOUR_SECONDS,
            deletes_forcibly=values.get("cleanFileForciblyEnable") != "false",
            **{
                name: min(max(percent / 100, _LEVELS[name][1]), _LEVELS[name][2])
                for name, percent in percents.items()
                if percent is not None
            },
            **{name: wait / 1000 for name, wait in waits_ms.items() if wait},
        )


#: Levels by the names of their settings, and the bounds in which the broker holds each.
_LEVELS = {
    "filling": ("diskMaxUsedSpaceRatio", 0.10, 0.95),
    "forced": ("diskSpaceCleanForciblyRatio", 0.30, 0.85),
    "full": ("diskSpaceWarningLevelRatio", 0.35, 0.90),
}
#: A hundred years: longer times are invalid.
_MAX_HOURS = 1_000_000
_WAITS = {
    "page_cache_busy_seconds": "osPageCacheBusyTimeOutMills",
    "send_wait_seconds": "waitTimeMillsInSendQueue",
    "pull_wait_seconds": "waitTimeMillsInPullQueue",
}


@dataclass(frozen=True, slots=True)
class BrokerState:
    """A broker's state. None: not reported."""

    #: Seconds since 1970.
    at: float = 0.0
    #: Used share of its disk, or of the fuller one of two: commit log and consume queues have the same levels.
    disk_used: float | None = None
    #: Size of the disk, where both are on one.
    disk_bytes: float | None = None
    #: Size of the commit log.
    log_bytes: int | None = None
    #: When its oldest message was stored, seconds since 1970.
    earliest_at: float | None = None
    dispatch_behind_bytes: int = 0
    page_cache_lock_seconds: float = 0.0
    send_wait_seconds: float = 0.0
    pull_wait_seconds: float = 0.0
    #: How far its clock is ahead of ours, to a second.
    clock_ahead_seconds: float | None = None

    @classmethod
    def of(cls, values: Mapping[str, str], at: float) -> "BrokerState":
        """From the broker's state, all of it text."""
        begin, end = _whole(values.get("commitLogMinOffset")), _whole(values.get("commitLogMaxOffset"))
        shares = [_share(values.get(f"{what}DiskRatio")) for what in ("commitLog", "consumeQueue")]
        used = max((share for share in shares if share is not None), default=None)
        # The reported disk size is that of the store's root, where the consume queues are. A commit log on
        # another disk, or on several, shows by another share of it being used.
        is_one = len(set(shares)) == 1 and sum(name.startswith("commitLogDiskRatio_") for name in values) <= 1
        earliest_ms = _whole(values.get("earliestMessageTimeStamp"))
        return cls(
            at=at,
            disk_used=used,
            disk_bytes=_disk_bytes(values.get("commitLogDirCapacity"), used) if is_one else None,
            log_bytes=end - begin if begin is not None and end is not None and end > begin else None,
            earliest_at=earliest_ms / 1000 if earliest_ms else None,
            dispatch_behind_bytes=_whole(values.get("dispatchBehindBytes")) or 0,
            page_cache_lock_seconds=(_whole(values.get("pageCacheLockTimeMills")) or 0) / 1000,
            send_wait_seconds=(_whole(values.get("sendThreadPoolQueueHeadWaitTimeMills")) or 0) / 1000,
            pull_wait_seconds=(_whole(values.get("pullThreadPoolQueueHeadWaitTimeMills")) or 0) / 1000,
            clock_ahead_seconds=_clock_ahead(values, at),
        )


@dataclass(slots=True)
class BrokerRetention:
    """A broker's retention settings and its state when it was last read."""

    settings: BrokerSettings = field(default_factory=BrokerSettings)
    state: BrokerState = field(default_factory=BrokerState)
    #: On the monotonic clock, in seconds.
    settings_read_at: float = float("-inf")
    #: When its disk was last above the level of forced deletion, seconds since 1970.
    forced_at: float = float("-inf")
    #: Its disk went above the last level, and not below the level of forced deletion since.
    is_full: bool = False

    def take(self, state: BrokerState) -> None:
        """Take in the current state."""
        self.state, used = state, state.disk_used
        if used is not None and used > self.settings.forced:
            self.forced_at = state.at
        # It takes messages again once its disk is below the level of forced deletion, and not before.
        self.is_full = used is not None and used > (self.settings.forced if self.is_full else self.settings.full)

    @property
    def deletes_at_any_age(self) -> bool:
        """Whether the disk is so full that the oldest messages are deleted whatever their age, or was so lately: where
        that frees enough for a moment, it will be so again."""
        used, was_lately = self.state.disk_used, self.state.at - self.forced_at < _FORCED_SECONDS
        is_about = used is None or used > self.settings.forced - _FORCED_FREES
        return self.settings.deletes_forcibly and was_lately and is_about

    @property
    def lasts_seconds(self) -> float | None:
        """How old messages get before the disk is too full to keep them, at the rate at which the log was written.
        None: unknown, or messages are never deleted for that.

        The log goes back ``age`` seconds and may grow by what is left of the disk below the level of forced deletion.
        """
        state, used = self.state, self.state.disk_used
        if not self.settings.deletes_forcibly or state.earliest_at is None or not state.log_bytes or used is None:
            return None
        age = state.at - state.earliest_at
        if age <= 0 or (age < _MIN_LOG_AGE_SECONDS and used < self.settings.filling):
            return None
        if self.deletes_at_any_age:
            return age
        if state.disk_bytes is None:
            return None
        left = max(0.0, self.settings.forced + _ROUNDING / 2 - used)
        return age * (1 + left * state.disk_bytes / state.log_bytes)

    @property
    def kept_seconds(self) -> float | None:
        """How old messages get at least: by ``fileReservedTime``, or as long as the disk lasts where that is shorter.
        None: unknown."""
        reserved, lasts = self.settings.reserved_seconds, self.lasts_seconds
        if lasts is None:
            return None if self.deletes_at_any_age else reserved
        return lasts if reserved is None else min(reserved, lasts)


class BrokerStatusReader:
    """Reads the state of brokers, and from time to time their settings. ``clock`` and ``monotonic`` date them."""

    def __init__(self, client: RocketmqClient, clock: Callable[[], datetime], monotonic: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._monotonic = monotonic
        self._retention: dict[str, BrokerRetention] = {}

    def read(self, broker: RocketmqBroker) -> BrokerRetention:
        """Its state, and its settings where they were not read lately. Raises RocketmqTrouble; what was read counts."""
        retention, now = self._retention.setdefault(broker.name, BrokerRetention()), self._monotonic()
        asked = [requests.BROKER_RUNTIME]
        if now - retention.settings_read_at >= CONFIG_SECONDS:
            asked.append(requests.BROKER_CONFIG)
        runtime, *config = self._client.ask_all(broker.address, asked)
        readable = [answer for answer in config if not isinstance(answer, RocketmqTrouble)]
        if readable:
            retention.settings = BrokerSettings.of(requests.config_of(readable[0].body))
            retention.settings_read_at = now
        if isinstance(runtime, RocketmqTrouble):
            retention.take(BrokerState())
            raise runtime
        retention.take(BrokerState.of(requests.runtime_of(runtime.body), self._clock().timestamp()))
        for answer in config:
            if isinstance(answer, RocketmqTrouble):
                raise answer
        return retention

    def of(self, name: str) -> BrokerRetention:
        """The last state of a broker."""
        return self._retention.get(name, BrokerRetention())

    def count_troubles(self, names: Iterable[str], errors: ErrorTally) -> None:
        """Count what is wrong with these brokers."""
        for name in names:
            for kind, detail in broker_troubles(self.of(name)):
                errors.note(kind, f"{name}: {detail}")


def broker_troubles(retention: BrokerRetention) -> list[tuple[str, str]]:
    """What is wrong with a broker: error kinds and sentences."""
    return [*_disk(retention), *_health(retention)]


def _disk(retention: BrokerRetention) -> Iterable[tuple[str, str]]:
    """What a disk that fills means, by RocketMQ's three levels: the highest that is passed."""
    used, levels, lasts = retention.state.disk_used, retention.settings, retention.lasts_seconds
    if used is None:
        return
    said = f"its disk is {used:.0%} full"
    back = "" if lasts is None else f": they go back {duration(lasts)}"
    deletes = f"deletes the oldest messages whatever their age{back}"
    if retention.is_full:
        also = f", and it {deletes}" if retention.deletes_at_any_age else ""
        yield "disk_full", f"{said}, so it accepts no new messages until it is below {levels.forced:.0%}{also}"
    elif retention.deletes_at_any_age:
        so = "so" if used > levels.forced else f"and was beyond {levels.forced:.0%} within the hour:"
        yield "disk_too_full", f"{said}, {so} it {deletes}; beyond {levels.full:.0%} it accepts no new ones"
    elif used > levels.filling:
        lasting = "" if lasts is None else f": at the current write rate messages are deleted after {duration(lasts)}"
        then = f"beyond {levels.forced:.0%} it deletes the oldest messages whatever their age{lasting}"
        if not levels.deletes_forcibly:
            then = f"beyond {levels.full:.0%} it accepts no new messages"
        yield "disk_filling", f"{said}; {then}"


def _health(retention: BrokerRetention) -> Iterable[tuple[str, str]]:
    state, settings = retention.state, retention.settings
    if state.dispatch_behind_bytes >= _DISPATCH_BEHIND_BYTES:
        behind = size(state.dispatch_behind_bytes)
        yield (
            "dispatch_behind",
            f"{behind} of messages are stored but not in any queue yet: the real lag is larger than shown",
        )
    if state.page_cache_lock_seconds >= settings.page_cache_busy_seconds:
        held = duration(state.page_cache_lock_seconds)
        yield "page_cache_busy", f"writing one message has taken {held} so far: it rejects others meanwhile"
    if state.send_wait_seconds >= settings.send_wait_seconds:
        waits = duration(state.send_wait_seconds)
        yield "sends_wait", f"a message to be stored has waited for {waits}: it rejects messages that wait this long"
    if state.pull_wait_seconds >= settings.pull_wait_seconds:
        yield "pulls_wait", f"a consumer's request has waited for {duration(state.pull_wait_seconds)}: it is overloaded"


#: The broker's age, in whole seconds of its own clock: ``[ 0 days, 0 hours, 6 minutes, 20 seconds ]``.
_AGE = re.compile(r"\[ (\d{1,6}) days, (\d{1,2}) hours, (\d{1,2}) minutes, (\d{1,2}) seconds \]")


def _clock_ahead(values: Mapping[str, str], at: float) -> float | None:
    """By how much the broker's clock is ahead of ours, which showed ``at``: when it started, plus its age."""
    started_ms, age = _whole(values.get("bootTimestamp")), _AGE.fullmatch(values.get("runtime", "").strip())
    if not started_ms or age is None:
        return None
    days, hours, minutes, seconds = map(int, age.groups())
    # Half a second for what is left of the broker's last second.
    return started_ms / 1000 + ((days * 24 + hours) * 60 + minutes) * 60 + seconds + 0.5 - at


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 19 else None


def _share(text: str | None) -> float | None:
    try:
        share = float(text or "")
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


_UNITS = {unit: 1024.0**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}
#: The broker writes numbers as its language does.
_CAPACITY = re.compile(r"Total : (\d{1,4}(?:[.,]\d)?) (\w{1,3}), Free : (\d{1,4}(?:[.,]\d)?) (\w{1,3})\.")


def _disk_bytes(capacity: str | None, used: float | None) -> float | None:
    """The size of a disk by ``Total : 252.0 GiB, Free : 220.4 GiB.`` and the share that is used.

    The space that is reserved for the system is free but not available. The broker's share is one of the available
    space, and so is the size. A share that does not fit belongs to another disk.
    """
    found = _CAPACITY.fullmatch(capacity or "")
    if found is None or not used or not {found[2], found[4]} <= _UNITS.keys():
        return None
    total, free = (float(found[n].replace(",", ".")) * _UNITS[found[n + 1]] for n in (1, 3))
    size_bytes = (total - free) / used
    return size_bytes if 0 < size_bytes <= total * (1 + _ROUNDING / used) else None
