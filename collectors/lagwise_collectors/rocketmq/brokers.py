"""How a broker is, and how long it keeps messages.

A broker keeps the messages of all topics in one commit log. It deletes whole files of it, ``fileReservedTime`` hours
after the last write to one, at the hour ``deleteWhen``; while the disk is fuller than ``diskMaxUsedSpaceRatio`` (75 %),
at any hour; while it is fuller than ``diskSpaceCleanForciblyRatio`` (85 %), the oldest files whatever their age; and
beyond ``diskSpaceWarningLevelRatio`` (90 %) it takes no messages (``DefaultMessageStore.CleanCommitLogService``).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lagwise.domain.humanise import duration, size
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.rocketmq import requests
from lagwise_collectors.rocketmq.client import Broker, Client
from lagwise_collectors.rocketmq.errors import RocketmqTrouble

#: A broker's settings are read again after so long.
CONFIG_SECONDS = 300.0
_HOUR_SECONDS = 3600.0
#: How fast a disk fills is told from a log that goes back so far, or on a disk that is filling already: what a new
#: broker was given at once says nothing of the hours to come.
_TELLING_SECONDS = _HOUR_SECONDS
#: What a disk lets a broker keep is told in such steps (of hours, from ten on), so that rows of topics stay few.
_STEP_SECONDS = 600.0
#: Shares of a disk are told in hundredths, and rounded up.
_ROUNDING = 0.01
#: So many bytes that are stored and not yet in any queue are more than what is under way.
_DISPATCH_BEHIND_BYTES = 16 * 1024**2


@dataclass(frozen=True, slots=True)
class Settings:
    """A broker's settings; levels are shares of the disk. None is not known."""

    reserved_seconds: float | None = None
    filling: float = 0.75
    forced: float = 0.85
    full: float = 0.90
    deletes_forcibly: bool = True
    page_cache_busy_seconds: float = 1.0
    send_wait_seconds: float = 0.2
    pull_wait_seconds: float = 5.0

    @classmethod
    def of(cls, told: Mapping[str, str]) -> "Settings":
        """What the broker tells of itself; what makes no sense is as by default."""
        hours = _whole(told.get("fileReservedTime"))
        percents = {name: _whole(told.get(key)) for name, (key, _, _) in _LEVELS.items()}
        waits_ms = {name: _whole(told.get(key)) for name, key in _WAITS.items()}
        return cls(
            reserved_seconds=None if hours is None else hours * _HOUR_SECONDS,
            deletes_forcibly=told.get("cleanFileForciblyEnable") != "false",
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
_WAITS = {
    "page_cache_busy_seconds": "osPageCacheBusyTimeOutMills",
    "send_wait_seconds": "waitTimeMillsInSendQueue",
    "pull_wait_seconds": "waitTimeMillsInPullQueue",
}


@dataclass(frozen=True, slots=True)
class State:
    """How a broker is now. ``disk_used`` is a share, ``disk_bytes`` the size of the disk, ``log_bytes`` that of the
    commit log, whose oldest message was stored at ``earliest_seconds`` since 1970; None is not told."""

    disk_used: float | None = None
    disk_bytes: float | None = None
    log_bytes: int | None = None
    earliest_seconds: float | None = None
    dispatch_behind_bytes: int = 0
    page_cache_lock_seconds: float = 0.0
    send_wait_seconds: float = 0.0
    pull_wait_seconds: float = 0.0

    @classmethod
    def of(cls, told: Mapping[str, str]) -> "State":
        """What the broker tells, all of it text."""
        begin, end = _whole(told.get("commitLogMinOffset")), _whole(told.get("commitLogMaxOffset"))
        used = _share(told.get("commitLogDiskRatio"))
        disks = sum(name.startswith("commitLogDiskRatio_") for name in told)
        earliest_ms = _whole(told.get("earliestMessageTimeStamp"))
        return cls(
            disk_used=used,
            # Of a log on several disks the share is that of the emptiest, and nobody tells their sizes.
            disk_bytes=_disk_bytes(told.get("commitLogDirCapacity"), used) if disks <= 1 else None,
            log_bytes=end - begin if begin is not None and end is not None and end > begin else None,
            earliest_seconds=earliest_ms / 1000 if earliest_ms else None,
            dispatch_behind_bytes=_whole(told.get("dispatchBehindBytes")) or 0,
            page_cache_lock_seconds=(_whole(told.get("pageCacheLockTimeMills")) or 0) / 1000,
            send_wait_seconds=(_whole(told.get("sendThreadPoolQueueHeadWaitTimeMills")) or 0) / 1000,
            pull_wait_seconds=(_whole(told.get("pullThreadPoolQueueHeadWaitTimeMills")) or 0) / 1000,
        )


@dataclass(slots=True)
class Keeping:
    """How a broker keeps messages, and how it was when it was last asked."""

    settings: Settings = field(default_factory=Settings)
    state: State = field(default_factory=State)
    read_at: float = float("-inf")

    @property
    def deletes_at_any_age(self) -> bool:
        """Whether the disk is so full that the oldest messages are deleted whatever their age."""
        used = self.state.disk_used
        return self.settings.deletes_forcibly and used is not None and used > self.settings.forced

    def lasts_seconds(self, now: float) -> float | None:
        """How old messages get before the disk is too full to keep them, at the rate at which the log was written;
        None is not known, or they are never deleted for that. ``now`` is in seconds since 1970.

        The log goes back ``age`` seconds and may grow by what is left of the disk below the level of forced deletion.
        """
        at, log, used = self.state.earliest_seconds, self.state.log_bytes, self.state.disk_used
        if not self.settings.deletes_forcibly or at is None or not log or used is None or now <= at:
            return None
        if now - at < _TELLING_SECONDS and used < self.settings.filling:
            return None
        left = max(0.0, self.settings.forced - used)
        if left > 0 and self.state.disk_bytes is None:
            return None
        lasts = (now - at) * (1 + left * (self.state.disk_bytes or 0.0) / log)
        step = _STEP_SECONDS if lasts < 10 * _HOUR_SECONDS else _HOUR_SECONDS
        return lasts // step * step if lasts >= step else lasts

    def kept_seconds(self, now: float) -> float | None:
        """How old messages get at least: by ``fileReservedTime``, or as long as the disk lasts where that is shorter;
        None is not known."""
        reserved, lasts = self.settings.reserved_seconds, self.lasts_seconds(now)
        if lasts is None:
            return None if self.deletes_at_any_age else reserved
        return lasts if reserved is None else min(reserved, lasts)


class Brokers:
    """What is known of each broker, read in turns."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._keeping: dict[str, Keeping] = {}

    def read(self, broker: Broker, now: float) -> Keeping:
        """Its state, and its settings where they were not read lately. Raises RocketmqTrouble."""
        keeping = self._keeping.setdefault(broker.name, Keeping())
        asked = [requests.BROKER_RUNTIME]
        if now - keeping.read_at >= CONFIG_SECONDS:
            asked.append(requests.BROKER_CONFIG)
        runtime, *config = self._client.ask_all(broker.address, asked)
        for answer in config:
            if isinstance(answer, RocketmqTrouble):
                raise answer
            keeping.settings = Settings.of(requests.config_of(answer.body))
            keeping.read_at = now
        if isinstance(runtime, RocketmqTrouble):
            raise runtime
        keeping.state = State.of(requests.runtime_of(runtime.body))
        return keeping

    def of(self, name: str) -> Keeping:
        """What is known of a broker."""
        return self._keeping.get(name, Keeping())

    def tell(self, names: Iterable[str], now: float, errors: ErrorTally) -> None:
        """Count the brokers that are unwell; ``now`` is in seconds since 1970."""
        for name in names:
            for kind, detail in troubles_of(self.of(name), now):
                errors.note(kind, f"{name}: {detail}")


def troubles_of(keeping: Keeping, now: float) -> list[tuple[str, str]]:
    """What is wrong with a broker: kind and sentence of each; ``now`` is in seconds since 1970."""
    return [*_disk(keeping, now), *_health(keeping)]


def _disk(keeping: Keeping, now: float) -> Iterable[tuple[str, str]]:
    """What a disk that fills means, by RocketMQ's three levels: the highest that is passed."""
    used, levels = keeping.state.disk_used, keeping.settings
    if used is None:
        return
    said = f"its commit log's disk is {used:.0%} full"
    lasts = keeping.lasts_seconds(now)
    back = "" if lasts is None else f": they go back {duration(lasts)}"
    deletes = f"deletes the oldest messages whatever their age{back}"
    if used > levels.full:
        also = f", and it {deletes}" if levels.deletes_forcibly else ""
        yield "disk_full", f"{said}, so it takes no new messages{also}"
    elif keeping.deletes_at_any_age:
        yield "disk_too_full", f"{said}, so it {deletes}; beyond {levels.full:.0%} it takes no new ones"
    elif used > levels.filling:
        lasting = "" if lasts is None else f": at the rate of writing they get {duration(lasts)} old"
        then = f"beyond {levels.forced:.0%} it deletes the oldest messages whatever their age{lasting}"
        if not levels.deletes_forcibly:
            then = f"beyond {levels.full:.0%} it takes no new messages"
        yield "disk_filling", f"{said}; {then}"


def _health(keeping: Keeping) -> Iterable[tuple[str, str]]:
    state, settings = keeping.state, keeping.settings
    if state.dispatch_behind_bytes >= _DISPATCH_BEHIND_BYTES:
        behind = size(state.dispatch_behind_bytes)
        yield "dispatch_behind", f"{behind} of messages are stored and in no queue yet: lag is larger than it can tell"
    if state.page_cache_lock_seconds >= settings.page_cache_busy_seconds:
        held = duration(state.page_cache_lock_seconds)
        yield "page_cache_busy", f"writing one message has taken {held} so far: it refuses others meanwhile"
    if state.send_wait_seconds >= settings.send_wait_seconds:
        waits = duration(state.send_wait_seconds)
        yield "sends_wait", f"a message to be stored has waited for {waits}: it refuses those that wait that long"
    if state.pull_wait_seconds >= settings.pull_wait_seconds:
        yield "pulls_wait", f"a consumer's request has waited for {duration(state.pull_wait_seconds)}: it is overloaded"


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 19 else None


def _share(text: str | None) -> float | None:
    try:
        share = float(text or "")
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


_UNITS = {unit: 1024.0**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}
_CAPACITY = re.compile(r"Total : (\d{1,4}(?:\.\d)?) (\w{1,3}), Free : (\d{1,4}(?:\.\d)?) (\w{1,3})\.")


def _disk_bytes(capacity: str | None, used: float | None) -> float | None:
    """The size of a disk by ``Total : 252.0 GiB, Free : 220.4 GiB.`` and the share that is used.

    What is kept for the system is free and cannot be had: the broker's share is that of what can be had, and so is the
    size. A share that does not fit is that of another disk: the numbers are of the one where the store's root is.
    """
    found = _CAPACITY.fullmatch(capacity or "")
    if found is None or not used or not {found[2], found[4]} <= _UNITS.keys():
        return None
    total, free = float(found[1]) * _UNITS[found[2]], float(found[3]) * _UNITS[found[4]]
    size_bytes = (total - free) / used
    return size_bytes if 0 < size_bytes <= total * (1 + _ROUNDING / used) else None
