"""Prints the worked example of docs/assignment.md: one group, what it has, and what each assignor would give it."""

import sys

from lagwise.domain.assignment.findings import findings
from lagwise.domain.assignment.model import Member, Partition
from lagwise.domain.assignment.skew import Figures
from lagwise.domain.assignment.view import assignment_view

COUNTS = {"orders": 2, "payments": 2, "refunds": 2}
#: Records per second.
RATES: dict[Partition, float | None] = {
    ("orders", 0): 400.0,
    ("orders", 1): 200.0,
    ("payments", 0): 200.0,
    ("payments", 1): 200.0,
    ("refunds", 0): 100.0,
    ("refunds", 1): 100.0,
}
#: Member and the number of the partition that `range` gives it of each topic.
OWNED = {"a": (0,), "b": (1,), "c": (), "d": ()}


def table() -> str:
    """The table and the sentences, as Markdown."""
    members = [
        Member(
            name, frozenset(COUNTS), frozenset((topic, number) for topic in COUNTS for number in numbers), generation=1
        )
        for name, numbers in OWNED.items()
    ]
    view = assignment_view(members, COUNTS, RATES, "range")
    lines = [
        "| | most partitions | idle members | busiest member | partitions moved | rebalances |",
        "|---|---|---|---|---|---|",
        _line("now", view.now, "", ""),
        *(_line(f"`{a.assignor}`", a.figures, a.partitions_moved, a.rebalances) for a in view.alternatives),
    ]
    bound, attainable = view.bound_share or 0.0, view.attainable_share or 0.0
    lines += [
        f"| found by traffic | | | {100 * attainable:.1f} % | | |",
        f"| the bound | | | {100 * bound:.1f} % | | |",
        "",
        *(f"> {sentence}" for sentence in findings(view, {name: f"client {name}" for name in OWNED})),
    ]
    return "\n".join(lines)


def _line(name: str, figures: Figures, moved: int | str, rebalances: int | str) -> str:
    share = "—" if figures.busiest_share is None else f"{100 * figures.busiest_share:.1f} %"
    return f"| {name} | {figures.most_partitions} | {figures.idle_members} | {share} | {moved} | {rebalances} |"


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
