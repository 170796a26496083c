"""Whether a maintenance window holds at a moment, and until when: pure.

A weekly window is told by the clock on the wall of its time zone: it begins and ends at these times also on the days on
which the clock changes, and is then an hour shorter or longer.
"""

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from lagwise.config.operating import WEEKDAYS, MaintenanceWindow
from lagwise_alerts.model import AlertSubject


def ends_at(window: MaintenanceWindow, now: datetime) -> datetime | None:
    """When the window that holds at this moment ends; None where it does not hold. Its end is not part of it."""
    if not window.days:
        starts, ends = window.once()
        return ends if starts <= now < ends else None
    zone = ZoneInfo(window.time_zone)
    today = now.astimezone(zone).date()
    found = []
    for day in (today - timedelta(days=1), today):
        if WEEKDAYS[day.weekday()] in window.days:
            start_time, end_time = window.start_time or time(), window.end_time or time()
            last_day = day + timedelta(days=1) if end_time <= start_time else day
            starts = datetime.combine(day, start_time, zone)
            # Of an hour that is there twice the whole belongs to it: fold=1 is the second time.
            ends = datetime.combine(last_day, end_time, zone).replace(fold=1)
            if starts <= now < ends:
                found.append(ends)
    return max(found, default=None)


def concerns(window: MaintenanceWindow, subject: AlertSubject) -> bool:
    """Whether the window is about this subject. One that names groups is not about collections; none is about the
    analysis, which works for all clusters."""
    if subject.cluster is None or not window.clusters.selects(subject.cluster):
        return False
    return window.groups is None or (subject.group is not None and window.groups.selects(subject.group))
