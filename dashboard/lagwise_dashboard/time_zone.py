"""The time zone of all times on a page, and the one place that converts to it.

Moments are UTC in the lake, in queries, in answers that are kept for everybody, in addresses and in exports. They are
converted where they are drawn. The zone belongs to a run, which begins with :func:`use`: nothing passes it on.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from lagwise.domain import humanise

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ShownZone:
    """A time zone and its IANA name."""

    name: str
    zone: tzinfo

    def local(self, at: datetime) -> datetime:
        """A moment as the clocks there show it."""
        return at.astimezone(self.zone)

    def typed(self, at: datetime, *, latest: bool = False) -> datetime:
        """The moment, UTC, of a time without a zone. A time that occurs twice as clocks go back may mean two moments,
        and so may one that they skip, by the offset before and after: it is the first, or the ``latest``."""
        both = [at.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
        return max(both) if latest else min(both)

    def offset(self, at: datetime) -> timezone:
        """The offset from UTC at a moment, as a zone that keeps it."""
        return timezone(self.local(at).utcoffset() or timedelta(0))

    def days_before(self, at: datetime, days: int) -> timedelta:
        """How long ago it was the same time of day, so many days before: an hour more or less than whole days where
        the clocks changed meanwhile."""
        return at - (self.local(at) - days * _DAY).astimezone(UTC)

    def axis_title(self, since: datetime, until: datetime, offset: timezone) -> str:
        """What an axis with this offset throughout is: ``UTC``, ``Europe/Berlin, UTC+1``; and whether clocks there show
        something else in a part of the span."""
        shown = humanise.utc_offset(offset.utcoffset(None))
        if self.zone is UTC:
            return shown
        days = range((until - since) // _DAY + 1)
        is_changed = any(self.offset(at) != offset for at in (*(since + day * _DAY for day in days), until))
        return f"{self.name}, {shown}" + (" throughout: its clocks change in this span" if is_changed else "")


IN_UTC = ShownZone("UTC", UTC)
_shown: ContextVar[ShownZone] = ContextVar("shown", default=IN_UTC)


def use(zone: ShownZone) -> None:
    """Show all times of this run in a zone."""
    _shown.set(zone)


def shown() -> ShownZone:
    """The zone of this run; UTC outside of a page."""
    return _shown.get()


def clock(at: datetime | None, now: datetime) -> str:
    """A moment in the zone of this run, with its offset; the date stands before it where it is not today's."""
    return humanise.clock(at, now, _shown.get().zone)


def clock_markdown(at: datetime | None, now: datetime) -> str:
    """:func:`clock` for a place that reads Markdown."""
    return markdown(clock(at, now))


def markdown(text: str) -> str:
    """A text of ours with times in it, for a place that reads Markdown. Streamlit takes the minutes of ``08:15:00`` for
    the name of an emoji, and shows none of the text until its list of emoji (270 kB) has come."""
    return text.replace(":", "\\:")


def local(at: datetime) -> datetime:
    """A moment as the clocks of the zone of this run show it."""
    return _shown.get().local(at)
