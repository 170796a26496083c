"""The rhythm in which a group-partition commits, and the pauses that are usual with it."""

import numpy as np

from lagwise.domain.verdicts.buckets import HOUR_SECONDS
from lagwise.domain.verdicts.evidence import cadence_of
from tests.domain.observed import Sample, Watched, pace, paces, seen
from tests.traces.judged import plain

# commits seen, seconds with a backlog, standstill, usual pause → seconds from commit to commit
CADENCES = (
    (1, "ten commits in five minutes of backlog", 10, 300.0, 0.0, None, 30.0),
    (2, "none was seen: no rhythm, not an infinite one", 0, 300.0, 0.0, None, None),
    (3, "the standstill that lasts is not its rhythm", 10, 900.0, 600.0, None, 30.0),
    (4, "a standstill from before the look-back makes no negative rhythm", 1, 300.0, 600.0, None, 0.0),
    (5, "a job that runs every ten minutes", 24, 3600.0, 0.0, 540.0, 540.0),
    (6, "a job that has not run for an hour", 0, 3600.0, 3600.0, 3420.0, 3420.0),
    (7, "a usual pause that the mean exceeds", 1, 3600.0, 0.0, 600.0, 3600.0),
)


def test_cadence() -> None:
    moves, backlog, standstill, usual = zip(*(row[2:6] for row in CADENCES), strict=True)
    rows = {
        "moves": np.array(moves),
        "backlog_seconds": np.array(backlog),
        "usual_pause_seconds": np.array(usual, np.float64),
        "unmoved_seconds": np.array(standstill),
        "drained_seconds": np.full(len(moves), np.nan),
        "lag": np.ones(len(moves), np.int64),
        "lag_seconds": np.array(standstill),
        "lag_seconds_is_lower_bound": np.zeros(len(moves), bool),
    }
    found = plain(cadence_of(rows)["commit_cadence_seconds"])
    assert dict(zip([row[:2] for row in CADENCES], found, strict=True)) == {row[:2]: row[6] for row in CADENCES}


MINUTE = 60.0


def history(
    hours: float,
    *pauses: tuple[float, float],
    every: tuple[float, float] | None = None,
    interval: float = MINUTE,
    drained: bool = False,
) -> list[Sample]:
    """Samples of a partition on which ten records a second are written. The group commits at every sample, but in
    pauses (from, to), seconds, and in those of ``every`` period (period, how long of it): the last commit is at the
    pause's beginning, the next at its end. Some are unread at every sample unless it ``drained`` what there is."""
    rows: list[tuple[float, int | None, int | None]] = []
    committed = 0
    for n in range(int(hours * HOUR_SECONDS / interval) + 1):
        at = n * interval
        rests = any(since < at < until for since, until in pauses)
        rests |= every is not None and 0 < at % every[0] < every[1]
        if not rests:
            committed = int(10 * at)
        rows.append((at, committed, int(10 * at) + (0 if drained else 100)))
    return seen(*rows)


def hour(number: float) -> float:
    return number * HOUR_SECONDS


def spells(*minutes: float) -> list[tuple[float, float]]:
    """From when to when nothing is committed, one after the other."""
    return [(start * 60.0, end * 60.0) for start, end in zip(minutes[::2], minutes[1::2], strict=True)]


OUTAGE = (hour(2.1), hour(2.8))

# hours of history (judged at its end), observations, re-created at (hours) → usual pause
PAUSES = (
    (1, "it commits at every sample", history(9), None, None),
    (2, "a run every ten minutes, nine minutes apart", history(6, every=(600.0, 540.0)), None, 540.0),
    (3, "a run every twenty minutes", history(6, every=(1200.0, 1080.0)), None, 1080.0),
    (4, "a run every hour: its pauses begin in the hour before",
     history(6, every=(3600.0, 3480.0)), None, 3480.0),
    (5, "a commit every fifty minutes", history(9, every=(3000.0, 3000.0)), None, 3000.0),
    (6, "a commit every six hours", history(24.5, every=(hour(6), hour(6))), None, hour(6)),
    (7, "one outage is no rhythm", history(9, OUTAGE), None, None),
    (8, "nor are two in a day", history(24, OUTAGE, (hour(12.1), hour(12.9))), None, None),
    (9, "nor three that grow", history(24, OUTAGE, (hour(7.1), hour(9.9)), (hour(12.1), hour(18.9))), None, None),
    (10, "an outage of an hourly job does not stretch its rhythm",
     history(12, (hour(4), hour(9)), every=(3600.0, 3480.0)), None, 3480.0),
    (11, "pauses of less than five minutes show in an hour's mean", history(6, every=(600.0, 240.0)), None, None),
    (12, "five minutes", history(6, every=(600.0, 300.0)), None, 300.0),
    (13, "nothing to read is no pause", history(9, drained=True), None, None),
    (14, "from where nothing was unread on", history(6, every=(1200.0, 1080.0), drained=True), None, 1080.0),
    (15, "two pauses are no rhythm", history(0.55, every=(600.0, 540.0)), None, None),
    (16, "three within an hour are", history(0.7, every=(600.0, 540.0)), None, 540.0),
    (17, "those of another topic of that name are another's", history(6, every=(600.0, 540.0)), 5.6, None),
    (18, "two whole hours of the new one", history(6, every=(600.0, 540.0)), 2.5, 540.0),
    (19, "a slow collector's intervals are no pauses", history(24, interval=900.0), None, None),
    (20, "two of its intervals are", history(24, every=(1800.0, 1800.0), interval=900.0), None, 1800.0),
    (21, "two outages within two hours are no rhythm", history(2.3, *spells(66, 84, 96, 126)), None, None),
    (22, "nor in two whole hours", history(3.3, *spells(30, 48, 72, 96)), None, None),
    (23, "three are", history(3.3, *spells(30, 48, 72, 96, 132, 156)), None, 24 * 60.0),
    (24, "three runs each half hour are enough", history(1.95, *spells(12, 39, 42, 69, 72, 99)), None, 27 * 60.0),
)  # fmt: skip


def watched(samples: list[Sample], recreated: float | None) -> Watched:
    recreated_at = None if recreated is None else hour(recreated)
    return Watched(samples, samples[-1].at, samples[1].at - samples[0].at, recreated_at)


def test_usual_pause() -> None:
    found = paces([watched(samples, recreated) for _, _, samples, recreated, _ in PAUSES])
    pauses = [one.usual_pause_seconds for one in found]
    assert dict(zip([row[:2] for row in PAUSES], pauses, strict=True)) == {row[:2]: row[4] for row in PAUSES}


def test_without_samples_there_is_none() -> None:
    assert pace([], 0.0).usual_pause_seconds is None


def test_the_day_before_does_not_count() -> None:
    """Runs every ten minutes on the first day, commits at every sample since: a day later nothing is left of them."""
    changed = history(50, *[(600.0 * n, 600.0 * n + 540.0) for n in range(6 * 24)])
    found = paces([watched(changed[: n * 60 + 1], None) for n in (24, 30, 43, 49)])
    assert [one.usual_pause_seconds for one in found] == [540.0, 540.0, None, None]
