"""How long a broker keeps messages on its disk, and its health: from the numbers that it reports."""

import json
from collections.abc import Mapping

import pytest

from lagwise_collectors.rocketmq.broker_retention import BrokerRetention, BrokerSettings, BrokerState, broker_troubles
from lagwise_collectors.rocketmq.remoting import requests

NOW = 1_795_400_000.0
HOUR, DAY, GIB, TIB = 3600.0, 86_400.0, 1024**3, 1024**4
THREE_DAYS = BrokerSettings(reserved_seconds=3 * DAY)

#: As a broker 5.5.0 sent it, shortened.
RUNTIME = (
    b'{"table":{"commitLogDiskRatio_/x/commitlog":"0.35","commitLogMinOffset":"0","commitLogMaxOffset":"677147",'
    b'"commitLogDiskRatio":"0.35","consumeQueueDiskRatio":"0.35",'
    b'"commitLogDirCapacity":"Total : 252.0 GiB, Free : 220.4 GiB.",'
    b'"earliestMessageTimeStamp":"1795394815729","dispatchBehindBytes":"0","pageCacheLockTimeMills":"0",'
    b'"sendThreadPoolQueueHeadWaitTimeMills":"12","pullThreadPoolQueueHeadWaitTimeMills":"0",'
    b'"putMessageDistributeTime":"null"}}'
)


def log(back_seconds: float, size: float, used: float, disk: float | None = 1 * TIB) -> BrokerState:
    """A log that goes back so far, of so many bytes."""
    return BrokerState(NOW, used, disk, int(size), NOW - back_seconds)


def keeping(state: BrokerState, settings: BrokerSettings = THREE_DAYS) -> BrokerRetention:
    """How a broker keeps messages that is in this state."""
    found = BrokerRetention(settings)
    found.take(state)
    return found


def test_the_state_a_broker_reports() -> None:
    assert BrokerState.of(requests.runtime_of(RUNTIME), NOW) == BrokerState(
        at=NOW,
        disk_used=0.35,
        disk_bytes=pytest.approx(31.6 * GIB / 0.35),
        log_bytes=677_147,
        earliest_at=1_795_394_815.729,
        send_wait_seconds=0.012,
    )
    reported = {"fileReservedTime": "72", "diskMaxUsedSpaceRatio": "99", "diskSpaceCleanForciblyRatio": "80"}
    assert BrokerSettings.of(reported) == BrokerSettings(reserved_seconds=3 * DAY, filling=0.95, forced=0.80)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"commitLogDiskRatio": "0.60"}, "the log has a disk of its own"),
        ({"commitLogDiskRatio_/y/commitlog": "0.9"}, "a log on two disks"),
        ({"commitLogDiskRatio": "0.05", "consumeQueueDiskRatio": "0.05"}, "more than there is: it is another disk"),
        ({"commitLogDiskRatio": "0.0", "consumeQueueDiskRatio": "0.0"}, "nothing is used"),
        ({"commitLogDirCapacity": "Total : 252.0 GiB, Free : 252.0 GiB."}, "nothing at all"),
        ({"commitLogDirCapacity": "Total : 252.0 XiB, Free : 220.4 GiB."}, "no unit"),
        ({"commitLogDirCapacity": "none"}, "no numbers"),
    ],
)
def test_where_the_size_of_the_disk_is_not_known(change: dict[str, str], why: str) -> None:
    assert BrokerState.of(json.loads(RUNTIME)["table"] | change, NOW).disk_bytes is None, why


@pytest.mark.parametrize(
    ("started_ms", "age", "ahead"),
    [
        ("1795400000000", "[ 0 days, 0 hours, 0 minutes, 0 seconds ]", 0.5),
        ("1795300000000", "[ 1 days, 3 hours, 46 minutes, 40 seconds ]", 0.5),
        ("1795300000000", "[ 1 days, 3 hours, 47 minutes, 10 seconds ]", 30.5),
        ("1795399000000", "[ 0 days, 0 hours, 10 minutes, 0 seconds ]", -399.5),
        ("1795400000000", "an hour", None),
        ("0", "[ 0 days, 0 hours, 10 minutes, 0 seconds ]", None),
    ],
)
def test_the_clock_of_a_broker_is_its_start_and_its_age(started_ms: str, age: str, ahead: float | None) -> None:
    reported = json.loads(RUNTIME)["table"] | {"bootTimestamp": started_ms, "runtime": age}
    assert BrokerState.of(reported, NOW).clock_ahead_seconds == ahead


