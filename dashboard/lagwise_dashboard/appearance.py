"""How the product's words look and read on a page. Every status has a word, a sign and a colour: never colour alone."""

from dataclasses import dataclass
from typing import Literal

from lagwise.domain.capacity.verdict import CapacityVerdict
from lagwise.domain.vocabulary import Status, UnknownReason

MarkdownColour = Literal["red", "orange", "yellow", "green", "blue", "violet", "gray"]


@dataclass(frozen=True, slots=True)
class Appearance:
    """A status on the page: ``sign`` and ``word`` are read, ``colour`` (white text on it is readable) and
    ``markdown`` (the theme's nearest colour) are seen, ``meaning`` explains it to a newcomer."""

    word: str
    sign: str
    colour: str
    markdown: MarkdownColour
    meaning: str

    @property
    def label(self) -> str:
        """Sign and word."""
        return f"{self.sign} {self.word}"


STATUS_APPEARANCES: dict[str, Appearance] = {
    Status.LOSING_DATA: Appearance(
        "losing data", "✕", "#9F1239", "red", "Records were deleted by retention before the group read them."
    ),
    Status.AT_RISK: Appearance(
        "at risk",
        "▲",
        "#BE123C",
        "red",
        "At today's rates unread records will be deleted, or the commits expire, soon.",
    ),
    Status.STOPPED: Appearance(
        "stopped", "■", "#DC2626", "red", "There is lag, and no member owns the partition: the consumer is gone."
    ),
    Status.STALLED: Appearance(
        "stalled", "‖", "#C2410C", "orange", "There is lag and a member owns the partition, but it commits nothing."
    ),
    Status.REWOUND: Appearance(
        "rewound", "↶", "#7C3AED", "violet", "The committed offset went back: records are read again."
    ),
    Status.FALLING_BEHIND: Appearance(
        "falling behind", "↗", "#B45309", "orange", "The lag grows: more is written than the group reads."
    ),
    Status.LAGGING: Appearance(
        "lagging", "→", "#A16207", "yellow", "The lag neither grows nor shrinks, and is older than the objective."
    ),
    Status.CATCHING_UP: Appearance("catching up", "↘", "#2563EB", "blue", "There is lag, and it shrinks."),
    Status.OK: Appearance("ok", "✓", "#15803D", "green", "Nothing is wrong."),
    Status.GHOST: Appearance(
        "ghost",
        "◌",
        "#64748B",
        "gray",
        "An old commit on a topic that the group no longer reads: left out of its sums.",
    ),
    Status.UNKNOWN: Appearance("unknown", "?", "#475569", "gray", "The status is unknown; see the reason."),
}

CAPACITY_APPEARANCES: dict[str, Appearance] = {
    CapacityVerdict.SHORT: Appearance("short", "▲", "#DC2626", "red", "The running set-up cannot handle today's peak."),
    CapacityVerdict.TIGHT: Appearance(
        "tight", "↗", "#B45309", "orange", "It handles the current or forecast peak, but without the required headroom."
    ),
    CapacityVerdict.ENOUGH: Appearance("enough", "✓", "#15803D", "green", "It handles the peak with headroom."),
    CapacityVerdict.OVERSIZED: Appearance(
        "oversized", "↓", "#2563EB", "blue", "Two thirds of the nodes, or fewer, would be enough."
    ),
    CapacityVerdict.UNDECIDED: Appearance(
        "undecided", "?", "#475569", "gray", "Its capacity is unknown; the sentence names a test that would show it."
    ),
}

REASONS: dict[str, str] = {
    UnknownReason.UNREADABLE: "it could not be read from the cluster",
    UnknownReason.EXPIRED: "its committed offsets expired",
    UnknownReason.NO_COMMIT: "nothing has been committed yet",
    UnknownReason.RECREATED: "the topic was deleted and created again",
    UnknownReason.OUT_OF_RANGE: "the committed offset lies beyond the end of the log",
    UnknownReason.NOT_COMMITTING: "the group reads without committing",
    UnknownReason.REBALANCING: "the group is rebalancing",
    UnknownReason.TOO_FEW_SAMPLES: "it has not been watched for long enough",
    UnknownReason.NO_TOPICS: "it reads no topic",
}


def of_status(status: str | None) -> Appearance:
    """How a status from the lake looks; a word this version does not know is shown as it is, in grey."""
    return STATUS_APPEARANCES.get(status or "") or _of_unknown_word(status, "status")


def of_capacity_verdict(verdict: str | None) -> Appearance:
    """How a capacity verdict from the lake looks; an unknown word as in :func:`of_status`."""
    return CAPACITY_APPEARANCES.get(verdict or "") or _of_unknown_word(verdict, "verdict")


def _of_unknown_word(word: str | None, noun: str) -> Appearance:
    meaning = f"A {noun} this version of the dashboard does not know."
    return Appearance(word or "—", "?", "#475569", "gray", meaning)


def label(status: str | None, reason: str | None = None) -> str:
    """Sign and word of a status, with the reason where it is unknown."""
    shown = of_status(status).label
    return f"{shown}: {reason.replace('_', ' ')}" if reason and status == Status.UNKNOWN else shown


def reason_in_words(reason: str | None) -> str | None:
    """Why something is unknown, as half a sentence; None where there is no reason."""
    return REASONS.get(reason, reason.replace("_", " ")) if reason else None
