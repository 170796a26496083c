"""Parts of the sentences about rebalances."""

from collections import Counter
from collections.abc import Iterable, Sequence

from lagwise.domain.humanise import duration
from lagwise.domain.rebalances.model import Rebalance
from lagwise.domain.vocabulary import RebalanceCause

#: More members than these are not named.
MOST_NAMES = 3


def over(rebalances: Sequence[Rebalance]) -> str:
    """``within 4 min``, with a space before it: from the first of them to the last."""
    took = rebalances[-1].at - rebalances[0].at
    return f" within {duration(took.total_seconds())}" if took else ""


def longest(seconds: Iterable[float | None]) -> float | None:
    """In seconds; None where none is known."""
    return max((s for s in seconds if s is not None), default=None)


def named(those: Sequence[Rebalance]) -> str:
    """In brackets, the worst first, with how often where that is more than once."""
    names = Counter(name for r in those for name in (r.failed or r.left))
    if not names:
        return ""
    shown = ", ".join(
        name if times == 1 else f"{name} {how_often(times)}"
        for name, times in sorted(names.items(), key=lambda n: (-n[1], n[0]))[:MOST_NAMES]
    )
    return f" ({shown}{f' and {len(names) - MOST_NAMES} more' if len(names) > MOST_NAMES else ''})"


def how_often(number: int) -> str:
    """``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def unless_crashed(rebalances: Sequence[Rebalance]) -> str:
    """What is not known of members that samples no longer show."""
    if not any(r.cause is RebalanceCause.MEMBER_GONE for r in rebalances):
        return ""
    who = "it" if sum(len(r.left) for r in rebalances) == 1 else "they"
    return f"; samples do not show whether {who} left or crashed"