@pytest.mark.parametrize("value", ["", "x", "-1", "9" * 30, "1.5", "null"])
def test_what_makes_no_sense_is_not_known(value: str) -> None:
    names = json.loads(RUNTIME)["table"]
    reported = {name: value for name in names if "DiskRatio" not in name}
    assert BrokerState.of(reported, NOW) == BrokerState(at=NOW)
    assert BrokerSettings.of(dict.fromkeys(["fileReservedTime", "diskMaxUsedSpaceRatio"], value)) == BrokerSettings()


@pytest.mark.parametrize(
    ("settings", "state", "kept_seconds"),
    [
        pytest.param(THREE_DAYS, BrokerState(), 3 * DAY, id="nothing is reported but the setting"),
        pytest.param(BrokerSettings(), BrokerState(), None, id="nothing is reported at all"),
        pytest.param(THREE_DAYS, log(3 * DAY, 100 * GIB, 0.60), 3 * DAY, id="a disk with room"),
        # 100 GiB in 10 hours, and 261 GiB more to come (a quarter of the disk, and half a hundredth): 36.1 hours.
        pytest.param(
            THREE_DAYS, log(10 * HOUR, 100 * GIB, 0.60), 10 * HOUR * (1 + 0.255 * 10.24), id="a disk that fills sooner"
        ),
        pytest.param(
            THREE_DAYS,
            log(10 * HOUR, 100 * GIB, 0.85),
            10 * HOUR * (1 + 0.005 * 10.24),
            id="at the level, which is not beyond it",
        ),
        pytest.param(THREE_DAYS, log(10 * HOUR, 100 * GIB, 0.89), 10 * HOUR, id="beyond it"),
        pytest.param(THREE_DAYS, log(100 * HOUR, 100 * GIB, 0.89), 3 * DAY, id="beyond it, but of no use to anybody"),
        pytest.param(THREE_DAYS, log(400, GIB, 0.89), 400, id="minutes are reported as they are"),
        pytest.param(THREE_DAYS, log(600, 50 * GIB, 0.60), 3 * DAY, id="a log that has just begun shows nothing"),
        pytest.param(
            THREE_DAYS, log(600, 50 * GIB, 0.80), 600 * (1 + 0.055 * 20.48), id="but on a disk that fills it does"
        ),
        pytest.param(THREE_DAYS, log(10 * HOUR, 100 * GIB, 0.6, None), 3 * DAY, id="a disk of unknown size"),
        pytest.param(THREE_DAYS, BrokerState(NOW, 0.86), None, id="deleting, and nobody knows from when on"),
        pytest.param(BrokerSettings(), log(10 * HOUR, 100 * GIB, 0.86), 10 * HOUR, id="only the disk is known"),
        pytest.param(THREE_DAYS, log(-5, 100 * GIB, 0.6), 3 * DAY, id="a broker's clock that is ahead"),
        pytest.param(
            BrokerSettings(reserved_seconds=3 * DAY, deletes_forcibly=False),
            log(10 * HOUR, 100 * GIB, 0.89),
            3 * DAY,
            id="reported not to delete before the time",
        ),
    ],
)
def test_how_long_messages_are_kept(settings: BrokerSettings, state: BrokerState, kept_seconds: float | None) -> None:
    assert keeping(state, settings).kept_seconds == pytest.approx(kept_seconds)


def reported(state: BrokerState, settings: BrokerSettings = THREE_DAYS) -> Mapping[str, str]:
    """What is wrong: a sentence by its kind."""
    return dict(broker_troubles(keeping(state, settings)))


