"""What may stand in the query of an address: named values, how each is written and read, and what it may be."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

T = TypeVar("T")
N = TypeVar("N", int, float)

#: Moments between these can be written in any time zone.
_FIRST, _LAST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
#: Before the name of an order: reversed.
REVERSED = "-"


@dataclass(frozen=True, slots=True)
class Parameter(Generic[T]):
    """One name in the query of an address. ``allowed`` completes "must be …".

    ``parse`` gets the texts behind every occurrence of the name, at least one, and raises ValueError for what cannot
    be. ``write`` is its inverse; an address without the name means ``default``, and so does one with nothing behind it,
    unless ``may_be_empty``.
    """

    name: str
    meaning: str
    allowed: str
    default: T
    parse: Callable[[Sequence[str]], T]
    write: Callable[[T], list[str]]
    may_be_empty: bool = field(default=False, kw_only=True)

    def read(self, texts: Iterable[str]) -> T:
        """The value that the texts behind this name mean. Raises ValueError."""
        given = [text for text in texts if text or self.may_be_empty]
        return self.parse(given) if given else self.default

    def written(self, value: T | None) -> list[str]:
        """The texts that mean this value; none for the default."""
        return [] if value is None or value == self.default else self.write(value)


def text(name: str, meaning: str) -> Parameter[str]:
    """Any text; empty where there is none."""
    return Parameter(name, meaning, "text, given once", "", _single, _as_text)


def name(name: str, meaning: str) -> Parameter[str | None]:
    """A name, which may be empty; None where there is none."""

    def write(value: str | None) -> list[str]:
        return [] if value is None else [value]

    return Parameter(name, meaning, "text, given once", None, _single, write, may_be_empty=True)


def choice(name: str, meaning: str, options: Iterable[str], default: str) -> Parameter[str]:
    """One of some words."""
    known = tuple(options)

    def parse(given: Sequence[str]) -> str:
        return _known(_single(given), known)

    return Parameter(name, meaning, f"one of {', '.join(known)}", default, parse, _as_text)


def choices(name: str, meaning: str, options: Iterable[str]) -> Parameter[tuple[str, ...]]:
    """Any of some words, the name once for each; none of them where there is no such name."""
    known = tuple(options)

    def parse(given: Sequence[str]) -> tuple[str, ...]:
        chosen = {_known(one, known) for one in given}
        return tuple(word for word in known if word in chosen)

    return Parameter(name, meaning, f"any of {', '.join(known)}, the name once for each", (), parse, list)


def flag(name: str, meaning: str) -> Parameter[bool]:
    """Yes or no; no by default."""

    def parse(given: Sequence[str]) -> bool:
        return _known(_single(given), ("yes", "no")) == "yes"

    return Parameter(name, meaning, "yes or no", False, parse, lambda value: ["yes" if value else "no"])


@dataclass(frozen=True, slots=True)
class SortOrder(Parameter[str]):
    """What a table is sorted by: one of the ``keys``, or one reversed."""

    keys: tuple[str, ...]


def order(name: str, meaning: str, keys: Iterable[str]) -> SortOrder:
    """What a table is sorted by: one of the keys, the first by default, or one reversed."""
    known = tuple(keys)

    def parse(given: Sequence[str]) -> str:
        word = _single(given)
        _known(word.removeprefix(REVERSED), known)
        return word

    allowed = f"one of {', '.join(known)}; reversed with a {REVERSED} before it"
    return SortOrder(name, meaning, allowed, known[0], parse, _as_text, known)


@dataclass(frozen=True, slots=True)
class Number(Parameter[float | None]):
    """A number from ``low`` to ``high``, or None where there is none and no default."""

    low: float
    high: float
    is_whole: bool


def number(name: str, meaning: str, low: float, high: float, default: float | None = None) -> Number:
    """A number in a range."""
    return Number(
        name=name,
        meaning=meaning,
        allowed=f"a number from {low:,g} to {high:,g}",
        default=default,
        parse=_within(float, low, high),
        write=_as_number,
        low=low,
        high=high,
        is_whole=False,
    )


def whole(name: str, meaning: str, low: int, high: int, default: int | None = None) -> Number:
    """A whole number in a range."""
    return Number(
        name=name,
        meaning=meaning,
        allowed=f"a whole number from {low:,} to {high:,}",
        default=default,
        parse=_within(int, low, high),
        write=_as_number,
        low=low,
        high=high,
        is_whole=True,
    )


def page_number(name: str, meaning: str) -> Parameter[int]:
    """Which page of a table, from 1 on."""
    parse = _within(int, 1, 10**9)
    return Parameter(name, meaning, "a whole number from 1 on", 1, parse, lambda value: [str(value)])


def moment(name: str, meaning: str) -> Parameter[datetime | None]:
    """A moment to the second, UTC where it names no zone; None where there is none."""

    def parse(given: Sequence[str]) -> datetime | None:
        at = datetime.fromisoformat(_single(given))
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        if not _FIRST <= at <= _LAST:
            raise ValueError(given)
        return at.astimezone(UTC)

    return Parameter(name, meaning, "a moment such as 2026-11-21T11:20:00Z", None, parse, _as_moment)


def texts(name: str, meaning: str) -> Parameter[tuple[str, ...]]:
    """Any texts, the name once for each."""
    return Parameter(name, meaning, "any text, the name once for each", (), tuple, list)


@dataclass(frozen=True, slots=True, eq=False)
class ListParameters:
    """The names of one list that may be longer than a page of it: the number of its page, the text that its rows hold,
    and their order.

    ``filters`` are the other parameters that decide which rows there are.
    """

    page: Parameter[int]
    search: Parameter[str] | None = None
    sort: SortOrder | None = None
    filters: tuple[Parameter[Any], ...] = ()

    @property
    def parameters(self) -> tuple[Parameter[Any], ...]:
        """All that it has."""
        return tuple(p for p in (self.search, self.sort, self.page) if p is not None)

    def searched(self, text: str) -> dict[Parameter[Any], Any]:
        """What shows the rows that hold a text: nothing, of a list that cannot be searched."""
        return {} if self.search is None else {self.search: text}

    @property
    def follows(self) -> frozenset[Parameter[Any]]:
        """The parameters after a change of which the list starts at its first page."""
        return frozenset({*self.parameters, *self.filters} - {self.page})


def list_parameters(
    name: str, of: str, *, searched: str = "", orders: tuple[str, ...] = (), filters: tuple[Parameter[Any], ...] = ()
) -> ListParameters:
    """A list ``of`` something (in the plural) with parameters of its own, ``NAME_page`` and so on.

    ``searched`` is where its text is looked for, and ``orders`` are the names of its orders, the usual one first;
    without either it has no such parameter.
    """
    return ListParameters(
        page_number(f"{name}_page", f"Which page of the {of}."),
        search=text(f"{name}_q", f"Only the {of} with this text in {searched}.") if searched else None,
        sort=order(f"{name}_sort", f"The order of the {of}.", orders) if orders else None,
        filters=filters,
    )


def _single(given: Sequence[str]) -> str:
    if len(set(given)) != 1:
        raise ValueError(given)
    return given[0]


def _known(word: str, known: Sequence[str]) -> str:
    if word not in known:
        raise ValueError(word)
    return word


def _within(convert: Callable[[str], N], low: float, high: float) -> Callable[[Sequence[str]], N]:
    def parse(given: Sequence[str]) -> N:
        value = convert(_single(given))
        if not low <= value <= high:  # NaN fails this too
            raise ValueError(given)
        return value

    return parse


def _as_text(value: str) -> list[str]:
    return [value]


def _as_number(value: float | None) -> list[str]:
    return [] if value is None else [f"{value:.12g}"]


def _as_moment(value: datetime | None) -> list[str]:
    return [] if value is None else [value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")]