@pytest.mark.parametrize(
    ("state", "kind", "says"),
    [
        (
            log(10 * HOUR, 100 * GIB, 0.78),
            "disk_filling",
            "78% full; beyond 85% it deletes the oldest",
        ),
        (
            log(10 * HOUR, 100 * GIB, 0.78),
            "disk_filling",
            "at the current write rate messages are deleted after 17 h 40 min",
        ),
        (log(10 * HOUR, 100 * GIB, 0.88), "disk_too_full", "they go back 10 h; beyond 90% it accepts no new ones"),
        (log(10 * HOUR, 100 * GIB, 0.93), "disk_full", "until it is below 85%, and it deletes the oldest"),
        (
            BrokerState(dispatch_behind_bytes=64 * 1024**2),
            "dispatch_behind",
            "67.1 MB of messages are stored",
        ),
        (BrokerState(page_cache_lock_seconds=1.2), "page_cache_busy", "has taken 1.2 s so far"),
        (BrokerState(send_wait_seconds=0.4), "sends_wait", "has waited for 0.4 s"),
        (BrokerState(pull_wait_seconds=6.0), "pulls_wait", "has waited for 6 s"),
    ],
)
def test_what_is_wrong_with_a_broker(state: BrokerState, kind: str, says: str) -> None:
    found = reported(state)
    assert list(found) == [kind]
    assert says in found[kind]


def test_a_disk_without_forced_cleaning_is_reported() -> None:
    settings = BrokerSettings(reserved_seconds=DAY, deletes_forcibly=False)
    assert "beyond 90% it accepts no new messages" in reported(BrokerState(NOW, 0.88), settings)["disk_filling"]
    assert "delete" not in reported(BrokerState(NOW, 0.95), settings)["disk_full"]


def test_a_healthy_broker_is_not_reported() -> None:
    assert reported(log(DAY, 10 * GIB, 0.5)) == {}


def test_the_fuller_one_of_two_disks_counts() -> None:
    """The broker asks the disk of the consume queues by the same levels, and deletes the commit log for it."""
    told_now = json.loads(RUNTIME)["table"] | {"consumeQueueDiskRatio": "0.87"}
    state = BrokerState.of(told_now, NOW)
    assert state.disk_used == 0.87
    found = keeping(state)
    assert found.deletes_at_any_age
    assert found.kept_seconds == found.lasts_seconds


def test_a_disk_about_the_level_of_forced_deletion_does_not_make_the_retention_come_and_go() -> None:
    """Deleting frees a little, and it is beyond the level again: where the disk's size is unknown, too."""
    found, kept = BrokerRetention(THREE_DAYS), []
    for minute, used in enumerate((0.84, 0.86, 0.85, 0.84, 0.86, 0.84)):
        now = NOW + 60 * minute
        found.take(BrokerState(now, used, None, 100 * GIB, now - 20 * HOUR))
        kept.append(found.kept_seconds)
    assert kept == [3 * DAY, *[20 * HOUR] * 5]
    assert "84% full, and was beyond 85% within the hour: it deletes" in dict(broker_troubles(found))["disk_too_full"]
    found.take(BrokerState(NOW + 2 * HOUR, 0.84, None, 100 * GIB, NOW))
    assert found.kept_seconds == 3 * DAY


def test_a_disk_with_freed_space_keeps_messages_again_at_once() -> None:
    found = BrokerRetention(THREE_DAYS)
    for minute, used in enumerate((0.88, 0.60)):
        found.take(BrokerState(NOW + 60 * minute, used, None, 100 * GIB, NOW - 20 * HOUR))
    assert found.kept_seconds == 3 * DAY
    assert broker_troubles(found) == []


def test_a_disk_that_was_full_takes_messages_once_it_is_below_the_level_of_forced_deletion() -> None:
    found, kinds = BrokerRetention(THREE_DAYS), []
    for used in (0.89, 0.91, 0.88, 0.86, 0.85, 0.89):
        found.take(BrokerState(NOW, used))
        kinds += [kind for kind, _ in broker_troubles(found)]
    assert kinds == ["disk_too_full", "disk_full", "disk_full", "disk_full", "disk_too_full", "disk_too_full"]


def test_numbers_with_a_comma_are_numbers() -> None:
    told_now = json.loads(RUNTIME)["table"] | {"commitLogDirCapacity": "Total : 252,0 GiB, Free : 220,4 GiB."}
    assert BrokerState.of(told_now, NOW).disk_bytes == pytest.approx(31.6 * GIB / 0.35)
